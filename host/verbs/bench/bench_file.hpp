// The file of `kiln bench` (docs/benchmarks.md) and those that its programs write, as values.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "base/json.hpp"

#include <kiln/status.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::host {

struct Spread {
  double median = 0, low = 0, high = 0;  // low, high: quartiles
  std::uint64_t samples = 0;             // 0: of a ratio, which has none of its own
};

struct BenchTarget {
  std::string text;  // "<= 7 ns"
  double value = 0;
  bool met = false;
};

struct BenchFigure {
  std::string id, name, unit;
  bool more_is_better = false;
  Spread kiln;
  std::optional<std::string> peer_name;  // with `peer` and `ratio`
  Spread peer, ratio;                    // ratio: above 1, Kiln is better
  std::optional<BenchTarget> target;
  std::optional<bool> verified;
  bool stable = false;
  std::optional<std::string> group, device;

  // What tells it from every other of a file.
  std::string identity() const;
};

struct MeasuredArea {
  std::string name, title;
  double seconds = 0;
  std::optional<std::string> skipped;  // why something is missing
  std::vector<BenchFigure> figures;
};

struct BenchMachine {
  std::string cpu, kernel, os;
  std::uint64_t cores = 0, memory_bytes = 0;
  bool quiet = false;
  double load_before = 0, noise_percent = 0;
  std::map<std::string, std::string> versions;
};

struct BenchFile {
  std::string kiln, started;
  std::optional<std::string> commit;  // "+changes" behind it: of files that differed from it; absent: unknown
  double seconds = 0;
  BenchMachine machine;
  std::vector<MeasuredArea> areas;
};

// What one benchmark program wrote.
struct ProgramFigures {
  std::vector<BenchFigure> figures;
  std::map<std::string, std::string> versions;
  std::optional<std::string> skipped;
};

Json bench_json(const BenchFile& file);

// invalid_argument: the document is none; names the place in it ("areas[1].figures[0].kiln.median: expected a number,
// found null").
Result<BenchFile> read_bench(const Json& document);

// not_found, io: no such file, or it cannot be read. invalid_argument: it is none of these; names the file and the
// place.
Result<BenchFile> read_bench_file(const std::filesystem::path& path);
Result<ProgramFigures> read_program_figures(const std::filesystem::path& path);

}  // namespace kiln::host

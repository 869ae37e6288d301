// The file of `kiln bench` (docs/benchmarks.md) and those that its programs write, as values.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <kiln_json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
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
  unsigned passes = 1;  // merged into it; not in the file

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

// The file, with a figure a line, so that changes of figures are changes of lines.
std::string bench_file_text(const BenchFile& file);

// invalid_argument: the document is none; names the place in it ("areas[1].figures[0].kiln.median: expected a number,
// found null").
Result<BenchFile> read_bench(const Json& document);

// not_found, io: no such file, or it cannot be read. invalid_argument: it is none of these; names the file and the
// place.
Result<BenchFile> read_bench_file(const std::filesystem::path& path);
Result<ProgramFigures> read_program_figures(const std::filesystem::path& path);

// A bench file as people read it: a table on the terminal, and rows of Markdown for documents.
//
// Thread-safety: pure functions. Ownership: values.

// "4.9 ns (4.8 to 5.2)"; a single sample, and one that does not vary, has no range.
std::string spread_text(const Spread& spread, const std::string& unit);

std::string bench_text(const BenchFile& file);

// The figures named by their ids, "ID" or "ID@GROUP" (blanks may be written as '_'), in that order; all of them where
// none is named, by areas. Under the table stands what machine it is of. not_found: an id that the file has not.
Result<std::string> bench_markdown(const BenchFile& file, std::span<const std::string> ids);

}  // namespace kiln::host

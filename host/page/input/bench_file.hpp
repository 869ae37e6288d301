// BenchFile: what `kiln bench` wrote: areas of figures, each with its peer's beside it.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include "page/input/field_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::host::page {

struct Spread {  // a median between its quartiles
  double median = 0, low = 0, high = 0;
};

struct Contender {
  std::string name;
  Spread value;
  std::uint64_t samples = 0;
};

struct BenchFigure {
  std::string id, name, unit;
  bool less_is_better = true;
  Contender kiln;
  std::optional<Contender> peer;
  std::optional<Spread> ratio;  // above 1: Kiln is better
  std::string target;           // in words; empty: none
  bool target_met = false;
  std::optional<bool> verified;
  std::string group, device;  // empty: none
};

struct BenchArea {
  std::string name, title, skipped;  // skipped: why; empty: it was measured
  double seconds = 0;
  std::vector<BenchFigure> figures;
};

struct BenchFile {
  std::string kiln, commit, started;
  double seconds = 0;
  std::string cpu, kernel, os;
  std::uint64_t cores = 0, memory_bytes = 0;
  bool quiet = false;
  double load_before = 0, noise_percent = 0;
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<BenchArea> areas;
};

BenchFile read_bench(FieldReader document);

}  // namespace kiln::host::page

// The areas of `kiln bench` and the programs that measure each: what they are called with, and how long they take.
//
// Thread-safety: constants. Ownership: static text.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::host {

struct BenchArea {
  std::string_view name;  // as typed
  std::string_view title;
};

// tuning_database: it is told of the cache's folder, where what was tuned is.
enum class BenchNeeds { invalid = 0, nothing, simulated_card, tuning_database };

struct BenchProgram {
  std::string_view area;
  std::string_view program;  // a file of the benchmarks' folder
  std::string_view words;    // what it is called with, parted by blanks
  std::string_view quick_words;
  std::optional<std::string_view> stable_words;  // for counts only; nothing: it has none that are worth a run
  std::chrono::seconds usual;                    // about, on two cores; a run ends after eight times that, or a minute
  std::chrono::seconds quick;
  BenchNeeds needs = BenchNeeds::nothing;
  unsigned turns = 1;  // of each pass, behind all the others: where two processes differ by more than rounds of one do
};

// In the order in which they are run and told.
std::span<const BenchArea> bench_areas() noexcept;
std::span<const BenchProgram> bench_programs() noexcept;

}  // namespace kiln::host

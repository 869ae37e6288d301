// UseHistory: when one program was used, in little space, and what that says about its next use.
//
// Thread-safety: none. Ownership: a value of fixed size. Time is a count of uses, of all programs together. Intervals
// between uses are counted by their size in powers of two; a count of uses that decays by half in `half_life` stands
// beside them for programs of which few intervals are known.
// Invariant: the intervals counted are at most uses_: each use but the latest began one that has ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln {

class UseHistory {
 public:
  // Used `times` since the latest use, evenly, the last time now. REQUIRES: times is not 0; time does not run
  // backwards.
  void used(std::uint64_t now, std::uint32_t times, double half_life) noexcept;

  // In which power of two the time since the latest use lies: prospect() changes only with it and with used().
  std::uint32_t age_class(std::uint64_t now) const noexcept;
  // Uses to be expected for each unit of time that the program is kept, where it is kept as long as is best and given
  // up when that has passed without a use.
  double prospect(std::uint32_t age_class, double half_life) const noexcept;

 private:
  static constexpr std::size_t sizes = 24;

  void halve() noexcept;

  std::array<std::uint8_t, sizes> intervals_{};  // [i]: of 2^i to 2^(i+1) - 1; the last: and longer
  std::uint8_t uses_ = 0;                        // halved together with intervals_ before it overflows
  float recent_uses_ = 0;                        // decaying; as of latest_
  std::uint64_t latest_ = 0;
};

}  // namespace kiln

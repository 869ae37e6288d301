#include "cache/policy/parts/frequency_sketch.hpp"

#include "cache/policy/parts/mix.hpp"

#include <algorithm>
#include <bit>

namespace kiln {
namespace {

constexpr std::size_t least_width = 256;
constexpr std::size_t counters_a_key = 8;
constexpr std::uint64_t uses_a_key = 10;

}  // namespace

void FrequencySketch::reserve(std::size_t keys) {
  keys_ = std::max(keys_, keys);
  const std::size_t width = std::bit_ceil(std::max(least_width, counters_a_key * keys_));
  if (width <= width_) return;
  std::vector<std::uint8_t> wider(rows * width);
  if (width_ != 0) {  // a place in the wider row has the counter of the place that it had in the narrow one
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < width; ++i) wider[row * width + i] = counters_[row * width_ + (i & (width_ - 1))];
    }
  }
  counters_.swap(wider);
  width_ = width;
}

std::array<std::size_t, FrequencySketch::rows> FrequencySketch::places(std::uint64_t hash) const noexcept {
  std::array<std::size_t, rows> places;
  std::uint64_t bits = hash;
  for (std::size_t row = 0; row < rows; ++row) {
    bits = mix(bits + row);
    places[row] = row * width_ + (bits & (width_ - 1));
  }
  return places;
}

void FrequencySketch::add(std::uint64_t hash, std::uint32_t times) noexcept {
  times = std::min(most, times);
  const std::uint32_t raised = std::min(most, estimate(hash) + times);
  // Only the counters that would otherwise say too little are raised: keys that share the others are not inflated.
  for (const std::size_t place : places(hash)) {
    counters_[place] = static_cast<std::uint8_t>(std::max<std::uint32_t>(counters_[place], raised));
  }
  added_ += times;
  if (added_ >= uses_a_key * std::max<std::uint64_t>(keys_, 1)) halve();
}

std::uint32_t FrequencySketch::estimate(std::uint64_t hash) const noexcept {
  if (width_ == 0) return 0;
  std::uint32_t least = most;
  for (const std::size_t place : places(hash)) least = std::min<std::uint32_t>(least, counters_[place]);
  return least;
}

void FrequencySketch::halve() noexcept {
  for (std::uint8_t& counter : counters_) counter = static_cast<std::uint8_t>(counter / 2);
  added_ /= 2;
}

}  // namespace kiln

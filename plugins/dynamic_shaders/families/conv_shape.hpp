// The shape of a convolution, and the ids of variants.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

namespace kiln::dynamic_shaders {

// ConvShape: a convolution as the blocked families see it: groups apart, and a 1x1 kernel as a product of matrices.
//
// A 1x1 kernel without padding has no neighbours, so its output pixels stand in one row; a stride then only says which
// input pixels are taken. Thread-safety: values. Ownership: values.
struct ConvShape {
  std::int64_t n = 1, groups = 1;
  std::int64_t c = 0, k = 0;  // of one group
  std::int64_t h = 0, w = 0;  // the input
  std::int64_t r = 1, s = 1;
  std::int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;
  std::int64_t out_h = 0, out_w = 0;
  bool flat = false;                        // out_h is 1: pixels in one row
  std::int64_t pick_y = 1, pick_x = 1;      // flat: the stride between the input pixels that are taken
  std::int64_t source_h = 0, source_w = 0;  // the input as it lies in memory
  std::int64_t source_out_w = 0;            // the output's row as it lies in memory
  bool bias = false;
  Activation activation = Activation::none;
};

ConvShape shape_of(const Conv2dSpec& spec) noexcept;

// Of a launch: its workgroups, or the box of outputs that its lanes are mapped to (lane_map.hpp).
using Triple = std::array<std::int64_t, 3>;
// As a plan has it. REQUIRES: each is below 2^32.
std::array<std::uint32_t, 3> narrow(const Triple& triple) noexcept;
// unsupported, naming the axis: the device's grid takes fewer workgroups.
Status check_grid(const Triple& grid, const DeviceInfo& device);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) noexcept { return divide_up(a, b) * b; }
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) noexcept {
  return a >= 0 ? a / b : -divide_up(-a, b);
}

// Reading the ids of variants: "family:name=7,other=12".
//
// Thread-safety: pure functions.

// Takes `name` and the number behind it off the front; false: the text begins otherwise.
inline bool take_number(std::string_view& text, std::string_view name, std::int64_t& to) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace kiln::dynamic_shaders

// Part: a range of output rows and of output channels of a conv2d, as a convolution of its own on views of the tensors.
//
// Thread-safety: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

namespace kiln::cpu {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const noexcept { return end - begin; }
};

struct Part {
  Conv2dSpec spec;  // of the part: h, k and pad_y (above) are its own, and the strides where only pixels read count
  std::int64_t pad_below = 0;
  dnnl::memory::desc input, output;  // how they lie in NCHW tensors, from these offsets in bytes on
  std::uint64_t input_offset = 0, output_offset = 0, weights_offset = 0, bias_offset = 0;
};

// all: the input rows and columns between the first and last tap. read: for a pointwise convolution with strides, the
// pixels that it reads, seen as the input of one without strides.
enum class Pixels : std::uint8_t { invalid = 0, all, read };

// Whether Pixels::read differs from Pixels::all and oneDNN can describe the view.
bool has_pixels_view(const Conv2dSpec& spec) noexcept;

// Absent where the rows read padding alone. REQUIRES: ranges within the output; all channels where spec.groups is not
// 1; has_pixels_view(spec) for Pixels::read.
std::optional<Part> part_of(const Conv2dSpec& spec, Range rows, Range channels, Pixels pixels);

inline Range all_rows(const Conv2dSpec& spec) noexcept { return {0, spec.out_h()}; }
inline Range all_channels(const Conv2dSpec& spec) noexcept { return {0, spec.k}; }

}  // namespace kiln::cpu

// Part: a cut of a conv2d's output, as a convolution of its own on views of the tensors.
//
// Thread-safety: values.
#pragma once

#include "onednn/layouts/cut.hpp"

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

namespace kiln::cpu {

struct Part {
  Conv2dSpec spec;  // of the part: its extents and groups, pad_y above and pad_x to the left are its own, and the
                    // strides where only pixels read count
  std::int64_t pad_below = 0, pad_right = 0;
  dnnl::memory::desc input, output;  // how they lie in NCHW tensors, from these offsets in bytes on
  std::uint64_t input_offset = 0, output_offset = 0, weights_offset = 0, bias_offset = 0;
};

// all: the input rows and columns between the first and last tap. read: for a pointwise convolution with strides, the
// pixels that it reads, seen as the input of one without strides.
enum class Pixels : std::uint8_t { invalid = 0, all, read };

// Whether Pixels::read differs from Pixels::all and oneDNN can describe the view.
bool has_pixels_view(const Conv2dSpec& spec) noexcept;

// Absent where the cut reads padding alone. REQUIRES: cut within the output, its channels whole groups where
// spec.groups is not 1; has_pixels_view(spec) for Pixels::read.
std::optional<Part> part_of(const Conv2dSpec& spec, const Cut& cut, Pixels pixels);

}  // namespace kiln::cpu

// Cutting work into ranges and parts for the workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <kiln/kernel.hpp>

namespace kiln::cpu {

// Range: a stretch of an extent, and the cutting of extents into them.
//
// Thread-safety: values and pure functions.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const noexcept { return end - begin; }
};

// `count` ranges that share `extent`, their boundaries at multiples of `unit`; fewer where there are not enough units.
std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit);

// What is cut along an axis: pieces of at least `least` units, where there is more than one.
struct Axis {
  std::int64_t extent = 1, unit = 1, least = 1;
};

// How many pieces along each of `axes`, so that about `wanted` come out of all: as many as there can be along the
// first, along the next what is missing, and so on.
std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted);

// Cut: a box of a conv2d's output that one thread computes, and the ways to share the whole output out in such boxes.
//
// Thread-safety: values and pure functions.
struct Cut {
  Range images, rows, columns, channels;  // of the output; channels are whole groups where there are several
};

Cut whole(const Conv2dSpec& spec);

struct Cuts {
  std::string name;  // "4x2 tiles by rows and channels": for people, and no two ways share one
  std::vector<Cut> tiles;
};

// few: one way for each direction, for layouts that are seldom the best. many: with more and smaller tiles too.
enum class Choices : std::uint8_t { invalid = 0, few, many };

// Likely best first, each of two tiles at least; empty for one thread, or where the output is too small. More tiles
// than threads stand first, where there is enough work: a thread that is held up leaves some to the others.
std::vector<Cuts> cuts_of(const Conv2dSpec& spec, int threads, Choices choices);

// Part: a cut of a conv2d's output, as a convolution of its own on views of the tensors.
//
// Thread-safety: values.
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

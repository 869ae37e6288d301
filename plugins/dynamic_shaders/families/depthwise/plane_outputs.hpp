// What the texts of the depthwise kernels share: a channel's weights in variables, and outputs that lie behind one
// another, each a sum over taps whose places in the input are known when the text is written.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond a call.
#pragma once

#include <functional>
#include <string>

#include "dynamic_shaders/dialect/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

// Variables w{plane}_{tap} and, where the spec has one, bias{plane}. `channel` is an expression.
void write_weights(KernelWriter& writer, const Conv2dSpec& spec, const std::string& channel, std::int64_t plane);

// A vector of sums as it is stored.
std::string finished(const KernelWriter& writer, const Conv2dSpec& spec, const std::string& value);

// The expression of a pixel of the input, whose load it may write first; empty: it lies outside.
using PlanePixel = std::function<std::string(std::int64_t plane, std::int64_t row, std::int64_t column)>;

// Rows of so many planes, from the binding `y`'s texel first_y on. Columns outside the input are not asked for.
// REQUIRES: rows * spec.out_w() * planes is a multiple of 4.
void write_outputs(KernelWriter& writer, const Conv2dSpec& spec, std::int64_t planes, std::int64_t rows,
                   const PlanePixel& pixel);

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/families/depthwise/plane_outputs.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

bool has_bias(const Conv2dSpec& spec) { return spec.bias == Bias::per_channel; }

// The sum of output (row, column) of a plane; empty: of nothing.
std::string sum_of(const Conv2dSpec& spec, std::int64_t plane, std::int64_t row, std::int64_t column,
                   const PlanePixel& pixel) {
  std::string sum;
  for (std::int64_t r = 0; r < spec.r; ++r) {
    const std::int64_t iy = row * spec.stride_y + r * spec.dilation_y - spec.pad_y;
    for (std::int64_t s = 0; s < spec.s; ++s) {
      const std::int64_t ix = column * spec.stride_x + s * spec.dilation_x - spec.pad_x;
      if (ix < 0 || ix >= spec.w) continue;
      const std::string value = pixel(plane, iy, ix);
      if (value.empty()) continue;
      if (!sum.empty()) sum += " + ";
      sum += value + " * w" + text_of(plane) + "_" + text_of(r * spec.s + s);
    }
  }
  if (has_bias(spec)) sum += (sum.empty() ? "bias" : " + bias") + text_of(plane);
  return sum;
}

}  // namespace

void write_weights(KernelWriter& writer, const Conv2dSpec& spec, const std::string& channel, std::int64_t plane) {
  const std::int64_t taps = spec.r * spec.s;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    writer.body().line("float w", plane, "_", tap, " = ",
                       writer.load("weights", "(" + channel + ") * " + text_of(taps) + " + " + text_of(tap)), ";");
  }
  if (has_bias(spec)) writer.body().line("float bias", plane, " = ", writer.load("bias", channel), ";");
}

std::string finished(const KernelWriter& writer, const Conv2dSpec& spec, const std::string& value) {
  return spec.activation == Activation::relu ? writer.maximum(value, writer.zero()) : value;
}

void write_outputs(KernelWriter& writer, const Conv2dSpec& spec, std::int64_t planes, std::int64_t rows,
                   const PlanePixel& pixel) {
  const std::int64_t of_plane = rows * spec.out_w();
  for (std::int64_t at = 0; at < planes * of_plane; ++at) {
    const std::string sum =
        sum_of(spec, at / of_plane, at % of_plane / spec.out_w(), at % of_plane % spec.out_w(), pixel);
    writer.body().line("float y", at, " = ", sum.empty() ? writer.zero() : sum, ";");
    if (at % 4 != 3) continue;
    const std::string value =
        writer.vector("y" + text_of(at - 3), "y" + text_of(at - 2), "y" + text_of(at - 1), "y" + text_of(at));
    writer.body().line(writer.store("y", "first_y + " + text_of(at / 4), finished(writer, spec, value)));
  }
}

}  // namespace kiln::dynamic_shaders

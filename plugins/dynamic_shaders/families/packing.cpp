#include "dynamic_shaders/families/packing.hpp"

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::uint32_t extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

std::string text_of(std::int64_t value) { return std::to_string(value); }

// Sets `int iy, ix` of the packed pixel (py, px), and `bool inside` where it may be none of the input's.
void write_pixel(Text& text, const ConvShape& shape, const Blocking& blocking, const std::string& px, int number) {
  const std::string at = text_of(number);
  if (shape.flat) {
    const bool strided = shape.pick_y != 1 || shape.pick_x != 1;
    text.line("bool inside", at, " = ", px, " < ", shape.w, ";");
    if (strided) {
      text.line("int pixel", at, " = ", px, " / ", shape.source_out_w, " * ", shape.pick_y * shape.source_w, " + ", px,
                " % ", shape.source_out_w, " * ", shape.pick_x, ";");
    } else {
      text.line("int pixel", at, " = ", px, ";");
    }
    return;
  }
  const std::int64_t pad_y = blocking.border == Border::padded ? shape.pad_y : 0;
  const std::int64_t pad_x = blocking.border == Border::padded ? shape.pad_x : 0;
  text.line("int ix", at, " = ", px, " - ", pad_x, ";");
  text.line("bool inside", at, " = py >= ", pad_y, " && py < ", pad_y + shape.h, " && ix", at, " >= 0 && ix", at, " < ",
            shape.w, ";");
  text.line("int pixel", at, " = (py - ", pad_y, ") * ", shape.w, " + ix", at, ";");
}

}  // namespace

Result<Pass> pack_activations(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device,
                              Dialect dialect, Binding to) {
  const BlockedExtents extents = extents_of(shape, blocking);
  const auto map = map_lanes(
      {extent(extents.packed_h * extents.packed_w), extent(shape.groups * extents.steps), extent(shape.n)}, device);
  if (!map) return map.error();
  const bool channels = blocking.packing == Packing::channels;
  KernelWriter writer(dialect, channels ? "pack activations: four channels of a pixel in a texel"
                                        : "pack activations: four pixels of a channel in a texel");
  writer.bind("x", Element::scalar, Access::read, {BindingSource::tensor, 0});
  writer.bind("packed_x", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(dialect));
  text.line("int py = column / ", extents.packed_w, ";");
  text.line("int px = column % ", extents.packed_w, channels ? ";" : " * 4;");
  text.line("int group = row / ", extents.steps, ";");
  text.line("int step = row % ", extents.steps, ";");
  const std::int64_t plane = shape.source_h * shape.source_w;
  text.line("int first = ((layer * ", shape.groups, " + group) * ", shape.c, " + step", channels ? " * 4" : "", ") * ",
            plane, ";");
  std::string value[4];
  if (channels) write_pixel(text, shape, blocking, "px", 0);
  for (int i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    value[i] = "v" + at;
    if (channels) {
      const std::string there = shape.c % 4 == 0 ? "" : " && step * 4 + " + at + " < " + text_of(shape.c);
      text.line("float v", at, " = inside0", there, " ? ",
                writer.load("x", "first + " + text_of(i * plane) + " + pixel0"), " : ", writer.zero(), ";");
    } else {
      write_pixel(text, shape, blocking, "(px + " + at + ")", i);
      text.line("float v", at, " = inside", at, " ? ", writer.load("x", "first + pixel" + at), " : ", writer.zero(),
                ";");
    }
  }
  text.line(writer.store("packed_x",
                         "(layer * " + text_of(shape.groups * extents.steps) + " + row) * " +
                             text_of(extents.packed_h * extents.packed_w) + " + column",
                         writer.vector(value[0], value[1], value[2], value[3])));
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> pack_weights(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device, Dialect dialect,
                          Binding to) {
  const BlockedExtents extents = extents_of(shape, blocking);
  const std::int64_t quads = blocking.k / 4, channels = extents.steps * extents.step_c;
  const auto map =
      map_lanes({extent(quads * extents.k_lanes), extent(channels * shape.r * shape.s), extent(shape.groups)}, device);
  if (!map) return map.error();
  KernelWriter writer(dialect, "pack weights: four output channels in a texel");
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  writer.bind("packed_weights", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(dialect));
  text.line("int c = row / ", shape.r * shape.s, ";");
  text.line("int tap = row % ", shape.r * shape.s, ";");
  text.line("int k = column % ", extents.k_lanes, " * ", blocking.k, " + column / ", extents.k_lanes, " * 4;");
  std::string value[4];
  for (int i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    value[i] = "v" + at;
    const std::string index = "((layer * " + text_of(shape.k) + " + k + " + at + ") * " + text_of(shape.c) +
                              " + c) * " + text_of(shape.r * shape.s) + " + tap";
    text.line("float v", at, " = k + ", at, " < ", shape.k, " && c < ", shape.c, " ? ", writer.load("weights", index),
              " : ", writer.zero(), ";");
  }
  text.line(writer.store("packed_weights",
                         "(layer * " + text_of(channels * shape.r * shape.s) + " + row) * " +
                             text_of(quads * extents.k_lanes) + " + column",
                         writer.vector(value[0], value[1], value[2], value[3])));
  return writer.take(map->workgroup, map->grid);
}

std::string weights_layout(const ConvShape& shape, const Blocking& blocking) {
  const BlockedExtents extents = extents_of(shape, blocking);
  std::string layout = "blocked";
  for (const std::int64_t value : {shape.groups, shape.k, shape.c, shape.r, shape.s, extents.steps * extents.step_c,
                                   blocking.k, extents.k_lanes}) {
    layout += '/';
    layout += std::to_string(value);
  }
  return layout;
}

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/families/packing.hpp"

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {
namespace {

// Sets `int iy, ix` of the packed pixel (py, px), and `bool inside` where it may be none of the input's.
void write_pixel(KernelWriter& writer, const ConvShape& shape, const Blocking& blocking, const std::string& px,
                 int which) {
  Text& text = writer.body();
  const std::string at = text_of(which), width = writer.number("width", shape.w);
  if (shape.flat) {
    const bool strided = shape.pick_y != 1 || shape.pick_x != 1;
    text.line("bool inside", at, " = ", px, " < ", width, ";");
    if (strided) {
      const std::string out_w = writer.number("out_width", shape.source_out_w);
      text.line("int pixel", at, " = ", px, " / ", out_w, " * ",
                writer.number("picked_rows", shape.pick_y * shape.source_w), " + ", px, " % ", out_w, " * ",
                writer.number("pick_x", shape.pick_x), ";");
    } else {
      text.line("int pixel", at, " = ", px, ";");
    }
    return;
  }
  const std::int64_t pad_y = blocking.border == Border::padded ? shape.pad_y : 0;
  const std::int64_t pad_x = blocking.border == Border::padded ? shape.pad_x : 0;
  const std::string top = writer.number("pad_y", pad_y);
  text.line("int ix", at, " = ", px, " - ", writer.number("pad_x", pad_x), ";");
  text.line("bool inside", at, " = py >= ", top, " && py < ", writer.number("below", pad_y + shape.h), " && ix", at,
            " >= 0 && ix", at, " < ", width, ";");
  text.line("int pixel", at, " = (py - ", top, ") * ", width, " + ix", at, ";");
}

}  // namespace

Result<Pass> pack_activations(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device,
                              const Form& form, Binding to) {
  const BlockedExtents extents = extents_of(shape, blocking);
  const auto map = map_lanes(narrow(extents.activation_box), device, form);
  if (!map) return map.error();
  const bool channels = blocking.packing == Packing::channels;
  KernelWriter writer(form, channels ? "pack activations: four channels of a pixel in a texel"
                                     : "pack activations: four pixels of a channel in a texel");
  writer.bind("x", Element::scalar, Access::read, {BindingSource::tensor, 0});
  writer.bind("packed_x", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string packed_w = writer.number("packed_w", extents.packed_w);
  const std::string steps = writer.number("steps", extents.steps);
  text.line("int py = column / ", packed_w, ";");
  text.line("int px = column % ", packed_w, channels ? ";" : " * 4;");
  text.line("int group = row / ", steps, ";");
  text.line("int step = row % ", steps, ";");
  const std::int64_t plane = shape.source_h * shape.source_w;
  text.line("int first = ((layer * ", writer.number("groups", shape.groups), " + group) * ",
            writer.number("channels", shape.c), " + step", channels ? " * 4" : "", ") * ",
            writer.number("plane", plane), ";");
  std::string value[4];
  if (channels) write_pixel(writer, shape, blocking, "px", 0);
  for (int i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    value[i] = "v" + at;
    if (channels) {
      const bool all_there = !form.any_shape() && shape.c % 4 == 0;
      const std::string there = all_there ? "" : " && step * 4 + " + at + " < " + writer.number("channels", shape.c);
      text.line("float v", at, " = inside0", there, " ? ",
                writer.load("x", "first + " + writer.number("plane", plane, i) + " + pixel0"), " : ", writer.zero(),
                ";");
    } else {
      write_pixel(writer, shape, blocking, "(px + " + at + ")", i);
      text.line("float v", at, " = inside", at, " ? ", writer.load("x", "first + pixel" + at), " : ", writer.zero(),
                ";");
    }
  }
  text.line(writer.store("packed_x",
                         "(layer * " + writer.number("all_steps", shape.groups * extents.steps) + " + row) * " +
                             writer.number("texels", extents.packed_h * extents.packed_w) + " + column",
                         writer.vector(value[0], value[1], value[2], value[3])));
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> pack_weights(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device, const Form& form,
                          Binding to) {
  const BlockedExtents extents = extents_of(shape, blocking);
  const std::int64_t quads = blocking.k / 4, channels = extents.steps * extents.step_c;
  const auto map = map_lanes(narrow(extents.weight_box), device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "pack weights: four output channels in a texel");
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  writer.bind("packed_weights", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string taps = writer.number("taps", shape.r * shape.s),
                    k_lanes = writer.number("k_lanes", extents.k_lanes);
  const std::string filters = writer.number("filters", shape.k), inputs = writer.number("channels", shape.c);
  text.line("int c = row / ", taps, ";");
  text.line("int tap = row % ", taps, ";");
  text.line("int k = column % ", k_lanes, " * ", blocking.k, " + column / ", k_lanes, " * 4;");
  std::string value[4];
  for (int i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    value[i] = "v" + at;
    const std::string index = "((layer * " + filters + " + k + " + at + ") * " + inputs + " + c) * " + taps + " + tap";
    text.line("float v", at, " = k + ", at, " < ", filters, " && c < ", inputs, " ? ", writer.load("weights", index),
              " : ", writer.zero(), ";");
  }
  text.line(writer.store("packed_weights",
                         "(layer * " + writer.number("all_taps", channels * shape.r * shape.s) + " + row) * " +
                             writer.number("k_lanes", extents.k_lanes, quads) + " + column",
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

#include "dynamic_shaders/families/direct.hpp"

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

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

namespace {

// The channels of a group that one pass adds up.
struct Part {
  std::int64_t first = 0, last = 0;  // half open
  bool begins = false;               // from nothing; else from what the pass before left in the output
  bool ends = false;                 // adds the bias, applies the activation
};

bool has_bias(const Conv2dSpec& spec) { return spec.bias == Bias::per_channel; }

void bind_tensors(KernelWriter& kernel, const Conv2dSpec& spec, const Part& part) {
  const auto bind = [&kernel](std::string_view name, Access access, std::uint32_t tensor) {
    kernel.bind(name, Element::scalar, access, {BindingSource::tensor, tensor});
  };
  bind("x", Access::read, 0);
  bind("weights", Access::read, 1);
  if (has_bias(spec) && part.ends) bind("bias", Access::read, 2);
  bind("y", part.begins ? Access::write : Access::read_write, has_bias(spec) ? 3 : 2);
}

// The taps of one channel, of which `plane` is the first element and `taps` the weights. Without padding every tap is
// inside; with it a row outside is left before its taps are looked at.
void write_taps(KernelWriter& kernel, const Conv2dSpec& spec) {
  Text& text = kernel.body();
  const bool any = kernel.any_shape();
  text.open("for (int r = 0; r < ", kernel.number("taps_y", spec.r), "; ++r)");
  text.line("int iy = top + r * ", kernel.number("dilation_y", spec.dilation_y), ";");
  if (any || spec.pad_y > 0) text.line("if (iy < 0 || iy >= ", kernel.number("height", spec.h), ") continue;");
  text.line("int line = plane + iy * ", kernel.number("width", spec.w), ";");
  text.open("for (int s = 0; s < ", kernel.number("taps_x", spec.s), "; ++s)");
  text.line("int ix = left + s * ", kernel.number("dilation_x", spec.dilation_x), ";");
  if (any || spec.pad_x > 0) text.line("if (ix < 0 || ix >= ", kernel.number("width", spec.w), ") continue;");
  text.line("sum += x[line + ix] * weights[taps + r * ", kernel.number("taps_x", spec.s), " + s];");
  text.close();
  text.close();
}

Pass make_pass(const Conv2dSpec& spec, const LaneMap& map, const Part& part, const Form& form) {
  const std::int64_t group_c = spec.c / spec.groups, group_k = spec.k / spec.groups;
  KernelWriter kernel(form, "direct/plain: column is a pixel of the result's plane, row its channel, layer the image.");
  bind_tensors(kernel, spec, part);
  Text& text = kernel.body();
  text.lines(map.decoding(kernel));
  const std::string out_w = kernel.number("out_width", spec.out_w());
  text.line("int top = column / ", out_w, " * ", kernel.number("stride_y", spec.stride_y), " - ",
            kernel.number("pad_y", spec.pad_y), ";");
  text.line("int left = column % ", out_w, " * ", kernel.number("stride_x", spec.stride_x), " - ",
            kernel.number("pad_x", spec.pad_x), ";");
  text.line("int at = (layer * ", kernel.number("filters", spec.k), " + row) * ",
            kernel.number("out_plane", spec.out_h() * spec.out_w()), " + column;");
  if (spec.groups == 1 && !kernel.any_shape()) {
    text.line("int first = layer * ", spec.c, ";");
  } else {
    text.line("int first = layer * ", kernel.number("channels", spec.c), " + row / ",
              kernel.number("group_filters", group_k), " * ", kernel.number("group_channels", group_c), ";");
  }
  text.line("float sum = ", part.begins ? kernel.zero() : kernel.load("y", "at"), ";");
  text.open("for (int c = ", kernel.number("first_channel", part.first), "; c < ",
            kernel.number("end_channel", part.last), "; ++c)");
  text.line("int plane = (first + c) * ", kernel.number("plane", spec.h * spec.w), ";");
  text.line("int taps = (row * ", kernel.number("group_channels", group_c), " + c) * ",
            kernel.number("taps", spec.r * spec.s), ";");
  write_taps(kernel, spec);
  text.close();
  if (part.ends && has_bias(spec)) text.line("sum += bias[row];");
  if (part.ends && spec.activation != Activation::none) {
    text.line("sum = ", kernel.activated("sum", spec.activation), ";");
  }
  text.line(kernel.store("y", "at", "sum"));
  return kernel.take(map.workgroup, map.grid);
}

}  // namespace

Result<KernelPlan> direct_plain(const Conv2dSpec& spec, const DeviceInfo& device, const Form& form) {
  KernelPlan plan;
  plan.variant = "direct/plain";
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.out_h() * spec.out_w()),
                              static_cast<std::uint32_t>(spec.k), static_cast<std::uint32_t>(spec.n)},
                             device, form);
  if (!map) return map.error();

  const std::int64_t channels = spec.c / spec.groups;
  const std::int64_t passes = passes_for(channels, 1 + spec.r * (1 + spec.s));
  if (passes == 0) {
    return unsupported("direct/plain: kernel of " + std::to_string(spec.r) + " x " + std::to_string(spec.s) +
                       " taps has too many loop iterations per channel, expected at most " +
                       std::to_string(most_iterations));
  }
  for (std::int64_t i = 0; i < passes; ++i) {
    const Part part{i * channels / passes, (i + 1) * channels / passes, i == 0, i + 1 == passes};
    plan.passes.push_back(make_pass(spec, *map, part, form));
  }
  return plan;
}

Result<KernelPlan> direct_blocked(const Conv2dSpec& spec, const Blocking& blocking, const DeviceInfo& device,
                                  const Form& form) {
  const ConvShape shape = shape_of(spec);
  KernelPlan plan;
  plan.variant = "direct/blocked:" + to_text(blocking);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check(shape, blocking, device); !status.ok()) return status;

  const BlockedExtents extents = extents_of(shape, blocking);
  Binding activations{BindingSource::tensor, 0};
  if (blocking.packing != Packing::plane) {
    activations = {BindingSource::scratch, 0};
    plan.scratch.push_back(
        {"packed activations", static_cast<std::uint64_t>(extents.activation_texels * shape.n) * 16});
    auto pack = pack_activations(shape, blocking, device, form, activations);
    if (!pack) return std::move(pack).error();
    plan.passes.push_back(std::move(*pack));
  }
  const Binding weights{BindingSource::prepared, 0};
  plan.prepared.push_back({1, weights_layout(shape, blocking), static_cast<std::uint64_t>(extents.weight_texels) * 16});
  auto prepare = pack_weights(shape, blocking, device, form, weights);
  if (!prepare) return std::move(prepare).error();
  plan.prepare.push_back(std::move(*prepare));

  const std::uint32_t output = shape.bias ? 3 : 2;
  plan.passes.push_back(blocked_pass(
      shape, blocking, form, {activations, weights, {BindingSource::tensor, 2}, {BindingSource::tensor, output}}));
  return plan;
}

}  // namespace kiln::dynamic_shaders

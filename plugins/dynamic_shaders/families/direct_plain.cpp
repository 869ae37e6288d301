#include "dynamic_shaders/families/direct_plain.hpp"

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
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
void write_taps(Text& text, const Conv2dSpec& spec) {
  text.open("for (int r = 0; r < ", spec.r, "; ++r)");
  text.line("int iy = top + r * ", spec.dilation_y, ";");
  if (spec.pad_y > 0) text.line("if (iy < 0 || iy >= ", spec.h, ") continue;");
  text.line("int line = plane + iy * ", spec.w, ";");
  text.open("for (int s = 0; s < ", spec.s, "; ++s)");
  text.line("int ix = left + s * ", spec.dilation_x, ";");
  if (spec.pad_x > 0) text.line("if (ix < 0 || ix >= ", spec.w, ") continue;");
  text.line("sum += x[line + ix] * weights[taps + r * ", spec.s, " + s];");
  text.close();
  text.close();
}

Pass make_pass(const Conv2dSpec& spec, const LaneMap& map, const Part& part, Dialect dialect) {
  const std::int64_t group_c = spec.c / spec.groups, group_k = spec.k / spec.groups;
  KernelWriter kernel(dialect,
                      "direct/plain: column is a pixel of the result's plane, row its channel, layer the image.");
  bind_tensors(kernel, spec, part);
  Text& text = kernel.body();
  text.lines(map.decoding(dialect));
  text.line("int top = column / ", spec.out_w(), " * ", spec.stride_y, " - ", spec.pad_y, ";");
  text.line("int left = column % ", spec.out_w(), " * ", spec.stride_x, " - ", spec.pad_x, ";");
  text.line("int at = (layer * ", spec.k, " + row) * ", spec.out_h() * spec.out_w(), " + column;");
  if (spec.groups == 1) {
    text.line("int first = layer * ", spec.c, ";");
  } else {
    text.line("int first = layer * ", spec.c, " + row / ", group_k, " * ", group_c, ";");
  }
  text.line("float sum = ", part.begins ? kernel.zero() : kernel.load("y", "at"), ";");
  text.open("for (int c = ", part.first, "; c < ", part.last, "; ++c)");
  text.line("int plane = (first + c) * ", spec.h * spec.w, ";");
  text.line("int taps = (row * ", group_c, " + c) * ", spec.r * spec.s, ";");
  write_taps(text, spec);
  text.close();
  if (part.ends && has_bias(spec)) text.line("sum += bias[row];");
  if (part.ends && spec.activation == Activation::relu) {
    text.line("sum = ", kernel.maximum("sum", kernel.zero()), ";");
  }
  text.line(kernel.store("y", "at", "sum"));
  return kernel.take(map.workgroup, map.grid);
}

}  // namespace

Result<KernelPlan> direct_plain(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect) {
  KernelPlan plan;
  plan.variant = "direct/plain";
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.out_h() * spec.out_w()),
                              static_cast<std::uint32_t>(spec.k), static_cast<std::uint32_t>(spec.n)},
                             device);
  if (!map) return map.error();

  const std::int64_t channels = spec.c / spec.groups;
  const std::int64_t passes = passes_for(channels, 1 + spec.r * (1 + spec.s));
  if (passes == 0) {
    return unsupported("kernel of " + std::to_string(spec.r) + " x " + std::to_string(spec.s) +
                       " taps: direct/plain takes at most " + std::to_string(most_iterations) + " rounds a channel");
  }
  for (std::int64_t i = 0; i < passes; ++i) {
    const Part part{i * channels / passes, (i + 1) * channels / passes, i == 0, i + 1 == passes};
    plan.passes.push_back(make_pass(spec, *map, part, dialect));
  }
  return plan;
}

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/families/simple_layers.hpp"

#include <kiln/operation.hpp>

#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::int64_t elements_of(const Extents& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape_of(extents)) elements *= extent;
  return elements;
}

Status too_many_rounds(std::string_view what, std::int64_t rounds) {
  return unsupported(std::string(what) + ": " + std::to_string(rounds) +
                     " loop iterations per lane, expected at most " + std::to_string(most_iterations));
}

// Each layer has an id_of() and a write_pass().
constexpr std::string_view id_of(const Pool2dSpec&) { return "pool2d/plain"; }

Result<Pass> write_pass(const Pool2dSpec& spec, const DeviceInfo& device, const Form& form) {
  if (spec.r * (spec.s + 1) > most_iterations) return too_many_rounds("pool2d", spec.r * (spec.s + 1));
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.out_h() * spec.out_w()),
                              static_cast<std::uint32_t>(spec.c), static_cast<std::uint32_t>(spec.n)},
                             device, form);
  if (!map) return map.error();
  KernelWriter kernel(form, "pool2d/plain: column is a pixel of the result's plane, row its channel, layer the image.");
  kernel.bind("x", Element::scalar, Access::read, {BindingSource::tensor, 0});
  kernel.bind("y", Element::scalar, Access::write, {BindingSource::tensor, 1});
  const bool is_maximum = spec.kind == PoolKind::maximum;
  Text& text = kernel.body();
  text.lines(map->decoding(kernel));
  text.line("int plane = layer * ", spec.c, " + row;");
  text.line("int top = column / ", spec.out_w(), " * ", spec.stride_y, " - ", spec.pad_y, ";");
  text.line("int left = column % ", spec.out_w(), " * ", spec.stride_x, " - ", spec.pad_x, ";");
  // Each window has an element inside the input, since padding is less than the window.
  text.line("int first_y = top < 0 ? 0 : top;");
  text.line("int first_x = left < 0 ? 0 : left;");
  text.line("int end_y = top + ", spec.r, " > ", spec.h, " ? ", spec.h, " : top + ", spec.r, ";");
  text.line("int end_x = left + ", spec.s, " > ", spec.w, " ? ", spec.w, " : left + ", spec.s, ";");
  text.line("int at = plane * ", spec.h * spec.w, ";");
  text.line("float pooled = ",
            is_maximum ? kernel.load("x", "at + first_y * " + text_of(spec.w) + " + first_x") : kernel.zero(), ";");
  text.open("for (int y_in = first_y; y_in < end_y; ++y_in)");
  text.open("for (int x_in = first_x; x_in < end_x; ++x_in)");
  text.line("float value = ", kernel.load("x", "at + y_in * " + text_of(spec.w) + " + x_in"), ";");
  text.line("pooled = ", is_maximum ? kernel.maximum("pooled", "value") : "pooled + value", ";");
  text.close();
  text.close();
  const std::string count = kernel.dialect() == Dialect::glsl ? "float((end_y - first_y) * (end_x - first_x))"
                                                              : "(float)((end_y - first_y) * (end_x - first_x))";
  if (!is_maximum) text.line("pooled = pooled / ", count, ";");
  text.line(kernel.store("y", "plane * " + text_of(spec.out_h() * spec.out_w()) + " + column", "pooled"));
  return kernel.take(map->workgroup, map->grid);
}

// activation(a), or activation(a + b).
Result<Pass> write_elements(const Extents& extents, Activation activation, std::uint32_t inputs,
                            const DeviceInfo& device, const Form& form) {
  const std::int64_t elements = elements_of(extents);
  const bool by_fours = elements % 4 == 0;
  const Element element = by_fours ? Element::vector : Element::scalar;
  const auto map = map_lanes({static_cast<std::uint32_t>(by_fours ? elements / 4 : elements), 1, 1}, device, form);
  if (!map) return map.error();
  KernelWriter kernel(form, inputs == 2 ? "add/plain: column is an element, or four of them."
                                        : "activation/plain: column is an element, or four of them.");
  kernel.bind("a", element, Access::read, {BindingSource::tensor, 0});
  if (inputs == 2) kernel.bind("b", element, Access::read, {BindingSource::tensor, 1});
  kernel.bind("y", element, Access::write, {BindingSource::tensor, inputs});
  Text& text = kernel.body();
  text.lines(map->decoding(kernel));
  std::string value = kernel.load("a", "column");
  if (inputs == 2) value += " + " + kernel.load("b", "column");
  text.line(kernel.store("y", "column", kernel.activated(value, activation)));
  return kernel.take(map->workgroup, map->grid);
}

constexpr std::string_view id_of(const AddSpec&) { return "add/plain"; }

Result<Pass> write_pass(const AddSpec& spec, const DeviceInfo& device, const Form& form) {
  return write_elements(spec.shape, spec.activation, 2, device, form);
}

constexpr std::string_view id_of(const ActivationSpec&) { return "activation/plain"; }

Result<Pass> write_pass(const ActivationSpec& spec, const DeviceInfo& device, const Form& form) {
  return write_elements(spec.shape, spec.activation, 1, device, form);
}

constexpr std::string_view id_of(const SoftmaxSpec&) { return "softmax/plain"; }

Result<Pass> write_pass(const SoftmaxSpec& spec, const DeviceInfo& device, const Form& form) {
  const std::int64_t length = shape_of(spec.shape).back();
  if (3 * length > most_iterations) return too_many_rounds("softmax", 3 * length);
  const std::int64_t rows = elements_of(spec.shape) / length;
  const auto map = map_lanes({static_cast<std::uint32_t>(rows), 1, 1}, device, form);
  if (!map) return map.error();
  KernelWriter kernel(form, "softmax/plain: column is a row of the tensor.");
  kernel.bind("x", Element::scalar, Access::read, {BindingSource::tensor, 0});
  kernel.bind("y", Element::scalar, Access::write, {BindingSource::tensor, 1});
  Text& text = kernel.body();
  text.lines(map->decoding(kernel));
  text.line("int at = column * ", length, ";");
  text.line("float largest = ", kernel.load("x", "at"), ";");
  const std::string each = "for (int i = 0; i < " + text_of(length) + "; ++i)";
  const std::string value = kernel.load("x", "at + i");
  text.line(each, " largest = ", kernel.maximum("largest", value), ";");
  text.line("float sum = ", kernel.zero(), ";");
  text.line(each, " sum += exp(", value, " - largest);");
  text.line(each, " ", kernel.store("y", "at + i", "exp(" + value + " - largest) / sum"));
  return kernel.take(map->workgroup, map->grid);
}

}  // namespace

std::string_view simple_variant(const KernelSpec& spec) noexcept {
  if (spec.valueless_by_exception()) return "";
  return std::visit(
      [](const auto& held) -> std::string_view {
        if constexpr (requires { id_of(held); }) return id_of(held);
        return "";
      },
      spec);
}

Result<KernelPlan> simple_layer(const KernelSpec& spec, const DeviceInfo& device, const Form& form) {
  KernelPlan plan;
  plan.variant = simple_variant(spec);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  auto pass = std::visit(
      [&](const auto& held) -> Result<Pass> {
        if constexpr (requires { id_of(held); }) return write_pass(held, device, form);
        return internal_error("dynamic_shaders: not a simple layer");
      },
      spec);
  if (!pass) return std::move(pass).error();
  plan.passes.push_back(std::move(*pass));
  return plan;
}

}  // namespace kiln::dynamic_shaders

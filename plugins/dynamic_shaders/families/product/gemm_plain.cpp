#include "dynamic_shaders/families/product/gemm_plain.hpp"

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/product/gemm_parts.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

bool has_bias(const GemmSpec& spec) { return spec.bias == Bias::per_channel; }

Pass make_pass(const GemmSpec& spec, const LaneMap& map, const SumPart& part, const Form& form) {
  KernelWriter kernel(form, "gemm/plain: column and row are those of the product.");
  const auto bind = [&kernel](std::string_view name, Access access, std::uint32_t tensor) {
    kernel.bind(name, Element::scalar, access, {BindingSource::tensor, tensor});
  };
  bind("a", Access::read, 0);
  bind("b", Access::read, 1);
  if (has_bias(spec) && part.ends) bind("bias", Access::read, 2);
  bind("c", part.begins ? Access::write : Access::read_write, has_bias(spec) ? 3 : 2);
  Text& text = kernel.body();
  text.lines(map.decoding(kernel));
  text.line("int at = row * ", kernel.number("width", spec.n), " + column;");
  text.line("float sum = ", part.begins ? kernel.zero() : kernel.load("c", "at"), ";");
  text.open("for (int k = ", kernel.number("first_depth", part.first), "; k < ", kernel.number("end_depth", part.last),
            "; ++k)");
  text.line("sum += a[row * ", kernel.number("depth", spec.k), " + k] * b[k * ", kernel.number("width", spec.n),
            " + column];");
  text.close();
  if (part.ends && has_bias(spec)) text.line("sum += bias[column];");
  if (part.ends && spec.activation == Activation::relu) {
    text.line("sum = ", kernel.maximum("sum", kernel.zero()), ";");
  }
  text.line(kernel.store("c", "at", "sum"));
  return kernel.take(map.workgroup, map.grid);
}

}  // namespace

Result<KernelPlan> gemm_plain(const GemmSpec& spec, const DeviceInfo& device, const Form& form) {
  KernelPlan plan;
  plan.variant = "gemm/plain";
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.n), static_cast<std::uint32_t>(spec.m), 1}, device, form);
  if (!map) return map.error();

  for (const SumPart& part : parts_of(spec.k)) plan.passes.push_back(make_pass(spec, *map, part, form));
  return plan;
}

}  // namespace kiln::dynamic_shaders

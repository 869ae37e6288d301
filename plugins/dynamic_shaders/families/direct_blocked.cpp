#include "dynamic_shaders/families/direct_blocked.hpp"

#include "dynamic_shaders/families/blocked_text.hpp"
#include "dynamic_shaders/families/packing.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {

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

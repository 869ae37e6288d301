#include "onednn/chain_plan.hpp"

#include <algorithm>

namespace kiln::cpu {
namespace {

// The steps that read the tensor, once for each time.
std::vector<std::uint32_t> readers_of(const ChainSpec& spec, std::uint32_t tensor) {
  std::vector<std::uint32_t> steps;
  for (std::uint32_t s = 0; s < spec.steps.size(); ++s) {
    const auto& tensors = spec.steps[s].tensors;
    steps.insert(steps.end(), static_cast<std::size_t>(std::count(tensors.begin(), tensors.end() - 1, tensor)), s);
  }
  return steps;
}

// The number of steps: it is an input.
std::uint32_t writer_of(const ChainSpec& spec, std::uint32_t tensor) {
  const auto writes = [tensor](const auto& step) { return step.tensors.back() == tensor; };
  return static_cast<std::uint32_t>(std::ranges::find_if(spec.steps, writes) - spec.steps.begin());
}

// Whether the convolution that computes `sum` can add it to `residual` in place of step `add`.
bool can_add(const ChainSpec& spec, std::uint32_t add, std::uint32_t sum, std::uint32_t residual) {
  const std::uint32_t conv_step = writer_of(spec, sum);
  if (conv_step >= add || writer_of(spec, residual) >= conv_step) return false;
  const auto* conv = std::get_if<Conv2dSpec>(&spec.steps[conv_step].layer);
  if (conv == nullptr || conv->activation != Activation::none) return false;
  const auto is_inner = [&](std::uint32_t tensor) { return spec.tensors[tensor].role == TensorRole::invalid; };
  if (!is_inner(sum) || !is_inner(residual) || readers_of(spec, sum).size() != 1) return false;
  const std::vector<std::uint32_t> readers = readers_of(spec, residual);
  const bool no_later = std::ranges::all_of(readers, [&](std::uint32_t r) { return r < conv_step || r == add; });
  const auto has_its_shape = [&](std::uint32_t tensor) { return spec.tensors[tensor].shape == spec.tensors[sum].shape; };
  return no_later && std::ranges::count(readers, add) == 1 &&
         std::ranges::all_of(spec.steps[add].tensors, has_its_shape);
}

}  // namespace

std::vector<std::optional<FusedAdd>> fused_adds_of(const ChainSpec& spec) {
  std::vector<std::optional<FusedAdd>> fused(spec.steps.size());
  for (std::uint32_t s = 0; s < spec.steps.size(); ++s) {
    if (!std::holds_alternative<AddSpec>(spec.steps[s].layer)) continue;
    for (const std::size_t at : {0u, 1u}) {
      const std::uint32_t sum = spec.steps[s].tensors[at], residual = spec.steps[s].tensors[1 - at];
      if (!can_add(spec, s, sum, residual)) continue;
      fused[writer_of(spec, sum)] = FusedAdd{s, residual};
      break;
    }
  }
  return fused;
}

}  // namespace kiln::cpu

#include "conformance/compose_plans.hpp"

#include <cstddef>
#include <functional>

namespace kiln::conformance {
namespace {

using Rebind = std::function<Binding(Binding)>;

void append(std::vector<Pass>& to, const std::vector<Pass>& passes, const Rebind& rebind) {
  for (Pass pass : passes) {
    for (Binding& binding : pass.bindings) binding = rebind(binding);
    to.push_back(std::move(pass));
  }
}

}  // namespace

KernelPlan compose(const KernelPlan& first, const KernelPlan& second) {
  const auto size = [](const auto& container) { return static_cast<std::uint32_t>(container.size()); };
  KernelPlan plan = first;
  plan.variant = first.variant + " then " + second.variant;
  const std::uint32_t between = size(plan.scratch);
  const std::uint32_t output = size(first.tensors) - 1;
  plan.scratch.push_back({"between", plan.tensors.back().bytes});
  plan.tensors.pop_back();
  const auto rebind_first = [&](Binding binding) {
    if (binding.source == BindingSource::tensor && binding.index == output)
      return Binding{BindingSource::scratch, between};
    return binding;
  };
  plan.passes.clear();
  append(plan.passes, first.passes, rebind_first);

  const auto rebind_second = [&](Binding binding) {
    switch (binding.source) {
      case BindingSource::tensor:
        if (binding.index == 0) return Binding{BindingSource::scratch, between};
        return Binding{BindingSource::tensor, binding.index - 1 + output};
      case BindingSource::scratch:
        return Binding{BindingSource::scratch, binding.index + between + 1};
      case BindingSource::prepared:
        return Binding{BindingSource::prepared, binding.index + size(first.prepared)};
      case BindingSource::constant:
        return Binding{BindingSource::constant, binding.index + size(first.constants)};
      case BindingSource::invalid:
        break;
    }
    return binding;
  };
  plan.constants.insert(plan.constants.end(), second.constants.begin(), second.constants.end());
  plan.tensors.insert(plan.tensors.end(), second.tensors.begin() + 1, second.tensors.end());
  plan.scratch.insert(plan.scratch.end(), second.scratch.begin(), second.scratch.end());
  for (PreparedDecl prepared : second.prepared) {
    prepared.tensor += output - 1;
    plan.prepared.push_back(std::move(prepared));
  }
  append(plan.prepare, second.prepare, rebind_second);
  append(plan.passes, second.passes, rebind_second);
  return plan;
}

}  // namespace kiln::conformance

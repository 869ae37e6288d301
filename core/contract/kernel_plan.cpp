#include <kiln/kernel.hpp>

namespace kiln {
namespace {

Status check_access(const KernelPlan& plan, const Binding& binding, Access access) {
  if (binding.source == BindingSource::tensor) {
    const TensorDecl& tensor = plan.tensors[binding.index];
    const bool writes = access != Access::read;
    const bool may_write = tensor.role == TensorRole::output || tensor.role == TensorRole::inout;
    if (writes && !may_write) return internal_error("writes tensor " + tensor.name + ", which is read-only");
  }
  if (binding.source == BindingSource::prepared && access != Access::read) {
    return internal_error("writes packed constant " + std::to_string(binding.index) + ", which is read-only");
  }
  if (binding.source == BindingSource::constant && access != Access::read) {
    return internal_error("writes constant " + std::to_string(binding.index) + " of the plan, which is read-only");
  }
  return {};
}

Status check_binding(const KernelPlan& plan, const Binding& binding) {
  std::size_t size = 0;
  switch (binding.source) {
    case BindingSource::tensor:
      size = plan.tensors.size();
      break;
    case BindingSource::scratch:
      size = plan.scratch.size();
      break;
    case BindingSource::prepared:
      size = plan.prepared.size();
      break;
    case BindingSource::constant:
      size = plan.constants.size();
      break;
    case BindingSource::invalid:
      return internal_error("a binding has no source");
  }
  if (binding.index < size) return {};
  return internal_error("a binding has index " + std::to_string(binding.index) + ", expected an index below " +
                        std::to_string(size));
}

Status check_views(const KernelSource& source) {
  if (!source.views.empty() && source.views.size() != source.bindings.size()) {
    return internal_error("has " + std::to_string(source.views.size()) + " views, expected " +
                          std::to_string(source.bindings.size()) + ", one for each declared binding");
  }
  for (std::size_t i = 0; i < source.views.size(); ++i) {
    if (source.views[i] == View::invalid) return internal_error("binding " + std::to_string(i) + " has no view");
    const bool writes = source.views[i] == View::storage || source.views[i] == View::pixels;
    if (!writes && source.bindings[i] != Access::read) {
      return internal_error("writes binding " + std::to_string(i) + " through view " +
                            std::string(to_string(source.views[i])) + ", which is read-only");
    }
  }
  return {};
}

Status check_pass(const KernelPlan& plan, const Pass& pass) {
  if (pass.source.dialect == Dialect::invalid) return internal_error("has no dialect");
  if (pass.bindings.size() != pass.source.bindings.size()) {
    return internal_error("has " + std::to_string(pass.bindings.size()) + " bindings, expected " +
                          std::to_string(pass.source.bindings.size()) + ", one for each declared binding");
  }
  for (const std::uint32_t groups : pass.grid) {
    if (groups == 0) return internal_error("has an empty grid");
  }
  for (const Binding& binding : pass.bindings) {
    if (Status status = check_binding(plan, binding); !status.ok()) return status;
  }
  if (pass.indirect && pass.indirect->binding >= pass.bindings.size()) {
    return internal_error("reads the grid from binding " + std::to_string(pass.indirect->binding) +
                          ", expected an index below " + std::to_string(pass.bindings.size()));
  }
  return check_views(pass.source);
}

}  // namespace

// A right plan costs no allocation: words are put together only for a wrong one.
Status validate(const KernelPlan& plan) {
  const auto who = [&](const char* kind, std::size_t i) {
    return "plan " + plan.variant + ": " + kind + " " + std::to_string(i);
  };
  if (plan.passes.empty()) return internal_error("plan " + plan.variant + ": has no pass");
  if (plan.prepare.size() != plan.prepared.size()) {
    return internal_error("plan " + plan.variant + ": " + std::to_string(plan.prepare.size()) +
                          " prepare passes, expected " + std::to_string(plan.prepared.size()) +
                          ", one for each packed constant");
  }
  for (std::size_t i = 0; i < plan.constants.size(); ++i) {
    if (plan.constants[i] == nullptr) return internal_error(who("constant", i) + " is null");
  }
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const Pass& pass = plan.passes[i];
    if (Status status = check_pass(plan, pass); !status.ok()) return status.within(who("pass", i));
    for (std::size_t b = 0; b < pass.bindings.size(); ++b) {
      if (Status status = check_access(plan, pass.bindings[b], pass.source.bindings[b]); !status.ok()) {
        return status.within(who("pass", i));
      }
    }
  }
  for (std::size_t i = 0; i < plan.prepare.size(); ++i) {
    const Pass& pass = plan.prepare[i];
    const auto where = [&] { return who("prepare pass", i); };
    if (plan.prepared[i].tensor >= plan.tensors.size() ||
        plan.tensors[plan.prepared[i].tensor].role != TensorRole::constant) {
      return internal_error(where() + ": does not pack a constant");
    }
    if (Status status = check_pass(plan, pass); !status.ok()) return status.within(where());
    for (std::size_t b = 0; b < pass.bindings.size(); ++b) {
      const Binding& binding = pass.bindings[b];
      const bool its_constant = binding.source == BindingSource::tensor && binding.index == plan.prepared[i].tensor;
      const bool its_packed_form = binding.source == BindingSource::prepared && binding.index == i;
      const bool the_plans = binding.source == BindingSource::constant;
      if (!its_constant && !its_packed_form && !the_plans) {
        return internal_error(where() +
                              ": has a binding other than the constant, the packed form and constants of the plan");
      }
      if (!its_packed_form && pass.source.bindings[b] != Access::read) {
        return internal_error(where() + ": writes the constant, which is read-only");
      }
    }
  }
  return {};
}

}  // namespace kiln

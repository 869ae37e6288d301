#include "dynamic_shaders/variants.hpp"

#include <kiln/program.hpp>

#include <algorithm>
#include <functional>

#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/direct.hpp"
#include "dynamic_shaders/families/gemm_blocked.hpp"
#include "dynamic_shaders/families/gemm_shared.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/simple_layers.hpp"
#include "dynamic_shaders/families/user_kernel.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view blocked_family = "direct/blocked:";
constexpr std::string_view winograd_family = "winograd/f";

Status unknown_variant(std::string_view op, std::string_view variant) {
  return not_found(std::string(op) + ": there is no variant '" + std::string(variant) + "'");
}

Result<std::shared_ptr<const Constant>> constant_of(const NumberTable& table) {
  auto tensor = HostTensor::create(DType::i32, {static_cast<std::int64_t>(table.size())});
  if (!tensor) return std::move(tensor).error();
  std::ranges::copy(table, (*tensor)->as<std::int32_t>().begin());
  return Constant::create(std::move(*tensor));
}

using MakePlan = std::function<Result<KernelPlan>(std::string_view variant, const Form& form)>;

// The plan of a variant for one shape or, where its id ends so, the plan whose programs serve any.
Result<KernelPlan> in_its_form(std::string_view variant, const DeviceInfo& device, Dialect dialect,
                               const MakePlan& make) {
  if (!variant.ends_with(any_shape)) return make(variant, dialect);
  variant.remove_suffix(any_shape.size());
  std::vector<NumberTable> tables;
  auto plan = make(variant, Form(dialect, &tables));
  if (!plan) return plan;
  plan->variant += any_shape;
  for (const NumberTable& table : tables) {
    auto constant = constant_of(table);
    if (!constant) return std::move(constant).error();
    plan->constants.push_back(std::move(*constant));
  }
  if (Status status = check_bindings(*plan, device); !status.ok()) return status;
  return plan;
}

Result<KernelPlan> conv_in_form(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view variant,
                                const Form& form) {
  if (variant == "direct/plain") return direct_plain(spec, device, form);
  if (variant.starts_with(blocked_family)) {
    const auto blocking = blocking_of(variant.substr(blocked_family.size()));
    if (blocking) return direct_blocked(spec, *blocking, device, form);
  }
  if (const auto tile = implicit_of(variant)) return implicit_product(spec, *tile, device, form);
  if (const auto choice = depthwise_of(variant)) return depthwise(spec, *choice, device, form);
  if (variant.starts_with(winograd_family) && variant.size() > winograd_family.size() + 2) {
    const char m = variant[winograd_family.size()];
    const auto blocking = blocking_of(variant.substr(winograd_family.size() + 2));
    const bool parted = variant[winograd_family.size() + 1] == ':';
    if (blocking && parted && (m == '2' || m == '4')) return winograd(spec, m - '0', *blocking, device, form);
  }
  return unknown_variant("conv2d", variant);
}

Result<KernelPlan> gemm_in_form(const GemmSpec& spec, const DeviceInfo& device, std::string_view variant,
                                const Form& form) {
  if (variant == "gemm/plain") return gemm_plain(spec, device, form);
  if (const auto blocking = gemm_blocking_of(variant)) return gemm_blocked(spec, *blocking, device, form);
  if (const auto tile = gemm_tile_of(variant)) return gemm_shared(spec, *tile, device, form);
  return unknown_variant("gemm", variant);
}

}  // namespace

Result<KernelPlan> plan_of(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                           std::string_view variant) {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    return in_its_form(variant, device, dialect,
                       [&](std::string_view id, const Form& form) { return conv_in_form(*conv, device, id, form); });
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    return in_its_form(variant, device, dialect,
                       [&](std::string_view id, const Form& form) { return gemm_in_form(*gemm, device, id, form); });
  }
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return user_kernel(*kernel, variant, device);
  if (const std::string_view only = simple_variant(spec); !only.empty()) {
    return variant == only ? simple_layer(spec, device, dialect) : unknown_variant(operation(spec), variant);
  }
  return unsupported("dynamic_shaders: writes no kernel of " + std::string(operation(spec)));
}

std::string_view only_variant(const KernelSpec& spec) noexcept {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  return kernel != nullptr && kernel->parameters.empty() ? "user" : simple_variant(spec);
}

std::string source_digest(const KernelPlan& plan, const DeviceInfo& device) {
  std::string digest;
  for (const Pass& pass : plan.passes) digest += key_of(pass.source, device, {}).digest.hex().substr(0, 16);
  return digest;
}

}  // namespace kiln::dynamic_shaders

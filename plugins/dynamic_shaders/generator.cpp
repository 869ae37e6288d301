#include "dynamic_shaders/generator.hpp"

#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/direct_blocked.hpp"
#include "dynamic_shaders/families/direct_plain.hpp"
#include "dynamic_shaders/families/gemm_plain.hpp"
#include "dynamic_shaders/families/user_kernel.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/space/conv_space.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr Dialect written[] = {Dialect::glsl};
constexpr std::string_view blocked_family = "direct/blocked:";
constexpr std::string_view winograd_family = "winograd/f";

Status check_dialect(Dialect dialect) {
  if (dialect == Dialect::glsl) return {};
  return unsupported("dynamic_shaders: asked for dialect " + std::string(to_string(dialect)) + ", writes glsl");
}

Status unknown_variant(std::string_view op, std::string_view variant) {
  return not_found(std::string(op) + ": there is no variant '" + std::string(variant) + "'");
}

Result<KernelPlan> conv_variant(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect,
                                std::string_view variant) {
  if (variant == "direct/plain") return direct_plain(spec, device);
  if (variant.starts_with(blocked_family)) {
    const auto blocking = blocking_of(variant.substr(blocked_family.size()));
    if (blocking) return direct_blocked(spec, *blocking, device, dialect);
  }
  if (const auto choice = depthwise_of(variant)) return depthwise(spec, *choice, device, dialect);
  if (variant.starts_with(winograd_family) && variant.size() > winograd_family.size() + 2) {
    const char m = variant[winograd_family.size()];
    const auto blocking = blocking_of(variant.substr(winograd_family.size() + 2));
    if (blocking && (m == '2' || m == '4')) return winograd(spec, m - '0', *blocking, device, dialect);
  }
  return unknown_variant("conv2d", variant);
}

}  // namespace

std::span<const Dialect> Generator::dialects() const noexcept { return written; }

Result<KernelPlan> Generator::generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept {
  if (Status status = check_dialect(dialect); !status.ok()) return status;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    auto plan = conv_variant(*conv, device, dialect, default_variant(*conv, device));
    // A grid or a buffer that the blocked form would need and the device has not: the plain one asks for the least.
    return plan ? std::move(plan) : direct_plain(*conv, device);
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return gemm_plain(*gemm, device);
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return user_kernel(*kernel, device);
  return invalid_argument("dynamic_shaders: the spec holds nothing");
}

Result<KernelPlan> Generator::generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                               std::string_view variant) noexcept {
  if (Status status = check_dialect(dialect); !status.ok()) return status;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return conv_variant(*conv, device, dialect, variant);
  auto plan = generate(spec, device, dialect);
  if (plan && plan->variant != variant) return unknown_variant(operation(spec), variant);
  return plan;
}

void Generator::record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept {}

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/generator.hpp"

#include "dynamic_shaders/families/direct_plain.hpp"
#include "dynamic_shaders/families/gemm_plain.hpp"
#include "dynamic_shaders/families/user_kernel.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr Dialect written[] = {Dialect::glsl};

}  // namespace

std::span<const Dialect> Generator::dialects() const noexcept { return written; }

Result<KernelPlan> Generator::generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept {
  if (dialect != Dialect::glsl) {
    return unsupported("dynamic_shaders: asked for dialect " + std::string(to_string(dialect)) + ", writes glsl");
  }
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return direct_plain(*conv, device);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return gemm_plain(*gemm, device);
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return user_kernel(*kernel, device);
  return invalid_argument("dynamic_shaders: the spec holds nothing");
}

void Generator::record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept {}

}  // namespace kiln::dynamic_shaders

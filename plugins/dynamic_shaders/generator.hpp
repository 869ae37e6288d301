// Generator: the kernel generator "dynamic_shaders": shader source from families of kernels, user kernels handed
// through.
//
// Thread-safety: stateless, every method from any thread. Ownership: plans are values.
#pragma once

#include <kiln/kernel_generator.hpp>

namespace kiln::dynamic_shaders {

class Generator final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override;
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override;
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                      std::string_view variant) noexcept override;
  void record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
              const Measurement& measurement) noexcept override;
};

}  // namespace kiln::dynamic_shaders

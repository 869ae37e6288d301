// LibraryGenerator: the generator "library", for devices that compute a spec by a library call: it hands the spec
// through as a plan of one pass, which binds the spec's tensors in their order.
//
// Thread-safety: stateless, every method from any thread. Ownership: plans are values.
#pragma once

#include <kiln/kernel_generator.hpp>

namespace kiln::cpu {

class LibraryGenerator final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override;
  // unsupported for a user's kernel: a library has no compiler for its source.
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override;
  // There is one variant, so nothing is learned here; the device times its layouts by itself.
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
};

}  // namespace kiln::cpu

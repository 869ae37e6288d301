#include "library_generator.hpp"

namespace kiln::cpu {
namespace {

constexpr Dialect written[] = {Dialect::library};

}  // namespace

std::span<const Dialect> LibraryGenerator::dialects() const noexcept { return written; }

Result<KernelPlan> LibraryGenerator::generate(const KernelSpec& spec, const DeviceInfo& device,
                                              Dialect dialect) noexcept try {
  if (dialect != Dialect::library) {
    return unsupported("generator 'library': dialect " + std::string(to_string(dialect)) + ", expected library");
  }
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    return unsupported("kernel " + kernel->path + ": " + std::string(to_string(kernel->dialect)) +
                       " source on device '" + device.id + "', which runs library calls only (conv2d, gemm)");
  }
  KernelPlan plan;
  plan.variant = "onednn";
  plan.tensors = tensors_of(spec);
  Pass pass;
  pass.source.dialect = Dialect::library;
  pass.source.text = canonical_text(spec);
  pass.source.spec = spec;
  for (std::uint32_t i = 0; i < plan.tensors.size(); ++i) {
    pass.source.bindings.push_back(plan.tensors[i].role == TensorRole::output ? Access::write : Access::read);
    pass.bindings.push_back({BindingSource::tensor, i});
  }
  plan.passes.push_back(std::move(pass));
  return plan;
} catch (...) {
  return caught();
}

}  // namespace kiln::cpu

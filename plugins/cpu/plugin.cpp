// The entry of the plugin, and the generator that leaves the work to the library.

#include <kiln/kernel_generator.hpp>
#include <kiln/plugin.hpp>

#include "driver.hpp"

namespace kiln::cpu {

// LibraryGenerator: the generator "library", for devices that compute a spec by a library call: it hands the spec
// through as a plan of one pass, which binds the spec's tensors in their order.
//
// Thread-safety: stateless, every method from any thread. Ownership: plans are values.
class LibraryGenerator final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override;
  // unsupported for a user's kernel: a library has no compiler for its source.
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override;
  // There is one variant, so nothing is learned here; the device times its layouts by itself.
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
};

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
                       " source on device '" + device.id + "', which runs library calls only");
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

// The cpu plugin: driver "cpu" on oneDNN, and the generator "library" that hands specs through.

namespace {

Status register_plugin(Registry& registry, const PluginContext& context) {
  Status status =
      registry.add_driver(context.name, "cpu", [](const DriverContext& given) -> Result<std::unique_ptr<Driver>> {
        return std::unique_ptr<Driver>(std::make_unique<CpuDriver>(given));
      });
  if (!status.ok()) return status;
  status = registry.add_generator(context.name, "library", {Dialect::library},
                                  [](const GeneratorContext&) -> Result<std::unique_ptr<KernelGenerator>> {
                                    return std::unique_ptr<KernelGenerator>(std::make_unique<LibraryGenerator>());
                                  });
  if (!status.ok()) return status;
  return registry.add_config_keys(context.name, CpuDriver::config_keys());
}

}  // namespace

}  // namespace kiln::cpu

KILN_PLUGIN("cpu", "0.1.0", kiln::cpu::register_plugin);

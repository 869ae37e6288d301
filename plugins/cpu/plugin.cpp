// The cpu plugin: driver "cpu" on oneDNN, and the generator "library" that hands specs through.
#include "driver.hpp"
#include "library_generator.hpp"

#include <kiln/plugin.hpp>

namespace kiln::cpu {
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

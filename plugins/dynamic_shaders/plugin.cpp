#include <kiln/plugin.hpp>

#include <memory>

#include "dynamic_shaders/generator.hpp"

namespace {

kiln::Status register_plugin(kiln::Registry& registry, const kiln::PluginContext& context) {
  const auto make = [](const kiln::GeneratorContext& from) -> kiln::Result<std::unique_ptr<kiln::KernelGenerator>> {
    return std::unique_ptr<kiln::KernelGenerator>(
        std::make_unique<kiln::dynamic_shaders::Generator>(from.cache_directory, from.read_only, from.trace));
  };
  return registry.add_generator(context.name, "dynamic_shaders", {kiln::Dialect::glsl, kiln::Dialect::opencl_c, kiln::Dialect::code_object}, make);
}

}  // namespace

KILN_PLUGIN("dynamic_shaders", "0.1.0", register_plugin);

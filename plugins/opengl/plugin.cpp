#include "driver.hpp"

#include <kiln/plugin.hpp>

namespace {

kiln::Result<std::unique_ptr<kiln::Driver>> make_driver(const kiln::DriverContext& context) {
  if (context.counters == nullptr) return kiln::invalid_argument("driver 'opengl': the context has no work counters");
  auto settings = kiln::opengl::read_settings(context.settings, context.log);
  if (!settings) return settings.error();
  return std::unique_ptr<kiln::Driver>(std::make_unique<kiln::opengl::GlDriver>(std::move(settings).value(), context));
}

kiln::Status register_opengl(kiln::Registry& registry, const kiln::PluginContext& context) {
  if (kiln::Status keys = registry.add_config_keys(context.name, kiln::opengl::setting_keys()); !keys.ok()) return keys;
  return registry.add_driver(context.name, "opengl", make_driver);
}

}  // namespace

KILN_PLUGIN("opengl", "0.1.0", register_opengl);

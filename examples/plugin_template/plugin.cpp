// The plugin: its driver, its settings, and the one line by which Kiln finds it.
#include <kiln/plugin.hpp>

#include "device.hpp"

namespace kiln_template {
namespace {

using namespace kiln;

class TemplateDriver final : public Driver {
 public:
  explicit TemplateDriver(const DriverContext& context) : counters_(context.counters), info_(device_info()) {
    if (const auto name = context.settings.find("name"); name != context.settings.end()) {
      if (const auto* text = std::get_if<std::string>(&name->second)) info_.name = *text;
    }
  }

  std::vector<DeviceInfo> enumerate() noexcept override { return {info_}; }
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override {
    if (id != info_.id) return not_found("device '" + std::string(id) + "': there is only '" + info_.id + "'");
    return std::unique_ptr<Device>(new TemplateDevice(info_, counters_));
  }

 private:
  WorkCounters* counters_;
  DeviceInfo info_;
};

Result<std::unique_ptr<Driver>> make_driver(const DriverContext& context) {
  return std::unique_ptr<Driver>(new TemplateDriver(context));
}

// Called once. Adds factories and returns: nothing is opened, loaded or started here.
Status register_template(Registry& registry, const PluginContext& context) {
  const ConfigKey name{"name", ConfigType::text, std::string("plain loops"), "how the device is called", {}, {}, {}};
  if (Status status = registry.add_config_keys(context.name, {name}); !status.ok()) return status;
  return registry.add_driver(context.name, "template", make_driver);
}

}  // namespace
}  // namespace kiln_template

KILN_PLUGIN("template", "1.0", kiln_template::register_template);

// `kiln devices` and `kiln plugins`.
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/verbs.hpp"

#include <kiln_json.hpp>

#include <algorithm>

#include <kiln/visible_text.hpp>

namespace kiln::host {
namespace {

std::string devices_json(const std::vector<DeviceInfo>& devices) {
  Json json{{"schema", 1}, {"devices", Json::array()}};
  for (const DeviceInfo& device : devices) {
    json["devices"].push_back({{"id", device.id},
                               {"kind", to_string(device.kind)},
                               {"name", device.name},
                               {"driver", device.driver},
                               {"usable", device.usable},
                               {"why_not", device.why_not.empty() ? Json(nullptr) : Json(device.why_not)}});
  }
  return json_text(json, 2) + "\n";
}

std::string devices_table(const std::vector<DeviceInfo>& devices) {
  TextTable table({{"device", Align::left},
                   {"kind", Align::left},
                   {"name", Align::left},
                   {"driver", Align::left},
                   {"usable", Align::left}});
  for (const DeviceInfo& device : devices) {
    table.add({device.id, std::string(to_string(device.kind)), device.name, device.driver,
               device.usable ? "yes" : "no: " + device.why_not});
  }
  return table.text();
}

}  // namespace

int devices(const Options& options) {
  Session session(options);
  // A required plugin that is missing hides no device.
  if (const auto end = session.open_runtime(MissingPlugins::pass)) return *end;
  if (!options.device.empty()) {
    if (const auto end = session.check_devices()) return *end;
  }
  const std::vector<DeviceInfo> found = session.devices_named(options.device);
  const bool any = std::ranges::any_of(found, &DeviceInfo::usable);
  return session.end(
      finish(options.json ? devices_json(found) : devices_table(found), options, any ? exit_done : exit_no_device));
}

namespace {

std::string plugins_json(const std::vector<PluginReport>& plugins) {
  Json json{{"schema", 1}, {"plugins", Json::array()}};
  for (const PluginReport& plugin : plugins) {
    json["plugins"].push_back({{"name", plugin.name},
                               {"path", plugin.path.string()},
                               {"version", plugin.version},
                               {"loaded", plugin.loaded},
                               {"why_not", plugin.loaded ? Json(nullptr) : Json(plugin.why_not.message)}});
  }
  return json_text(json, 2) + "\n";
}

std::string plugins_table(const std::vector<PluginReport>& plugins) {
  TextTable table({{"plugin", Align::left}, {"version", Align::left}, {"loaded", Align::left}, {"file", Align::left}});
  std::string below;
  for (const PluginReport& plugin : plugins) {
    table.add({plugin.name, plugin.version.empty() ? "–" : plugin.version, plugin.loaded ? "yes" : "no",
               plugin.path.empty() ? "–" : plugin.path.string()});
    if (!plugin.loaded) below += visible(plugin.name + ": " + plugin.why_not.text()) + "\n";
  }
  return table.text() + below;
}

}  // namespace

int plugins(const Options& options) {
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const std::string text = options.json ? plugins_json(session.plugins()) : plugins_table(session.plugins());
  return finish(text, options);
}

}  // namespace kiln::host

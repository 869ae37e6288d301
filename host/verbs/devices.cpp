#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln_json.hpp>

#include <algorithm>

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
  return finish(options.json ? devices_json(found) : devices_table(found), options, any ? exit_done : exit_no_device);
}

}  // namespace kiln::host

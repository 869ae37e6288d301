
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/visible_text.hpp>
#include <kiln_json.hpp>

namespace kiln::host {
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

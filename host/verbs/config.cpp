#include "report/config_problems.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <algorithm>

namespace kiln::host {

int config_check(const Options& options) {
  Session session(options);
  // The plugins' own keys can only be checked with the plugins loaded; no device library is.
  const auto end = session.open_plugins();
  if (options.json) {
    return finish_json({{"schema", 1}, {"problems", config_problems_json(session.problems())}}, options,
                       end.value_or(exit_done));
  }
  if (end) return *end;
  const std::string file = options.sources.file.value_or("the configuration").string();
  const std::size_t jobs = session.config().jobs.size();
  std::string text = file + ": valid, " + std::to_string(jobs) + (jobs == 1 ? " job\n" : " jobs\n");
  for (const auto& [plugin, section] : session.config().plugin) {
    if (section.empty() || session.plugin_keys().contains(plugin)) continue;
    text += file + ": [plugin." + plugin + "] was not checked: the plugin could not be loaded\n";
  }
  return finish(text, options);
}

int config_show(const Options& options) {
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto keys = session.plugin_keys();
  return finish(options.json ? show_config_json(session.config(), keys) : show_config(session.config(), keys), options);
}

}  // namespace kiln::host

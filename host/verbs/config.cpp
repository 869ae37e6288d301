#include "exit_status.hpp"
#include "session.hpp"
#include "verbs/verbs.hpp"

#include <algorithm>

namespace kiln::host {
namespace {

int emit_or_complain(const std::string& text, const Options& options) {
  const Status status = emit(text, options.output);
  if (status.ok()) return exit_done;
  complain(status.message);
  return exit_job_failed;
}

}  // namespace

int config_check(const Options& options) {
  Session session(options);
  // The plugins' own keys can only be checked with the plugins loaded; no device library is.
  for (const auto step : {&Session::read, &Session::load_plugins}) {
    if (const auto end = (session.*step)()) return *end;
  }
  const std::string file = options.sources.file.value_or("the configuration").string();
  const std::size_t jobs = session.config().jobs.size();
  if (options.json) return emit_or_complain("{\"problems\": []}\n", options);
  std::string text = file + ": valid, " + std::to_string(jobs) + (jobs == 1 ? " job\n" : " jobs\n");
  for (const auto& [plugin, section] : session.config().plugin) {
    if (section.empty() || session.plugin_keys().contains(plugin)) continue;
    text += file + ": [plugin." + plugin + "] was not checked: the plugin could not be loaded\n";
  }
  return emit_or_complain(text, options);
}

int config_show(const Options& options) {
  Session session(options);
  for (const auto step : {&Session::read, &Session::load_plugins}) {
    if (const auto end = (session.*step)()) return *end;
  }
  const auto keys = session.plugin_keys();
  return emit_or_complain(options.json ? show_config_json(session.config(), keys) : show_config(session.config(), keys),
                          options);
}

}  // namespace kiln::host

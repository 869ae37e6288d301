#include <kiln/plugin_loader.hpp>

#include "plugin/loaded_plugin.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_search.hpp"
#include "plugin/probe_process.hpp"
#include "plugin/verdict_store.hpp"

#include <algorithm>
#include <ctime>

namespace kiln {
namespace {

namespace fs = std::filesystem;

struct Loading {  // what one call of load() works with
  std::vector<fs::path> folders;
  fs::path probe;
  std::chrono::nanoseconds probe_timeout;
  VerdictStore verdicts;
  Log log;
};

// "…; it is tried again at the next start", or in how long, and by which command at once.
Status tried_again_later(const ProbeVerdict& verdict) {
  const std::int64_t left_s = verdict.again_at_s - std::time(nullptr);
  std::string when = left_s <= 0
                         ? "at the next start"
                         : "at the first start after " + std::to_string(left_s) + " s, or by `kiln plugins --retry`";
  return timed_out(verdict.status.message + ", " + std::to_string(verdict.attempts) +
                   (verdict.attempts == 1 ? " time" : " times") + " in a row: it is tried again " + when);
}

Status judge(const PluginFile& file, Loading& loading, PluginReport& report) {
  const auto known = loading.verdicts.find(report.path, file.identity());
  const bool hung = known && known->kind == VerdictKind::hung;
  // A timeout says little of a plugin: it is tried again, and one that is required at every start.
  if (known && !(hung && (report.required || std::time(nullptr) >= known->again_at_s))) {
    report.trial = PluginTrial::remembered;
    return hung ? tried_again_later(*known) : known->status;
  }
  report.trial = PluginTrial::probed;
  if (loading.probe.empty())
    return unavailable("a plugin that was not seen before is tried in kiln-probe, and there is none");
  const std::uint32_t patience = hung ? patience_after(known->attempts) : 1;
  const auto verdict = probe_plugin(loading.probe, report.path, patience * loading.probe_timeout);
  if (!verdict) return verdict.error();
  const ProbeVerdict kept = loading.verdicts.put(report.path, file.identity(), *verdict);
  return kept.kind == VerdictKind::hung ? tried_again_later(kept) : kept.status;
}

Result<LoadedPlugin> open_plugin(Loading& loading, PluginReport& report) {
  auto path = find_plugin(report.name, loading.folders);
  if (!path) return std::move(path).error();
  report.path = std::move(path).value();
  const auto file = PluginFile::open(report.path);
  if (!file) return file.error();
  const auto note = inspect_plugin(report.path, file->bytes());
  if (!note) return note.error();
  report.version = note->version;
  if (Status status = judge(*file, loading, report); !status.ok()) return status;
  return LoadedPlugin::open(report.path, *note, loading.log);
}

// The names to load, each once, and which of them are required.
std::vector<PluginReport> wanted(std::span<const std::string> names, std::span<const std::string> required) {
  std::vector<PluginReport> reports;
  for (const auto list : {names, required}) {
    for (const std::string& name : list) {
      const bool known = std::ranges::any_of(reports, [&](const PluginReport& report) { return report.name == name; });
      if (known) continue;
      reports.emplace_back();
      reports.back().name = name;
      reports.back().required = std::ranges::find(required, name) != required.end();
    }
  }
  return reports;
}

}  // namespace

struct PluginLoader::Libraries {
  std::vector<SharedLibrary> open;
};

PluginLoader::PluginLoader() : libraries_(std::make_unique<Libraries>()) {}
PluginLoader::~PluginLoader() = default;

std::vector<fs::path> PluginLoader::default_path(std::vector<fs::path> first) {
  if (!core_file().empty()) first.push_back(core_file().parent_path() / "kiln" / "plugins");
  return first;
}

fs::path PluginLoader::default_probe() {
  if (core_file().empty()) return {};
  return core_file().parent_path().parent_path() / "libexec" / "kiln" / "kiln-probe";
}

std::vector<PluginReport> PluginLoader::load(std::span<const std::string> names, std::span<const std::string> required,
                                             Registry& registry, const PluginLoaderOptions& options) {
  Loading loading{options.path.empty() ? default_path() : options.path,
                  options.probe.empty() ? default_probe() : options.probe, options.probe_timeout,
                  VerdictStore(options.verdict_file, host_identity(), options.log), options.log};
  for (const fs::path& folder : loading.folders) {
    if (folder.is_absolute()) continue;
    options.log.write(LogLevel::warning, "plugin",
                      "plugin path: '" + folder.string() + "' is refused: not an absolute path");
  }
  std::vector<PluginReport> reports = wanted(names, required);
  for (PluginReport& report : reports) {
    auto plugin = open_plugin(loading, report);
    Status status = plugin ? registry.merge(std::move(plugin->registered)) : plugin.error();
    if (status.ok()) registry.set_file(report.name, report.path);
    if (plugin) libraries_->open.push_back(std::move(plugin->library));
    report.loaded = status.ok();
    report.why_not =
        status.within("plugin '" + report.name + "'" + (report.path.empty() ? "" : " (" + report.path.string() + ")"));
    if (!report.loaded) options.log.write(LogLevel::info, "plugin", report.why_not.message);
  }
  loading.verdicts.save();
  return reports;
}

}  // namespace kiln

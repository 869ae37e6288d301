#include <kiln/plugin_loader.hpp>

#include "plugin/file/plugin_file.hpp"
#include "plugin/loaded_plugin.hpp"
#include "plugin/plugin_search.hpp"
#include "plugin/probe/probe_process.hpp"
#include "plugin/probe/verdict_store.hpp"

#include <algorithm>

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

Status judge(const PluginFile& file, Loading& loading, PluginReport& report) {
  if (const auto known = loading.verdicts.find(report.path, file.identity())) {
    report.trial = PluginTrial::remembered;
    return known->status;
  }
  report.trial = PluginTrial::probed;
  if (loading.probe.empty())
    return unavailable("a plugin that was not seen before is tried in kiln-probe, and there is none");
  const auto verdict = probe_plugin(loading.probe, report.path, loading.probe_timeout);
  if (!verdict) return verdict.error();
  loading.verdicts.put(report.path, file.identity(), *verdict);
  return verdict->status;
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

std::vector<fs::path> PluginLoader::default_path() {
  if (core_file().empty()) return {};
  return {core_file().parent_path() / "kiln" / "plugins"};
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

#include "plugin/plugin_loader.hpp"

#include <kiln/plugin_loader.hpp>

#include "plugin/plugin_file.hpp"
#include "plugin/plugin_note.hpp"
#include "plugin/plugin_probe.hpp"

#define BOOST_DLL_USE_STD_FS  // otherwise a Boost library would be linked
#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>

#include <algorithm>
#include <ctime>
#include <exception>
#include <string>

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

// "…. Kiln tries again at the next start", or in how long, and by which command at once.
Status tried_again_later(const ProbeVerdict& verdict) {
  const std::int64_t left_s = verdict.again_at_s - std::time(nullptr);
  std::string when = left_s <= 0
                         ? "at the next start"
                         : "at the first start after " + std::to_string(left_s) + " s, or with `kiln plugins --retry`";
  return timed_out(verdict.status.message + ", " + std::to_string(verdict.attempts) +
                   (verdict.attempts == 1 ? " time" : " times") + " in a row. Kiln tries again " + when);
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
    return unavailable("a new plugin is loaded in kiln-probe first, and the path of kiln-probe is unknown");
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
                  VerdictStore(options.verdict_file, host_identity(), options.log,
                               options.verdicts_read_only ? VerdictFile::read_only : VerdictFile::read_and_written),
                  options.log};
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

namespace {

Status call_register(const PluginEntry& entry, Registry& registry, Log log) {
  try {
    return entry.register_fn(registry, {entry.note.name, log}).within("register function failed");
  } catch (const std::exception& error) {
    return internal_error(std::string("register function threw an exception: ") + error.what());
  } catch (...) {
    return internal_error("register function threw an object that is not a std::exception");
  }
}

}  // namespace

std::string plugin_name(const std::filesystem::path& path) { return path.stem().string(); }

Result<PluginNote> inspect_plugin(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  auto note = parse_plugin_note(bytes);
  if (!note) return note;
  if (Status status = check_note(*note, plugin_name(path)); !status.ok()) return status;
  return note;
}

Result<LoadedPlugin> LoadedPlugin::open(const std::filesystem::path& path, const PluginNote& note, Log log) {
  auto library = SharedLibrary::open(path);
  if (!library) return std::move(library).error();
  const auto* entry = static_cast<const PluginEntry*>(library->symbol(plugin_entry_symbol));
  if (entry == nullptr) {
    return corrupt(std::string("has a Kiln note but does not export the symbol ") + plugin_entry_symbol);
  }
  if (Status status = compare_notes(note, entry->note); !status.ok()) return status;
  if (entry->register_fn == nullptr) return corrupt("exported object has no register function");
  LoadedPlugin plugin{std::move(library).value(), {}};
  if (Status status = call_register(*entry, plugin.registered, log); !status.ok()) return status;
  return plugin;
}

namespace {

// Boost has no name for RTLD_NODELETE, and passes on bits that it does not know.
constexpr auto load_mode =
    static_cast<boost::dll::load_mode::type>(static_cast<int>(boost::dll::load_mode::rtld_now) |
                                             static_cast<int>(boost::dll::load_mode::rtld_local) | RTLD_NODELETE);

// Boost wraps what dlerror said in words of its own; a person needs the part inside.
std::string linker_words(const std::string& thrown) {
  constexpr std::string_view before = "dlerror system message: ";
  const std::size_t at = thrown.find(before);
  if (at == std::string::npos) return thrown;
  const std::size_t begin = at + before.size();
  return thrown.substr(begin, thrown.rfind(')') - begin);
}

}  // namespace

struct SharedLibrary::Handle {
  boost::dll::shared_library library;
};

SharedLibrary::SharedLibrary(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
SharedLibrary::SharedLibrary(SharedLibrary&&) noexcept = default;
SharedLibrary::~SharedLibrary() = default;

Result<SharedLibrary> SharedLibrary::open(const std::filesystem::path& path) {
  if (!path.is_absolute()) return invalid_argument("library " + path.string() + ": not an absolute path");
  try {
    return SharedLibrary(std::unique_ptr<Handle>(new Handle{boost::dll::shared_library(path, load_mode)}));
  } catch (const std::exception& error) {
    return unavailable("dlopen failed: " + linker_words(error.what()));
  }
}

const void* SharedLibrary::symbol(const char* name) const noexcept { return dlsym(handle_->library.native(), name); }

}  // namespace kiln

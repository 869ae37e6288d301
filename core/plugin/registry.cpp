#include <kiln/registry.hpp>

namespace kiln {
namespace {

Status taken(std::string_view what, std::string_view name, std::string_view first, std::string_view second) {
  return invalid_argument(std::string(what) + " '" + std::string(name) + "' of plugin '" + std::string(second) +
                          "': already registered by plugin '" + std::string(first) + "'");
}

template <class Entry>
Status add(std::map<std::string, Entry>& to, std::string_view what, std::string_view name, Entry entry) {
  const auto [at, added] = to.try_emplace(std::string(name), entry);
  return added ? ok_status() : taken(what, name, at->second.plugin, entry.plugin);
}

template <class Entry>
Status first_duplicate(const std::map<std::string, Entry>& ours, std::string_view what,
                       const std::map<std::string, Entry>& theirs) {
  for (const auto& [name, entry] : theirs) {
    if (const auto at = ours.find(name); at != ours.end()) return taken(what, name, at->second.plugin, entry.plugin);
  }
  return {};
}

template <class Entry>
std::string names(const std::map<std::string, Entry>& of) {
  std::string text;
  for (const auto& entry : of) text += (text.empty() ? "'" : ", '") + entry.first + "'";
  return text.empty() ? "none" : text;
}

template <class Factory>
Result<Factory> find(const std::map<std::string, Registered<Factory>>& in, std::string_view what,
                     std::string_view name) {
  const auto at = in.find(std::string(name));
  if (at != in.end()) return at->second.make;
  return not_found(std::string(what) + " '" + std::string(name) + "': not registered (registered: " + names(in) + ")");
}

}  // namespace

Status Registry::add_driver(std::string_view plugin, std::string_view name, DriverFactory make) {
  return add(drivers_, "driver", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_cache(std::string_view plugin, std::string_view name, CacheFactory make) {
  return add(caches_, "cache", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_executor(std::string_view plugin, std::string_view name, ExecutorFactory make) {
  return add(executors_, "executor", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_selector(std::string_view plugin, std::string_view name, SelectorFactory make) {
  return add(selectors_, "selector", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_generator(std::string_view plugin, std::string_view name, std::vector<Dialect> dialects,
                               GeneratorFactory make) {
  return add(generators_, "generator", name, {std::string(plugin), std::move(dialects), std::move(make)});
}

Status Registry::add_ahead_compiler(std::string_view plugin, std::string_view name, AheadCompilerFactory make) {
  return add(ahead_compilers_, "ahead compiler", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_stream_printer(std::string_view plugin, std::string_view name, StreamPrinterFactory make) {
  return add(stream_printers_, "stream printer", name, {std::string(plugin), std::move(make)});
}

Status Registry::add_remote(std::string_view plugin, std::string_view scheme, RemoteStoreFactory make) {
  return add(remotes_, "remote store", scheme, {std::string(plugin), std::move(make)});
}

Status Registry::add_config_keys(std::string_view plugin, std::vector<ConfigKey> keys) {
  if (config_keys_.try_emplace(std::string(plugin), std::move(keys)).second) return {};
  return invalid_argument("configuration keys of plugin '" + std::string(plugin) + "': published twice");
}

void Registry::set_file(std::string_view plugin, std::filesystem::path file) {
  files_.insert_or_assign(std::string(plugin), std::move(file));
}

std::filesystem::path Registry::file_of(std::string_view plugin) const {
  const auto at = files_.find(std::string(plugin));
  return at == files_.end() ? std::filesystem::path() : at->second;
}

Result<CacheFactory> Registry::cache(std::string_view name) const { return find(caches_, "cache", name); }
Result<ExecutorFactory> Registry::executor(std::string_view name) const { return find(executors_, "executor", name); }
Result<SelectorFactory> Registry::selector(std::string_view name) const { return find(selectors_, "selector", name); }

Result<std::vector<const RegisteredGenerator*>> Registry::generators(std::string_view name) const {
  std::vector<const RegisteredGenerator*> order;
  const auto chosen = generators_.find(std::string(name));
  if (chosen == generators_.end()) {
    return not_found("generator '" + std::string(name) + "': not registered (registered: " + names(generators_) + ")");
  }
  order.push_back(&chosen->second);
  for (const auto& [other, generator] : generators_) {
    if (other != name) order.push_back(&generator);
  }
  return order;
}

std::vector<const RegisteredGenerator*> Registry::generators() const {
  std::vector<const RegisteredGenerator*> all;
  for (const auto& [name, generator] : generators_) all.push_back(&generator);
  return all;
}

Status Registry::merge(Registry other) {
  for (const Status& status :
       {first_duplicate(drivers_, "driver", other.drivers_), first_duplicate(caches_, "cache", other.caches_),
        first_duplicate(executors_, "executor", other.executors_),
        first_duplicate(selectors_, "selector", other.selectors_),
        first_duplicate(generators_, "generator", other.generators_),
        first_duplicate(ahead_compilers_, "ahead compiler", other.ahead_compilers_),
        first_duplicate(stream_printers_, "stream printer", other.stream_printers_),
        first_duplicate(remotes_, "remote store", other.remotes_)}) {
    if (!status.ok()) return status;
  }
  for (const auto& [plugin, keys] : other.config_keys_) {
    if (config_keys_.contains(plugin)) {
      return invalid_argument("configuration keys of plugin '" + plugin + "': published twice");
    }
  }
  drivers_.merge(other.drivers_);
  caches_.merge(other.caches_);
  executors_.merge(other.executors_);
  selectors_.merge(other.selectors_);
  generators_.merge(other.generators_);
  ahead_compilers_.merge(other.ahead_compilers_);
  stream_printers_.merge(other.stream_printers_);
  remotes_.merge(other.remotes_);
  config_keys_.merge(other.config_keys_);
  files_.merge(other.files_);
  return {};
}

}  // namespace kiln

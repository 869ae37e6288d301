// Registry: the factories that core and plugins register, by interface and name.
//
// Thread-safety: register from one thread; after that, look up from any thread. Ownership: the registry owns the factories
// and must outlive the objects that they create. Plugin libraries remain loaded until the process ends.
//
//   kiln::Registry registry;
//   if (kiln::Status status = kiln::register_core(registry); !status.ok()) return status;
//   auto make_cache = registry.cache("tiered");  // not_found: the error lists the registered names
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/offline_tools.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

using DriverFactory = std::function<Result<std::unique_ptr<Driver>>(const DriverContext&)>;
using CacheFactory = std::function<Result<std::unique_ptr<ProgramCache>>(const CacheContext&)>;
using ExecutorFactory = std::function<Result<std::unique_ptr<Executor>>(const ExecutorContext&)>;
using SelectorFactory = std::function<Result<std::unique_ptr<DeviceSelector>>(const SelectorContext&)>;
using GeneratorFactory = std::function<Result<std::unique_ptr<KernelGenerator>>(const GeneratorContext&)>;

template <class Factory>
struct Registered {
  std::string plugin;  // plugin name; "core" for the library
  Factory make;
};

struct RegisteredGenerator {
  std::string plugin;
  std::vector<Dialect> dialects;
  GeneratorFactory make;
};

class Registry {
 public:
  // invalid_argument: the name is in use; the error names both plugins, and the first factory remains. A driver's name is
  // the part of its device ids before the colon.
  Status add_driver(std::string_view plugin, std::string_view name, DriverFactory make);
  Status add_cache(std::string_view plugin, std::string_view name, CacheFactory make);
  Status add_executor(std::string_view plugin, std::string_view name, ExecutorFactory make);
  Status add_selector(std::string_view plugin, std::string_view name, SelectorFactory make);
  // dialects: the dialects that the generator writes. If the generator in [generator] name does not support a device, Kiln
  // uses the generator of the device's plugin, else any other generator.
  Status add_generator(std::string_view plugin, std::string_view name, std::vector<Dialect> dialects,
                       GeneratorFactory make);
  Status add_ahead_compiler(std::string_view plugin, std::string_view name, AheadCompilerFactory make);
  // name: the type of the streams, such as "pm4".
  Status add_stream_printer(std::string_view plugin, std::string_view name, StreamPrinterFactory make);
  // scheme: of the URLs, such as "redis".
  Status add_remote(std::string_view plugin, std::string_view scheme, RemoteStoreFactory make);
  // Adds the keys of the section [plugin.NAME] of this plugin.
  Status add_config_keys(std::string_view plugin, std::vector<ConfigKey> keys);

  // Set and return the file of a plugin; empty if the plugin was not loaded from a file.
  void set_file(std::string_view plugin, std::filesystem::path file);
  std::filesystem::path file_of(std::string_view plugin) const;

  const std::map<std::string, Registered<DriverFactory>>& drivers() const noexcept { return drivers_; }
  const std::map<std::string, Registered<AheadCompilerFactory>>& ahead_compilers() const noexcept {
    return ahead_compilers_;
  }
  const std::map<std::string, Registered<StreamPrinterFactory>>& stream_printers() const noexcept {
    return stream_printers_;
  }
  const std::map<std::string, Registered<RemoteStoreFactory>>& remotes() const noexcept { return remotes_; }
  const std::map<std::string, std::vector<ConfigKey>>& config_keys() const noexcept { return config_keys_; }

  // Return the factory. not_found: the error has the requested and the registered names.
  Result<CacheFactory> cache(std::string_view name) const;
  Result<ExecutorFactory> executor(std::string_view name) const;
  Result<SelectorFactory> selector(std::string_view name) const;
  // Returns generators in order of preference: `name`, then the other generators by name.
  Result<std::vector<const RegisteredGenerator*>> generators(std::string_view name) const;
  std::vector<const RegisteredGenerator*> generators() const;  // all, by name

  // Moves all entries of `other` into this registry, or none. The loader uses one registry per plugin, so that a failed
  // plugin leaves no entries. invalid_argument: a duplicate; the error names both plugins.
  Status merge(Registry other);

 private:
  std::map<std::string, Registered<DriverFactory>> drivers_;
  std::map<std::string, Registered<CacheFactory>> caches_;
  std::map<std::string, Registered<ExecutorFactory>> executors_;
  std::map<std::string, Registered<SelectorFactory>> selectors_;
  std::map<std::string, RegisteredGenerator> generators_;
  std::map<std::string, Registered<AheadCompilerFactory>> ahead_compilers_;
  std::map<std::string, Registered<StreamPrinterFactory>> stream_printers_;
  std::map<std::string, Registered<RemoteStoreFactory>> remotes_;
  std::map<std::string, std::vector<ConfigKey>> config_keys_;
  std::map<std::string, std::filesystem::path> files_;
};

}  // namespace kiln

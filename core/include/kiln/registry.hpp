// Registry: what plugins and core brought, by interface and name.
//
// Thread-safety: add_* while loading, from one thread; lookups from any thread once loading is over.
// Ownership: the Registry owns the factories; what they make must die before the Registry, which outlives everything
// made by a plugin. Libraries stay loaded until exit.
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/offline_tools.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

using DriverFactory = std::function<Result<std::unique_ptr<Driver>>(const DriverContext&)>;
using CacheFactory = std::function<Result<std::unique_ptr<ProgramCache>>(const CacheContext&)>;
using ExecutorFactory = std::function<Result<std::unique_ptr<Executor>>(const ExecutorContext&)>;
using SelectorFactory = std::function<Result<std::unique_ptr<DeviceSelector>>(const SelectorContext&)>;
using GeneratorFactory = std::function<Result<std::unique_ptr<KernelGenerator>>(const GeneratorContext&)>;

template <class Factory>
struct Registered {
  std::string plugin;  // who brought it; "core" for what the library brings
  Factory make;
};

struct RegisteredGenerator {
  std::string plugin;
  std::vector<Dialect> dialects;
  GeneratorFactory make;
};

class Registry {
 public:
  // Each answers invalid_argument naming both plugins where the name is taken; the first keeps it. A driver's name is
  // what the ids of its devices have before the colon: who asks for "opengl:0" has no other driver look for devices.
  Status add_driver(std::string_view plugin, std::string_view name, DriverFactory make);
  Status add_cache(std::string_view plugin, std::string_view name, CacheFactory make);
  Status add_executor(std::string_view plugin, std::string_view name, ExecutorFactory make);
  Status add_selector(std::string_view plugin, std::string_view name, SelectorFactory make);
  // dialects: those the generator writes; where [generator] name does not write a device's dialect, the generator of
  // the device's own plugin serves, else any that writes it.
  Status add_generator(std::string_view plugin, std::string_view name, std::vector<Dialect> dialects,
                       GeneratorFactory make);
  Status add_ahead_compiler(std::string_view plugin, std::string_view name, AheadCompilerFactory make);
  // name: what the streams are called: "pm4".
  Status add_stream_printer(std::string_view plugin, std::string_view name, StreamPrinterFactory make);
  // The keys of [plugin.NAME], NAME being the plugin's.
  Status add_config_keys(std::string_view plugin, std::vector<ConfigKey> keys);

  // The file that a plugin was loaded from; empty where it was not loaded from one.
  void set_file(std::string_view plugin, std::filesystem::path file);
  std::filesystem::path file_of(std::string_view plugin) const;

  const std::map<std::string, Registered<DriverFactory>>& drivers() const noexcept { return drivers_; }
  const std::map<std::string, Registered<AheadCompilerFactory>>& ahead_compilers() const noexcept {
    return ahead_compilers_;
  }
  const std::map<std::string, Registered<StreamPrinterFactory>>& stream_printers() const noexcept {
    return stream_printers_;
  }
  const std::map<std::string, std::vector<ConfigKey>>& config_keys() const noexcept { return config_keys_; }

  // not_found, naming what was asked for and what there is.
  Result<CacheFactory> cache(std::string_view name) const;
  Result<ExecutorFactory> executor(std::string_view name) const;
  Result<SelectorFactory> selector(std::string_view name) const;
  // The generators that shall serve, preferred first: `name`, then the others by name.
  Result<std::vector<const RegisteredGenerator*>> generators(std::string_view name) const;
  std::vector<const RegisteredGenerator*> generators() const;  // all, by name

  // Takes over what `other` holds, or nothing: invalid_argument names both plugins of the first duplicate. The loader
  // lets each plugin register into a registry of its own, so that one that fails half-way leaves nothing behind.
  Status merge(Registry other);

 private:
  std::map<std::string, Registered<DriverFactory>> drivers_;
  std::map<std::string, Registered<CacheFactory>> caches_;
  std::map<std::string, Registered<ExecutorFactory>> executors_;
  std::map<std::string, Registered<SelectorFactory>> selectors_;
  std::map<std::string, RegisteredGenerator> generators_;
  std::map<std::string, Registered<AheadCompilerFactory>> ahead_compilers_;
  std::map<std::string, Registered<StreamPrinterFactory>> stream_printers_;
  std::map<std::string, std::vector<ConfigKey>> config_keys_;
  std::map<std::string, std::filesystem::path> files_;
};

}  // namespace kiln

// The plugin that a test binary is about: loaded from the build tree, registered, and its first device opened on
// demand. Thread-safety: none; tests use it from one thread. Ownership: everything lives until the process ends its
// main().
#pragma once

#include <kiln/plugin.hpp>
#include <kiln/registry.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace kiln::support {

class PluginUnderTest {
 public:
  // REQUIRES: the folder, KILN_PLUGIN_DIR where none is given, holds NAME.so; throws std::runtime_error with the
  // dlerror text otherwise.
  explicit PluginUnderTest(std::string name, PluginSettings settings = {},
                           const std::filesystem::path& folder_of_plugin = {});
  ~PluginUnderTest();

  // Registers another plugin of the folder in the same registry: what a Runtime needs beside the one under test.
  void add(const std::string& name);

  Registry& registry() noexcept { return registry_; }
  WorkCounters& counters() noexcept { return counters_; }
  // Lends the driver notes; before its first use.
  void lend(DriverNotes& notes) noexcept { notes_ = &notes; }
  // Gives the driver a log; before its first use.
  void listen(Log log) noexcept { log_ = log; }
  Driver& driver();                                     // the plugin's first driver
  std::shared_ptr<Device> open(const std::string& id);  // throws with the status text

 private:
  std::string name_;
  PluginSettings settings_;
  std::filesystem::path folder_of_plugins_;
  std::filesystem::path cache_directory_;
  WorkCounters counters_;
  DriverNotes* notes_ = nullptr;
  Log log_;
  Registry registry_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace kiln::support

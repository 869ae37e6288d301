#include "support/plugin_under_test.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <stdexcept>

namespace kiln::support {

PluginUnderTest::PluginUnderTest(std::string name, PluginSettings settings,
                                 const std::filesystem::path& folder_of_plugin)
    : name_(std::move(name)),
      settings_(std::move(settings)),
      folder_of_plugins_(folder_of_plugin.empty() ? KILN_PLUGIN_DIR : folder_of_plugin) {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder " + folder);
  cache_directory_ = folder;
  add(name_);
  if (const auto keys = registry_.config_keys().find(name_); keys != registry_.config_keys().end()) {
    for (const ConfigKey& key : keys->second) settings_.try_emplace(key.name, key.fallback);
  }
}

void PluginUnderTest::add(const std::string& name) {
  const std::string path = (folder_of_plugins_ / (name + ".so")).string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded: the contract's rule
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
  if (entry == nullptr) throw std::runtime_error(path + ": no " + plugin_entry_symbol);
  const Status status = entry->register_fn(registry_, {entry->note.name, {}});
  if (!status.ok()) throw std::runtime_error(status.text());
}

PluginUnderTest::~PluginUnderTest() {
  driver_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(cache_directory_, ignored);
}

Driver& PluginUnderTest::driver() {
  if (driver_ == nullptr) {
    if (registry_.drivers().empty()) throw std::runtime_error(name_ + ": registers no driver");
    auto made = registry_.drivers().begin()->second.make({log_, &counters_, cache_directory_, notes_, settings_});
    if (!made) throw std::runtime_error(made.error().text());
    driver_ = std::move(made).value();
  }
  return *driver_;
}

std::shared_ptr<Device> PluginUnderTest::open(const std::string& id) {
  auto device = driver().open(id);
  if (!device) throw std::runtime_error(device.error().text());
  return std::move(device).value();
}

}  // namespace kiln::support

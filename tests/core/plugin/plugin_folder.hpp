// PluginFolder: a private temporary folder with copies of fixture plugins, and a loader that searches it.
//
// Thread-safety: none. Ownership: the folder is removed with the object; libraries stay loaded, as everywhere.
#pragma once

#include <kiln/plugin_loader.hpp>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::test {

class CollectingSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override {
    const std::lock_guard lock(mutex_);
    text_ += std::string(message) + "\n";
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class PluginFolder {
 public:
  explicit PluginFolder(std::initializer_list<const char*> plugins = {});
  ~PluginFolder();
  PluginFolder(const PluginFolder&) = delete;
  PluginFolder& operator=(const PluginFolder&) = delete;

  const std::filesystem::path& root() const noexcept { return root_; }
  std::filesystem::path plugins() const { return root_ / "plugins"; }
  std::filesystem::path file(const std::string& name) const { return plugins() / (name + ".so"); }
  std::filesystem::path verdicts() const { return root_ / "verdicts.json"; }
  void add(const std::string& plugin);

  // Everything below is as load() will be called; a test changes what it is about.
  PluginLoaderOptions options;
  std::vector<std::string> required;
  CollectingSink sink;

  std::vector<PluginReport> load(const std::vector<std::string>& names);  // into `registry`
  PluginReport load_one(const std::string& name);                         // into a registry of its own
  Registry registry;

 private:
  std::filesystem::path root_;
  PluginLoader loader_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace kiln::test

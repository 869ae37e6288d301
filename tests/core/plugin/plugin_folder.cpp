#include "core/plugin/plugin_folder.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <stdexcept>

namespace kiln::test {

namespace fs = std::filesystem;

PluginFolder::PluginFolder(std::initializer_list<const char*> plugins) {
  std::string folder = (fs::temp_directory_path() / "kiln-plugins-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder " + folder);
  root_ = folder;
  fs::create_directory(this->plugins());
  chmod(this->plugins().c_str(), 0755);
  for (const char* plugin : plugins) add(plugin);
  options.path = {this->plugins()};
  options.verdict_file = verdicts();
  options.probe_timeout = std::chrono::seconds(60);
  options.log = {&sink, LogLevel::info};
}

PluginFolder::~PluginFolder() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void PluginFolder::add(const std::string& plugin) {
  const fs::path from = fs::path(KILN_BINARY_DIR) / "tests" / "fixtures" / (plugin + ".so");
  fs::copy_file(from, file(plugin), fs::copy_options::overwrite_existing);
  chmod(file(plugin).c_str(), 0644);
}

std::vector<PluginReport> PluginFolder::load(const std::vector<std::string>& names) {
  return loader_.load(names, required, registry, options);
}

PluginReport PluginFolder::load_one(const std::string& name) {
  Registry own;
  const std::vector<std::string> names{name};
  return loader_.load(names, {}, own, options).front();
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace kiln::test

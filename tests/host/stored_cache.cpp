#include "host/stored_cache.hpp"

#include "cache/manifest.hpp"
#include "cache/tiered_cache.hpp"
#include "core/cache/synthetic_device.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kiln::test {
namespace {

void set_driver(SyntheticDevice& device, const std::string& driver) {
  device.facts().driver = "Synthetic " + driver;
  device.facts().driver_identity = {{"version", driver}};
}

KernelSource source_of(const std::string& name) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = "#version 430\n// " + name + "\nvoid main() {\n  work();\n}\n";
  source.constants = {{"TILE", "16"}};
  source.bindings = {Access::read, Access::write};
  source.workgroup = {64, 1, 1};
  return source;
}

ProgramKey program_key(const std::string& name, const SyntheticDevice& device) {
  return key_of(source_of(name), device.info(), "layer " + name + "/direct");
}

}  // namespace

void StoredCache::build(const std::vector<std::string>& names, const std::string& driver) {
  SyntheticDevice device;
  set_driver(device, driver);
  CacheConfig config;
  config.directory = directory;
  config.key_file = key_file;
  config.compression = "none";
  if (!std::filesystem::exists(key_file)) {
    std::filesystem::create_directories(key_file.parent_path());
    std::filesystem::permissions(key_file.parent_path(), std::filesystem::perms::owner_all);
    std::ofstream(key_file, std::ios::binary) << std::string(32, 'k');
    std::filesystem::permissions(key_file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  const auto opened = TieredCache::create({{}, config});
  if (!opened) throw std::runtime_error(opened.error().text());
  TieredCache& cache = **opened;
  for (const std::string& name : names) {
    if (!cache.get_or_build(program_key(name, device), source_of(name), device)) throw std::runtime_error("not built");
  }
}

std::string StoredCache::key_of(const std::string& name, const std::string& driver) const {
  SyntheticDevice device;
  set_driver(device, driver);
  return program_key(name, device).digest.hex();
}

std::filesystem::path StoredCache::file_of(const std::string& name, const std::string& driver) const {
  const std::string wanted = key_of(name, driver) + ".bin";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().filename() == wanted) return entry.path();
  }
  return {};
}

void StoredCache::describe(const std::string& name, double build_ms, std::uint64_t times_used, std::chrono::seconds age,
                           const std::string& driver) {
  EntryMeta meta;
  meta.key = key_of(name, driver);
  meta.label = "layer " + name + "/direct";
  meta.operation = "conv2d";
  meta.shape = "1x8x16x16 k8 3x3";
  meta.variant = "direct";
  meta.build_ms = build_ms;
  meta.times_used = times_used;
  std::filesystem::path file = file_of(name, driver);
  const auto then = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - age);
  const timespec times[] = {{then, 0}, {then, 0}};
  for (const char* extension : {".bin", ".meta"}) {
    file.replace_extension(extension);
    if (file.extension() == ".meta") std::ofstream(file, std::ios::binary) << encode_meta(meta);
    if (utimensat(AT_FDCWD, file.c_str(), times, 0) != 0)
      throw std::runtime_error("cannot set the age of " + file.string());
  }
}

Finished StoredCache::kiln_cache(std::vector<std::string> words, ProcessOptions options) const {
  words.insert(words.begin(), "cache");
  words.insert(words.end(), {"--cache-dir", directory});
  options.environment.emplace("KILN_KEY_FILE", key_file);
  options.environment.emplace("TZ", "UTC");
  return run_kiln(std::move(words), options);
}

std::string StoredCache::plain(std::string text) const {
  const std::string path = directory;
  for (std::size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "DIR");
  return text;
}

std::string golden_cache_text(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KILN_SOURCE_DIR) / "tests" / "golden" / "cache";
  std::ifstream file(folder / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace kiln::test

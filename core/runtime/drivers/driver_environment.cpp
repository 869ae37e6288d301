#include "runtime/drivers/driver_environment.hpp"

#include "cache/driver_scratch.hpp"
#include "runtime/drivers/elf_facts.hpp"

#include <linux/magic.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t folder_schema = 1;
constexpr std::string_view folder_variable = "MESA_SHADER_CACHE_DIR";

bool changes_code(std::string_view variable) noexcept {
  if (variable == "LP_NUM_THREADS") return false;
  return variable.starts_with("LP_") || variable.starts_with("GALLIVM_") || variable.starts_with("GALLIUM_");
}

std::optional<std::int64_t> plugin_integer(const Config& config, const char* key) {
  const auto section = config.plugin.find("opengl");
  if (section == config.plugin.end()) return std::nullopt;
  const auto setting = section->second.find(key);
  if (setting == section->second.end()) return std::nullopt;
  const auto* value = std::get_if<std::int64_t>(&setting->second.value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// Takes in a library and, of those it needs, the ones that generate code.
class DriverFiles {
 public:
  DriverFiles(KeyEncoder& encoder, const std::vector<fs::path>& folders) : encoder_(encoder), folders_(folders) {}

  void add(const fs::path& file) {
    const auto facts = read_elf_facts(file);
    if (!facts || !known_.insert(facts->build_id).second) return;
    encoder_.field("build_id." + file.filename().string(), facts->build_id);
    for (const std::string& name : facts->needed) {
      // libgallium: where newer releases of Mesa keep the drivers themselves.
      if (!name.starts_with("libLLVM") && !name.starts_with("libgallium")) continue;
      encoder_.field("needs", name);
      for (const fs::path& folder : folders_) {
        std::error_code ignored;
        if (!fs::exists(folder / name, ignored)) continue;
        add(folder / name);
        break;
      }
    }
  }

 private:
  KeyEncoder& encoder_;
  const std::vector<fs::path>& folders_;
  std::set<std::string> known_;
};

std::vector<fs::path> driver_folders(const DriverSurroundings& surroundings) {
  std::vector<fs::path> folders;
  if (const auto listed = surroundings.variables.find("LIBGL_DRIVERS_PATH"); listed != surroundings.variables.end()) {
    std::string_view rest = listed->second;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end != 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  } else {
    for (const fs::path& folder : surroundings.library_folders) folders.push_back(folder / "dri");
  }
  return folders;
}

// Code in the driver's cache is for one processor: a folder may be on a file system that several machines share.
void add_processor(KeyEncoder& encoder) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    encoder.field("cpuid.1.ecx", c & ~(1u << 27));  // OSXSAVE is the operating system's
    encoder.field("cpuid.1.edx", d);
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    encoder.field("cpuid.7.ebx", b);
    encoder.field("cpuid.7.ecx", c & ~(1u << 4));  // OSPKE likewise
  }
#else
  encoder.field("hwcap", static_cast<std::uint64_t>(getauxval(AT_HWCAP)));
  encoder.field("hwcap2", static_cast<std::uint64_t>(getauxval(AT_HWCAP2)));
#endif
}

std::string folder_name(const DriverSurroundings& surroundings,
                        const std::vector<std::pair<std::string, std::string>>& to_set, const PluginsConfig& plugins) {
  KeyEncoder encoder;
  encoder.field("schema", folder_schema);
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : surroundings.variables) {
    if (changes_code(name)) settings.emplace(name, value);
  }
  for (const auto& [name, value] : to_set) {
    if (changes_code(name)) settings.emplace(name, value);
  }
  for (const auto& [name, value] : settings) encoder.field("setting." + name, value);
  add_processor(encoder);
  DriverFiles files(encoder, surroundings.library_folders);
  for (const fs::path& folder : driver_folders(surroundings)) files.add(folder / "swrast_dri.so");
  for (const fs::path& folder : surroundings.library_folders) files.add(folder / "libEGL_mesa.so.0");
  const bool vulkan = std::ranges::find(plugins.load, "vulkan") != plugins.load.end();
  for (const char* driver : {"libvulkan_lvp.so", "libvulkan_radeon.so"}) {
    for (const fs::path& folder : surroundings.library_folders) {
      if (vulkan) files.add(folder / driver);
    }
  }
  return encoder.digest().hex();
}

bool is_in_memory(const fs::path& folder) {
  struct statfs kind {};
  return statfs(folder.c_str(), &kind) == 0 && kind.f_type == TMPFS_MAGIC;
}

// Making and removing a file there costs a tenth of what it costs on a disk.
fs::path memory_folder(const std::map<std::string, std::string>& variables) {
  const auto runtime = variables.find("XDG_RUNTIME_DIR");
  std::error_code cannot_tell;
  if (runtime != variables.end() && fs::path(runtime->second).is_absolute() &&
      fs::is_directory(runtime->second, cannot_tell)) {
    return fs::path(runtime->second) / "kiln";
  }
  if (is_in_memory("/dev/shm")) return "/dev/shm/kiln-" + std::to_string(geteuid());
  return {};
}

}  // namespace

DriverSurroundings surroundings_of_process() {
  DriverSurroundings surroundings;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    surroundings.variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  constexpr std::string_view triplet = KILN_LIBRARY_ARCHITECTURE;
  if (!triplet.empty()) surroundings.library_folders.push_back(fs::path("/usr/lib") / triplet);
  surroundings.memory_folder = memory_folder(surroundings.variables);
  surroundings.library_folders.insert(surroundings.library_folders.end(), {"/usr/lib64", "/usr/lib"});
  return surroundings;
}

DriverEnvironment driver_environment(const Config& config, const DriverSurroundings& surroundings) {
  DriverEnvironment environment;
  const auto add = [&](std::string_view name, std::string value) {
    const auto known = surroundings.variables.find(std::string(name));
    // A folder that the user has named is replaced: nothing authenticates its files, and the driver runs them.
    const bool foreign =
        name == folder_variable && known != surroundings.variables.end() && driver_setting_of(known->second).empty();
    if (known != surroundings.variables.end() && !foreign) {
      environment.kept.emplace_back(name);
    } else {
      environment.set.emplace_back(name, std::move(value));
    }
  };
  if (const auto width = plugin_integer(config, "vector_width"); width && *width > 0) {
    add("LP_NATIVE_VECTOR_WIDTH", std::to_string(*width));
  }
  if (const auto threads = plugin_integer(config, "threads"); threads && *threads >= 0) {
    add("LP_NUM_THREADS", std::to_string(*threads));
  }
  fs::path around = surroundings.memory_folder;
  if (around.empty() && !config.cache.read_only) around = config.cache.directory;
  if (around.empty()) {
    add(folder_variable, no_driver_cache);  // Mesa cannot read its cache without writing to it
    return environment;
  }
  const fs::path folder =
      around / driver_caches_name / DriverScratch::new_name(folder_name(surroundings, environment.set, config.plugins));
  add(folder_variable, folder.string());
  // The private folder of a process may take half of what its programs may take on disk. Mesa reads a number without a
  // letter as gigabytes; the least it is given here is one kilobyte.
  add("MESA_SHADER_CACHE_MAX_SIZE", std::to_string(std::max<std::uint64_t>(config.cache.max_disk >> 11, 1)) + "K");
  return environment;
}

std::vector<std::pair<std::string, std::string>> driver_environment(const Config& config) {
  return driver_environment(config, surroundings_of_process()).set;
}

void prefer_roomy_heaps() noexcept {
#if defined(__GLIBC__)
  constexpr int mib = 1 << 20;
  // As much as fits into a thread's heap, of which glibc reserves 64 MiB: it gets this at its making.
  mallopt(M_TOP_PAD, 48 * mib);
  mallopt(M_MMAP_THRESHOLD, 32 * mib);
#endif
}

}  // namespace kiln

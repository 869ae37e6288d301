#include "runtime/driver_environment.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <kiln/buffer.hpp>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/elf_notes.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/os/private_folder.hpp"
#include "cache/driver_scratch.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t most_headers = 64;
constexpr std::uint64_t most_note_bytes = 4096;
constexpr std::uint64_t most_dynamic_bytes = 64 << 10;
constexpr std::uint64_t most_string_bytes = 4 << 20;

bool read_at(int fd, std::uint64_t offset, void* to, std::size_t bytes) noexcept {
  return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// Where an address of the dynamic section lies in the file.
std::optional<std::uint64_t> offset_of(std::span<const Elf64_Phdr> headers, std::uint64_t address) noexcept {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
      return header.p_offset + (address - header.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<std::string> find_needed(int fd, std::span<const Elf64_Phdr> headers, const Elf64_Phdr& dynamic) {
  if (dynamic.p_filesz > most_dynamic_bytes) return {};
  std::vector<Elf64_Dyn> entries(dynamic.p_filesz / sizeof(Elf64_Dyn));
  if (!read_at(fd, dynamic.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return {};
  std::vector<std::uint64_t> names;
  std::uint64_t table = 0;
  std::uint64_t last = 0;  // only the part of the table up to the last name is of interest
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
    if (entry.d_tag != DT_NEEDED) continue;
    names.push_back(entry.d_un.d_val);
    last = std::max(last, entry.d_un.d_val);
  }
  const auto offset = offset_of(headers, table);
  if (!offset || names.empty() || last > most_string_bytes) return {};
  std::vector<std::string> needed;
  for (const std::uint64_t at : names) {
    char name[256];  // pread of one name each: the table itself can be a megabyte
    const ssize_t got = pread(fd, name, sizeof name, static_cast<off_t>(*offset + at));
    if (got > 0) needed.emplace_back(name, strnlen(name, static_cast<std::size_t>(got)));
  }
  return needed;
}

}  // namespace

std::optional<ElfFacts> read_elf_facts(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return std::nullopt;
  Elf64_Ehdr elf;
  if (!read_at(fd.get(), 0, &elf, sizeof elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
      elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum == 0 || elf.e_phnum > most_headers) {
    return std::nullopt;
  }
  std::vector<Elf64_Phdr> headers(elf.e_phnum);
  if (!read_at(fd.get(), elf.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr))) return std::nullopt;
  ElfFacts facts;
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_NOTE && facts.build_id.empty() && header.p_filesz <= most_note_bytes) {
      std::string notes(header.p_filesz, '\0');
      if (!read_at(fd.get(), header.p_offset, notes.data(), notes.size())) continue;
      const auto id = find_build_id(std::as_bytes(std::span(notes)));
      facts.build_id.assign(reinterpret_cast<const char*>(id.data()), id.size());
    }
    if (header.p_type == PT_DYNAMIC) facts.needed = find_needed(fd.get(), headers, header);
  }
  return facts;
}

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
  // Code in the driver's cache is for one processor: a folder may be on a file system that several machines share.
  encoder.field("instructions", host_instructions());
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

namespace {

namespace fs = std::filesystem;

// Where Mesa maps its index, and its bytes: a sum and 65536 keys of 20 bytes. Another release keeps other files; then
// this one is room that was there when it was asked for.
constexpr const char* mapped_folder = "mesa_shader_cache";
constexpr const char* mapped_file = "index";
constexpr off_t mapped_bytes = 8 + 65536 * 20;

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

std::string name_of(const fs::path& folder) { return "folder " + folder.string(); }

Status give_blocks(const fs::path& folder) {
  const std::string who = name_of(folder / mapped_folder);
  const Result<UniqueFd> around = open_folder(folder, Create::no);
  if (!around) return around.error();
  const Result<UniqueFd> inner = open_subfolder(around->get(), mapped_folder, who, Create::yes);
  if (!inner) return inner.error();
  const std::string what = "file " + (folder / mapped_folder / mapped_file).string();
  const Result<UniqueFd> file = open_shared_file(inner->get(), mapped_file, what, Create::yes);
  if (!file) return file.error();
  struct stat at {};
  if (fstat(file->get(), &at) != 0) return system_error(what, "attributes cannot be read", errno);
  if (at.st_size == mapped_bytes && at.st_blocks * 512 >= at.st_size) return {};
  struct rlimit limit {};
  const bool fits = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(mapped_bytes);
  int error = fits ? EINTR : EFBIG;  // over the limit the system would send a signal that ends the process
  while (error == EINTR) error = posix_fallocate(file->get(), 0, mapped_bytes);
  if (error == 0) return {};
  if (at.st_size == 0) unlinkat(inner->get(), mapped_file, 0);
  return system_error(what, "cannot be extended to " + std::to_string(mapped_bytes) + " bytes", error);
}

}  // namespace

Status check_private_folder(const fs::path& folder) {
  struct stat at {};
  if (lstat(folder.c_str(), &at) != 0) return system_error(name_of(folder), "attributes cannot be read", errno);
  if (!S_ISDIR(at.st_mode)) return unavailable(name_of(folder) + ": is a link or a file, expected a folder");
  if (at.st_uid != geteuid()) {
    return unavailable(name_of(folder) + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                       std::to_string(geteuid()));
  }
  if ((at.st_mode & 0777) != 0700) {
    return unavailable(name_of(folder) + ": has mode " + octal(at.st_mode) + ", expected 0700");
  }
  const auto led_to = followed_path(folder);
  return led_to ? Status() : led_to.error();
}

Status prepare_driver_cache(const fs::path& folder) {
  // Before anything is made: below a folder that others can write nothing is.
  if (const auto led_to = followed_path(folder); !led_to) return led_to.error();
  if (const Result<UniqueFd> made = open_folder(folder, Create::yes); !made) return made.error();
  if (Status status = check_private_folder(folder); !status.ok()) return status;
  if (const Result<UniqueFd> root = open_folder(folder.parent_path().parent_path(), Create::no); root && *root) {
    sweep_driver_folders(root->get());
  }
  return give_blocks(folder);
}

std::string driver_setting_of(const fs::path& folder) { return DriverScratch::setting_of(folder.filename().string()); }

}  // namespace kiln

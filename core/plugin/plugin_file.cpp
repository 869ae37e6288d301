#include "plugin/plugin_file.hpp"

#include <kiln/buffer.hpp>
#include <kiln/plugin.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool plain(char letter) noexcept {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '-';
}

std::string refusal(const fs::path& folder) {
  if (folder.empty()) return "an empty entry, which is refused";
  if (!folder.is_absolute()) return folder.string() + ", which is refused: not an absolute path";
  std::error_code error;
  if (!fs::exists(folder, error)) return folder.string() + ", which does not exist";
  return folder.string();
}

}  // namespace

Result<fs::path> find_plugin(const std::string& name, std::span<const fs::path> folders) {
  constexpr std::size_t most_letters = sizeof(PluginNote::name) - 1;
  if (name.empty() || name.size() > most_letters || !std::ranges::all_of(name, plain)) {
    return invalid_argument("invalid name: expected 1 to " + std::to_string(most_letters) +
                            " letters, digits, '_' or '-'");
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / (name + ".so");
    std::error_code error;
    if (folder.is_absolute() && fs::symlink_status(path, error).type() != fs::file_type::not_found) return path;
    searched += (searched.empty() ? "" : "; ") + refusal(folder);
  }
  return not_found("file " + name +
                   ".so: " + (searched.empty() ? "no plugin folder is set" : "not found in: " + searched));
}

namespace {

namespace fs = std::filesystem;

std::string octal(mode_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

std::optional<uid_t> owner_of_core() {
  struct stat info {};
  if (core_file().empty() || stat(core_file().c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

Status check_trust(std::string_view what, const fs::path& path, const struct stat& info) {
  const std::string object = std::string(what) + " " + path.string();
  if ((info.st_mode & S_IWOTH) != 0) {
    return unsupported(object + ": writable by everyone (mode " + octal(info.st_mode) +
                       "), expected a mode without o+w");
  }
  const std::optional<uid_t> core = owner_of_core();
  if (info.st_uid == 0 || info.st_uid == geteuid() || info.st_uid == core) return {};
  std::string trusted = "root or uid " + std::to_string(geteuid());
  if (core && *core != 0 && *core != geteuid()) trusted += " or uid " + std::to_string(*core);
  return unsupported(object + ": owned by uid " + std::to_string(info.st_uid) + ", expected " + trusted);
}

Status system_status(std::string_view what, const fs::path& path, int error) {
  std::string message = std::string(what) + " " + path.string() + ": " + std::strerror(error);
  return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : io_error(std::move(message));
}

Status check_folder(const fs::path& folder) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return system_status("folder", folder, errno);
  if (!S_ISDIR(info.st_mode)) return not_found("folder " + folder.string() + ": not a folder");
  return check_trust("folder", folder, info);
}

// Whoever may change a folder with a link of the path in it, or the folder of the file at the end, could change the
// plugin. A path that does not lead to a file is left to open().
Status check_links(const fs::path& path) {
  constexpr int most_links = 40;  // as in Linux
  std::vector<fs::path> rest;     // the next part is the last
  const auto go_through = [&rest](const fs::path& parts) {
    const std::vector<fs::path> in_order(parts.begin(), parts.end());
    rest.insert(rest.end(), in_order.rbegin(), in_order.rend());
  };
  go_through(path);
  fs::path resolved;
  for (int links = 0; !rest.empty() && links < most_links;) {
    const fs::path part = std::move(rest.back());
    rest.pop_back();
    if (part == ".." || part.empty() || part == ".") {
      if (part == "..") resolved = resolved.parent_path();
      continue;
    }
    const fs::path next = resolved / part;  // an absolute part begins anew
    std::error_code no_link;
    const fs::path target = fs::read_symlink(next, no_link);
    if (no_link) {
      resolved = next;
      continue;
    }
    if (Status status = check_folder(resolved); !status.ok()) {
      status.message += "; link " + next.string() + " of " + path.string() + " is in it";
      return status;
    }
    go_through(target);
    ++links;
  }
  return resolved == path ? Status() : check_folder(resolved.parent_path());
}

}  // namespace

Result<PluginFile> PluginFile::open(const fs::path& path) {
  if (Status status = check_folder(path.parent_path()); !status.ok()) return status;
  if (Status status = check_links(path); !status.ok()) return status;
  // Not blocking: a pipe in the place of a plugin must not stop the host before it is seen to be one.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_status("file", path, errno);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return system_status("file", path, errno);
  if (!S_ISREG(info.st_mode)) return unsupported("file " + path.string() + ": not a regular file");
  if (Status status = check_trust("file", path, info); !status.ok()) return status;

  const PluginFileIdentity identity{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
                                    std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
  if (identity.size == 0) return PluginFile(identity, {});
  void* mapping = mmap(nullptr, identity.size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapping == MAP_FAILED) return system_status("file", path, errno);
  return PluginFile(identity, {static_cast<const std::byte*>(mapping), identity.size});
}

PluginFile::~PluginFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

const fs::path& core_file() {
  const auto find = [] {
    Dl_info info{};
    std::error_code error;
    if (dladdr(reinterpret_cast<const void*>(&core_file), &info) == 0 || info.dli_fname == nullptr) return fs::path();
    fs::path path = fs::canonical(info.dli_fname, error);
    return error ? fs::path() : path;
  };
  static const auto& file = *new fs::path(find());  // never destroyed: another thread may load plugins at exit
  return file;
}

}  // namespace kiln

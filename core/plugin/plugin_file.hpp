// Where plugins are searched for, and what a file must be to be one.
//
// Finds a plugin's file: NAME.so in the first folder of the path that has it.
//
// Thread-safety: any thread; reads folders.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kiln {

// invalid_argument: not a plugin name. not_found: the error lists each folder with the reason. Relative folders are
// ignored.
Result<std::filesystem::path> find_plugin(const std::string& name, std::span<const std::filesystem::path> folders);

// PluginFile: a plugin's file before loading: checks that file and folders are trusted, and maps its bytes.
//
// Trusted files can be changed only by root, the current user, and the owner of libkiln_core.so, whose code runs
// already. Thread-safety: none; one thread uses it. Ownership: the mapping is valid as long as the PluginFile.

// The file that a stored verdict is valid for.
struct PluginFileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const PluginFileIdentity&) const = default;
};

class PluginFile {
 public:
  // not_found: no such folder or file. unsupported: not trusted, or not a regular file; the error has the reason.
  static Result<PluginFile> open(const std::filesystem::path& path);

  PluginFile(PluginFile&& other) noexcept
      : identity_(other.identity_), bytes_(std::exchange(other.bytes_, std::span<const std::byte>())) {}
  PluginFile& operator=(PluginFile&&) = delete;
  ~PluginFile();

  const PluginFileIdentity& identity() const noexcept { return identity_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  PluginFile(PluginFileIdentity identity, std::span<const std::byte> bytes) noexcept
      : identity_(identity), bytes_(bytes) {}

  PluginFileIdentity identity_;
  std::span<const std::byte> bytes_;
};

// Returns the path of libkiln_core.so; empty: the dynamic linker does not report it.
const std::filesystem::path& core_file();

}  // namespace kiln

// PluginFile: a plugin's file before it is loaded: whether its folder and itself may be trusted, its identity, its
// bytes.
//
// Trusted is what nobody can change but root, the current user, and the owner of libkiln_core.so, whose code runs
// already. Thread-safety: none needed; used by one thread. Ownership: the mapping lives as long as the PluginFile.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace kiln {

// What a remembered verdict is valid for.
struct PluginFileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const PluginFileIdentity&) const = default;
};

class PluginFile {
 public:
  // not_found: there is no such folder or file. unsupported: not to be trusted, or not a regular file, with the reason.
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

// The file libkiln_core.so that this code runs from; empty where the dynamic linker does not tell.
const std::filesystem::path& core_file();

}  // namespace kiln

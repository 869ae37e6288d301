// SecretKey: 32 random bytes of one user on one machine, kept in a file that only this user can read.
//
// Thread-safety: values; two threads or processes that create the same file at once end with the same key.
// Ownership: the key is wiped by its destructor.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace kiln {

struct SecretKey {
  std::array<std::byte, 32> bytes{};

  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
};

enum class IfMissing : std::uint8_t { invalid = 0, fail, create };

// Reads the key. create: where there is no file, one is made (0600, parents 0700), complete or not at all.
// Refused, with what was found and what was expected: a symbolic link, an owner that is neither this user nor root, a
// mode that lets others in (a group may read root's), a folder in which others may replace the file, another size, zero
// bytes alone.
Result<SecretKey> read_secret_key(const std::filesystem::path& path, IfMissing if_missing);

}  // namespace kiln

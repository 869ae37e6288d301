// Parts of AtomicFile (kiln/result_files.hpp) that the journal of commits shares.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <sys/stat.h>

#include <kiln/result_files.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace kiln {

// Identifies one version of a file in a journal. Device numbers are omitted because they change at a restart.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::uint64_t owner = 0;

  static FileIdentity of(const struct stat& found) noexcept;
  bool operator==(const FileIdentity&) const = default;
};

// ".kiln-<token>.tmp"
std::string temporary_name(const std::string& token);

// Converts an errno for a file: not_found if the file or folder does not exist, otherwise io.
Status file_failure(const std::filesystem::path& path, const std::string& what, int error);

}  // namespace kiln

// Reading one whole file of an open folder: a regular file of this user's, of a bounded size, never through a link.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

enum class FileState : std::uint8_t {
  invalid = 0,
  absent,
  read,
  foreign,    // another user's
  misplaced,  // a link, a folder or a device where Kiln writes files only
  too_large,
  unreadable,  // the operating system refused
};

struct FileContents {
  FileState state = FileState::invalid;
  std::vector<std::byte> bytes;  // set where it was read
  std::string why;               // set where it is neither read nor absent
  std::int64_t modified_ns = 0;  // since 1970; set where it could be looked at
};

// When it was last modified, since 1970.
std::int64_t modified_ns(const struct stat& at) noexcept;

FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes);

}  // namespace kiln

// AtomicFile: a file that appears under its name complete, or not at all.
//
// Bytes go to a temporary file in the same folder; commit() flushes it and renames it onto the final name; the
// destructor discards what was not committed. An existing regular file or symbolic link of that name is replaced (a
// link is not followed); anything else of that name is refused. Thread-safety: one thread at a time. Ownership: owns
// the descriptor and the temporary file. Every error names the final path and the system's text.
#pragma once

#include <kiln/status.hpp>

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

struct stat;

namespace kiln {

class AtomicFile {
 public:
  // mode is narrowed by the process's umask. not_found: there is no such folder. invalid_argument: the name cannot be
  // replaced.
  static Result<AtomicFile> create(const std::filesystem::path& final_path, mode_t mode = 0666);

  // For a user's result. Symbolic links are followed; an existing file keeps its mode, owner and group, and nobody else
  // can read the new content before it has them. invalid_argument: it is not a regular file, or it has other hard
  // links, which would keep the old content. io: it cannot be written, or its owner cannot be kept.
  static Result<AtomicFile> replace(const std::filesystem::path& name);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // After a failure the file can only be discarded.
  Status write(std::span<const std::byte> bytes);
  // REQUIRES: called once at most; no write() follows.
  Status commit();

 private:
  AtomicFile(std::filesystem::path final_path, std::filesystem::path temporary_path, int fd) noexcept;
  Status keep_owner(const struct stat& replaced);
  void discard() noexcept;

  std::filesystem::path final_path_;
  std::filesystem::path temporary_path_;  // empty: committed or moved from
  int fd_ = -1;
  std::optional<mode_t> mode_;  // to set at the commit; absent: as it was created
};

// The file that a name leads to: its symbolic links followed, also where the last one leads to nothing yet. io: they
// lead in a circle, or cannot be read.
Result<std::filesystem::path> followed(const std::filesystem::path& name);

// Whether AtomicFile::replace() would take what is there under a followed name; its errors.
Status check_replaceable(const std::filesystem::path& file);

}  // namespace kiln

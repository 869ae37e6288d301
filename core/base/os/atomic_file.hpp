// AtomicFile: a new file that appears under its name complete, or not at all.
//
// Bytes go to an unnamed file in the same folder (O_TMPFILE), so a killed process leaves nothing. On filesystems
// without O_TMPFILE the temporary name is ".kiln-<random>.tmp". commit() or commit_files() (file_commit.hpp) renames
// the file; the destructor discards an uncommitted one. Every error names the final path and has the system's text.
// Thread-safety: one thread at a time. Ownership: owns the descriptor and the temporary file.
//
//   auto file = AtomicFile::create("result.json");
//   if (!file) return file.error();
//   if (Status status = file->write(bytes); !status.ok()) return status;
//   return file->commit();
#pragma once

#include <sys/stat.h>

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
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

class AtomicFile {
 public:
  // Symbolic links are followed. An existing file keeps its mode, owner and group, and the new content is not readable
  // by others before these are set. A new file has mode 0666 reduced by the umask. not_found: the folder does not
  // exist. invalid_argument: not a regular file, or it has other hard links, which would keep the old content. io: not
  // writable, or the owner cannot be preserved.
  static Result<AtomicFile> create(const std::filesystem::path& name);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // After a failure, the file can only be discarded.
  Status write(std::span<const std::byte> bytes);
  // Commits this file alone; use commit_files() for files that change together, also for `journal`. REQUIRES: called at
  // most once; no write() follows.
  Status commit(const std::filesystem::path& journal = {});

 private:
  friend class FileCommit;

  AtomicFile(std::filesystem::path final_path, std::string token, UniqueFd file, bool is_named) noexcept;
  Status match(const struct stat& replaced);
  void discard() noexcept;

  std::filesystem::path final_path_;  // absolute, links followed; empty: moved from
  std::string token_;                 // part of the temporary name
  UniqueFd file_;                     // empty: committed, discarded or moved from
  bool is_named_ = false;             // the temporary file has a name
};

// Resolves symbolic links, also if the last one leads to a missing file. io: the links form a loop or cannot be read.
Result<std::filesystem::path> followed(const std::filesystem::path& name);

// Returns one absolute name per file, links resolved, also for a missing file.
std::filesystem::path name_of_file(const std::filesystem::path& name);

// Returns the error of AtomicFile::create() for this resolved name, or ok.
Status check_replaceable(const std::filesystem::path& file);
// io: the file is not writable, or no file can be created in its folder or the nearest existing parent.
Status check_writable(const std::filesystem::path& name);

// ".kiln-<token>.tmp"
std::string temporary_name(const std::string& token);

// Converts an errno for a file: not_found if the file or folder does not exist, otherwise io.
Status file_failure(const std::filesystem::path& path, const std::string& what, int error);

}  // namespace kiln

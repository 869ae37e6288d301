// AtomicFile: a new file that appears under its name complete, or not at all.
//
// Bytes go to a file without a name in the same folder (O_TMPFILE), so that a killed process leaves nothing. Where the
// file system has no such files, the name is ".kiln-<random>.tmp". commit() or commit_files() (file_commit.hpp) gives
// the file its name; the destructor discards what was not committed. Thread-safety: one thread at a time. Ownership:
// owns the descriptor and the temporary file. Every error names the final path and the system's text.
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

// Which file it is, and in which version: what a journal knows it by. Device numbers change with a restart and are left
// out.
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
  // Symbolic links are followed. An existing file keeps its mode, owner and group, and nobody else can read the new
  // content before it has them; a new file has mode 0666 narrowed by the umask. not_found: there is no such folder.
  // invalid_argument: it is not a regular file, or it has other hard links, which would keep the old content. io: it
  // cannot be written, or its owner cannot be kept.
  static Result<AtomicFile> create(const std::filesystem::path& name);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // After a failure the file can only be discarded.
  Status write(std::span<const std::byte> bytes);
  // Alone; several files that change together take commit_files(). journal: as there.
  // REQUIRES: called once at most; no write() follows.
  Status commit(const std::filesystem::path& journal = {});

 private:
  friend class FileCommit;

  AtomicFile(std::filesystem::path final_path, std::string token, UniqueFd file, bool is_named) noexcept;
  Status match(const struct stat& replaced);
  void discard() noexcept;

  std::filesystem::path final_path_;  // absolute, links followed; empty: moved from
  std::string token_;                 // of the temporary name
  UniqueFd file_;                     // none: committed, discarded or moved from
  bool is_named_ = false;             // the temporary file has its name
};

// The file that a name leads to: its symbolic links followed, also where the last one leads to nothing yet. io: they
// lead in a circle, or cannot be read.
Result<std::filesystem::path> followed(const std::filesystem::path& name);

// One absolute name for one file, links followed, also where it does not exist yet.
std::filesystem::path name_of_file(const std::filesystem::path& name);

// Whether AtomicFile::create() would take what is there under a followed name; its errors.
Status check_replaceable(const std::filesystem::path& file);
// io: the system refuses to write the file, or to make one in its folder or in the nearest one that exists.
Status check_writable(const std::filesystem::path& name);

// ".kiln-<token>.tmp"
std::string temporary_name(const std::string& token);

// An error of the system for a file: not_found where there is no such file or folder, else io.
Status file_failure(const std::filesystem::path& path, const std::string& what, int error);

}  // namespace kiln

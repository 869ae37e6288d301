// Result files: writes one file or several files atomically.
//
// AtomicFile writes one new file. commit_files() commits several files together: after a crash, all of them exist or none.
// settle_commits() completes or reverts the commits of dead processes; docs/result-journal.md describes the journal. Bytes
// go to an unnamed file in the same folder (O_TMPFILE), so a killed process leaves nothing. On filesystems without
// O_TMPFILE, the temporary name is ".kiln-<random>.tmp".
// Errors: each error has the final path and the system's message.
// Thread-safety: functions from any thread; one process at a time uses a journal, and other processes wait. AtomicFile: one
// thread at a time. Ownership: an AtomicFile owns its descriptor and the temporary file; the caller owns all objects.
//
//   auto file = kiln::AtomicFile::create("result.json");
//   if (!file) return file.error();
//   if (kiln::Status status = file->write(bytes); !status.ok()) return status;
//   return file->commit();
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

struct stat;

namespace [[gnu::visibility("default")]] kiln {

class AtomicFile {
 public:
  // Follows symbolic links. Preserves mode, owner and group of an existing file; other users cannot read the new content
  // before these are set. A new file has mode 0666 reduced by the umask. not_found: the folder does not exist.
  // invalid_argument: not a regular file, or the file has other hard links, which would still have the old content. io: not
  // writable, or the owner cannot be preserved.
  static Result<AtomicFile> create(const std::filesystem::path& name);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // discards an uncommitted file

  // After a failure, the file can only be discarded.
  Status write(std::span<const std::byte> bytes);
  // Commits only this file; use commit_files() for files that change together. journal: as for commit_files(). REQUIRES:
  // called at most once; no write() follows.
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

// Commits units. A unit is a set of files that change together, such as the results of one job. All units share one sync.
// Returns one Status per unit; a failed unit changes nothing. journal: folder of the journal, created with mode 0700. If
// `journal` is empty or not usable, the journal is in the folder of the first file that needs one. corrupt: the unit needs
// a journal, and the journal of a dead process cannot be used; the message names this journal and the outputs that may be
// partly new. REQUIRES: all final paths differ.
std::vector<Status> commit_files(const std::filesystem::path& journal, std::span<std::vector<AtomicFile>> units);

struct SettledCommits {
  std::vector<std::string> notes;     // completed and reverted commits
  std::vector<std::string> problems;  // the user must check these
};

// Completes or reverts the commits of dead processes, from the journals in `journal` and in the data folders. Renames or
// removes only files that match the journal exactly (inode, size, time, owner). Waits while a living process commits. Does
// not remove an unusable journal, but adds a problem: commits that need this journal fail until the user removes it.
SettledCommits settle_commits(const std::filesystem::path& journal,
                              std::span<const std::filesystem::path> data_folders);

// Resolves symbolic links, also if the target does not exist. io: the links form a loop or cannot be read.
Result<std::filesystem::path> followed(const std::filesystem::path& name);

// Returns one absolute name per file, links resolved, also for a missing file.
std::filesystem::path name_of_file(const std::filesystem::path& name);

// name_of_file() for many files. It resolves each name and each folder once, so later changes of links have no effect.
// Thread-safety: one thread at a time. Ownership: the returned reference is valid for the lifetime of the object.
class FileNames {
 public:
  const std::filesystem::path& of(const std::filesystem::path& name);

 private:
  std::map<std::string, std::filesystem::path> files_, folders_;  // by the requested name
};

// Checks that AtomicFile can replace `file`. REQUIRES: the symbolic links of `file` are resolved. A missing file is ok.
// invalid_argument: a folder, a device, a FIFO, a socket, or a file with several hard links. io: the file cannot be examined.
Status check_replaceable(const std::filesystem::path& file);
// io: the file is not writable, or no file can be created in its folder or the nearest existing parent.
Status check_writable(const std::filesystem::path& name);

}  // namespace kiln

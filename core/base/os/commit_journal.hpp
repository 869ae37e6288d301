// CommitJournal: the file that records which files change together, and what they replace, during a commit.
//
// The file is locked while open, so one process commits at a time. docs/result-journal.md describes the format.
// Thread-safety: one thread at a time. Ownership: owns the descriptor.
#pragma once

#include "base/os/atomic_file.hpp"

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

struct CommitEntry {
  FileIdentity made;
  std::optional<FileIdentity> old;  // nullopt: there was no file
  std::string token;                // the temporary file is temporary_name(token) in the same folder
  std::filesystem::path path;       // absolute
};

struct CommitUnit {
  std::int64_t begun_s = 0;  // seconds since 1970
  std::vector<CommitEntry> entries;
};

// Two copies, so that one damaged place leaves a readable one. folder: inode of the journal's folder; 0: not known.
std::string format_commit_units(const std::vector<CommitUnit>& units, std::uint64_t folder = 0);
// corrupt: both copies are damaged, of another version, or of another folder. The message has only the reason.
Result<std::vector<CommitUnit>> parse_commit_units(std::string_view text, std::uint64_t folder = 0);
// The outputs in a journal that cannot be used, as far as its lines can be read. Follows no link.
std::set<std::filesystem::path> outputs_listed_in(const std::filesystem::path& journal);

// The token of a temporary file beside the output `name`: a digest of the name, and digits of `random`. It is unchanged
// if `random` is a token of the same name.
std::string commit_token(std::string_view name, std::string_view random);

class CommitJournal {
 public:
  enum class Missing : std::uint8_t { invalid = 0, none, create };

  // Waits while another process commits. Missing::none: returns an empty object if there is no file. unavailable:
  // another process, which the message names, holds the lock for a minute. corrupt: what has this name is no file that
  // only this user can use. cancelled: the StopScope of the thread was set.
  static Result<CommitJournal> open(const std::filesystem::path& path, Missing missing);

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  int file() const noexcept { return file_.get(); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // corrupt: damaged, or emptied after it was written.
  Result<std::vector<CommitUnit>> read() const;
  Status write(const std::vector<CommitUnit>& units);
  void remove();

 private:
  CommitJournal(std::filesystem::path path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  Status failed(const std::string& what, int error) const;

  std::filesystem::path path_;
  UniqueFd file_;
  std::uint64_t folder_ = 0;  // inode
  off_t bytes_ = 0;
  bool was_written_ = false;
};

}  // namespace kiln

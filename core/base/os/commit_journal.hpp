// CommitJournal: the file that records which files change together, and what they replace, during a commit.
//
// The file is locked while open, so one process commits at a time. docs/result-journal.md describes the format.
// Thread-safety: one thread at a time. Ownership: owns the descriptor.
#pragma once

#include "base/os/atomic_file.hpp"

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
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

std::string format_commit_units(const std::vector<CommitUnit>& units);
// nullopt: damaged, or of another version.
std::optional<std::vector<CommitUnit>> parse_commit_units(std::string_view text);

class CommitJournal {
 public:
  enum class Missing : std::uint8_t { invalid = 0, none, create };

  // Waits while another process commits. Missing::none: returns an empty object if there is no file. unavailable:
  // another process, which the message names, holds the lock for a minute, or the file is not private to this user.
  // cancelled: the StopScope of the thread was set.
  static Result<CommitJournal> open(const std::filesystem::path& path, Missing missing);

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  int file() const noexcept { return file_.get(); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Empty: no commit was begun.
  Result<std::string> read() const;
  Status write(const std::string& text) const;
  void remove() const noexcept;

 private:
  CommitJournal(std::filesystem::path path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  Status failed(const std::string& what, int error) const;

  std::filesystem::path path_;
  UniqueFd file_;
};

}  // namespace kiln

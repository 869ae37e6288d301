// CommitJournal: the file that says which files change together, and what they replace, while they do.
//
// Locked while it is open: one process commits at a time. Thread-safety: one thread at a time; units are values.
// Ownership: owns the descriptor. docs/result-journal.md has the format.
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
  std::optional<FileIdentity> old;  // absent: there was no file
  std::string token;                // temporary_name(token) beside the file
  std::filesystem::path path;       // absolute
};

struct CommitUnit {
  std::int64_t begun_s = 0;  // since 1970
  std::vector<CommitEntry> entries;
};

std::string format_commit_units(const std::vector<CommitUnit>& units);
// nullopt: damaged, or of another version.
std::optional<std::vector<CommitUnit>> parse_commit_units(std::string_view text);

class CommitJournal {
 public:
  enum class Missing : std::uint8_t { invalid = 0, none, create };

  // Waits for another process that commits. none: an empty object where there is no file. unavailable: another process
  // holds it for a minute, or it is not a file of this user's alone.
  static Result<CommitJournal> open(const std::filesystem::path& path, Missing missing);

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  int file() const noexcept { return file_.get(); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Empty: nothing was begun.
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

// CommitJournal: the file that records which files change together, and what they replace, during a commit.
//
// The file is locked while open, so one process commits at a time. docs/result-journal.md describes the format.
// Thread-safety: one thread at a time. Ownership: owns the descriptor.
#pragma once

#include "base/os/atomic_file.hpp"

#include <kiln/buffer.hpp>
#include <kiln/result_files.hpp>
#include <kiln/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
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

// What a commit of files shares with the recovery of one that was cut off: the names of a file that is replaced, and
// the settling of journals.
//
// Thread-safety: none. Ownership: OpenFolders owns descriptors and outlives the CommitPlaces that use it.

// Folders, each opened once.
class OpenFolders {
 public:
  struct Folder {
    UniqueFd file;
    int error = 0;  // of opening it
  };
  const Folder& of(const std::filesystem::path& folder);

 private:
  std::map<std::string, Folder> folders_;
};

// The names of one file that is replaced, in its folder.
class CommitPlace {
 public:
  CommitPlace(const CommitEntry& entry, OpenFolders& folders);

  int open_error() const noexcept { return open_error_; }
  bool is_placed() const;  // whether the file has taken its name
  // file: -1 where the temporary file has its name. alone: nothing else changes with it, so what it replaces is not
  // needed.
  Status place(int file, bool alone) const;
  // The file has its old content, or is absent, as before; the temporary names are gone. not_found: the old content is.
  Status undo() const;
  // Removes the temporary names, where they name the files that they were made for.
  Status clear() const;

 private:
  Status failed(const std::string& what, int error) const;
  std::optional<FileIdentity> identity(const std::string& name) const;
  int link_to(int file, const std::string& name) const;
  int exchange() const;
  Status renamed(const std::string& from, const std::string& to) const;
  Status refused(int error) const;
  Status place_new(int file) const;

  const CommitEntry& entry_;
  const UniqueFd& folder_;
  int open_error_;
  std::string final_, temporary_, backup_;
};

// Others must not be able to exchange the journal.
bool is_private_folder(const std::filesystem::path& folder);
// The journal of this user in the state folder, and the one beside data where that folder cannot be used.
std::filesystem::path shared_journal(const std::filesystem::path& folder);
std::filesystem::path journal_beside(const std::filesystem::path& folder);

// why: a journal that cannot be used. folders: of the outputs of this run. Adds which outputs may be partly new.
Status add_outputs(Status why, const std::filesystem::path& journal, std::set<std::filesystem::path> folders);

enum class BrokenUnits : unsigned char { invalid = 0, drop, keep };
// Settles what the journal holds; answers what could not be settled yet, and with BrokenUnits::keep what never can be.
// Errors: those of CommitJournal::read(), and nothing was changed.
Result<std::vector<CommitUnit>> settle_all(const CommitJournal& journal, BrokenUnits broken, SettledCommits& into);
// What cannot be written is damaged, and the next commit refuses it by name.
void keep_or_remove(CommitJournal& journal, const std::vector<CommitUnit>& later);
// An absent journal is settled. folders: of the outputs of this run.
Status settle_one(const std::filesystem::path& path, BrokenUnits broken, const std::set<std::filesystem::path>& folders,
                  SettledCommits& into);

std::int64_t seconds_since_1970();

}  // namespace kiln

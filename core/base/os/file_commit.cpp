#include <kiln/result_files.hpp>

#include "base/os/commit_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_age_s = 30 * 24 * 60 * 60;  // of a unit whose folder cannot be opened

std::string system_text(int error) { return std::generic_category().message(error); }

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_unsupported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM; }

// The names of one file that is replaced, in its folder.
class Place {
 public:
  explicit Place(const CommitEntry& entry)
      : entry_(entry),
        folder_(::open(entry.path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        open_error_(folder_ ? 0 : errno),
        final_(entry.path.filename()),
        temporary_(temporary_name(entry.token)),
        backup_(".kiln-" + entry.token + ".old") {}

  int open_error() const noexcept { return open_error_; }

  // Whether the file has taken its name. alone: nothing else changes with it, so what it replaces is not needed.
  bool is_placed() const {
    const auto at_final = identity(final_);
    if (at_final == entry_.made) return true;
    return entry_.old && at_final != entry_.old &&
           (identity(temporary_) == entry_.old || (at_final && identity(backup_) == entry_.old));
  }

  // file: -1 where the temporary file has its name.
  Status place(int file, bool alone) const {
    if (!folder_) return failed("cannot open its folder", open_error_);
    if (!entry_.old) return place_new(file);
    if (file >= 0 && link_to(file, temporary_) != 0) return failed("cannot name a temporary file beside it", errno);
    if (alone) return renamed(temporary_, final_);
    if (exchange() == 0) {
      if (identity(temporary_) == entry_.old) return {};
      (void)exchange();
      return io_error("file " + entry_.path.string() + ": another process changed it meanwhile");
    }
    if (!is_unsupported(errno)) return failed("cannot move the temporary file onto it", errno);
    if (::linkat(folder_.get(), final_.c_str(), folder_.get(), backup_.c_str(), 0) != 0) {
      if (Status status = renamed(final_, backup_); !status.ok()) return status;
    }
    return renamed(temporary_, final_);
  }

  // The file has its old content, or is absent, as before; the temporary names are gone. not_found: the old content is.
  Status undo() const {
    if (!folder_) return failed("cannot open its folder", open_error_);
    Status status;
    auto at_final = identity(final_);
    if (!entry_.old) {
      if (at_final == entry_.made && ::unlinkat(folder_.get(), final_.c_str(), 0) != 0) {
        return failed("cannot remove it", errno);
      }
    } else if (at_final == entry_.made || !at_final) {
      const std::string* const held = identity(temporary_) == entry_.old ? &temporary_
                                      : identity(backup_) == entry_.old  ? &backup_
                                                                         : nullptr;
      if (held == nullptr) {
        if (!at_final) return {};  // somebody removed it
        return not_found("file " + entry_.path.string() + ": its old content is gone");
      }
      if (held == &backup_ || !at_final || exchange() != 0) status = renamed(*held, final_);
      if (!status.ok()) return status;
    }
    return clear();
  }

  // Removes the temporary names, where they name the files that they were made for.
  Status clear() const {
    for (const std::string& name : {temporary_, backup_}) {
      const auto there = identity(name);
      if (!there || (there != entry_.made && there != entry_.old)) continue;
      if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
        return failed("cannot remove " + name + " beside it", errno);
      }
    }
    return {};
  }

 private:
  Status failed(const std::string& what, int error) const { return file_failure(entry_.path, what, error); }

  // nullopt: no such file. What is no regular file is none of ours.
  std::optional<FileIdentity> identity(const std::string& name) const {
    struct stat found {};
    if (::fstatat(folder_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return S_ISREG(found.st_mode) ? FileIdentity::of(found) : FileIdentity{};
  }

  int link_to(int file, const std::string& name) const {
    return ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(file)).c_str(), folder_.get(), name.c_str(),
                    AT_SYMLINK_FOLLOW);
  }

  int exchange() const {
    return ::renameat2(folder_.get(), temporary_.c_str(), folder_.get(), final_.c_str(), RENAME_EXCHANGE);
  }

  Status renamed(const std::string& from, const std::string& to) const {
    if (::renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0) return {};
    return failed("cannot rename " + from + " to " + to, errno);
  }

  Status refused(int error) const {
    const bool meanwhile = error == EEXIST;
    return failed(meanwhile ? "another process has made it since this job was checked" : "cannot give it its name",
                  error);
  }

  Status place_new(int file) const {
    if (file >= 0) return link_to(file, final_) == 0 ? Status() : refused(errno);
    if (::linkat(folder_.get(), temporary_.c_str(), folder_.get(), final_.c_str(), 0) == 0) {
      ::unlinkat(folder_.get(), temporary_.c_str(), 0);
      return {};
    }
    if (errno == EEXIST) return refused(EEXIST);
    return renamed(temporary_, final_);
  }

  const CommitEntry& entry_;
  UniqueFd folder_;
  int open_error_;
  std::string final_, temporary_, backup_;
};

// Others must not be able to exchange the journal.
bool is_private_folder(const fs::path& folder) {
  struct stat found {};
  return !folder.empty() && folder.is_absolute() && ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         (found.st_uid == ::geteuid() || found.st_uid == 0) && (found.st_mode & 022) == 0;
}

void make_private_folder(const fs::path& folder) {
  if (!folder.is_absolute() || ::mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT || !folder.has_relative_path()) {
    return;
  }
  make_private_folder(folder.parent_path());
  (void)::mkdir(folder.c_str(), 0700);
}

fs::path shared_journal(const fs::path& folder) { return folder / "results.journal"; }
fs::path journal_beside(const fs::path& folder) {
  return folder / (".kiln-" + std::to_string(::geteuid()) + ".journal");
}

std::string names_of(const CommitUnit& unit) {
  std::string names;
  for (const CommitEntry& entry : unit.entries) names += (names.empty() ? "" : ", ") + entry.path.string();
  return names;
}

enum class Settled : unsigned char { invalid = 0, finished, undone, broken, out_of_reach };

// what: of a unit that is broken or out of reach.
Settled settle(const CommitUnit& unit, std::string& what) {
  std::vector<Place> places;
  places.reserve(unit.entries.size());
  for (const CommitEntry& entry : unit.entries) {
    places.emplace_back(entry);
    if (const int error = places.back().open_error()) {
      what = entry.path.parent_path().string() + ": " + system_text(error);
      return Settled::out_of_reach;
    }
  }
  const bool is_whole = std::ranges::all_of(places, [](const Place& place) { return place.is_placed(); });
  Settled settled = is_whole ? Settled::finished : Settled::undone;
  for (const Place& place : places) {
    const Status status = is_whole ? place.clear() : place.undo();
    if (status.ok()) continue;
    what = status.message;
    if (settled != Settled::broken)
      settled = is_whole || status.code != StatusCode::not_found ? Settled::out_of_reach : Settled::broken;
  }
  return settled;
}

enum class Broken : unsigned char { invalid = 0, drop, keep };

// Settles what the journal holds; answers what could not be settled yet, and with Broken::keep what never can be.
std::vector<CommitUnit> settle_all(const CommitJournal& journal, Broken broken, SettledCommits& into) {
  const auto text = journal.read();
  if (text && text->empty()) return {};
  const auto units = text ? parse_commit_units(*text) : std::nullopt;
  if (!units) {
    into.problems.push_back("journal " + journal.path().string() +
                            ": is damaged and was removed. Results that were being written may be incomplete: run "
                            "those jobs again");
    return {};
  }
  std::vector<CommitUnit> later;
  for (const CommitUnit& unit : *units) {
    std::string what;
    const std::string who = "an earlier run ended while it wrote " + names_of(unit);
    switch (settle(unit, what)) {
      case Settled::invalid:
        break;
      case Settled::finished:
        into.notes.push_back(who + ": its results are complete");
        break;
      case Settled::undone:
        into.notes.push_back(who + ": the old content was kept");
        break;
      case Settled::broken:
        into.problems.push_back(who + ", and " + what + ". Some of these files may be new and others old");
        if (broken == Broken::keep) later.push_back(unit);
        break;
      case Settled::out_of_reach:
        into.problems.push_back(who + ", and this cannot be completed now: " + what + ". The next run tries again");
        if (now_s() - unit.begun_s < most_age_s) later.push_back(unit);
        break;
    }
  }
  return later;
}

void keep_or_remove(const CommitJournal& journal, const std::vector<CommitUnit>& later) {
  if (later.empty() || !journal.write(format_commit_units(later)).ok()) journal.remove();
}

}  // namespace

class FileCommit {
 public:
  FileCommit(const fs::path& journal, std::span<std::vector<AtomicFile>> units)
      : folder_(journal), units_(units), statuses_(units.size()), records_(units.size()) {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      for (const AtomicFile& file : units_[i]) {
        if (!file.file_)
          statuses_[i] = internal_error("file " + file.final_path_.string() + ": committed or discarded already");
      }
    }
    if (const Status status = open_journal(); status.code == StatusCode::cancelled) {
      for_each_good([&](std::size_t) { return status; });
    } else if (!status.ok()) {
      fail_several(status);
    }
  }

  std::vector<Status> run() {
    for_each_good([&](std::size_t unit) { return describe(unit); });
    if (const Status status = write_journal(); !status.ok()) fail_several(status);
    sync_files(Sync::before);
    for_each_good([&](std::size_t unit) { return place(unit); });
    sync_files(Sync::after);
    for_each_good([&](std::size_t unit) {
      if (!is_several(unit)) return Status();  // placing a file alone leaves no other name
      for (const CommitEntry& entry : records_[unit].entries) (void)Place(entry).clear();  // else the next run does
      return Status();
    });
    if (journal_ && !interrupted_) keep_or_remove(*journal_, later_);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      for (AtomicFile& file : units_[i]) {
        if (statuses_[i].ok()) file.is_named_ = false;
        file.discard();
      }
    }
    return std::move(statuses_);
  }

 private:
  enum class Sync : unsigned char { invalid = 0, before, after };

  bool is_several(std::size_t unit) const { return units_[unit].size() > 1; }

  template <class Step>
  void for_each_good(const Step& step) {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!statuses_[i].ok()) continue;
      try {
        statuses_[i] = step(i);
      } catch (...) {
        statuses_[i] = caught();
        interrupted_ = true;
      }
    }
  }

  // A file that is new and alone takes its name in one step; one that replaces another has a second name for a moment.
  // cancelled: no unit may be committed. Other errors: none of several files may.
  Status open_journal() {
    const AtomicFile* first = nullptr;
    for (const auto& unit : units_) {
      for (const AtomicFile& file : unit) {
        struct stat found {};
        const bool needs_journal = unit.size() > 1 || file.is_named_ || ::lstat(file.final_path_.c_str(), &found) == 0;
        if (first == nullptr && needs_journal) first = &file;
      }
    }
    if (first == nullptr) return {};
    if (folder_.is_absolute()) make_private_folder(folder_);
    auto journal = is_private_folder(folder_)
                       ? CommitJournal::open(shared_journal(folder_), CommitJournal::Missing::create)
                       : Result<CommitJournal>(not_found("no folder for a journal"));
    const bool is_busy =
        !journal && (journal.error().code == StatusCode::unavailable || journal.error().code == StatusCode::cancelled);
    if (!journal && !is_busy) {
      journal = CommitJournal::open(journal_beside(first->final_path_.parent_path()), CommitJournal::Missing::create);
    }
    if (!journal) return journal.error();
    SettledCommits settled;  // problems stay in the journal, and the next settle_commits() reports them
    journal_ = std::move(*journal);
    later_ = settle_all(*journal_, Broken::keep, settled);
    return {};
  }

  // A single file is whole or untouched without a journal too.
  void fail_several(const Status& why) {
    for_each_good([&](std::size_t unit) { return is_several(unit) ? why : Status(); });
  }

  // What is replaced may have changed since the file was created.
  Status describe(std::size_t unit) {
    records_[unit].begun_s = now_s();
    for (AtomicFile& file : units_[unit]) {
      CommitEntry& entry = records_[unit].entries.emplace_back();
      entry.token = file.token_;
      entry.path = file.final_path_;
      if (Status status = describe(file, entry); !status.ok()) return status;
    }
    return {};
  }

  static Status describe(AtomicFile& file, CommitEntry& entry) {
    if (Status status = check_replaceable(file.final_path_); !status.ok()) return status;
    struct stat found {};
    if (::lstat(file.final_path_.c_str(), &found) == 0) {
      if (Status status = file.match(found); !status.ok()) return status;
      entry.old = FileIdentity::of(found);
    }
    if (::fstat(file.file_.get(), &found) != 0) return file_failure(file.final_path_, "cannot look at it", errno);
    entry.made = FileIdentity::of(found);
    return {};
  }

  Status write_journal() {
    if (!journal_) return {};
    std::vector<CommitUnit> all = later_;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (statuses_[i].ok()) all.push_back(records_[i]);
    }
    return journal_->write(format_commit_units(all));
  }

  // One call for each file system. before: the content, and the journal of units of several files, without which a
  // crash of the machine could leave new names on empty files. after: only where several file systems are involved,
  // which order nothing among themselves.
  void sync_files(Sync when) {
    std::map<dev_t, std::vector<int>> files;
    std::map<dev_t, std::set<std::size_t>> units;
    bool any_several = false;
    for_each_good([&](std::size_t unit) {
      any_several = any_several || is_several(unit);
      for (const AtomicFile& file : units_[unit]) {
        const dev_t device = device_of(file.file_.get());
        if (when == Sync::after && !is_several(unit)) continue;
        files[device].push_back(file.file_.get());
        units[device].insert(unit);
      }
      return Status();
    });
    if (journal_ && any_several) files[device_of(journal_->file())].push_back(journal_->file());
    if (when == Sync::after && (!any_several || files.size() < 2)) return;
    constexpr std::size_t few = 2;
    for (const auto& [device, all] : files) {
      int failure = 0;
      if (when == Sync::after || all.size() > few) {
        if (::syncfs(all.front()) != 0) failure = errno;
      } else {
        for (const int file : all) {
          if (::fsync(file) != 0 && errno != EINVAL && errno != EROFS) failure = errno;
        }
      }
      if (failure == 0 || when == Sync::after) continue;
      for (const std::size_t unit : units[device]) {
        statuses_[unit] = file_failure(units_[unit].front().final_path_, "cannot flush", failure);
      }
      if (units[device].empty())
        fail_several(io_error("journal " + journal_->path().string() + ": cannot flush: " + system_text(failure)));
    }
  }

  static dev_t device_of(int file) {
    struct stat found {};
    return ::fstat(file, &found) == 0 ? found.st_dev : dev_t{};
  }

  Status place(std::size_t unit) {
    std::vector<CommitEntry>& entries = records_[unit].entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      AtomicFile& file = units_[unit][i];
      Status status = place(file, entries[i], is_several(unit));
      if (!status.ok() && !entries[i].old) status = replace_new(unit, file, entries[i], std::move(status));
      if (status.ok()) continue;
      for (std::size_t placed = i + 1; placed-- > 0;) {
        const Status undone = Place(entries[placed]).undo();
        if (!undone.ok()) status.message += "; " + undone.message;
      }
      return status;
    }
    return {};
  }

  static Status place(const AtomicFile& file, const CommitEntry& entry, bool is_several) {
    return Place(entry).place(file.is_named_ ? -1 : file.file_.get(), !is_several);
  }

  // Another process made the file after describe(): it is replaced like one that was there before. Its name is taken
  // under the journal, which a new file alone has not needed so far.
  Status replace_new(std::size_t unit, AtomicFile& file, CommitEntry& entry, Status failure) {
    constexpr int most_attempts = 5;  // another one may remove it again
    struct stat found {};
    for (int attempt = 0; attempt < most_attempts && !failure.ok(); ++attempt) {
      if (!entry.old && ::lstat(file.final_path_.c_str(), &found) != 0) return failure;
      entry.old.reset();
      if (Status status = describe(file, entry); !status.ok()) return status;
      if (!journal_) {
        if (Status status = open_journal(); status.code == StatusCode::cancelled) return status;
      }
      Status written = write_journal();
      if (written.ok() && journal_ && ::fsync(journal_->file()) != 0) {
        written = file_failure(journal_->path(), "cannot flush", errno);
      }
      if (!written.ok() && is_several(unit)) return written;
      failure = place(file, entry, is_several(unit));
    }
    return failure;
  }

  const fs::path& folder_;
  const std::span<std::vector<AtomicFile>> units_;
  std::vector<Status> statuses_;
  std::vector<CommitUnit> records_;
  std::optional<CommitJournal> journal_;
  std::vector<CommitUnit> later_;  // of dead processes, whose folders cannot be opened now
  bool interrupted_ = false;       // by exhausted memory: the journal stays, and the next commit settles it
};

std::vector<Status> commit_files(const fs::path& journal, std::span<std::vector<AtomicFile>> units) {
  return FileCommit(journal, units).run();
}

SettledCommits settle_commits(const fs::path& journal, std::span<const fs::path> data_folders) {
  SettledCommits settled;
  std::set<fs::path> paths;
  for (const fs::path& folder : data_folders) paths.insert(journal_beside(folder));
  if (is_private_folder(journal)) paths.insert(shared_journal(journal));
  for (const fs::path& path : paths) {
    const auto opened = CommitJournal::open(path, CommitJournal::Missing::none);
    if (!opened) {
      settled.problems.push_back(opened.error().message);
    } else if (*opened) {
      keep_or_remove(*opened, settle_all(*opened, Broken::drop, settled));
    }
  }
  return settled;
}

}  // namespace kiln

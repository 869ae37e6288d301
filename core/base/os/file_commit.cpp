#include <kiln/result_files.hpp>

#include "base/os/commit_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace kiln {

namespace fs = std::filesystem;

namespace {

void make_private_folder(const fs::path& folder) {
  if (!folder.is_absolute() || ::mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT || !folder.has_relative_path()) {
    return;
  }
  make_private_folder(folder.parent_path());
  (void)::mkdir(folder.c_str(), 0700);
}

}  // namespace

class FileCommit {
 public:
  FileCommit(const fs::path& journal, std::span<std::vector<AtomicFile>> units)
      : folder_(journal), units_(units), statuses_(units.size()), records_(units.size()) {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      for (const AtomicFile& file : units_[i]) {
        if (!file.file_)
          statuses_[i] = internal_error("file " + file.final_path_.string() + ": already committed or discarded");
      }
    }
    if (const Status status = open_journal(); status.code == StatusCode::cancelled) {
      for_each_good([&](std::size_t) { return status; });
    } else if (status.code == StatusCode::corrupt) {
      for_each_good([&](std::size_t unit) { return needs_journal(unit) ? status : Status(); });
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
      for (const CommitEntry& entry : records_[unit].entries) {
        if (entry.old) (void)CommitPlace(entry, open_).clear();  // else the next run does
      }
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
  bool needs_journal(std::size_t unit) const {
    struct stat found {};
    return is_several(unit) || std::ranges::any_of(units_[unit], [&](const AtomicFile& file) {
             return file.is_named_ || ::lstat(file.final_path_.c_str(), &found) == 0;
           });
  }

  // cancelled: no unit may be committed. corrupt: none that needs a journal. Other errors: none of several files.
  Status open_journal() {
    std::size_t first = 0;
    while (first < units_.size() && !needs_journal(first)) ++first;
    if (first == units_.size()) return {};
    if (folder_.is_absolute()) make_private_folder(folder_);
    const bool is_shared = is_private_folder(folder_);
    auto journal = is_shared ? CommitJournal::open(shared_journal(folder_), CommitJournal::Missing::create)
                             : Result<CommitJournal>(not_found("no journal folder is set"));
    const bool cannot_be_created =
        !journal && (journal.error().code == StatusCode::not_found || journal.error().code == StatusCode::io);
    const fs::path beside = journal_beside(units_[first].front().final_path_.parent_path());
    if (cannot_be_created) journal = CommitJournal::open(beside, CommitJournal::Missing::create);
    if (!journal) return add_outputs(journal.error(), cannot_be_created ? beside : shared_journal(folder_), folders());
    SettledCommits settled;  // problems stay in the journal, and the next settle_commits() reports them
    auto later = settle_all(*journal, BrokenUnits::keep, settled);
    if (!later) return add_outputs(later.error(), journal->path(), folders());
    if (!cannot_be_created) {
      if (Status status = settle_beside(); !status.ok()) {
        keep_or_remove(*journal, *later);
        return status;
      }
    }
    journal_ = std::move(*journal);
    later_ = std::move(*later);
    return {};
  }

  // Settles the journals of runs that could not use the shared one. A process that holds the shared journal may wait
  // for one beside the data, and never the other way round.
  Status settle_beside() const {
    std::set<fs::path> all;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      if (!is_several(unit)) continue;
      for (const AtomicFile& file : units_[unit]) all.insert(file.final_path_.parent_path());
    }
    for (const fs::path& folder : all) {
      const fs::path path = journal_beside(folder);
      struct stat found {};
      if (::lstat(path.c_str(), &found) != 0) continue;
      SettledCommits settled;
      if (Status status = settle_one(path, BrokenUnits::keep, folders(), settled); !status.ok()) return status;
    }
    return {};
  }

  std::set<fs::path> folders() const {
    std::set<fs::path> all;
    for (const auto& unit : units_) {
      for (const AtomicFile& file : unit) all.insert(file.final_path_.parent_path());
    }
    return all;
  }

  // A single file is whole or untouched without a journal too.
  void fail_several(const Status& why) {
    for_each_good([&](std::size_t unit) { return is_several(unit) ? why : Status(); });
  }

  // What is replaced may have changed since the file was created.
  Status describe(std::size_t unit) {
    records_[unit].begun_s = seconds_since_1970();
    for (AtomicFile& file : units_[unit]) {
      CommitEntry& entry = records_[unit].entries.emplace_back();
      entry.token = file.is_named_ ? file.token_ : commit_token(file.final_path_.filename().native(), file.token_);
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
    if (::fstat(file.file_.get(), &found) != 0)
      return file_failure(file.final_path_, "attributes cannot be read", errno);
    entry.made = FileIdentity::of(found);
    return {};
  }

  Status write_journal() {
    if (!journal_) return {};
    std::vector<CommitUnit> all = later_;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (statuses_[i].ok()) all.push_back(records_[i]);
    }
    return journal_->write(all);
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
        fail_several(io_error("journal " + journal_->path().string() +
                              ": cannot flush: " + std::generic_category().message(failure)));
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
        const Status undone = CommitPlace(entries[placed], open_).undo();
        if (!undone.ok()) status.message += "; " + undone.message;
      }
      return status;
    }
    return {};
  }

  Status place(const AtomicFile& file, const CommitEntry& entry, bool is_several) {
    return CommitPlace(entry, open_).place(file.is_named_ ? -1 : file.file_.get(), !is_several);
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
        Status status = open_journal();
        if (status.code == StatusCode::cancelled || status.code == StatusCode::corrupt) return status;
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
  OpenFolders open_;
  std::optional<CommitJournal> journal_;
  std::vector<CommitUnit> later_;  // of dead processes, whose folders cannot be opened now
  bool interrupted_ = false;       // by exhausted memory: the journal stays, and the next commit settles it
};

std::vector<Status> commit_files(const fs::path& journal, std::span<std::vector<AtomicFile>> units) {
  return FileCommit(journal, units).run();
}

}  // namespace kiln

#include "base/os/commit_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>

namespace kiln {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t most_age_s = 30 * 24 * 60 * 60;  // of a unit whose folder cannot be opened

std::string backup_name(const std::string& token) { return ".kiln-" + token + ".old"; }

bool is_unsupported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM; }

std::string names_of(const CommitUnit& unit) {
  std::string names;
  for (const CommitEntry& entry : unit.entries) names += (names.empty() ? "" : ", ") + entry.path.string();
  return names;
}

// ".kiln-<token>.tmp" or ".old"; empty: another name.
std::string token_in(const std::string& name) {
  constexpr std::size_t before = std::string_view(".kiln-").size(), digits = 16;
  if (name.size() < before + digits) return {};
  std::string token = name.substr(before, digits);
  return name == temporary_name(token) || name == backup_name(token) ? token : "";
}

// The temporary files of this user in these folders, and the outputs that their tokens name.
std::vector<fs::path> temporary_files_in(const std::set<fs::path>& folders, std::set<fs::path>& outputs) {
  std::vector<fs::path> temporary;
  for (const fs::path& folder : folders) {
    std::set<std::string> names, tokens;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      const std::string token = token_in(name);
      struct stat found {};
      if (token.empty()) {
        names.insert(name);
      } else if (::lstat(at->path().c_str(), &found) == 0 && found.st_uid == ::geteuid()) {
        tokens.insert(token);
        temporary.push_back(at->path());
      }
    }
    if (tokens.empty()) continue;
    for (const std::string& name : names) {
      const auto is_of = [&](const std::string& token) { return commit_token(name, token) == token; };
      if (std::ranges::any_of(tokens, is_of)) outputs.insert(folder / name);
    }
  }
  return temporary;
}

std::string list_of(const auto& paths) {
  std::string list;
  for (const fs::path& path : paths) list += (list.empty() ? "" : ", ") + path.string();
  return list;
}

}  // namespace

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const OpenFolders::Folder& OpenFolders::of(const fs::path& folder) {
  const auto [at, is_new] = folders_.try_emplace(folder.native());
  if (is_new) {
    at->second.file = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at->second.file) at->second.error = errno;
  }
  return at->second;
}

CommitPlace::CommitPlace(const CommitEntry& entry, OpenFolders& folders)
    : entry_(entry),
      folder_(folders.of(entry.path.parent_path()).file),
      open_error_(folders.of(entry.path.parent_path()).error),
      final_(entry.path.filename()),
      temporary_(temporary_name(entry.token)),
      backup_(backup_name(entry.token)) {}

bool CommitPlace::is_placed() const {
  const auto at_final = identity(final_);
  if (at_final == entry_.made) return true;
  return entry_.old && at_final != entry_.old &&
         (identity(temporary_) == entry_.old || (at_final && identity(backup_) == entry_.old));
}

Status CommitPlace::place(int file, bool alone) const {
  if (!folder_) return failed("cannot open its folder", open_error_);
  if (!entry_.old) return place_new(file);
  if (file >= 0 && link_to(file, temporary_) != 0) return failed("cannot link the temporary file", errno);
  if (alone) return renamed(temporary_, final_);
  if (exchange() == 0) {
    if (identity(temporary_) == entry_.old) return {};
    (void)exchange();
    return io_error("file " + entry_.path.string() + ": changed by another process at the same time");
  }
  if (!is_unsupported(errno)) return failed("cannot be replaced with the temporary file", errno);
  if (::linkat(folder_.get(), final_.c_str(), folder_.get(), backup_.c_str(), 0) != 0) {
    if (Status status = renamed(final_, backup_); !status.ok()) return status;
  }
  return renamed(temporary_, final_);
}

Status CommitPlace::undo() const {
  if (!folder_) return failed("cannot open its folder", open_error_);
  Status status;
  auto at_final = identity(final_);
  if (!entry_.old) {
    if (at_final == entry_.made && ::unlinkat(folder_.get(), final_.c_str(), 0) != 0) {
      return failed("cannot be removed", errno);
    }
  } else if (at_final == entry_.made || !at_final) {
    const std::string* const held = identity(temporary_) == entry_.old ? &temporary_
                                    : identity(backup_) == entry_.old  ? &backup_
                                                                       : nullptr;
    if (held == nullptr) {
      if (!at_final) return {};  // somebody removed it
      return not_found("file " + entry_.path.string() + ": the old content is lost");
    }
    if (held == &backup_ || !at_final || exchange() != 0) status = renamed(*held, final_);
    if (!status.ok()) return status;
  }
  return clear();
}

Status CommitPlace::clear() const {
  for (const std::string& name : {temporary_, backup_}) {
    const auto there = identity(name);
    if (!there || (there != entry_.made && there != entry_.old)) continue;
    if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      return failed("cannot remove " + name + " in its folder", errno);
    }
  }
  return {};
}

Status CommitPlace::failed(const std::string& what, int error) const { return file_failure(entry_.path, what, error); }

// nullopt: no such file. What is no regular file is none of ours.
std::optional<FileIdentity> CommitPlace::identity(const std::string& name) const {
  struct stat found {};
  if (::fstatat(folder_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return S_ISREG(found.st_mode) ? FileIdentity::of(found) : FileIdentity{};
}

int CommitPlace::link_to(int file, const std::string& name) const {
  return ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(file)).c_str(), folder_.get(), name.c_str(),
                  AT_SYMLINK_FOLLOW);
}

int CommitPlace::exchange() const {
  return ::renameat2(folder_.get(), temporary_.c_str(), folder_.get(), final_.c_str(), RENAME_EXCHANGE);
}

Status CommitPlace::renamed(const std::string& from, const std::string& to) const {
  if (::renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0) return {};
  return failed("cannot rename " + from + " to " + to, errno);
}

Status CommitPlace::refused(int error) const {
  const bool meanwhile = error == EEXIST;
  return failed(meanwhile ? "another process created the file after this job was checked" : "cannot be created", error);
}

Status CommitPlace::place_new(int file) const {
  if (file >= 0) return link_to(file, final_) == 0 ? Status() : refused(errno);
  if (::linkat(folder_.get(), temporary_.c_str(), folder_.get(), final_.c_str(), 0) == 0) {
    ::unlinkat(folder_.get(), temporary_.c_str(), 0);
    return {};
  }
  if (errno == EEXIST) return refused(EEXIST);
  return renamed(temporary_, final_);
}

bool is_private_folder(const fs::path& folder) {
  struct stat found {};
  return !folder.empty() && folder.is_absolute() && ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         (found.st_uid == ::geteuid() || found.st_uid == 0) && (found.st_mode & 022) == 0;
}

fs::path shared_journal(const fs::path& folder) { return folder / "results.journal"; }
fs::path journal_beside(const fs::path& folder) {
  return folder / (".kiln-" + std::to_string(::geteuid()) + ".journal");
}

Status add_outputs(Status why, const fs::path& journal, std::set<fs::path> folders) {
  if (why.code != StatusCode::corrupt) return why;
  std::set<fs::path> outputs = outputs_listed_in(journal);
  for (const fs::path& output : outputs) folders.insert(output.parent_path());
  const auto temporary = temporary_files_in(folders, outputs);
  why.message += ". A run that ended while it wrote may have left outputs partly new and partly old: " +
                 (outputs.empty() ? "which ones is not known" : list_of(outputs));
  if (!temporary.empty()) why.message += ". Their other versions: " + list_of(temporary);
  why.message += ". Check these files, remove the journal, and run their jobs again";
  return why;
}

namespace {

enum class Settled : unsigned char { invalid = 0, finished, undone, broken, out_of_reach };

// what: of a unit that is broken or out of reach.
Settled settle(const CommitUnit& unit, std::string& what) {
  OpenFolders folders;
  std::vector<CommitPlace> places;
  places.reserve(unit.entries.size());
  for (const CommitEntry& entry : unit.entries) {
    places.emplace_back(entry, folders);
    if (const int error = places.back().open_error()) {
      what = entry.path.parent_path().string() + ": " + std::generic_category().message(error);
      return Settled::out_of_reach;
    }
  }
  const bool is_whole = std::ranges::all_of(places, [](const CommitPlace& place) { return place.is_placed(); });
  Settled settled = is_whole ? Settled::finished : Settled::undone;
  for (const CommitPlace& place : places) {
    const Status status = is_whole ? place.clear() : place.undo();
    if (status.ok()) continue;
    what = status.message;
    if (settled != Settled::broken)
      settled = is_whole || status.code != StatusCode::not_found ? Settled::out_of_reach : Settled::broken;
  }
  return settled;
}

}  // namespace

Result<std::vector<CommitUnit>> settle_all(const CommitJournal& journal, BrokenUnits broken, SettledCommits& into) {
  const auto units = journal.read();
  if (!units) return units.error();
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
        if (broken == BrokenUnits::keep) later.push_back(unit);
        break;
      case Settled::out_of_reach:
        into.problems.push_back(who + ", and this cannot be completed now: " + what + ". The next run tries again");
        if (seconds_since_1970() - unit.begun_s < most_age_s) later.push_back(unit);
        break;
    }
  }
  return later;
}

void keep_or_remove(CommitJournal& journal, const std::vector<CommitUnit>& later) {
  if (later.empty()) {
    journal.remove();
  } else {
    (void)journal.write(later);
  }
}

Status settle_one(const fs::path& path, BrokenUnits broken, const std::set<fs::path>& folders, SettledCommits& into) {
  auto journal = CommitJournal::open(path, CommitJournal::Missing::none);
  if (!journal) return add_outputs(journal.error(), path, folders);
  if (!*journal) return {};
  const auto later = settle_all(*journal, broken, into);
  if (!later) return add_outputs(later.error(), path, folders);
  keep_or_remove(*journal, *later);
  return {};
}

SettledCommits settle_commits(const fs::path& journal, std::span<const fs::path> data_folders) {
  SettledCommits settled;
  std::set<fs::path> paths;
  for (const fs::path& folder : data_folders) paths.insert(journal_beside(folder));
  if (is_private_folder(journal)) paths.insert(shared_journal(journal));
  for (const fs::path& path : paths) {
    const Status status = settle_one(path, BrokenUnits::drop, {data_folders.begin(), data_folders.end()}, settled);
    if (!status.ok()) settled.problems.push_back(status.message);
  }
  return settled;
}

}  // namespace kiln

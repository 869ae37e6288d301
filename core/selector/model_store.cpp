#include "selector/model_store.hpp"

#include "base/os/file_lock.hpp"

#include <kiln/regular_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace kiln::selector {
namespace {

constexpr std::chrono::seconds lock_patience{3};
constexpr std::uint64_t most_bytes = 16 << 20;  // several times what the greatest model takes

// The file appears complete or not at all. One name for what is not complete yet, since the lock keeps others away:
// what a process that was killed leaves is written over by the next.
Status replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path fresh = file.parent_path() / unfinished_model_file;
  const auto failure = [&](const char* what) {
    return io_error("file " + fresh.string() + ": " + what + ": " + std::generic_category().message(errno));
  };
  ::unlink(fresh.c_str());
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failure("cannot be made");
  const auto discarded = [&](const char* what) {
    Status status = failure(what);
    ::unlink(fresh.c_str());
    return status;
  };
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t wrote = ::write(fd.get(), text.data() + written, text.size() - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return discarded("cannot be written");
    written += static_cast<std::size_t>(wrote);
  }
  if (::fsync(fd.get()) != 0) return discarded("cannot be flushed");
  if (::rename(fresh.c_str(), file.c_str()) != 0) return discarded("cannot be renamed");
  return {};
}

std::optional<FileIdentity> identity_of(const std::filesystem::path& file) {
  struct stat at {};
  return ::lstat(file.c_str(), &at) == 0 ? std::optional(FileIdentity::of(at)) : std::nullopt;
}

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

Result<UniqueFd> lock_model(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / model_lock;
  const auto open_it = [&] {
    return UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  };
  UniqueFd fd = open_it();
  if (!fd && errno == ENOENT) {
    std::error_code ignored;  // the second attempt reports what is wrong
    std::filesystem::create_directories(folder.parent_path(), ignored);
    ::mkdir(folder.c_str(), 0700);
    fd = open_it();
  }
  const auto failed = [&] { return io_error("file " + file.string() + ": " + std::generic_category().message(errno)); };
  if (!fd) return failed();
  switch (lock_until(fd.get(), Deadline::after(lock_patience))) {
    case LockAnswer::taken:
      return fd;
    case LockAnswer::busy:
      return unavailable("file " + file.string() + ": another process holds it");
    default:
      return failed();
  }
}

Result<StoredModel> read_model(const std::filesystem::path& file) {
  StoredModel stored;
  const Result<std::string> contents = read_whole_file(file, most_bytes, SymbolicLink::refuse);
  if (!contents && contents.error().code == StatusCode::not_found) return stored;
  if (!contents) return contents.error();
  stored.exists = true;
  std::string_view rest = *contents;
  if (const std::string_view header = next_line(rest); header != model_header) {
    stored.rejected.push_back({1, "header", std::string(model_header),
                               std::string(header.substr(0, std::min<std::size_t>(header.size(), 80)))});
    return stored;
  }
  for (std::size_t number = 2; !rest.empty(); ++number) {
    auto record = record_of(next_line(rest), number);
    if (auto* arm = std::get_if<KeyedArm>(&record)) {
      stored.arms.insert_or_assign(std::move(arm->first), arm->second);
    } else if (auto* unfit = std::get_if<UnfitCounts>(&record)) {
      stored.unfit = std::move(*unfit);
    } else {
      stored.rejected.push_back(std::move(std::get<RejectedRecord>(record)));
    }
  }
  bound(stored.arms);
  return stored;
}

Status write_model(const std::filesystem::path& file, const std::map<ArmKey, Arm>& arms, const UnfitCounts& unfit) {
  std::string text(model_header);
  text += '\n';
  for (const auto& [key, arm] : arms) text += line_of(key, arm) + "\n";
  if (!unfit.empty()) text += line_of(unfit) + "\n";
  return replace_file(file, text);
}

ModelStore::ModelStore(const std::filesystem::path& folder, Log log, bool read_only)
    : file_(folder.empty() ? folder : folder / model_file), log_(log), read_only_(read_only) {}

void ModelStore::tell(const StoredModel& stored) const {
  if (stored.rejected.empty()) return;
  log_.write(LogLevel::warning, "selector",
             "file " + file_.string() + ": " + std::to_string(stored.rejected.size()) + " of " +
                 std::to_string(stored.rejected.size() + stored.arms.size()) + " records ignored: " +
                 stored.rejected.front().text() + (stored.rejected.size() > 1 ? "; and others" : ""));
}

std::map<ArmKey, Arm> ModelStore::load() {
  if (file_.empty()) return {};
  const auto identity = identity_of(file_);  // before: if it is replaced meanwhile, it is read again
  auto stored = read_model(file_);
  if (!stored) {
    log_.write(LogLevel::warning, "selector", stored.error().message + ": ignored");
    return {};
  }
  tell(*stored);
  base_ = stored->arms;
  if (identity) read_ = Known{*identity, stored->unfit};
  return std::move(stored->arms);
}

StoredModel ModelStore::stored() const {
  StoredModel found;
  if (read_ && identity_of(file_) == read_->identity) {
    found.arms = base_;
    found.unfit = read_->unfit;
  } else if (auto read = read_model(file_)) {
    found = std::move(*read);  // what cannot be read is replaced
  }
  return found;
}

std::optional<std::map<ArmKey, Arm>> ModelStore::merge(const std::map<ArmKey, Arm>& mine, const UnfitCounts& unfit) {
  if (file_.empty() || read_only_) return std::nullopt;
  for (const auto& [reason, count] : unfit) unfit_[reason] += count;
  const auto lock = lock_model(file_.parent_path());
  if (!lock) {
    if (lock.error().code == StatusCode::unavailable) {
      log_.write(LogLevel::info, "selector", "the model was not saved this time: " + lock.error().message);
    } else {
      give_up(lock.error());
    }
    return std::nullopt;
  }
  StoredModel found = stored();
  std::map<ArmKey, Arm> all = merged(found.arms, base_, mine);
  for (const auto& [reason, count] : unfit_) found.unfit[reason] += count;
  if (Status status = write_model(file_, all, found.unfit); !status.ok()) {
    give_up(status);
    return std::nullopt;
  }
  unfit_.clear();
  base_ = mine;
  read_.reset();
  written_.reset();
  if (const auto identity = identity_of(file_)) written_ = Known{*identity, std::move(found.unfit)};
  return all;
}

void ModelStore::give_up(const Status& status) {
  log_.write(LogLevel::info, "selector", "what is learned stays in memory: " + status.message);
  file_.clear();
}

namespace {

std::uint64_t added(std::uint64_t mine, std::uint64_t base) { return mine > base ? mine - base : 0; }

// The samples that came in since `base`, as if they alone had made the mean.
Average since(const Average& mine, const Average& base) {
  Average delta = mine;
  delta.count = added(mine.count, base.count);
  return delta;
}

Average joined(const Average& stored, const Average& base, const Average& mine) {
  if (stored.count == base.count) return mine;
  return merged(stored, since(mine, base));
}

Arm joined(const Arm& stored, const Arm& base, const Arm& mine) {
  Arm arm = mine.used >= stored.used ? mine : stored;
  arm.run.log_ns = joined(stored.run.log_ns, base.run.log_ns, mine.run.log_ns);
  if (stored.run.log_ns.count != base.run.log_ns.count) {
    arm.run.weight = stored.run.weight + added(mine.run.weight, base.run.weight);
    arm.run.widening = std::max(stored.run.widening, mine.run.widening);
  } else {
    arm.run.weight = mine.run.weight;
    arm.run.widening = mine.run.widening;
  }
  arm.run.alarms = stored.run.alarms + static_cast<std::uint32_t>(added(mine.run.alarms, base.run.alarms));
  arm.run.slower = mine.run.slower;
  arm.run.faster = mine.run.faster;
  arm.log_transfer = joined(stored.log_transfer, base.log_transfer, mine.log_transfer);
  arm.log_first = joined(stored.log_first, base.log_first, mine.log_first);
  arm.looks = stored.looks + static_cast<std::uint32_t>(added(mine.looks, base.looks));
  return arm;
}

bool anything_since(const Arm& base, const Arm& mine) {
  return mine.run.log_ns.count > base.run.log_ns.count || mine.log_first.count > base.log_first.count ||
         mine.looks > base.looks;
}

}  // namespace

std::map<ArmKey, Arm> merged(const std::map<ArmKey, Arm>& stored, const std::map<ArmKey, Arm>& base,
                             const std::map<ArmKey, Arm>& mine) {
  static const Arm nothing;
  std::map<ArmKey, Arm> all = stored;
  for (const auto& [key, arm] : mine) {
    const auto before = base.find(key);
    const auto at = all.find(key);
    if (at != all.end()) {
      at->second = joined(at->second, before == base.end() ? nothing : before->second, arm);
    } else if (before == base.end() || anything_since(before->second, arm)) {
      all.emplace(key, arm);
    }
  }
  bound(all);
  return all;
}

}  // namespace kiln::selector

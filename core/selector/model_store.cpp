#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include "selector/model_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <kiln_json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "base/os/file_lock.hpp"

#include <kiln/regular_file.hpp>

namespace kiln::selector {
namespace {

constexpr std::size_t digest_digits = 16;
constexpr std::size_t most_text = 1024;
constexpr std::size_t most_reasons = 64;
constexpr double most_log = 60;  // natural logarithm of more nanoseconds, FLOPs or bytes than there are
constexpr double most_count = 9007199254740992.0;  // 2^53

std::string digest_of(std::string_view text) {
  char digits[digest_digits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

std::string framed(const Json& record) {
  // What a driver says of itself need not be UTF-8; a stray byte shall not cost the record.
  const std::string text = json_text(record);
  return digest_of(text) + " " + text;
}

std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  text.resize(most);
  text += "…";
  return text;
}

// Reads fields; the first that is amiss stays as the rejection.
class RecordReader {
 public:
  explicit RecordReader(const Json& record) : record_(record) {}

  std::string text(const char* name) {
    const Json& field = find(name);
    if (!field.is_string()) return refuse(name, "a text", json_text(field)), std::string();
    auto value = field.get<std::string>();
    if (value.size() > most_text) {
      return refuse(name, "at most " + std::to_string(most_text) + " bytes", std::to_string(value.size()) + " bytes"),
             std::string();
    }
    return value;
  }
  double number(const char* name, double most) { return number_of(name, find(name), most); }
  std::uint64_t count(const char* name, double most = most_count) { return count_of(name, find(name), most); }
  Average average(const char* name) {
    const Json& field = find(name);
    if (!field.is_array() || field.size() != 3)
      return refuse(name, "an array of count, mean and variance", json_text(field)), Average();
    Average value;
    value.count = count_of(name, field[0], most_count);
    value.mean = number_of(name, field[1], most_log);
    value.variance = number_of(name, field[2], most_log * most_log);
    return value;
  }

  std::optional<RejectedRecord> rejected;

 private:
  // Null where there is none, which every type refuses once more: the first refusal stays.
  const Json& find(const char* name) {
    static const Json none;
    const auto at = record_.find(name);
    if (at != record_.end()) return *at;
    refuse(name, "a value", "none");
    return none;
  }
  double number_of(const char* name, const Json& field, double most) {
    if (field.is_number() && field.get<double>() >= 0 && field.get<double>() <= most) return field.get<double>();
    char range[48];
    std::snprintf(range, sizeof range, "a number from 0 to %g", most);
    refuse(name, range, json_text(field));
    return 0;
  }
  std::uint64_t count_of(const char* name, const Json& field, double most) {
    if (field.is_number_unsigned() && field.get<double>() <= most) return field.get<std::uint64_t>();
    char range[48];
    std::snprintf(range, sizeof range, "a count up to %g", most);
    refuse(name, range, json_text(field));
    return 0;
  }
  void refuse(const char* name, std::string expected, const std::string& found) {
    if (!rejected) rejected = RejectedRecord{0, std::string("field ") + name, std::move(expected), shortened(found)};
  }

  const Json& record_;
};

Json json_of(const Average& average) { return {average.count, average.mean, average.variance}; }

KeyedArm arm_of(RecordReader& reader) {
  ArmKey key{reader.text("operation"), reader.text("device"), reader.text("driver"), reader.text("shape")};
  Arm arm;
  arm.run.log_ns.count = reader.count("runs");
  arm.run.weight = reader.count("weight");
  arm.run.log_ns.mean = reader.number("mean", most_log);
  arm.run.log_ns.variance = reader.number("variance", most_log * most_log);
  arm.run.widening = reader.number("widening", most_log * most_log);
  arm.run.alarms = static_cast<std::uint32_t>(reader.count("alarms", std::numeric_limits<std::uint32_t>::max()));
  arm.log_transfer = reader.average("transfer");
  arm.log_first = reader.average("first");
  arm.log_flops = reader.number("log_flops", most_log);
  arm.log_bytes = reader.number("log_bytes", most_log);
  arm.looks = static_cast<std::uint32_t>(reader.count("looks", std::numeric_limits<std::uint32_t>::max()));
  arm.used = reader.count("used");
  return {std::move(key), arm};
}

}  // namespace

std::string line_of(const ArmKey& key, const Arm& arm) {
  return framed({{"operation", key.operation},
                 {"device", key.device},
                 {"driver", key.driver},
                 {"shape", key.shape},
                 {"runs", arm.run.log_ns.count},
                 {"weight", arm.run.weight},
                 {"mean", arm.run.log_ns.mean},
                 {"variance", arm.run.log_ns.variance},
                 {"widening", arm.run.widening},
                 {"alarms", arm.run.alarms},
                 {"transfer", json_of(arm.log_transfer)},
                 {"first", json_of(arm.log_first)},
                 {"log_flops", arm.log_flops},
                 {"log_bytes", arm.log_bytes},
                 {"looks", arm.looks},
                 {"used", arm.used}});
}

std::string line_of(const UnfitCounts& counts) { return framed({{"unfit", counts}}); }

std::variant<KeyedArm, UnfitCounts, RejectedRecord> record_of(std::string_view text, std::size_t line) {
  if (text.size() < digest_digits + 2 || text[digest_digits] != ' ') {
    return RejectedRecord{line, "frame", "16 hexadecimal digits, a space, a record", shortened(std::string(text))};
  }
  const std::string_view digest = text.substr(0, digest_digits);
  const std::string_view body = text.substr(digest_digits + 1);
  if (const std::string found = digest_of(body); found != digest) {
    return RejectedRecord{line, "checksum", std::string(digest), found};
  }
  const Json record = parse_json(body);
  if (!record.is_object()) return RejectedRecord{line, "json", "an object", shortened(std::string(body))};
  RecordReader reader(record);
  if (const auto unfit = record.find("unfit"); unfit != record.end()) {
    UnfitCounts counts;
    if (!unfit->is_object() || unfit->size() > most_reasons) {
      return RejectedRecord{line, "field unfit", "an object of at most 64 counts", shortened(json_text(*unfit))};
    }
    for (const auto& [reason, count] : unfit->items()) {
      if (!count.is_number_unsigned())
        return RejectedRecord{line, "field unfit", "a count", shortened(json_text(count))};
      counts[reason] = count.get<std::uint64_t>();
    }
    return counts;
  }
  KeyedArm arm = arm_of(reader);
  if (!reader.rejected) return arm;
  reader.rejected->line = line;
  return *reader.rejected;
}

}  // namespace kiln::selector

namespace kiln {

std::string RejectedRecord::text() const {
  return "line " + std::to_string(line) + ": " + validator + ": expected " + expected + ", found " + found;
}

}  // namespace kiln

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
  if (!fd) return failure("cannot be created");
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
      return unavailable("file " + file.string() + ": another process holds its lock");
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

ModelStore::ModelStore(const std::filesystem::path& folder, Log log, bool read_only, double alpha)
    : file_(folder.empty() ? folder : folder / model_file), log_(log), read_only_(read_only), alpha_(alpha) {}

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
  std::map<ArmKey, Arm> all = merged(found.arms, base_, mine, alpha_);
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
  log_.write(LogLevel::info, "selector", "the learned model stays in memory only: " + status.message);
  file_.clear();
}

namespace {

std::uint64_t added(std::uint64_t mine, std::uint64_t base) { return mine > base ? mine - base : 0; }

// The share of the first `from` samples in the mean of `to`: Average::add() as many times.
double share_of(std::uint64_t from, std::uint64_t to, double alpha) {
  const double first = static_cast<double>(from), all = static_cast<double>(to);
  const double equal = std::clamp(1 / alpha, first, std::max(first, all));  // samples of equal weight
  return first == 0 ? 0 : first / equal * std::pow(1 - alpha, all - equal);
}

// The samples that came in since `base`, as if they alone had made the mean. old: the share of `base`.
Average since(const Average& mine, const Average& base, double old) {
  if (mine.count <= base.count || old >= 1) return {};
  const double mean = (mine.mean - old * base.mean) / (1 - old);
  return {std::clamp(mean, 0.0, most_log), mine.variance, mine.count - base.count};
}

Arm since(const Arm& mine, const Arm& base, double alpha) {
  Arm arm = mine;
  const bool is_new = mine.run.alarms != base.run.alarms;  // its mean is that of the runs since the alarm
  arm.run.weight = is_new ? mine.run.weight : added(mine.run.weight, base.run.weight);
  arm.run.log_ns = since(mine.run.log_ns, base.run.log_ns,
                         is_new ? 0 : share_of(base.run.weight, mine.run.weight, alpha));
  arm.run.alarms = static_cast<std::uint32_t>(added(mine.run.alarms, base.run.alarms));
  if (arm.run.log_ns.count == 0) arm.run = {};
  const auto average = [&](const Average& now, const Average& before) {
    return since(now, before, share_of(before.count, now.count, alpha));
  };
  arm.log_transfer = average(mine.log_transfer, base.log_transfer);
  arm.log_first = average(mine.log_first, base.log_first);
  arm.looks = static_cast<std::uint32_t>(added(mine.looks, base.looks));
  return arm;
}

Average joined(const Average& stored, const Average& base, const Average& mine, const Average& learned) {
  return stored.count == base.count ? mine : merged(stored, learned);
}

Arm joined(const Arm& stored, const Arm& base, const Arm& mine, double alpha) {
  const Arm learned = since(mine, base, alpha);
  Arm arm = mine.used >= stored.used ? mine : stored;
  arm.run.log_ns = joined(stored.run.log_ns, base.run.log_ns, mine.run.log_ns, learned.run.log_ns);
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
  arm.log_transfer = joined(stored.log_transfer, base.log_transfer, mine.log_transfer, learned.log_transfer);
  arm.log_first = joined(stored.log_first, base.log_first, mine.log_first, learned.log_first);
  arm.looks = stored.looks + learned.looks;
  return arm;
}

bool anything_since(const Arm& base, const Arm& mine) {
  return mine.run.log_ns.count > base.run.log_ns.count || mine.log_first.count > base.log_first.count ||
         mine.looks > base.looks;
}

}  // namespace

std::map<ArmKey, Arm> merged(const std::map<ArmKey, Arm>& stored, const std::map<ArmKey, Arm>& base,
                             const std::map<ArmKey, Arm>& mine, double alpha) {
  static const Arm nothing;
  std::map<ArmKey, Arm> all = stored;
  for (const auto& [key, arm] : mine) {
    const auto before = base.find(key);
    const auto at = all.find(key);
    if (at != all.end()) {
      at->second = joined(at->second, before == base.end() ? nothing : before->second, arm, alpha);
    } else if (before == base.end()) {
      all.emplace(key, arm);
    } else if (anything_since(before->second, arm)) {
      all.emplace(key, since(arm, before->second, alpha));
    }
  }
  bound(all);
  return all;
}

}  // namespace kiln::selector

#include "dynamic_shaders/tuner/tuning_database.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view header = "kiln-tuning 1\n";
constexpr std::uint64_t most_bytes = 64 << 20;

Status failed(const std::string& doing, const std::filesystem::path& file) {
  return io_error("tuning database: " + doing + " " + file.string() + ": " + std::strerror(errno));
}

// What tells one content of the file from the next: each is a file of its own. Empty: there is none.
std::string version_of(const std::filesystem::path& file) {
  struct stat facts {};
  if (lstat(file.c_str(), &facts) != 0) return {};
  return std::to_string(facts.st_ino) + " " + std::to_string(facts.st_size) + " " +
         std::to_string(facts.st_mtim.tv_sec) + " " + std::to_string(facts.st_mtim.tv_nsec);
}

// The file's text; empty where there is no file.
Result<std::string> text_of(const std::filesystem::path& file) {
  Result<std::string> text = read_whole_file(file, most_bytes, SymbolicLink::refuse);
  if (!text && text.error().code == StatusCode::not_found) return std::string();
  if (!text) return text.error().within("tuning database");
  return text;
}

Status other_form(std::string_view text) {
  return corrupt("not a tuning database: found '" +
                 std::string(text.substr(0, std::min<std::size_t>(text.find('\n'), 40))) +
                 "' in the first line, expected '" + std::string(header.substr(0, header.size() - 1)) + "'");
}

Status write_all(int fd, std::string_view text, const std::filesystem::path& file) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("writing", file);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// A process that was stopped while it held the lock must not stop the others.
Status lock_file(int fd, const std::filesystem::path& file) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(3));
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed("locking", file);
    if (deadline.passed())
      return unavailable("tuning database: file " + file.string() + " is locked by another process");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {};
}

Status check_form(std::string_view text, const std::filesystem::path& file) {
  if (text.empty() || text.starts_with(header)) return {};
  return other_form(text).within("tuning database: " + file.string());
}

template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    visit(line);
  }
}

}  // namespace

void TuningDatabase::take(std::string_view text) {
  if (!text.starts_with(header)) {
    damaged_ += text.empty() ? 0 : 1;
    return;
  }
  for_each_line(text.substr(header.size()), [&](std::string_view line) {
    if (auto record = record_of(line)) {
      replace(*record);
    } else {
      ++damaged_;
    }
  });
}

void TuningDatabase::read() {
  if (read_ || file_.empty()) return;
  read_ = true;
  (void)take_file();  // what cannot be read tells of nothing; a put() says why
}

Status TuningDatabase::take_file() {
  version_ = version_of(file_);  // before its text: what comes between the two is taken in the next time
  damaged_ = 0;
  const auto text = text_of(file_);
  if (!text) return text.error();
  take(*text);
  return check_form(*text, file_);
}

bool TuningDatabase::refresh() {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return false;
  if (read_ && version_of(file_) == version_) return false;
  read_ = true;
  (void)take_file();
  return true;
}

Status TuningDatabase::usable() const {
  if (file_.empty()) return {};
  if (read_only_) return unavailable("file " + file_.string() + ": not written because cache.read_only is true");
  const auto text = text_of(file_);
  return text ? check_form(*text, file_) : text.error();
}

void TuningDatabase::replace(const TuningRecord& record) {
  std::vector<TuningRecord>& shape = records_[{record.device, record.spec}];
  if (record.verdict == Verdict::winner) has_winners_.store(true, std::memory_order_relaxed);
  for (TuningRecord& each : shape) {
    if (record.verdict == Verdict::winner && each.verdict == Verdict::winner) each.verdict = Verdict::measured;
  }
  if (record.verdict == Verdict::winner || record.verdict == Verdict::foreign) {
    std::erase_if(shape, [](const TuningRecord& each) { return each.verdict == Verdict::foreign; });
  }
  const auto at = std::find_if(shape.begin(), shape.end(),
                               [&](const TuningRecord& each) { return each.variant == record.variant; });
  if (at != shape.end()) {
    *at = record;
  } else {
    shape.push_back(record);
  }
}

std::vector<TuningRecord> TuningDatabase::of(std::string_view device, std::string_view spec) {
  const std::lock_guard lock(mutex_);
  read();
  const auto at = records_.find({std::string(device), std::string(spec)});
  return at == records_.end() ? std::vector<TuningRecord>() : at->second;
}

std::optional<TuningRecord> TuningDatabase::winner(std::string_view device, std::string_view spec) {
  for (TuningRecord& record : of(device, spec)) {
    if (record.verdict == Verdict::winner) return std::move(record);
  }
  return std::nullopt;
}

std::optional<TuningRecord> TuningDatabase::foreign(std::string_view device, std::string_view spec) {
  for (TuningRecord& record : of(device, spec)) {
    if (record.verdict == Verdict::foreign) return std::move(record);
  }
  return std::nullopt;
}

std::vector<TuningRecord> TuningDatabase::all(std::string_view device, Verdict verdict) {
  const std::lock_guard lock(mutex_);
  read();
  std::vector<TuningRecord> found;
  for (const auto& [key, shape] : records_) {
    if (key.first != device) continue;
    for (const TuningRecord& record : shape) {
      if (record.verdict == verdict) found.push_back(record);
    }
  }
  return found;
}

std::size_t TuningDatabase::damaged() {
  const std::lock_guard lock(mutex_);
  read();
  return damaged_;
}

void TuningDatabase::prune() {
  std::size_t count = 0;
  std::vector<std::pair<std::uint64_t, Key>> ages;  // of the newest record of a shape
  for (const auto& [key, shape] : records_) {
    count += shape.size();
    std::uint64_t newest = 0;
    for (const TuningRecord& record : shape) newest = std::max(newest, record.when);
    ages.emplace_back(newest, key);
  }
  std::sort(ages.begin(), ages.end());
  for (const auto& [age, key] : ages) {
    if (count <= most_records) return;
    count -= records_[key].size();
    records_.erase(key);
  }
}

std::string TuningDatabase::whole_text() const {
  std::string text(header);
  for (const auto& [key, shape] : records_) {
    for (const TuningRecord& record : shape) text += to_line(record);
  }
  return text;
}

std::string TuningDatabase::text() {
  const std::lock_guard lock(mutex_);
  read();
  return whole_text();
}

Result<MergedTuning> TuningDatabase::merge(std::string_view text) {
  if (!text.starts_with(header)) return other_form(text);
  MergedTuning merged;
  std::vector<TuningRecord> newer;
  for_each_line(text.substr(header.size()), [&](std::string_view line) {
    auto record = record_of(line);
    if (!record) {
      ++merged.damaged;
      return;
    }
    bool older = false;
    for (const TuningRecord& ours : of(record->device, record->spec)) {
      // The winner here stays one: that of the text may be older, and would not take its place.
      if (ours.verdict == Verdict::winner && ours.variant == record->variant && record->verdict != Verdict::winner) {
        older = true;
      }
      if (ours.when < record->when) continue;
      older = older || ours.variant == record->variant;
      if (ours.verdict == Verdict::winner && record->verdict == Verdict::winner) record->verdict = Verdict::measured;
    }
    ++(older ? merged.older : merged.taken);
    if (!older) newer.push_back(std::move(*record));
  });
  if (newer.empty()) return merged;
  if (Status status = put(newer); !status.ok()) return status;
  return merged;
}

Result<MergedTuning> TuningDatabase::merge_foreign(std::string_view text, std::string_view device,
                                                   const std::function<bool(const TuningRecord&)>& is_usable) {
  if (!text.starts_with(header)) return other_form(text);
  MergedTuning merged;
  std::vector<TuningRecord> taken;
  for_each_line(text.substr(header.size()), [&](std::string_view line) {
    auto record = record_of(line);
    if (!record) {
      ++merged.damaged;
      return;
    }
    const std::vector<TuningRecord> here = of(record->device, record->spec);
    const bool is_winner = record->device == device && record->verdict == Verdict::winner && !record->stale();
    if (is_winner) {
      const std::lock_guard lock(mutex_);
      const auto [given, is_new] = given_.try_emplace({record->device, record->spec}, *record);
      if (!is_new && given->second.when < record->when) given->second = *record;
    }
    const auto is_better = [&](const TuningRecord& ours) {
      if (ours.verdict == Verdict::foreign) return ours.when >= record->when;
      return ours.verdict == Verdict::winner ||
             (ours.variant == record->variant && (ours.source == record->source || ours.is_refused()));
    };
    const bool wanted = is_winner && std::ranges::none_of(here, is_better) && (!is_usable || is_usable(*record));
    ++(wanted ? merged.taken : merged.older);
    if (!wanted) return;
    record->verdict = Verdict::foreign;
    taken.push_back(std::move(*record));
  });
  if (taken.empty()) return merged;
  if (Status status = put(taken); !status.ok()) return status;
  return merged;
}

std::string TuningDatabase::winners_text(std::string_view device) {
  std::map<std::string, TuningRecord> shown;  // by spec
  for (TuningRecord& record : winners(device)) {
    if (!record.stale()) shown.try_emplace(record.spec, std::move(record));
  }
  std::vector<TuningRecord> others = all_foreign(device);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, record] : given_) {
      if (key.first == device) others.push_back(record);
    }
  }
  std::ranges::stable_sort(others, std::greater<>(), &TuningRecord::when);
  for (TuningRecord& record : others) {
    record.verdict = Verdict::winner;
    shown.try_emplace(record.spec, std::move(record));
  }
  if (shown.empty()) return {};
  std::string text(header);
  for (const auto& [spec, record] : shown) text += to_line(record);
  return text;
}

Status TuningDatabase::write() const {
  const std::string text = whole_text();
  std::string name = file_.string() + ".XXXXXX";
  const UniqueFd fd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return failed("creating a temporary file for", file_);
  Status status = write_all(fd.get(), text, name);
  if (status.ok() && fsync(fd.get()) != 0) status = failed("fsync of", name);
  if (status.ok() && rename(name.c_str(), file_.c_str()) != 0) status = failed("renaming to", file_);
  if (!status.ok()) unlink(name.c_str());
  return status;
}

Status TuningDatabase::put(const std::vector<TuningRecord>& records) {
  const std::lock_guard lock(mutex_);
  read();
  Status status;
  UniqueFd turn;
  if (!file_.empty() && read_only_) {
    status = unavailable("file " + file_.string() + ": not written because cache.read_only is true");
  } else if (!file_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(file_.parent_path(), ignored);
    const std::string beside = file_.string() + ".lock";
    turn = UniqueFd(open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    status = turn ? lock_file(turn.get(), beside) : failed("opening", beside);
    if (status.ok()) status = take_file();  // what other processes have added since
  }
  for (const TuningRecord& record : records) replace(record);
  prune();
  if (status.ok() && !file_.empty()) {
    status = write();
    if (status.ok()) version_ = version_of(file_);  // nobody else writes before the lock is gone
  }
  return status;
}

namespace {

constexpr std::size_t checksum_digits = 16;
constexpr std::size_t most_samples = 1000;
constexpr std::size_t fields_without_basis = 11;
constexpr std::string_view verdict_words[] = {"invalid", "measured", "winner", "rejected", "outvoted", "foreign"};

std::string checksum_of(std::string_view text) { return sha256(text).hex().substr(0, checksum_digits); }

// Nothing in a field may end it.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string samples_text(const std::vector<std::uint64_t>& samples) {
  std::string text;
  for (const std::uint64_t sample : samples) {
    if (!text.empty()) text += ',';
    text += std::to_string(sample);
  }
  return text;
}

template <class Number>
bool read_number(std::string_view text, Number& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_samples(std::string_view text, std::vector<std::uint64_t>& to) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    if (to.size() == most_samples || !read_number(one, to.emplace_back())) return false;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return true;
}

std::string double_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : std::string("0");
}

}  // namespace

std::string device_digest(const DeviceInfo& device) {
  KeyEncoder encoder;
  for (const auto& [name, value] : device.device_identity) encoder.field("device." + name, value);
  for (const auto& [name, value] : device.driver_identity) encoder.field("driver." + name, value);
  for (const auto& [name, value] : device.speed_identity) encoder.field("speed." + name, value);
  encoder.field("lanes", device.simd_lanes);  // another vector width is another machine
  return encoder.digest().hex().substr(0, 32);
}

std::string record_spec(const KernelSpec& spec) {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr || kernel->parameters.empty()) return canonical_text(spec);
  UserKernelSpec open = *kernel;
  for (auto& parameter : open.parameters) parameter.texts.resize(std::min<std::size_t>(parameter.texts.size(), 1));
  return canonical_text(open);
}

std::string to_line(const TuningRecord& record) {
  std::string line;
  const auto field = [&line](std::string_view text) {
    line += text;
    line += '\t';
  };
  field(plain(record.device));
  field(plain(record.spec));
  field(plain(record.variant));
  field(verdict_words[static_cast<std::size_t>(record.verdict)]);
  field(std::to_string(record.when));
  field(plain(record.source));
  field(double_text(record.max_rel_error));
  field(double_text(record.error_bound));
  field(samples_text(record.wall_ns));
  field(samples_text(record.device_ns));
  field(plain(record.why));
  if (!record.basis.empty()) field(plain(record.basis));
  return line + checksum_of(line) + "\n";
}

std::optional<TuningRecord> record_of(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::size_t last = line.rfind('\t');
  if (last == std::string_view::npos || line.substr(last + 1) != checksum_of(line.substr(0, last + 1)))
    return std::nullopt;
  line = line.substr(0, last + 1);
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t end = line.find('\t');
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  if (fields.size() != fields_without_basis && fields.size() != fields_without_basis + 1) return std::nullopt;
  TuningRecord record;
  record.device = fields[0];
  record.spec = fields[1];
  record.variant = fields[2];
  for (std::size_t i = 1; i < std::size(verdict_words); ++i) {
    if (fields[3] == verdict_words[i]) record.verdict = static_cast<Verdict>(i);
  }
  record.source = fields[5];
  record.why = fields[10];
  if (fields.size() > fields_without_basis) record.basis = fields[fields_without_basis];
  const bool whole = record.verdict != Verdict::invalid && read_number(fields[4], record.when) &&
                     read_number(fields[6], record.max_rel_error) && read_number(fields[7], record.error_bound) &&
                     read_samples(fields[8], record.wall_ns) && read_samples(fields[9], record.device_ns);
  if (!whole) return std::nullopt;
  return record;
}

}  // namespace kiln::dynamic_shaders

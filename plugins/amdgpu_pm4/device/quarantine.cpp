#include "amdgpu_pm4/device/quarantine.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::int64_t lasts_s = 7 * 24 * 3600;  // as a program that crashed a driver (docs/cache-format.md)

struct Verdict {  // as a note has it
  std::uint8_t digest[sizeof(Digest::bytes)];
  std::int64_t since;
};
constexpr std::size_t most_kept = 1024;  // of a note's 64 KiB, five eighths

using Verdicts = std::map<Digest, std::int64_t>;

// The clock may have been set back.
bool lasts(std::int64_t since, std::int64_t now) noexcept { return since > now - lasts_s && since < now + lasts_s; }

// A note of another size was not written by this version: nothing is read from it.
Verdicts read_note(DriverNotes* notes, const std::string& name) {
  Verdicts all;
  if (notes == nullptr) return all;
  const auto bytes = notes->find(name);
  if (!bytes || bytes->size() % sizeof(Verdict) != 0) return all;
  for (std::size_t at = 0; at < bytes->size(); at += sizeof(Verdict)) {
    Verdict verdict;
    std::memcpy(&verdict, bytes->data() + at, sizeof verdict);
    Digest digest;
    std::memcpy(digest.bytes.data(), verdict.digest, sizeof verdict.digest);
    all[digest] = verdict.since;
  }
  return all;
}

std::string date_of(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[sizeof "2026-12-31"] = "";
  if (gmtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%F", &parts);
  return text;
}

}  // namespace

Quarantine::Quarantine(DriverNotes* notes, const std::string& device)
    : notes_(notes), name_("amdgpu_pm4 quarantine 3 " + device), guilty_(read_note(notes, name_)) {}

bool Quarantine::holds(const Digest& kernel, std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  const auto found = guilty_.find(kernel);
  return found != guilty_.end() && lasts(found->second, now);
}

Status Quarantine::check(const Digest& kernel, const std::string& name, std::int64_t now) const {
  if (!holds(kernel, now)) return {};
  const std::lock_guard lock(mutex_);
  return unsupported(name + " caused a hang or a fault of this device (" + date_of(guilty_.at(kernel)) +
                     ") and is quarantined until " + date_of(guilty_.at(kernel) + lasts_s) +
                     ". `kiln cache clear` ends the quarantine");
}

void Quarantine::add(const Digest& kernel, std::int64_t when) {
  const std::lock_guard lock(mutex_);
  suspicions_ += suspects_.erase(kernel);
  guilty_[kernel] = when;
  if (notes_ == nullptr) return;
  // Another process may have found others meanwhile.
  Verdicts known = read_note(notes_, name_);
  known[kernel] = when;
  std::vector<std::pair<std::int64_t, Digest>> newest;
  for (const auto& [digest, since] : known) {
    if (lasts(since, when)) newest.emplace_back(since, digest);
  }
  std::ranges::stable_sort(newest, std::greater<>(), &std::pair<std::int64_t, Digest>::first);
  // What came last stays also where another one has the same second.
  std::stable_partition(newest.begin(), newest.end(), [&](const auto& each) { return each.second == kernel; });
  if (newest.size() > most_kept) newest.resize(most_kept);
  std::vector<Verdict> note;
  for (const auto& [since, digest] : newest) {
    Verdict& verdict = note.emplace_back();
    std::memcpy(verdict.digest, digest.bytes.data(), sizeof verdict.digest);
    verdict.since = since;
  }
  notes_->keep(name_, std::as_bytes(std::span(note)));
}

bool Quarantine::is_suspect(const Digest& kernel) const {
  const std::lock_guard lock(mutex_);
  return suspects_.contains(kernel);
}

void Quarantine::suspect(const Digest& kernel) {
  const std::lock_guard lock(mutex_);
  suspicions_ += suspects_.insert(kernel).second ? 1 : 0;
}

std::uint64_t Quarantine::suspicions() const {
  const std::lock_guard lock(mutex_);
  return suspicions_;
}

}  // namespace kiln::amdgpu_pm4

#include "amdgpu_pm4/device/quarantine.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::size_t most_kept = 1024;  // of a note's 64 KiB, the half

// Digests one after the other. A note of another size was not written by this version: nothing is read from it.
std::set<Digest> read_note(DriverNotes* notes, const std::string& name) {
  std::set<Digest> all;
  if (notes == nullptr) return all;
  const auto bytes = notes->find(name);
  if (!bytes || bytes->size() % sizeof(Digest::bytes) != 0) return all;
  for (std::size_t at = 0; at < bytes->size(); at += sizeof(Digest::bytes)) {
    Digest digest;
    std::memcpy(digest.bytes.data(), bytes->data() + at, sizeof(Digest::bytes));
    all.insert(digest);
  }
  return all;
}

}  // namespace

Quarantine::Quarantine(DriverNotes* notes, const std::string& device)
    : notes_(notes), name_("amdgpu_pm4 quarantine 1 " + device), guilty_(read_note(notes, name_)) {}

bool Quarantine::holds(const Digest& program) const {
  const std::lock_guard lock(mutex_);
  return guilty_.contains(program);
}

Status Quarantine::check(const Digest& program, const std::string& name) const {
  if (!holds(program)) return {};
  return unsupported(name + " has hung this device before and is in quarantine");
}

void Quarantine::add(const Digest& program) {
  const std::lock_guard lock(mutex_);
  suspects_.erase(program);
  guilty_.insert(program);
  if (notes_ == nullptr) return;
  // Another process may have found others meanwhile.
  std::set<Digest> all = read_note(notes_, name_);
  all.erase(program);
  std::vector<std::byte> bytes;
  const auto append = [&bytes](const Digest& digest) {
    const auto* from = reinterpret_cast<const std::byte*>(digest.bytes.data());
    bytes.insert(bytes.end(), from, from + sizeof(Digest::bytes));
  };
  append(program);
  for (const Digest& each : all) {
    if (bytes.size() < most_kept * sizeof(Digest::bytes)) append(each);
  }
  notes_->keep(name_, bytes);
}

bool Quarantine::is_suspect(const Digest& program) const {
  const std::lock_guard lock(mutex_);
  return suspects_.contains(program);
}

void Quarantine::suspect(const Digest& program) {
  const std::lock_guard lock(mutex_);
  suspects_.insert(program);
}

}  // namespace kiln::amdgpu_pm4

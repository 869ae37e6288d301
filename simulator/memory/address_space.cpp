#include "simulator/memory/address_space.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

AddressSpace::AddressSpace(std::vector<Mapping> sorted, std::map<std::uint64_t, std::uint64_t> sparse)
    : mappings_(std::move(sorted)), sparse_(std::move(sparse)) {
  starts_.reserve(mappings_.size());
  for (const Mapping& mapping : mappings_) starts_.push_back(mapping.start);
}

const Mapping* AddressSpace::find(std::uint64_t address) const noexcept {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (after == starts_.begin()) return nullptr;
  const Mapping& below = mappings_[static_cast<std::size_t>(after - starts_.begin() - 1)];
  return address - below.start < below.bytes ? &below : nullptr;
}

bool AddressSpace::is_sparse(std::uint64_t address) const noexcept {
  const auto after = sparse_.upper_bound(address);
  return after != sparse_.begin() && address < std::prev(after)->second;
}

namespace {

constexpr std::uint64_t lower_end = 0x0000'8000'0000'0000;
constexpr std::uint64_t upper_start = 0xFFFF'8000'0000'0000;

std::string range_text(std::uint64_t start, std::uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%llx+0x%llx", static_cast<unsigned long long>(start),
                static_cast<unsigned long long>(bytes));
  return text;
}

std::optional<MapRefusal> refuse(MapProblem problem, std::string reason) {
  return MapRefusal{problem, std::move(reason)};
}

std::optional<MapRefusal> check_range(std::uint64_t start, std::uint64_t bytes) {
  if (start % Page::bytes != 0 || bytes % Page::bytes != 0)
    return refuse(MapProblem::misaligned, range_text(start, bytes) + " is not of whole pages");
  if (bytes == 0) return refuse(MapProblem::bad_range, range_text(start, bytes) + " is empty");
  const std::uint64_t last = start + (bytes - 1);
  const bool lower = last >= start && last < lower_end;
  const bool upper = last >= start && start >= upper_start;
  if (!lower && !upper)
    return refuse(MapProblem::bad_range, range_text(start, bytes) + " is not inside one half of the 48-bit space");
  return {};
}

std::optional<MapRefusal> check_mapping(const Mapping& mapping) {
  if (auto refusal = check_range(mapping.start, mapping.bytes)) return refusal;
  if (mapping.offset % Page::bytes != 0)
    return refuse(MapProblem::misaligned,
                  "offset of " + range_text(mapping.start, mapping.bytes) + " is inside a page");
  if (mapping.buffer == nullptr || mapping.offset > mapping.buffer->bytes ||
      mapping.bytes > mapping.buffer->bytes - mapping.offset)
    return refuse(MapProblem::bad_range, range_text(mapping.start, mapping.bytes) + " passes the end of its buffer");
  return {};
}

bool crosses(const Mapping& mapping, std::uint64_t start, std::uint64_t bytes) {
  return mapping.start <= start + (bytes - 1) && start <= mapping.start + (mapping.bytes - 1);
}

}  // namespace

std::optional<MapRefusal> PageTable::map(const Mapping& mapping) {
  if (auto refusal = check_mapping(mapping)) return refusal;
  const std::lock_guard lock(mutex_);
  const auto next = mappings_.lower_bound(mapping.start);
  for (const auto& near : {next == mappings_.begin() ? next : std::prev(next), next}) {
    if (near != mappings_.end() && crosses(near->second, mapping.start, mapping.bytes))
      return refuse(MapProblem::overlap, range_text(mapping.start, mapping.bytes) + " overlaps " +
                                             range_text(near->second.start, near->second.bytes));
  }
  mappings_.emplace(mapping.start, mapping);
  snapshot_.reset();
  return {};
}

std::optional<MapRefusal> PageTable::replace(const Mapping& mapping) {
  if (auto refusal = check_mapping(mapping)) return refusal;
  const std::lock_guard lock(mutex_);
  cut(mapping.start, mapping.bytes);
  mappings_.emplace(mapping.start, mapping);
  snapshot_.reset();
  return {};
}

std::optional<MapRefusal> PageTable::unmap(std::uint64_t start, std::uint64_t buffer) {
  const std::lock_guard lock(mutex_);
  const auto at = mappings_.find(start);
  if (at == mappings_.end() || at->second.buffer->id != buffer)
    return refuse(MapProblem::not_mapped, "no mapping of that buffer starts at " + range_text(start, 0));
  mappings_.erase(at);
  snapshot_.reset();
  return {};
}

std::optional<MapRefusal> PageTable::clear(std::uint64_t start, std::uint64_t bytes) {
  if (auto refusal = check_range(start, bytes)) return refusal;
  const std::lock_guard lock(mutex_);
  cut(start, bytes);
  snapshot_.reset();
  return {};
}

void PageTable::remove_buffer(std::uint64_t buffer) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(mappings_, [&](const auto& each) { return each.second.buffer->id == buffer; }) != 0)
    snapshot_.reset();
}

void PageTable::set_sparse(std::map<std::uint64_t, std::uint64_t> ends) {
  const std::lock_guard lock(mutex_);
  sparse_ = std::move(ends);
  snapshot_.reset();
}

std::shared_ptr<const AddressSpace> PageTable::snapshot() {
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) {
    std::vector<Mapping> sorted;
    sorted.reserve(mappings_.size());
    for (const auto& [start, mapping] : mappings_) sorted.push_back(mapping);
    snapshot_ = std::make_shared<const AddressSpace>(std::move(sorted), sparse_);
  }
  return snapshot_;
}

void PageTable::cut(std::uint64_t start, std::uint64_t bytes) {
  auto at = mappings_.lower_bound(start);
  if (at != mappings_.begin()) at = std::prev(at);
  std::vector<Mapping> remains;
  while (at != mappings_.end() && at->second.start <= start + (bytes - 1)) {
    const Mapping& old = at->second;
    if (!crosses(old, start, bytes)) {
      ++at;
      continue;
    }
    if (old.start < start) {
      remains.push_back(old);
      remains.back().bytes = start - old.start;
    }
    const std::uint64_t old_last = old.start + (old.bytes - 1);
    const std::uint64_t last = start + (bytes - 1);
    if (old_last > last) {
      remains.push_back(old);
      remains.back().start = last + 1;
      remains.back().bytes = old_last - last;
      remains.back().offset = old.offset + (last + 1 - old.start);
    }
    at = mappings_.erase(at);
  }
  for (Mapping& mapping : remains) mappings_.insert_or_assign(mapping.start, std::move(mapping));
}

}  // namespace kiln::simulator

#include "amdgpu_pm4/safety/submission_scope.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace kiln::amdgpu_pm4 {

ProgramFacts program_facts(const KernelCode& kernel, std::uint64_t image_va, std::uint64_t image_bytes) noexcept {
  ProgramFacts facts;
  facts.entry_va = image_va + kernel.entry;
  facts.end_va = image_va + image_bytes;
  facts.wave_lanes = kernel.wave_lanes;
  facts.rsrc1 = kernel.rsrc1;
  facts.rsrc2 = kernel.rsrc2;
  facts.rsrc3 = kernel.rsrc3;
  facts.lds_bytes = kernel.lds_bytes;
  facts.scratch_bytes = kernel.scratch_bytes;
  facts.kernarg_bytes = kernel.kernarg_bytes;
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.value == UserSgpr::kernarg_pointer) facts.kernarg_sgpr = slot.first;
    if (slot.value == UserSgpr::private_segment_buffer) facts.scratch_sgpr = slot.first;
    if (slot.value == UserSgpr::flat_scratch_init && facts.scratch_sgpr == no_sgpr) facts.scratch_sgpr = slot.first;
  }
  return facts;
}

namespace {

bool holds(const BufferRange& range, std::uint64_t va) { return va >= range.va && va - range.va < range.bytes; }

std::string rights_text(std::uint8_t rights) {
  std::string text;
  if ((rights & may_read) != 0) text += "read ";
  if ((rights & may_write) != 0) text += "write ";
  if ((rights & may_execute) != 0) text += "execute ";
  if (text.empty()) return "nothing";
  text.pop_back();
  return text;
}

}  // namespace

std::string hex_text(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIX64, value);
  return text.data();
}

Status RangeFinder::check_order() const {
  for (std::size_t i = 1; i < buffers_.size(); ++i) {
    const BufferRange& before = buffers_[i - 1];
    if (buffers_[i].va < before.va || buffers_[i].va - before.va < before.bytes) {
      return invalid_argument("buffer list: " + hex_text(buffers_[i].va) + " follows " + hex_text(before.va) + " of " +
                              std::to_string(before.bytes) + " bytes, expected in order and apart");
    }
  }
  return {};
}

const BufferRange* RangeFinder::find(std::uint64_t va) {
  if (last_ != nullptr && holds(*last_, va)) return last_;
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), va,
                                      [](std::uint64_t wanted, const BufferRange& range) { return wanted < range.va; });
  if (after == buffers_.begin()) return nullptr;
  const BufferRange& range = *std::prev(after);
  if (!holds(range, va)) return nullptr;
  return last_ = &range;
}

bool RangeFinder::has_rights(std::uint64_t va, std::uint8_t rights) {
  const BufferRange* range = find(va);
  return range != nullptr && (range->rights & rights) == rights;
}

Status RangeFinder::check(std::uint64_t va, std::uint64_t bytes, std::uint8_t rights, std::string_view what) {
  const BufferRange* range = find(va);
  if (range == nullptr) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": no buffer of the submission is there");
  }
  if (const std::uint64_t there = range->va + range->bytes - va; bytes > there) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": " + std::to_string(bytes) +
                            " bytes, its buffer has " + std::to_string(there) + " from there");
  }
  if ((range->rights & rights) != rights) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": needs to " + rights_text(rights) +
                            ", its buffer allows to " + rights_text(range->rights));
  }
  return {};
}

}  // namespace kiln::amdgpu_pm4

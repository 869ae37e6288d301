// Room: what has been chosen so far against what is needed.
//
// Thread-safety: none. Ownership: borrows the caller's list for one choose(). Invariant: the list holds what was added,
// each once, the newcomer first where it is among them and then only as many others as are needed beside it; enough()
// says whether their leaving makes the room.
#pragma once

#include "cache/policy/eviction_policy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln {

class Room {
 public:
  Room(const RoomNeeded& needed, std::vector<EntryId>& victims)
      : newcomer_(needed.newcomer), programs_(needed.programs), bytes_(needed.bytes), victims_(victims) {
    victims_.clear();
  }

  bool enough() const noexcept { return victims_.size() >= programs_ && freed_ >= bytes_; }

  void add(EntryId id, std::uint64_t charge) {
    victims_.push_back(id);
    charges_.push_back(charge);
    freed_ += charge;
    if (id != newcomer_) return;
    std::rotate(victims_.begin(), victims_.end() - 1, victims_.end());
    std::rotate(charges_.begin(), charges_.end() - 1, charges_.end());
    while (victims_.size() > 1 && victims_.size() > programs_ && freed_ - charges_.back() >= bytes_) {
      freed_ -= charges_.back();
      victims_.pop_back();
      charges_.pop_back();
    }
  }

 private:
  const EntryId newcomer_;
  const std::uint64_t programs_;
  const std::uint64_t bytes_;
  std::uint64_t freed_ = 0;
  std::vector<EntryId>& victims_;
  std::vector<std::uint64_t> charges_;
};

}  // namespace kiln

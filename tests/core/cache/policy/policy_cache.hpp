// PolicyCache: the smallest tier that an eviction policy can serve, for tests: keys are numbers, uses are told at once.
#pragma once

#include "cache/cost_policy.hpp"
#include "cache/eviction_policy.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

inline std::unique_ptr<EvictionPolicy> policy_named(const std::string& name, std::uint64_t least_weight = 0) {
  auto policy = make_eviction_policy(name, least_weight);
  REQUIRE(policy);
  return std::move(*policy);
}

inline const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"lru", "sieve", "cost"};
  return names;
}

class PolicyCache {
 public:
  PolicyCache(const std::string& policy, std::uint64_t capacity) : capacity_(capacity), policy_(policy_named(policy)) {}

  // Whether it was there; otherwise it is offered. REQUIRES: bytes <= capacity.
  bool get(std::uint64_t key, std::uint64_t bytes = 1, std::uint64_t saved_ns = 1) {
    if (const auto held = ids_.find(key); held != ids_.end()) {
      policy_->used(held->second, 1);
      return true;
    }
    const EntryId id = free_id();
    ids_[key] = id;
    keys_[id] = {key, bytes};
    bytes_ += bytes;
    policy_->inserted(id, {mix(key), bytes, saved_ns});
    if (bytes_ <= capacity_) return false;
    std::vector<EntryId> victims;
    const auto evictable = [&](EntryId one) { return one == id || !pinned.contains(keys_[one].first); };
    policy_->choose({0, bytes_ - capacity_, id}, evictable, victims);
    if (std::find(victims.begin(), victims.end(), id) != victims.end() && !fits_without(victims)) victims = {id};
    for (const EntryId victim : victims) erase(victim);
    return false;
  }
  bool holds(std::uint64_t key) const { return ids_.contains(key); }
  std::size_t size() const { return ids_.size(); }
  std::uint64_t bytes() const { return bytes_; }

  std::set<std::uint64_t> pinned;  // keys

 private:
  bool fits_without(const std::vector<EntryId>& victims) {
    std::uint64_t left = bytes_;
    for (const EntryId victim : victims) left -= keys_[victim].second;
    return left <= capacity_;
  }
  EntryId free_id() const {
    EntryId id = 0;
    while (keys_.contains(id)) ++id;
    return id;
  }
  void erase(EntryId id) {
    policy_->erased(id);
    bytes_ -= keys_[id].second;
    ids_.erase(keys_[id].first);
    keys_.erase(id);
  }

  const std::uint64_t capacity_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::map<std::uint64_t, EntryId> ids_;
  std::map<EntryId, std::pair<std::uint64_t, std::uint64_t>> keys_;  // key, bytes
  std::uint64_t bytes_ = 0;
};

}  // namespace kiln::test

#include "cache/eviction_policy.hpp"

#include "cache/cost_policy.hpp"
#include "cache/recency_policies.hpp"

#include <algorithm>
#include <string>

namespace kiln {

EvictionPolicy::~EvictionPolicy() = default;

Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name, std::uint64_t least_weight) {
  using Made = std::unique_ptr<EvictionPolicy>;
  const bool removed = std::ranges::find(removed_policy_names, name) != std::end(removed_policy_names);
  if (name == "cost" || removed) return Made(std::make_unique<CostPolicy>(least_weight));
  if (name == "lru") return Made(std::make_unique<LruPolicy>());
  if (name == "sieve") return Made(std::make_unique<SievePolicy>());
  std::string there_is;
  for (const std::string_view one : eviction_policy_names) {
    there_is += (there_is.empty() ? "'" : ", '") + std::string(one) + "'";
  }
  return unsupported("policy '" + std::string(name) + "': there is " + there_is);
}

void ChosenVictims::add(EntryId id, std::uint64_t charge) {
  victims_.push_back(id);
  charges_.push_back(charge);
  freed_ += charge;
  if (id != needed_.newcomer) return;
  std::rotate(victims_.begin(), victims_.end() - 1, victims_.end());
  std::rotate(charges_.begin(), charges_.end() - 1, charges_.end());
  while (victims_.size() > 1 && victims_.size() > needed_.programs && freed_ - charges_.back() >= needed_.bytes) {
    freed_ -= charges_.back();
    victims_.pop_back();
    charges_.pop_back();
  }
}

}  // namespace kiln

#include "cache/policy/eviction_policy.hpp"

#include "cache/policy/cost.hpp"
#include "cache/policy/lru.hpp"
#include "cache/policy/s3fifo.hpp"
#include "cache/policy/sieve.hpp"
#include "cache/policy/wtinylfu.hpp"

#include <string>
#include <type_traits>

namespace kiln {
namespace {

struct NamedPolicy {
  std::string_view name;
  std::unique_ptr<EvictionPolicy> (*make)(std::uint64_t least_weight);
};

template <class Policy>
std::unique_ptr<EvictionPolicy> make([[maybe_unused]] std::uint64_t least_weight) {
  if constexpr (std::is_constructible_v<Policy, std::uint64_t>) {
    return std::make_unique<Policy>(least_weight);
  } else {
    return std::make_unique<Policy>();
  }
}

constexpr NamedPolicy policies[] = {
    {"lru", &make<LruPolicy>},           {"sieve", &make<SievePolicy>}, {"s3fifo", &make<S3FifoPolicy>},
    {"wtinylfu", &make<WTinyLfuPolicy>}, {"cost", &make<CostPolicy>},
};

}  // namespace

EvictionPolicy::~EvictionPolicy() = default;

Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name, std::uint64_t least_weight) {
  std::string there_is;
  for (const NamedPolicy& policy : policies) {
    if (policy.name == name) return policy.make(least_weight);
    if (!there_is.empty()) there_is += ", ";
    there_is += "'" + std::string(policy.name) + "'";
  }
  return unsupported("policy '" + std::string(name) + "': there is " + there_is);
}

}  // namespace kiln

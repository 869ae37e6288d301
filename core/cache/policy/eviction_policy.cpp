#include "cache/policy/eviction_policy.hpp"

#include "cache/policy/lru.hpp"

#include <string>

namespace kiln {
namespace {

struct NamedPolicy {
  std::string_view name;
  std::unique_ptr<EvictionPolicy> (*make)();
};

template <class Policy>
std::unique_ptr<EvictionPolicy> make() {
  return std::make_unique<Policy>();
}

constexpr NamedPolicy policies[] = {
    {"lru", &make<LruPolicy>},
};

}  // namespace

EvictionPolicy::~EvictionPolicy() = default;

Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name) {
  std::string there_is;
  for (const NamedPolicy& policy : policies) {
    if (policy.name == name) return policy.make();
    if (!there_is.empty()) there_is += ", ";
    there_is += "'" + std::string(policy.name) + "'";
  }
  return unsupported("policy '" + std::string(name) + "': there is " + there_is);
}

}  // namespace kiln

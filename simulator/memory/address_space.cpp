#include "simulator/memory/address_space.hpp"

#include <algorithm>
#include <utility>

namespace kiln::simulator {

AddressSpace::AddressSpace(std::vector<Mapping> sorted) : mappings_(std::move(sorted)) {
  starts_.reserve(mappings_.size());
  for (const Mapping& mapping : mappings_) starts_.push_back(mapping.start);
}

const Mapping* AddressSpace::find(std::uint64_t address) const noexcept {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (after == starts_.begin()) return nullptr;
  const Mapping& below = mappings_[static_cast<std::size_t>(after - starts_.begin() - 1)];
  return address - below.start < below.bytes ? &below : nullptr;
}

}  // namespace kiln::simulator

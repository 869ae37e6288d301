#include "selector/store/model_merge.hpp"

#include <algorithm>

namespace kiln::selector {
namespace {

std::uint64_t added(std::uint64_t mine, std::uint64_t base) { return mine > base ? mine - base : 0; }

// The samples that came in since `base`, as if they alone had made the mean.
Average since(const Average& mine, const Average& base) {
  Average delta = mine;
  delta.count = added(mine.count, base.count);
  return delta;
}

Average joined(const Average& stored, const Average& base, const Average& mine) {
  if (stored.count == base.count) return mine;
  return merged(stored, since(mine, base));
}

Arm joined(const Arm& stored, const Arm& base, const Arm& mine) {
  Arm arm = mine.used >= stored.used ? mine : stored;
  arm.run.log_ns = joined(stored.run.log_ns, base.run.log_ns, mine.run.log_ns);
  if (stored.run.log_ns.count != base.run.log_ns.count) {
    arm.run.weight = stored.run.weight + added(mine.run.weight, base.run.weight);
    arm.run.widening = std::max(stored.run.widening, mine.run.widening);
  } else {
    arm.run.weight = mine.run.weight;
    arm.run.widening = mine.run.widening;
  }
  arm.run.alarms = stored.run.alarms + static_cast<std::uint32_t>(added(mine.run.alarms, base.run.alarms));
  arm.run.slower = mine.run.slower;
  arm.run.faster = mine.run.faster;
  arm.log_transfer = joined(stored.log_transfer, base.log_transfer, mine.log_transfer);
  arm.log_first = joined(stored.log_first, base.log_first, mine.log_first);
  arm.looks = stored.looks + static_cast<std::uint32_t>(added(mine.looks, base.looks));
  return arm;
}

bool anything_since(const Arm& base, const Arm& mine) {
  return mine.run.log_ns.count > base.run.log_ns.count || mine.log_first.count > base.log_first.count ||
         mine.looks > base.looks;
}

}  // namespace

std::map<ArmKey, Arm> merged(const std::map<ArmKey, Arm>& stored, const std::map<ArmKey, Arm>& base,
                             const std::map<ArmKey, Arm>& mine) {
  static const Arm nothing;
  std::map<ArmKey, Arm> all = stored;
  for (const auto& [key, arm] : mine) {
    const auto before = base.find(key);
    const auto at = all.find(key);
    if (at != all.end()) {
      at->second = joined(at->second, before == base.end() ? nothing : before->second, arm);
    } else if (before == base.end() || anything_since(before->second, arm)) {
      all.emplace(key, arm);
    }
  }
  bound(all);
  return all;
}

}  // namespace kiln::selector

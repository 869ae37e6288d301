#include "runtime/plan_memo.hpp"

#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t most_plans = 4096;

// The bytes of a spec up to the end of its last field: plain values without gaps between them, gaps only behind.
std::uint64_t bytes_hash(const void* spec, std::size_t bytes) noexcept { return XXH3_64bits(spec, bytes); }

template <class Spec>
constexpr std::size_t plain_bytes = 0;  // 0: the spec is not plain
template <>
constexpr std::size_t plain_bytes<Conv2dSpec> = offsetof(Conv2dSpec, accuracy) + sizeof(Conv2dSpec::accuracy);
template <>
constexpr std::size_t plain_bytes<GemmSpec> = offsetof(GemmSpec, activation) + sizeof(GemmSpec::activation);
template <>
constexpr std::size_t plain_bytes<Pool2dSpec> = offsetof(Pool2dSpec, kind) + sizeof(Pool2dSpec::kind);
template <>
constexpr std::size_t plain_bytes<AddSpec> = offsetof(AddSpec, activation) + sizeof(AddSpec::activation);
template <>
constexpr std::size_t plain_bytes<SoftmaxSpec> = offsetof(SoftmaxSpec, dtype) + sizeof(SoftmaxSpec::dtype);
template <>
constexpr std::size_t plain_bytes<ActivationSpec> =
    offsetof(ActivationSpec, activation) + sizeof(ActivationSpec::activation);
constexpr std::size_t word_bytes = sizeof(std::int64_t);
static_assert(plain_bytes<Conv2dSpec> == 14 * word_bytes + 4 && plain_bytes<GemmSpec> == 3 * word_bytes + 3 &&
                  plain_bytes<Pool2dSpec> == 10 * word_bytes + 2 && plain_bytes<AddSpec> == 4 * word_bytes + 2 &&
                  plain_bytes<SoftmaxSpec> == 4 * word_bytes + 1 && plain_bytes<ActivationSpec> == 4 * word_bytes + 2,
              "a field was added or a gap has come in");

std::uint64_t word(const void* bytes, std::size_t at) noexcept {
  std::uint64_t value;
  std::memcpy(&value, static_cast<const char*>(bytes) + at, sizeof value);
  return value;
}

// As memcmp() == 0, in line: a call of it costs as much as the rest of a lookup. The last word may overlap the one
// before it.
template <std::size_t bytes>
bool same_bytes(const void* a, const void* b) noexcept {
  std::uint64_t differ = word(a, bytes - 8) ^ word(b, bytes - 8);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) differ |= word(a, at) ^ word(b, at);
  return differ == 0;
}

// Calls `use` with the spec as its own type, without the table of std::visit.
template <std::size_t at = 0, class Use>
auto with_spec(const KernelSpec& spec, const Use& use) noexcept {
  if constexpr (at + 1 == std::variant_size_v<KernelSpec>) {
    return use(*std::get_if<at>(&spec));
  } else {
    return spec.index() == at ? use(*std::get_if<at>(&spec)) : with_spec<at + 1>(spec, use);
  }
}

// As ==. REQUIRES: the specs have a hash.
bool same(const KernelSpec& a, const KernelSpec& b) noexcept {
  if (a.index() != b.index()) return false;
  return with_spec(a, [&b]<class Spec>(const Spec& one) {
    if constexpr (plain_bytes<Spec> != 0) return same_bytes<plain_bytes<Spec>>(&one, std::get_if<Spec>(&b));
    return false;
  });
}

bool same_programs(const KeyedPlan& a, const KeyedPlan& b) {
  const auto same_keys = [](const std::vector<ProgramKey>& these, const std::vector<ProgramKey>& those) {
    return std::ranges::equal(these, those, {}, &ProgramKey::digest, &ProgramKey::digest);
  };
  return a.plan->variant == b.plan->variant && same_keys(a.prepare, b.prepare) && same_keys(a.passes, b.passes);
}

std::uint64_t with_device(std::uint64_t hash, const Device& device) noexcept {
  return hash ^ (reinterpret_cast<std::uintptr_t>(&device) * 0x9e3779b97f4a7c15u);  // 2^64 ÷ the golden ratio
}

}  // namespace

std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept {
  if (spec.valueless_by_exception()) return std::nullopt;
  return with_spec(spec, [&spec]<class Spec>(const Spec& one) -> std::optional<std::uint64_t> {
    if constexpr (plain_bytes<Spec> == 0) return std::nullopt;
    return bytes_hash(&one, plain_bytes<Spec>) ^ spec.index() * 0x9e3779b97f4a7c15u;
  });
}

std::shared_ptr<const KeyedPlan> PlanMemo::find(const KernelSpec& spec, const Device& device,
                                                std::uint64_t revision) const noexcept {
  const auto hash = spec_hash(spec);
  if (!hash) return nullptr;
  const Entry* entry = table_.find(with_device(*hash, device), [&](const Entry& each) {
    return each.device == &device && each.revision.load(std::memory_order_acquire) == revision && same(each.spec, spec);
  });
  return entry == nullptr ? nullptr : entry->plan;
}

std::shared_ptr<const KeyedPlan> PlanMemo::insert(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                                  std::shared_ptr<const KeyedPlan> plan) {
  const auto hash = spec_hash(spec);
  if (!hash) return plan;
  const std::uint64_t hash_of_both = with_device(*hash, device);
  const std::lock_guard lock(mutex_);
  const Entry* const known = table_.find(hash_of_both, [&](const Entry& each) {
    return each.device == &device && same(each.spec, spec) && same_programs(*each.plan, *plan);
  });
  if (known != nullptr) {
    if (known->revision.load(std::memory_order_relaxed) < revision) {
      known->revision.store(revision, std::memory_order_release);
    }
    return known->plan;
  }
  if (entries_.size() >= most_plans || find(spec, device, revision) != nullptr) return plan;
  entries_.emplace_back(new Entry{plan, &device, revision, hash_of_both, spec});
  if (auto cells = table_.insert(*entries_.back())) outgrown_.push_back(std::move(cells));
  return plan;
}

}  // namespace kiln

#include "runtime/plan_memo.hpp"

#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include <xxhash.h>

#include <cstddef>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t most_plans = 4096;

// The bytes of a spec up to the end of its last field: plain values without gaps between them, gaps only behind.
std::uint64_t bytes_hash(const void* spec, std::size_t bytes) noexcept { return XXH3_64bits(spec, bytes); }

constexpr std::size_t conv_bytes = offsetof(Conv2dSpec, accuracy) + sizeof(Conv2dSpec::accuracy);
static_assert(conv_bytes == 14 * sizeof(std::int64_t) + 4, "a field was added or a gap has come in");
constexpr std::size_t gemm_bytes = offsetof(GemmSpec, activation) + sizeof(GemmSpec::activation);
static_assert(gemm_bytes == 3 * sizeof(std::int64_t) + 3, "a field was added or a gap has come in");

// As ==, without the detour by way of std::visit. REQUIRES: the specs have a hash.
bool same(const KernelSpec& a, const KernelSpec& b) noexcept {
  if (a.index() != b.index()) return false;
  if (const auto* conv = std::get_if<Conv2dSpec>(&a))
    return std::memcmp(conv, std::get_if<Conv2dSpec>(&b), conv_bytes) == 0;
  return std::memcmp(std::get_if<GemmSpec>(&a), std::get_if<GemmSpec>(&b), gemm_bytes) == 0;
}

std::uint64_t with_device(std::uint64_t hash, const Device& device) noexcept {
  return hash ^ (reinterpret_cast<std::uintptr_t>(&device) * 0x9e3779b97f4a7c15u);  // 2^64 ÷ the golden ratio
}

}  // namespace

std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return bytes_hash(conv, conv_bytes);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return ~bytes_hash(gemm, gemm_bytes);
  return std::nullopt;
}

const KeyedPlan* PlanMemo::find(const KernelSpec& spec, const Device& device, std::uint64_t revision) const noexcept {
  const auto hash = spec_hash(spec);
  if (!hash) return nullptr;
  const Entry* entry = table_.find(with_device(*hash, device), [&](const Entry& each) {
    return each.device == &device && each.revision == revision && same(each.spec, spec);
  });
  return entry == nullptr ? nullptr : entry->plan.get();
}

std::shared_ptr<const KeyedPlan> PlanMemo::keep(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                                KeyedPlan plan) {
  auto kept = std::make_shared<const KeyedPlan>(std::move(plan));
  const auto hash = spec_hash(spec);
  if (!hash) return kept;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= most_plans || find(spec, device, revision) != nullptr) return kept;
  entries_.push_back(std::make_unique<Entry>(Entry{spec, &device, revision, kept}));
  if (auto cells = table_.insert(with_device(*hash, device), *entries_.back())) outgrown_.push_back(std::move(cells));
  return kept;
}

}  // namespace kiln

#include "cache/memory_tier.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kiln {
namespace {

constexpr std::uint64_t worth_cheap_guards = 32;  // programs held: a process that comes so far is no short one
constexpr std::uint64_t insertions_a_walk = 16;   // of the programs held: their sixteenth part
constexpr std::size_t most_use_counts = 65536;    // of evicted programs, until somebody takes them

// As find() must not change a count that another thread changes, a slot's own counts are no read-modify-writes.
void add_relaxed(std::atomic<std::uint64_t>& count, std::uint64_t more) noexcept {
  count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

std::uint64_t hash_of(const Digest& digest) noexcept { return DigestHash{}(digest); }

std::uint64_t word(const Digest& digest, std::size_t at) noexcept {
  std::uint64_t value;
  std::memcpy(&value, digest.bytes.data() + at * sizeof value, sizeof value);
  return value;
}

// Word by word: a call of memcmp costs as much as the rest of a hit.
bool same(const Digest& a, const Digest& b) noexcept {
  static_assert(sizeof a.bytes == 4 * sizeof(std::uint64_t));
  return ((word(a, 0) ^ word(b, 0)) | (word(a, 1) ^ word(b, 1)) | (word(a, 2) ^ word(b, 2)) |
          (word(a, 3) ^ word(b, 3))) == 0;
}

}  // namespace

MemoryTier::MemoryTier(MemoryBounds bounds, std::unique_ptr<EvictionPolicy> policy, OwnThreads own_threads)
    : own_threads_(own_threads),
      bounds_(bounds),
      policy_(std::move(policy)),
      table_(static_cast<std::size_t>(std::min<std::uint64_t>(bounds.programs, 1024))) {}

MemoryTier::~MemoryTier() = default;

[[gnu::always_inline]] inline MemoryTier::Entry* MemoryTier::look_up(const Digest& digest,
                                                                     const Device& device) const noexcept {
  return table_.find(hash_of(digest),
                     [&](const Entry& entry) { return entry.device == &device && same(entry.digest, digest); });
}

[[gnu::always_inline]] inline void MemoryTier::touch(Entry& entry, ReaderSlot& slot) noexcept {
  const std::uint32_t epoch = use_epoch_.load(std::memory_order_relaxed);
  if (entry.stamp.load(std::memory_order_relaxed) != epoch) {
    entry.stamp.store(epoch, std::memory_order_relaxed);
    entry.uses.store(entry.uses.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  add_relaxed(slot.hits, 1);
  add_relaxed(slot.saved_ns, entry.build_ns);
}

std::shared_ptr<const Program> MemoryTier::get(const Digest& digest, const Device& device) noexcept {
  const Guard guard = domain_.enter();
  if (ReaderSlots::is_none(guard.slot())) return nullptr;
  Entry* entry = look_up(digest, device);
  if (entry == nullptr) {
    domain_.reclaim();  // a miss has time for it
    return nullptr;
  }
  touch(*entry, guard.slot());
  return entry->program;
}

std::optional<HeldProgram> MemoryTier::get_with_cost(const Digest& digest, const Device& device) noexcept {
  const Guard guard = domain_.enter();
  if (ReaderSlots::is_none(guard.slot())) return std::nullopt;
  Entry* entry = look_up(digest, device);
  if (entry == nullptr) return std::nullopt;
  touch(*entry, guard.slot());
  return HeldProgram{entry->program, entry->build_ns, entry->restore_ns};
}

const Program* MemoryTier::find(const Digest& digest, const Device& device, const Guard& guard) noexcept {
  if (ReaderSlots::is_none(guard.slot())) return nullptr;
  Entry* entry = look_up(digest, device);
  if (entry == nullptr) return nullptr;
  touch(*entry, guard.slot());
  return entry->program_address;
}

bool MemoryTier::insert(const Digest& digest, const Device& device, HeldProgram held) {
  const std::lock_guard lock(mutex_);
  if (look_up(digest, device) != nullptr) return true;
  auto entry = std::make_shared<Entry>();
  entry->digest = digest;
  entry->device = &device;
  entry->charge = held.program->charge();
  entry->build_ns = held.build_ns;
  entry->restore_ns = held.restore_ns;
  entry->program_address = held.program.get();
  entry->program = std::move(held.program);
  if (bounds_.programs == 0 || entry->charge > bounds_.bytes) return false;
  entry->id = free_id();
  entry->stamp = use_epoch_.load();
  entry->uses = 1;
  entry->uses_told = 1;  // insertion is the first use, as far as the policy goes
  entry->uses_taken = held.ahead ? 1 : 0;

  std::vector<EntryId> victims;
  const bool full = held_ >= bounds_.programs || bytes_ > bounds_.bytes - entry->charge;
  // Before the insertion, so that the policy sees them in order. It is a walk over all: where nothing is to be evicted,
  // only after as many insertions as make it cheap for each.
  if (full || ++insertions_untold_ >= held_ / insertions_a_walk) tell_uses();
  policy_->inserted(entry->id, facts_of(*entry));
  entries_[entry->id] = entry;
  ++held_;
  bytes_ += entry->charge;
  if (full) {
    // Under the lock nobody can begin to hold a program that only the tier holds, but for a reader under a guard: that
    // one keeps what it finds, evicted or not.
    const auto evictable = [&](EntryId id) { return id == entry->id || entries_[id]->program.use_count() == 1; };
    const bool enough = policy_->choose(room_needed(entry->id), evictable, victims);
    const bool refused = !enough || std::find(victims.begin(), victims.end(), entry->id) != victims.end();
    if (!enough) victims.clear();
    if (refused) {
      std::erase(victims, entry->id);
      policy_->erased(entry->id);
      entries_[entry->id] = nullptr;
      free_ids_.push_back(entry->id);
      --held_;
      bytes_ -= entry->charge;
    }
    for (const EntryId victim : victims) evict(victim);
    if (refused) return false;
  }
  if (auto cells = table_.insert(*entry)) domain_.retire(std::move(cells));
  use_epoch_.fetch_add(1, std::memory_order_relaxed);
  if (held_ == worth_cheap_guards && own_threads_ == OwnThreads::yes) domain_.prefer_cheap_guards();
  return true;
}

void MemoryTier::remove(const Digest& digest, const Device& device) {
  const std::lock_guard lock(mutex_);
  if (const Entry* entry = look_up(digest, device)) take_out(entry->id);
}

void MemoryTier::remove_all(const Device& device) {
  const std::lock_guard lock(mutex_);
  for (EntryId id = 0; id < entries_.size(); ++id) {
    if (entries_[id] != nullptr && entries_[id]->device == &device) take_out(id);
  }
  domain_.reclaim();  // what a guard held until now
}

std::uint64_t MemoryTier::dispatched_first(const Digest& digest, std::uint64_t ns) noexcept {
  return note_dispatch(digest, &Entry::first_dispatch_ns, ns);
}

void MemoryTier::dispatched_later(const Digest& digest, std::uint64_t ns) noexcept {
  note_dispatch(digest, &Entry::later_dispatch_ns, ns);
}

std::uint64_t MemoryTier::note_dispatch(const Digest& digest, std::uint64_t Entry::*which, std::uint64_t ns) noexcept {
  const std::lock_guard lock(mutex_);
  Entry* entry = table_.find(hash_of(digest), [&](const Entry& each) { return each.digest == digest; });
  if (entry == nullptr) return 0;
  entry->*which = ns;
  policy_->updated(entry->id, facts_of(*entry));
  return entry->build_ns;
}

void MemoryTier::set_bounds(MemoryBounds bounds) {
  const std::lock_guard lock(mutex_);
  bounds_ = bounds;
  const RoomNeeded needed = room_needed(no_entry);
  if (needed.programs == 0 && needed.bytes == 0) return;
  tell_uses();
  std::vector<EntryId> victims;
  (void)policy_->choose(
      needed, [&](EntryId id) { return entries_[id]->program.use_count() == 1; }, victims);
  for (const EntryId victim : victims) evict(victim);
}

EntryFacts MemoryTier::facts_of(const Entry& entry) const noexcept {
  const std::uint64_t generated_ns =
      entry.first_dispatch_ns - std::min(entry.first_dispatch_ns, entry.later_dispatch_ns);
  return {hash_of(entry.digest), entry.charge, entry.restore_ns + generated_ns};
}

RoomNeeded MemoryTier::room_needed(EntryId newcomer) const noexcept {
  return {held_ - std::min(held_, bounds_.programs), bytes_ - std::min(bytes_, bounds_.bytes), newcomer};
}

EntryId MemoryTier::free_id() {
  if (!free_ids_.empty()) {
    const EntryId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  // So that giving one back cannot fail.
  if (free_ids_.capacity() <= entries_.size()) free_ids_.reserve(2 * entries_.size() + 16);
  entries_.push_back(nullptr);
  return static_cast<EntryId>(entries_.size() - 1);
}

void MemoryTier::tell_uses() {
  std::vector<std::pair<std::uint32_t, EntryId>> used;  // by stamp
  const std::uint32_t now = use_epoch_.load(std::memory_order_relaxed);
  for (const auto& entry : entries_) {
    if (entry == nullptr || entry->uses.load(std::memory_order_relaxed) == entry->uses_told) continue;
    used.emplace_back(now - entry->stamp.load(std::memory_order_relaxed), entry->id);  // age: stamps may wrap
  }
  std::sort(used.begin(), used.end(), std::greater<>());
  insertions_untold_ = 0;
  for (const auto& [age, id] : used) {
    Entry& entry = *entries_[id];
    const std::uint32_t uses = entry.uses.load(std::memory_order_relaxed);
    policy_->used(id, uses - entry.uses_told);
    entry.uses_told = uses;
  }
}

void MemoryTier::evict(EntryId id) {
  take_out(id);
  ++evictions_;
}

void MemoryTier::take_out(EntryId id) {
  std::shared_ptr<Entry> entry = std::move(entries_[id]);
  table_.erase(*entry);
  policy_->erased(id);
  if (uses_of_evicted_.size() < most_use_counts) note_uses(*entry, uses_of_evicted_);
  free_ids_.push_back(id);
  --held_;
  bytes_ -= entry->charge;
  domain_.retire(std::move(entry));
}

void MemoryTier::note_uses(Entry& entry, UseCounts& into) {
  const std::uint32_t uses = entry.uses.load(std::memory_order_relaxed);
  if (uses == entry.uses_taken) return;
  into.emplace_back(entry.digest, uses - entry.uses_taken);
  entry.uses_taken = uses;
}

MemoryFigures MemoryTier::figures() const noexcept {
  MemoryFigures figures;
  domain_.slots().each([&](const ReaderSlot& slot) {
    figures.hits += slot.hits.load(std::memory_order_relaxed);
    figures.saved_ns += slot.saved_ns.load(std::memory_order_relaxed);
  });
  const std::lock_guard lock(mutex_);
  figures.programs = held_;
  figures.bytes = bytes_;
  figures.evictions = evictions_;
  return figures;
}

std::vector<Digest> MemoryTier::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<Digest> digests;
  for (const auto& entry : entries_) {
    if (entry != nullptr) digests.push_back(entry->digest);
  }
  return digests;
}

UseCounts MemoryTier::take_uses() {
  const std::lock_guard lock(mutex_);
  UseCounts uses = std::move(uses_of_evicted_);
  uses_of_evicted_.clear();
  for (const auto& entry : entries_) {
    if (entry != nullptr) note_uses(*entry, uses);
  }
  return uses;
}

}  // namespace kiln

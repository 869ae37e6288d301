// MemoryTier: both bounds, what is pinned, what a guard sees, and whose program it is.
#include "cache/memory_tier.hpp"
#include "core/cache/synthetic_device.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <thread>

namespace kiln::test {
namespace {

std::unique_ptr<EvictionPolicy> lru() { return std::move(make_eviction_policy("lru").value()); }

Digest digest_of(int number) { return sha256(std::to_string(number)); }

struct Fixture {
  std::atomic<int> live{0};
  SyntheticDevice device;

  HeldProgram made(int number, std::uint64_t charge = 1) {
    return {std::make_shared<SyntheticProgram>(std::to_string(number), charge, live), 7};
  }
};

TEST_CASE("cache::memory_tier: the least recently used goes first, by count") {
  Fixture f;
  MemoryTier tier({3, 1000}, lru());
  for (int i = 0; i < 3; ++i) REQUIRE(tier.insert(digest_of(i), f.device, f.made(i)));
  REQUIRE(tier.get(digest_of(0), f.device));  // now 1 is the oldest
  REQUIRE(tier.insert(digest_of(3), f.device, f.made(3)));
  CHECK_FALSE(tier.get(digest_of(1), f.device));
  CHECK(tier.get(digest_of(0), f.device));
  CHECK(tier.get(digest_of(2), f.device));
  CHECK(tier.get_with_cost(digest_of(3), f.device)->build_ns == 7);
  CHECK(tier.figures().programs == 3);
  CHECK(tier.figures().evictions == 1);
  CHECK(f.live == 3);
}

TEST_CASE("cache::memory_tier: bytes bound it too, and one large program may cost several") {
  Fixture f;
  MemoryTier tier({100, 10}, lru());
  for (int i = 0; i < 5; ++i) REQUIRE(tier.insert(digest_of(i), f.device, f.made(i, 2)));
  CHECK(tier.figures().bytes == 10);
  REQUIRE(tier.insert(digest_of(5), f.device, f.made(5, 5)));
  CHECK(tier.figures().evictions == 3);
  CHECK(tier.figures().bytes == 9);
  CHECK_FALSE(tier.insert(digest_of(6), f.device, f.made(6, 11)));  // larger than the whole: nobody had to go for it
  CHECK(tier.figures().programs == 3);
}

TEST_CASE("cache::memory_tier: what is pinned stays, and beyond capacity a program is not taken in") {
  Fixture f;
  MemoryTier tier({2, 1000}, lru());
  REQUIRE(tier.insert(digest_of(0), f.device, f.made(0)));
  REQUIRE(tier.insert(digest_of(1), f.device, f.made(1)));
  auto pin0 = tier.get(digest_of(0), f.device);
  auto pin1 = tier.get(digest_of(1), f.device);
  CHECK_FALSE(tier.insert(digest_of(2), f.device, f.made(2)));
  CHECK(tier.figures().evictions == 0);
  pin0.reset();
  CHECK(tier.insert(digest_of(2), f.device, f.made(2)));
  CHECK_FALSE(tier.get(digest_of(0), f.device));
  CHECK(tier.get(digest_of(1), f.device));
}

TEST_CASE("cache::memory_tier: where not enough can go, nothing goes") {
  Fixture f;
  MemoryTier tier({8, 300}, lru());
  for (int i = 0; i < 3; ++i) REQUIRE(tier.insert(digest_of(i), f.device, f.made(i, 100)));
  auto pinned = tier.get(digest_of(1), f.device);
  CHECK_FALSE(tier.insert(digest_of(3), f.device, f.made(3, 300)));
  CHECK(tier.figures().programs == 3);
  CHECK(tier.figures().bytes == 300);
  CHECK(tier.figures().evictions == 0);
  CHECK_FALSE(tier.get(digest_of(3), f.device));
  CHECK(tier.dispatched_first(digest_of(3), 5) == 0);
  for (int i = 0; i < 3; ++i) CHECK(tier.get(digest_of(i), f.device));
  pinned.reset();
  CHECK(tier.insert(digest_of(3), f.device, f.made(3, 300)));
  CHECK(tier.figures().programs == 1);
  CHECK(tier.figures().evictions == 3);
  CHECK(f.live == 1);
  // Beyond bounds that were lowered, what is not pinned would not be enough.
  MemoryTier full({8, 300}, lru());
  for (int i = 0; i < 3; ++i) REQUIRE(full.insert(digest_of(i), f.device, f.made(i, 100)));
  const auto pinned1 = full.get(digest_of(1), f.device), pinned2 = full.get(digest_of(2), f.device);
  {
    const auto pinned0 = full.get(digest_of(0), f.device);
    full.set_bounds({8, 100});
  }
  CHECK_FALSE(full.insert(digest_of(3), f.device, f.made(3, 100)));
  CHECK(full.figures().programs == 3);
  CHECK(full.figures().evictions == 0);
}

TEST_CASE("cache::memory_tier: each way to find a program is a use of it, once between two insertions") {
  Fixture f;
  MemoryTier tier({8, 300}, lru());
  REQUIRE(tier.insert(digest_of(0), f.device, f.made(0)));
  CHECK(tier.take_uses() == UseCounts{{digest_of(0), 1}});  // of who made it
  CHECK(tier.take_uses().empty());
  const std::function<bool()> ways[] = {
      [&] { return tier.get(digest_of(0), f.device) != nullptr; },
      [&] { return tier.get_with_cost(digest_of(0), f.device).has_value(); },
      [&] { return tier.find(digest_of(0), f.device, tier.enter()) != nullptr; },
  };
  int number = 1;
  for (const auto& way : ways) {
    HeldProgram ahead = f.made(number);
    ahead.ahead = true;
    REQUIRE(tier.insert(digest_of(number), f.device, std::move(ahead)));
    CHECK(tier.take_uses().empty());  // nobody has used that one yet
    CHECK(way());
    CHECK(way());
    CHECK(tier.take_uses() == UseCounts{{digest_of(0), 1}});
    CHECK(tier.figures().hits == 2u * number);
    CHECK(tier.figures().saved_ns == 14u * number);
    ++number;
  }
  REQUIRE(tier.insert(digest_of(1), f.device, f.made(1)));  // it is there
  CHECK(tier.figures().programs == 4);
}

TEST_CASE("cache::memory_tier: a capacity of nothing keeps nothing") {
  Fixture f;
  MemoryTier none({0, 1000}, lru());
  CHECK_FALSE(none.insert(digest_of(0), f.device, f.made(0)));
  MemoryTier no_bytes({10, 0}, lru());
  CHECK_FALSE(no_bytes.insert(digest_of(0), f.device, f.made(0)));
  CHECK(no_bytes.insert(digest_of(1), f.device, f.made(1, 0)));
  CHECK(f.live == 1);
}

TEST_CASE("cache::memory_tier: a program is no answer for another device, which has its own") {
  Fixture f;
  SyntheticDevice twin;
  MemoryTier tier({10, 1000}, lru());
  REQUIRE(tier.insert(digest_of(0), f.device, f.made(0)));
  CHECK_FALSE(tier.get(digest_of(0), twin));
  REQUIRE(tier.insert(digest_of(0), twin, f.made(0)));
  CHECK(tier.get(digest_of(0), twin));
  CHECK(tier.get(digest_of(0), f.device));
  CHECK(tier.figures().programs == 2);
}

TEST_CASE("cache::memory_tier: a guard keeps a found program through its eviction") {
  Fixture f;
  MemoryTier tier({1, 1000}, lru());
  REQUIRE(tier.insert(digest_of(0), f.device, f.made(0)));
  {
    const Guard guard = tier.enter();
    const Program* found = tier.find(digest_of(0), f.device, guard);
    REQUIRE(found != nullptr);
    CHECK(tier.find(digest_of(9), f.device, guard) == nullptr);
    REQUIRE(tier.insert(digest_of(1), f.device, f.made(1)));
    CHECK(tier.find(digest_of(0), f.device, guard) == nullptr);
    CHECK(static_cast<const SyntheticProgram*>(found)->text() == "0");
    CHECK(f.live == 2);
  }
  CHECK_FALSE(tier.get(digest_of(0), f.device));  // a miss frees what guards held back
  CHECK(f.live == 1);
}

TEST_CASE("cache::memory_tier: uses are told once, also of what was evicted") {
  Fixture f;
  MemoryTier tier({1, 1000}, lru());
  REQUIRE(tier.insert(digest_of(0), f.device, f.made(0)));
  REQUIRE(tier.get(digest_of(0), f.device));
  REQUIRE(tier.insert(digest_of(1), f.device, f.made(1)));
  auto uses = tier.take_uses();
  std::ranges::sort(uses, {}, &UseCounts::value_type::second);
  CHECK(uses == UseCounts{{digest_of(1), 1}, {digest_of(0), 2}});
  CHECK(tier.take_uses().empty());
}

TEST_CASE("cache::memory_tier: lru gives up nothing that was used in a later epoch than what it keeps") {
  CHECK(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& steps) {
    struct Seen {
      std::uint64_t epoch;  // of its last use: insertions before it
      std::uint64_t charge;
    };
    Fixture f;
    MemoryTier tier({4, 20}, lru());
    std::map<int, Seen> model;
    std::uint64_t epoch = 0;
    for (const auto& [wish, size] : steps) {
      const int number = wish % 8;
      const bool held = tier.get(digest_of(number), f.device) != nullptr;
      RC_ASSERT(held == model.contains(number));
      if (held) {
        model[number].epoch = epoch;
        continue;
      }
      const std::uint64_t charge = size % 9;
      RC_ASSERT(tier.insert(digest_of(number), f.device, f.made(number, charge)));
      const MemoryFigures figures = tier.figures();
      std::uint64_t latest_gone = 0, earliest_kept = epoch, bytes = charge;
      bool some_gone = false;
      std::erase_if(model, [&](const auto& each) {
        const Guard guard = tier.enter();
        // Looked for without a use: the tier's own find would be one.
        const bool kept = std::ranges::count(tier.held(), digest_of(each.first)) == 1;
        if (kept) {
          earliest_kept = std::min(earliest_kept, each.second.epoch);
          bytes += each.second.charge;
        } else {
          latest_gone = std::max(latest_gone, each.second.epoch);
          some_gone = true;
        }
        return !kept;
      });
      if (some_gone) RC_ASSERT(latest_gone <= earliest_kept);
      model[number] = {++epoch, charge};
      RC_ASSERT(figures.programs == model.size());
      RC_ASSERT(figures.bytes == bytes);
      RC_ASSERT(figures.programs <= 4u);
      RC_ASSERT(figures.bytes <= 20u);
    }
  }));
}

TEST_CASE("cache::memory_tier: many threads, a storm of evictions, and every pointer under a guard is alive") {
  Fixture f;
  MemoryTier tier({4, 1000}, lru());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int number = (i * 7 + t * 3) % 16;
        tier.insert(digest_of(number), f.device, f.made(number));
        const auto held = tier.get(digest_of((i + t) % 16), f.device);
        const Guard guard = tier.enter();
        const Program* found = tier.find(digest_of(number), f.device, guard);
        const auto* program = static_cast<const SyntheticProgram*>(found);
        if (program != nullptr && program->text() != std::to_string(number)) ++wrong;
        if (held && held->charge() != 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(tier.figures().programs <= 4);
  CHECK(f.live == static_cast<int>(tier.figures().programs));
}

}  // namespace
}  // namespace kiln::test

// What policies are made of: queues, ghosts, the sketch, and the history of one program's use.
#include "cache/policy/parts/entry_queues.hpp"
#include "cache/policy/parts/frequency_sketch.hpp"
#include "cache/policy/parts/ghost_table.hpp"
#include "cache/policy/parts/mix.hpp"
#include "cache/policy/parts/use_history.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <list>
#include <map>
#include <set>

namespace kiln::test {
namespace {

std::vector<EntryId> forwards(const EntryQueues& queues, EntryQueues::Queue queue) {
  std::vector<EntryId> ids;
  for (EntryId id = queues.oldest(queue); id != no_entry; id = queues.newer(id)) ids.push_back(id);
  return ids;
}

std::vector<EntryId> backwards(const EntryQueues& queues, EntryQueues::Queue queue) {
  std::vector<EntryId> ids;
  for (EntryId id = queues.newest(queue); id != no_entry; id = queues.older(id)) ids.insert(ids.begin(), id);
  return ids;
}

TEST_CASE("cache::policy::entry_queues: lists, whatever the moves") {
  CHECK(rc::check([] {
    EntryQueues queues(2);
    std::vector<std::vector<EntryId>> model(2);
    const auto out_of_model = [&](EntryId id) { return std::erase(model[0], id) + std::erase(model[1], id) != 0; };
    for (const auto& [id, to] : *rc::gen::container<std::vector<std::pair<EntryId, std::uint32_t>>>(
             rc::gen::pair(rc::gen::inRange<EntryId>(0, 12), rc::gen::inRange<std::uint32_t>(0, 3)))) {
      const bool held = out_of_model(id);
      if (to == 2) {
        if (held) queues.remove(id);
        continue;
      }
      queues.reserve(id);
      held ? queues.move_newest(to, id) : queues.push_newest(to, id);
      model[to].push_back(id);
      RC_ASSERT(queues.queue_of(id) == to);
    }
    for (const EntryQueues::Queue queue : {0u, 1u}) {
      RC_ASSERT(forwards(queues, queue) == model[queue]);
      RC_ASSERT(backwards(queues, queue) == model[queue]);
      RC_ASSERT(queues.size(queue) == model[queue].size());
    }
  }));
}

TEST_CASE("cache::policy::ghost_table: nothing is known beyond the bound, nor for longer than it says") {
  CHECK(rc::check([] {
    const auto bound = *rc::gen::inRange<std::size_t>(1, 40);
    GhostTable<std::uint64_t> ghosts;
    ghosts.reserve(bound);
    std::list<std::pair<std::uint64_t, std::uint64_t>> notes;  // oldest first, as long as they may be known
    for (const auto& [hash, take] : *rc::gen::container<std::vector<std::pair<std::uint64_t, bool>>>(
             rc::gen::pair(rc::gen::inRange<std::uint64_t>(0, 60), rc::gen::arbitrary<bool>()))) {
      if (take) {
        const auto found = ghosts.take(hash);
        const auto noted = std::find_if(notes.rbegin(), notes.rend(), [&](const auto& n) { return n.first == hash; });
        if (found) {
          RC_ASSERT(noted != notes.rend());
          RC_ASSERT(*found == noted->second);
        }
        RC_ASSERT(!ghosts.take(hash));  // it was forgotten
      } else {
        const std::uint64_t value = notes.empty() ? 0 : notes.back().second + 1;
        ghosts.note(hash, value);
        notes.emplace_back(hash, value);
        if (notes.size() > bound) notes.pop_front();
      }
      RC_ASSERT(ghosts.size() <= bound);
    }
  }));
}

TEST_CASE("cache::policy::ghost_table: it forgets few early, and growing forgets none") {
  GhostTable<int> ghosts;
  CHECK_FALSE(ghosts.take(1));
  ghosts.note(1, 1);  // without room: not noted
  CHECK(ghosts.size() == 0);
  ghosts.reserve(1000);
  for (int i = 0; i < 5000; ++i) ghosts.note(static_cast<std::uint64_t>(i), i);
  CHECK(ghosts.size() > 950);
  CHECK(ghosts.size() <= 1000);
  const std::size_t before = ghosts.size();
  ghosts.reserve(4000);
  CHECK(ghosts.capacity() == 4000);
  CHECK(ghosts.size() >= before);
  CHECK(ghosts.take(4999) == 4999);
  CHECK_FALSE(ghosts.take(4999));
}

TEST_CASE("cache::policy::frequency_sketch: few keys are counted exactly, to fifteen, and growing keeps counts") {
  FrequencySketch sketch;
  CHECK(sketch.estimate(7) == 0);
  sketch.reserve(100);
  for (std::uint64_t key = 0; key < 20; ++key) sketch.add(mix(key), static_cast<std::uint32_t>(key));
  for (std::uint64_t key = 0; key < 20; ++key) CHECK(sketch.estimate(mix(key)) == std::min<std::uint64_t>(key, 15));
  sketch.reserve(10'000);
  for (std::uint64_t key = 0; key < 20; ++key) CHECK(sketch.estimate(mix(key)) == std::min<std::uint64_t>(key, 15));
}

TEST_CASE("cache::policy::frequency_sketch: counts are halved after ten uses a key, and never too low before") {
  FrequencySketch sketch;
  sketch.reserve(50);
  std::map<std::uint64_t, std::uint32_t> counts;
  std::uint64_t key = 1;
  for (int i = 0; i < 499; ++i) {
    key = mix(key);
    sketch.add(key % 200, 1);
    ++counts[key % 200];
  }
  for (const auto& [one, count] : counts) CHECK(sketch.estimate(one) >= std::min(count, FrequencySketch::most));
  const std::uint32_t before = sketch.estimate(key % 200);
  sketch.add(key % 200, 1);
  CHECK(sketch.estimate(key % 200) == (before + 1) / 2);
}

constexpr double half_life = 1000;

// A program used every `interval`, so long that its intervals are what counts.
UseHistory regular(std::uint64_t interval, std::uint64_t& now) {
  UseHistory history;
  for (int i = 0; i < 100; ++i) history.used(now += interval, 1, half_life);
  return history;
}

TEST_CASE("cache::policy::use_history: who comes more often is expected more") {
  std::uint64_t now = 0;
  double before = 2;
  for (const std::uint64_t interval : {1, 4, 16, 64, 256}) {
    const double prospect = regular(interval, now).prospect(0, half_life);
    CHECK(prospect < before);
    CHECK(prospect > 0.2 / static_cast<double>(interval));
    before = prospect;
  }
}

TEST_CASE("cache::policy::use_history: what is regular is awaited until it is late") {
  std::uint64_t now = 0;
  UseHistory history = regular(100, now);
  const double fresh = history.prospect(history.age_class(now), half_life);
  CHECK(history.prospect(history.age_class(now + 70), half_life) > fresh);       // due soon
  CHECK(history.prospect(history.age_class(now + 300), half_life) < fresh / 3);  // it did not come
}

TEST_CASE("cache::policy::use_history: any sequence gives a prospect, never below none nor above two a unit of time") {
  CHECK(rc::check([] {
    UseHistory history;
    std::uint64_t now = *rc::gen::inRange<std::uint64_t>(0, 1000);
    for (const auto& [gap, times] : *rc::gen::container<std::vector<std::pair<std::uint64_t, std::uint32_t>>>(
             rc::gen::pair(rc::gen::element<std::uint64_t>(1, 2, 5, 100, 1u << 20, std::uint64_t{1} << 40),
                           rc::gen::element(1u, 2u, 60u, 300u, 4'000'000'000u)))) {
      now += gap + times;
      history.used(now, times, half_life);
      for (const std::uint64_t age :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 50}) {
        const double prospect = history.prospect(history.age_class(now + age), half_life);
        RC_ASSERT(prospect >= 0);
        RC_ASSERT(prospect <= 2);
      }
    }
  }));
}

}  // namespace
}  // namespace kiln::test

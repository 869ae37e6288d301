// Many threads, few places: whatever is evicted, built, refused or read meanwhile, everybody gets what was asked for.
#include "core/cache/workplace.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <random>
#include <thread>

namespace kiln::test {
namespace {

constexpr int threads = 32;
constexpr int programs = 48;
constexpr int places = 8;

std::string text_for(int program) { return "program " + std::to_string(program); }
// One of eight is not a program.
bool is_refused(const std::string& text) { return text.back() == '7'; }

struct Storm {
  Workplace place;
  std::array<SyntheticDevice, 2> devices;
  std::unique_ptr<TieredCache> cache;
  std::atomic<int> wrong{0}, served{0}, refused{0}, found{0};

  explicit Storm(const std::string& policy) {
    place.config.policy = policy;
    place.config.max_programs = places;
    for (SyntheticDevice& device : devices) {
      device.facts().device_identity.emplace_back("number", std::to_string(&device - devices.data()));
      device.refuses = &is_refused;
    }
    cache = place.open();
  }

  void judge(const std::string& text, const Result<Acquired>& got) {
    const bool right =
        is_refused(text) ? !got && got.error().code == StatusCode::invalid_argument : got && text_of(*got) == text;
    if (!right) ++wrong;
    ++(got ? served : refused);
  }

  void blow(unsigned seed, int requests) {
    std::mt19937 random(seed);
    std::vector<ProgramHandle> kept;
    for (int i = 0; i < requests; ++i) {
      const std::string text = text_for(static_cast<int>(random() % programs));
      SyntheticDevice& device = devices[random() % devices.size()];
      switch (random() % 8) {
        case 0: {
          const Guard guard = cache->enter();
          const Program* program = cache->find(key_for(text, device).digest, device, guard);
          if (program == nullptr) break;
          ++found;
          std::this_thread::yield();  // it may be evicted now
          if (static_cast<const SyntheticProgram*>(program)->text() != text) ++wrong;
          break;
        }
        case 1: {
          const ProgramKey key = key_for(text, device);
          const KernelSource source = source_of(text);
          const auto got = cache->try_get_or_build({&key, &source, &device, random() % 2 == 0});
          if (!got || got->has_value()) {
            judge(text, got ? Result<Acquired>(**got) : Result<Acquired>(got.error()));
          }
          break;
        }
        case 2: {
          const CacheStats stats = cache->stats();
          if (stats.programs_in_memory > places) ++wrong;
          break;
        }
        case 3:
          cache->record(key_for(text, device), device, Measurement{}, 1.0);
          if (!cache->persist()) ++wrong;
          break;
        default: {
          const auto got = acquire(*cache, text, device);
          judge(text, got);
          if (got && random() % 4 == 0) kept.push_back(got->program);
          if (kept.size() > 2) kept.clear();
        }
      }
    }
  }
};

TEST_CASE("cache::stress: 32 threads in an eviction storm: everybody is served what was asked for") {
  const std::string policy = GENERATE("lru", "sieve", "cost");
  CAPTURE(policy);
  Storm storm(policy);
  std::vector<std::thread> running;
  const int requests = is_long() ? 3000 : 150;
  for (unsigned i = 0; i < threads; ++i) running.emplace_back([&storm, i, requests] { storm.blow(i, requests); });
  for (std::thread& thread : running) thread.join();
  CHECK(storm.wrong == 0);
  CHECK(storm.served > 0);
  CHECK(storm.refused > 0);
  CHECK(storm.found > 0);
  const CacheStats stats = storm.cache->stats();
  CHECK(stats.evictions > 0);
  CHECK(stats.programs_in_memory <= places);
  CHECK(stats.lease_waits == 0);
  const RejectedCounts rejected = stats.rejected;
  CHECK(rejected.corrupt + rejected.tampered + rejected.foreign + rejected.refused + rejected.quarantined == 0);
  int builds = 0, live = 0;
  for (const SyntheticDevice& device : storm.devices) {
    CHECK(device.false_bytes == 0);
    builds += device.builds;
  }
  CHECK(builds == 2 * programs);  // each once, also those that the compiler refused
  storm.cache.reset();
  for (const SyntheticDevice& device : storm.devices) live += device.live;
  CHECK(live == 0);
  CHECK(storm.place.log.warnings().empty());
}

}  // namespace
}  // namespace kiln::test

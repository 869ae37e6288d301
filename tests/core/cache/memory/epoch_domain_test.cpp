// EpochDomain: what a guard may still see stays; what none can see goes at once.
#include "cache/epoch_domain.hpp"
#include "core/cache/rendezvous.hpp"
#include "core/cache/synthetic_device.hpp"

#include <catch2/catch.hpp>

#include <thread>
#include <vector>

namespace kiln::test {
namespace {

std::shared_ptr<const Program> program(std::atomic<int>& live) {
  return std::make_shared<SyntheticProgram>("text", 1, live);
}

// A guard whose end is chosen: made in place on the heap.
std::unique_ptr<Guard> heap_guard(EpochDomain& domain) { return std::unique_ptr<Guard>(new Guard(domain.enter())); }

TEST_CASE("cache::epoch_domain: without a guard a retired program dies at once") {
  std::atomic<int> live{0};
  EpochDomain domain;
  for (int i = 0; i < 5; ++i) {
    domain.retire(program(live));
    CHECK(live == 0);
  }
  CHECK(domain.waiting() == 0);
}

TEST_CASE(
    "cache::epoch_domain: a guard keeps what was retired after it entered, and after it the next call lets it go") {
  std::atomic<int> live{0};
  EpochDomain domain;
  {
    const Guard guard = domain.enter();
    domain.retire(program(live));
    domain.retire(program(live));
    {
      const Guard later = domain.enter();
      domain.retire(program(live));
    }
    CHECK(live == 3);
    CHECK(domain.waiting() == 3);
  }
  domain.reclaim();
  CHECK(live == 0);
  CHECK(domain.waiting() == 0);
}

TEST_CASE("cache::epoch_domain: of guards that overlap on one thread the last to end decides") {
  std::atomic<int> live{0};
  EpochDomain domain;
  auto first = heap_guard(domain);
  auto second = heap_guard(domain);
  domain.retire(program(live));
  first.reset();
  domain.reclaim();
  CHECK(live == 1);
  second.reset();
  domain.reclaim();
  CHECK(live == 0);
}

TEST_CASE(
    "cache::epoch_domain: a guard of another thread that entered before holds back, one that entered after does not") {
  std::atomic<int> live{0};
  EpochDomain domain;
  Rendezvous entered(2);
  Rendezvous leave(2);
  std::thread before([&] {
    const Guard guard = domain.enter();
    (void)entered.meet();
    (void)leave.meet();
  });
  REQUIRE(entered.meet());
  domain.retire(program(live));
  {
    const Guard after = domain.enter();
    domain.reclaim();
    CHECK(live == 1);
    (void)leave.meet();
    before.join();
    domain.reclaim();
    CHECK(live == 0);
  }
}

TEST_CASE("cache::epoch_domain: slots of ended threads serve later ones, and threads outlive domains") {
  EpochDomain domain;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] { const Guard guard = domain.enter(); }).join();
  }
  int slots = 0;
  domain.slots().each([&](const ReaderSlot&) { ++slots; });
  CHECK(slots == 16);
  for (int i = 0; i < 100; ++i) {
    EpochDomain brief;
    const Guard guard = brief.enter();
    CHECK(guard.slot().guards == 1);
  }
}

TEST_CASE("cache::epoch_domain: readers on many threads never see a program that is gone") {
  std::atomic<int> live{0};
  EpochDomain domain;
  std::mutex mutex;  // stands for the table's lock: a pointer is found or unlinked under it
  std::shared_ptr<const Program> current = program(live);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const Guard guard = domain.enter();
        const Program* seen = nullptr;
        {
          const std::lock_guard lock(mutex);
          seen = current.get();
        }
        if (static_cast<const SyntheticProgram*>(seen)->text() != "text") ++wrong;
      }
    });
  }
  for (int i = 0; i < 5000; ++i) {
    auto old = program(live);
    {
      const std::lock_guard lock(mutex);
      std::swap(old, current);
    }
    domain.retire(std::move(old));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  domain.reclaim();
  CHECK(wrong == 0);
  CHECK(live == 1);
}

}  // namespace
}  // namespace kiln::test

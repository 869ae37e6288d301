// Threads of a cache that work behind its calls, and the leases that one of them renews.
#include "cache/background_work.hpp"
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("background work: each task runs once, and at most as many run together as threads are allowed") {
  constexpr int most = 2, tasks = 8;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> opened{false};
  BackgroundWork work(most);
  for (int i = 0; i < tasks; ++i) {
    CHECK(work.add([&] {
      {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }
      ++begun;
      static_cast<void>(becomes_true([&] { return opened.load(); }));
      ++ended;
    }));
  }
  CHECK(becomes_true([&] { return begun >= most; }));
  std::this_thread::sleep_for(30ms);  // for threads that should not be there
  CHECK(begun == most);
  opened = true;
  CHECK(becomes_true([&] { return ended == tasks; }));
  work.finish(Deadline::after(10s));
  CHECK(begun == tasks);
  CHECK(threads.size() == 2);
}

TEST_CASE("background work: finish() waits for queued tasks until its deadline") {
  std::atomic<int> ended{0};
  BackgroundWork work(1);
  for (int i = 0; i < 3; ++i) {
    CHECK(work.add([&] {
      std::this_thread::sleep_for(2ms);
      ++ended;
    }));
  }
  work.finish(Deadline::after(60s));
  CHECK(ended == 3);
}

TEST_CASE("background work: finish() without time stops the running task, drops queued tasks and accepts no more") {
  std::atomic<int> begun{0};
  std::atomic<bool> told{false};
  BackgroundWork work(1);
  const auto stop = work.stop();
  CHECK_FALSE(stop->load());
  CHECK(work.add([&] {
    ++begun;
    told = becomes_true([&] { return stop->load(); });
  }));
  CHECK(work.add([&] { ++begun; }));
  CHECK(becomes_true([&] { return begun == 1; }));
  work.finish(Deadline::after(0s));
  CHECK(stop->load());
  CHECK(becomes_true([&] { return told.load(); }));
  CHECK(begun == 1);
  CHECK_FALSE(work.add([&] { ++begun; }));
  CHECK(begun == 1);
}

TEST_CASE("background work: without threads no task is accepted") {
  BackgroundWork work(0);
  std::atomic<int> begun{0};
  CHECK_FALSE(work.add([&] { ++begun; }));
  work.finish(Deadline::after(1s));
  CHECK(begun == 0);
}

TEST_CASE("background work: an exception in one task does not stop the other tasks") {
  std::atomic<int> ended{0};
  BackgroundWork work(1);
  CHECK(work.add([] { throw std::runtime_error("as out of memory"); }));
  CHECK(work.add([&] { ++ended; }));
  work.finish(Deadline::after(60s));
  CHECK(ended == 1);
}

TEST_CASE("held leases: each is taken once, and the first starts the renewal") {
  HeldLeases leases;
  const Digest one = sha256("one"), two = sha256("two");
  const auto now = Clock::now();
  CHECK(leases.add(one, {nullptr, "folder/one.lease", "token of one", 10s, now, now + 120s}));
  CHECK_FALSE(leases.add(two, {nullptr, "folder/two.lease", "token of two", 20s, now, now + 120s}));
  const auto taken = leases.take(one);
  REQUIRE(taken);
  CHECK(taken->name == "folder/one.lease");
  CHECK(taken->token == "token of one");
  CHECK(taken->life == 10s);
  CHECK_FALSE(leases.take(one));
  CHECK_FALSE(leases.take(sha256("three")));
  leases.end_at(two, now + 5s);
  leases.end_at(one, now);  // it is not held any more
  const auto rest = leases.take_all();
  REQUIRE(rest.size() == 1);
  REQUIRE(rest.contains(two));
  CHECK(rest.at(two).token == "token of two");
  CHECK(rest.at(two).ends == now + 5s);
  CHECK(leases.take_all().empty());
}

}  // namespace
}  // namespace kiln::test

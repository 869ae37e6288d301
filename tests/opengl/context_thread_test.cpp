#include "context_thread.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kiln::opengl {
namespace {

using namespace std::chrono_literals;

bool sleeps(long thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state == "S";
}

void wait_until_asleep(long thread) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!sleeps(thread)) {
    INFO("the thread that calls does not come to wait");
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

TEST_CASE("opengl: a load begins after everything that was posted, also after it", "[opengl]") {
  auto started = ContextThread::start();
  REQUIRE(started);
  ContextThread& thread = **started;
  std::promise<void> began, go;
  thread.post([&] {
    began.set_value();
    go.get_future().wait();
  });
  began.get_future().wait();
  std::vector<int> order;
  std::promise<long> loader_id;
  auto loader = std::async(std::launch::async, [&] {
    loader_id.set_value(syscall(SYS_gettid));
    return thread.call_within(30s, [&] {
      order.push_back(3);
      return 7;
    });
  });
  wait_until_asleep(loader_id.get_future().get());
  thread.post([&] { order.push_back(1); });
  thread.post([&] { order.push_back(2); });
  go.set_value();
  CHECK(loader.get() == 7);
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("opengl: a load that does not begin in time is withdrawn", "[opengl]") {
  auto started = ContextThread::start();
  REQUIRE(started);
  ContextThread& thread = **started;
  std::promise<void> go;
  thread.post([&] { go.get_future().wait(); });
  bool ran = false;
  CHECK_FALSE(thread.call_within(1ms, [&] { return ran = true; }));
  go.set_value();
  thread.call([] {});
  CHECK(thread.call_within(30s, [] { return 5; }) == 5);
  CHECK_FALSE(ran);
}

TEST_CASE("opengl: a call answers what the function answers, or throws what it throws", "[opengl]") {
  auto started = ContextThread::start();
  REQUIRE(started);
  ContextThread& thread = **started;
  const auto throwing = []() -> int { throw std::runtime_error("from the thread"); };
  CHECK(thread.call([] { return 41; }) == 41);
  CHECK(thread.call_within(30s, [] { return 42; }) == 42);
  CHECK_THROWS_WITH(thread.call(throwing), "from the thread");
  CHECK_THROWS_WITH(thread.call_within(30s, throwing), "from the thread");
  // On the thread itself a call runs at once.
  CHECK_FALSE(thread.on_this_thread());
  const auto nested = [&thread] {
    const bool here = thread.on_this_thread();
    const int one = thread.call([] { return 1; });
    return here ? one + thread.call_within(30s, [] { return 2; }).value_or(100) : -1;
  };
  CHECK(thread.call(nested) == 3);
  CHECK(thread.call_within(30s, nested) == 3);
}

TEST_CASE("opengl: tasks run in their order, and all that were posted run before the thread ends", "[opengl]") {
  std::vector<int> order;
  {
    auto started = ContextThread::start();
    REQUIRE(started);
    for (int i = 0; i < 1000; ++i) (*started)->post([&order, i] { order.push_back(i); });
  }
  REQUIRE(order.size() == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("opengl: between tasks the thread pumps while there is work, patiently where nothing waits", "[opengl]") {
  std::vector<bool> patient;  // of each call of the pump
  std::promise<void> done;
  auto started = ContextThread::start();
  REQUIRE(started);
  ContextThread& thread = **started;
  thread.call([&] {
    thread.set_pump([&](bool waits) {
      patient.push_back(waits);
      if (patient.size() < 3) return ContextThread::Pump::busy;
      if (patient.size() == 3) done.set_value();
      return ContextThread::Pump::idle;
    });
  });
  REQUIRE(done.get_future().wait_for(30s) == std::future_status::ready);
  // First behind the task that set it; from the third on it is idle until there is a task.
  CHECK(thread.call([&] { return patient; }) == std::vector<bool>{false, true, true});
}

}  // namespace kiln::opengl

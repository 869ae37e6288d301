#include "context_thread.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <future>
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

}  // namespace kiln::opengl

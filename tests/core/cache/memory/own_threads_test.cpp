// Threads that the cache starts of its own accord: none in somebody else's process, and none that it cannot do without.
#include "core/cache/shared/sharing.hpp"
#include "support/in_child.hpp"

#include <kiln/open_program_cache.hpp>

#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <sstream>
#include <thread>

namespace kiln::test {
namespace {

constexpr int many = 40;  // more programs than after which cheap guards are worth a thread

// A process with one is no longer of a single thread: there the kernel takes its time to grant cheap guards.
class AnotherThread {
 public:
  AnotherThread() : thread_([this] { end_.wait(); }) {}
  ~AnotherThread() {
    end_.count_down();
    thread_.join();
  }

 private:
  std::latch end_{1};
  std::thread thread_;
};

// A thread that was joined may still be listed, without running anything of this process.
bool is_exiting(const std::filesystem::path& task) {
  std::ifstream stat(task / "stat");
  std::string text, word;
  std::getline(stat, text);
  std::istringstream words(text.substr(text.find_last_of(')') + 1));
  for (int i = 0; i < 7; ++i) words >> word;
  return word.empty() || (std::stoul(word) & 4) != 0;  // PF_EXITING, among the flags of proc(5)
}

int threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::count_if(begin(tasks), end(tasks), [](const auto& task) { return !is_exiting(task); }));
}

// From here on a thread that this one starts does not run before this one waits, and so is there to be counted: surely
// where the process has the right to ask for that, and else most of the time.
void go_before_others() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
  static_cast<void>(sched_setaffinity(0, sizeof here, &here));
  const sched_param first{1};
  static_cast<void>(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first));
}

// What is wrong with a cache that is asked for many programs; in `most`, the threads that there were at any time. The
// device outlives the cache.
std::string ask_for_many(ProgramCache& cache, SyntheticDevice& device, int& most) {
  device.on_build = [&](const KernelSource&) { most = std::max(most, threads_of_process()); };
  for (int i = 0; i < many; ++i) {
    const auto got = acquire(cache, std::to_string(i), device);
    if (!got) return "program " + std::to_string(i) + ": " + got.error().text();
    most = std::max(most, threads_of_process());
  }
  return cache.stats().programs_in_memory == many ? "" : "not all of them were kept";
}

TEST_CASE("cache::own_threads: a cache that an application opens starts no thread in it") {
  Workplace place;
  const ChildEnd end = in_child([&]() -> std::string {
    const AnotherThread another;
    const int before = threads_of_process();
    SyntheticDevice device;
    const auto cache = open_program_cache(place.config, {&place.log, LogLevel::info});
    if (!cache) return cache.error().text();
    int most = before;
    go_before_others();
    std::string wrong = ask_for_many(**cache, device, most);
    if (wrong.empty() && most != before) wrong = std::to_string(most - before) + " threads were started";
    return wrong;
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

TEST_CASE("cache::own_threads: a closed cache leaves no thread that still ends") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to("http://server/kiln");
  const ChildEnd end = in_child([&]() -> std::string {
    const int before = threads_of_process();
    auto cache = machine.open();
    go_before_others();
    machine.build_and_run(*cache, "one");
    const int most = threads_of_process();
    cache.reset();
    if (most == before) return "it wrote without a thread";
    return threads_of_process() == before ? "" : "a thread was left";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

TEST_CASE("cache::own_threads: where no thread is to be had every program is served all the same") {
  Workplace place;
  std::filesystem::permissions(place.temporary.path(), std::filesystem::perms::all);
  const ChildEnd end = in_unprivileged_child([&]() -> std::string {
    const AnotherThread another;
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return "the limit cannot be set";
    try {
      std::thread([] {}).join();
      return "a thread was to be had";
    } catch (const std::system_error&) {
    }
    SyntheticDevice device;
    int most = 0;
    return ask_for_many(*place.open(), device, most);
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

}  // namespace
}  // namespace kiln::test

// Children that do not read what they are sent, and limits on the threads of this process.
#include "base/os/child_process.hpp"
#include "base/os/process_limits.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

using namespace kiln;
using namespace kiln::test;
using namespace std::chrono_literals;

namespace {

ChildProcess sleeping() { return ChildProcess::start({"/bin/sleep", {"60"}, std::nullopt}).value(); }

const std::string more_than_a_pipe_holds(1 << 20, 'x');

}  // namespace

TEST_CASE("child process: one that does not read holds nobody up") {
  ChildProcess child = sleeping();
  CHECK(child.send("few words\n", Deadline::after(10s)).ok());
  const auto begun = Clock::now();
  CHECK(child.send(more_than_a_pipe_holds, Deadline::after(100ms)).code == StatusCode::timeout);
  CHECK(Clock::now() - begun < 30s);
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  CHECK(child.send(more_than_a_pipe_holds, Deadline::never()).code == StatusCode::cancelled);
}

TEST_CASE("child process: one that has ended is told from one that does not read") {
  ChildProcess child = ChildProcess::start({"/bin/true", {}, std::nullopt}).value();
  const Deadline deadline = Deadline::after(30s);
  while (!child.ended() && !deadline.passed()) {
  }
  CHECK(child.send(more_than_a_pipe_holds, Deadline::never()).code == StatusCode::unavailable);
}

namespace {

// For its lifetime, the soft limits on this process's memory are as high as they may be.
class LiftedMemoryLimits {
 public:
  LiftedMemoryLimits() {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (getrlimit(kinds[i], &before_[i]) != 0) continue;
      rlimit lifted = before_[i];
      lifted.rlim_cur = lifted.rlim_max;
      setrlimit(kinds[i], &lifted);
    }
  }
  LiftedMemoryLimits(const LiftedMemoryLimits&) = delete;
  LiftedMemoryLimits& operator=(const LiftedMemoryLimits&) = delete;
  ~LiftedMemoryLimits() {
    for (std::size_t i = 0; i < kinds.size(); ++i) setrlimit(kinds[i], &before_[i]);
  }

 private:
  static constexpr std::array<__rlimit_resource, 2> kinds{RLIMIT_DATA, RLIMIT_AS};
  std::array<rlimit, 2> before_{};
};

}  // namespace

TEST_CASE("thread limits: enough only where every limit is known and leaves the threads and 256 more") {
  const CacheTestFolder folder;
  const ThreadLimitSources sources{folder.path() / "loadavg", folder.path() / "threads-max",
                                   folder.path() / "membership", folder.path() / "groups"};
  const auto write = [&](const char* file, const char* text) {
    std::filesystem::create_directories((folder.path() / file).parent_path());
    std::ofstream(folder.path() / file) << text;
  };
  const LiftedMemoryLimits lifted;
  rlimit before{}, data{}, space{};
  REQUIRE(getrlimit(RLIMIT_NPROC, &before) == 0);
  REQUIRE(getrlimit(RLIMIT_DATA, &data) == 0);
  REQUIRE(getrlimit(RLIMIT_AS, &space) == 0);
  const bool limited = (before.rlim_cur != RLIM_INFINITY && before.rlim_cur < 1000) || data.rlim_cur != RLIM_INFINITY ||
                       space.rlim_cur != RLIM_INFINITY;
  CHECK_FALSE(limits_leave_threads(8, sources));  // nothing is known
  write("loadavg", "0.10 0.20 0.30 2/100 4321\n");
  write("threads-max", "10000\n");
  write("membership", "0::/user/job\n");
  CHECK_FALSE(limits_leave_threads(8, sources));  // no groups are mounted
  write("groups/cgroup.procs", "");
  CHECK(limits_leave_threads(8, sources) == !limited);
  write("groups/user/job/pids.max", "max\n");
  write("groups/user/pids.max", "400\n");
  CHECK_FALSE(limits_leave_threads(8, sources));  // used by nobody knows how many
  write("groups/user/pids.current", "137\n");
  CHECK_FALSE(limits_leave_threads(8, sources));  // 263 are left
  write("groups/user/pids.current", "136\n");
  CHECK(limits_leave_threads(8, sources) == !limited);
  CHECK_FALSE(limits_leave_threads(9, sources));
  for (const char* membership : {"", "0::/../job\n", "5:memory:/\n", "5:memory,pids:/user\n"}) {
    CAPTURE(membership);
    write("membership", membership);
    CHECK_FALSE(limits_leave_threads(8, sources));
  }
  write("groups/pids/cgroup.procs", "");  // version 1
  CHECK(limits_leave_threads(8, sources) == !limited);
  write("groups/pids/user/pids.max", "300\n");
  write("groups/pids/user/pids.current", "40\n");
  CHECK_FALSE(limits_leave_threads(8, sources));
  write("membership", "0::/\n");
  CHECK(limits_leave_threads(8, sources) == !limited);
  write("loadavg", "0.10 0.20 0.30 2/9737 4321\n");
  CHECK_FALSE(limits_leave_threads(8, sources));
  for (const char* load : {"", "0.10 0.20 0.30", "0.10 0.20 0.30 2/", "0.10 0.20 0.30 2/x 1"}) {
    CAPTURE(load);
    write("loadavg", load);
    CHECK_FALSE(limits_leave_threads(8, sources));
  }
}

TEST_CASE("process limits: fewer threads than a library needs are an error that says how many there are") {
  CHECK(check_threads_left(8).ok());
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    const rlimit two{2, 2};  // this one, and one more
    if (setrlimit(RLIMIT_NPROC, &two) != 0) return "no limit can be set";
    const Status status = check_threads_left(8);
    if (status.code != StatusCode::unavailable) return "told nothing: " + status.text();
    return status.message.find("expected at least 8") == std::string::npos ? status.message : "";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

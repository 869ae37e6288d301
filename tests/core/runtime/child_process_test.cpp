// Children that do not read what they are sent, and limits on the threads of this process.
#include "base/os/child_process.hpp"
#include "core/cache/in_child.hpp"

#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
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

TEST_CASE("process limits: fewer threads than a library needs are an error that says how many there are") {
  CHECK(check_threads_left(8).ok());
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    const rlimit two{2, 2};  // this one, and one more
    if (setrlimit(RLIMIT_NPROC, &two) != 0) return "no limit can be set";
    const Status status = check_threads_left(8);
    if (status.code != StatusCode::unavailable) return "told nothing: " + status.text();
    return status.message.find("needed 8") == std::string::npos ? status.message : "";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

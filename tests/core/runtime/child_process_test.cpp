// Children that do not read what they are sent, and limits on the threads of this process.
#include "base/os/child_process.hpp"
#include "base/os/process_limits.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
    return status.message;
  });
  // One more, or none where the user has other processes.
  CHECK_THAT(end.said,
             Catch::StartsWith("the limits of this process allow only ") &&
                 Catch::EndsWith(" more threads, expected at least 8. Raise the limits (ulimit -u, pids.max)"));
  CHECK(end.signal == 0);
}

namespace {

ChildProcess shell(const std::string& script, std::optional<std::vector<std::string>> environment = std::nullopt,
                   int extra = -1) {
  return ChildProcess::start({"/bin/sh", {"-c", script, "sh", "one", "two words"}, std::move(environment), extra})
      .value();
}

// What comes until every holder of the other end has closed it; then "!" where that took too long.
std::string all_from(int file) {
  std::string text;
  for (const Deadline deadline = Deadline::after(60s); !deadline.passed();) {
    pollfd waiting{file, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    char part[256];
    const ssize_t got = read(file, part, sizeof part);
    if (got == 0) return text;
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
  }
  return text + "!";
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends[0]);
    close_writer();
  }
  void close_writer() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
  }
};

bool has_ended(ChildProcess& child) {
  for (const Deadline deadline = Deadline::after(60s); !deadline.passed();) {
    if (child.ended()) return true;
    if (child.status()) return false;  // known, so it has ended
  }
  return false;
}

}  // namespace

TEST_CASE("child process: what it is given, and what it is not") {
  Pipe extra;
  REQUIRE(write(extra.ends[1], "extra", 5) == 5);
  extra.close_writer();
  const int inherited = fcntl(extra.ends[0], F_DUPFD, 3);  // would stay open in a plain exec()
  REQUIRE(inherited >= 3);
  sigset_t mask, before;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &mask, &before) == 0);
  const auto handler = std::signal(SIGUSR2, SIG_IGN);
  const std::string script =
      "echo \"$1|$2|$GIVEN|${HOME-none}\"; readlink /proc/$$/fd/2; cat <&3; echo; test -e /proc/$$/fd/" +
      std::to_string(inherited) +
      " && echo leaked; grep -E 'SigBlk|SigIgn' /proc/self/status | cut -f 2 | cut -c 10-16; read -r line; echo "
      "\"$line\"; "
      "set -- $(cat /proc/$$/stat); test \"$5\" = \"$$\" && echo own group; exit 7";
  ChildProcess child = shell(script, std::vector<std::string>{"GIVEN=yes", "PATH=/usr/bin:/bin"}, extra.ends[0]);
  ChildProcess plain = shell("test -e /proc/$$/fd/3 && echo leaked; echo");
  std::signal(SIGUSR2, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(inherited);
  CHECK(child.pid() > 0);
  CHECK_FALSE(child.status());
  CHECK(child.send("a line\n", Deadline::after(60s)).ok());
  const std::string expected = "one|two words|yes|none\n/dev/null\nextra\n";
  const std::string no_signals = "0000000\n";  // of the first 28, above which the C library has its own
  CHECK(all_from(child.output()) == expected + no_signals + no_signals + "a line\nown group\n");
  CHECK(all_from(plain.output()) == "\n");
  REQUIRE(has_ended(child));
  REQUIRE(child.status());
  CHECK(*child.status() == 7 << 8);
  CHECK(child.ended());
  CHECK(child.stop(0s) == "not started");  // reaped
}

TEST_CASE("child process: without an environment of its own it has that of this process") {
  REQUIRE(setenv("KILN_TEST_INHERITED", "inherited", 1) == 0);
  ChildProcess child = shell("echo \"$KILN_TEST_INHERITED\"; cat");
  unsetenv("KILN_TEST_INHERITED");
  CHECK(child.send("sent", Deadline::after(60s)).ok());
  child.close_input();
  CHECK(all_from(child.output()) == "inherited\nsent");
}

TEST_CASE("child process: how it ended") {
  const auto stopped = [](const std::string& script) { return shell(script).stop(60s); };
  CHECK(stopped("exit 0") == "ended with status 0");
  CHECK(stopped("exit 3") == "ended with status 3");
  CHECK(stopped("kill -TERM $$") == "ended by SIGTERM");
  CHECK(stopped("kill -KILL $$") == "ended by SIGKILL");
  // stop() closes both pipes.
  CHECK(stopped("cat; exit 4") == "ended with status 4");
  CHECK(stopped("exec yes") == "ended by SIGPIPE");
  ChildProcess child = sleeping();
  CHECK_FALSE(child.ended());
  ChildProcess moved = std::move(child);
  CHECK(child.stop(0s) == "not started");
  CHECK(child.ended());
  const pid_t pid = moved.pid();
  CHECK(moved.stop(0s) == "was ended");
  CHECK(waitpid(pid, nullptr, WNOHANG) == -1);  // it was waited for
  CHECK(moved.stop(60s) == "not started");
  const auto missing = ChildProcess::start({"/no/such/program", {}, std::nullopt});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text() == "unavailable: /no/such/program cannot be started: No such file or directory");
}

TEST_CASE("child process: whatever it started ends with it") {
  const std::string leaves_another = "sleep 60 & exit 0", waits = "sleep 60 & echo; wait";
  for (const bool ends_itself : {true, false}) {
    for (const bool is_stopped : {true, false}) {
      CAPTURE(ends_itself, is_stopped);
      Pipe held;  // by the child and by what it started
      {
        ChildProcess child = shell(ends_itself ? leaves_another : waits, std::nullopt, held.ends[1]);
        held.close_writer();
        char line = 0;
        if (!ends_itself) REQUIRE(read(child.output(), &line, 1) == 1);
        if (ends_itself && !is_stopped) REQUIRE(has_ended(child));
        if (is_stopped)
          CHECK(child.stop(ends_itself ? 60s : 0s) == (ends_itself ? "ended with status 0" : "was ended"));
      }
      CHECK(all_from(held.ends[0]) == "");
    }
  }
}

TEST_CASE("child process: why nothing could be sent") {
  ChildProcess child = sleeping();
  CHECK(child.send("", Deadline::after(0s)).ok());
  CHECK(child.send(more_than_a_pipe_holds, Deadline::after(0s)).text() ==
        "timeout: writing to the child process timed out");
  std::atomic<bool> stop{false};
  const StopScope scope(&stop);
  CHECK(child.send("x", Deadline::after(0s)).code == StatusCode::timeout);
  stop = true;
  CHECK(child.send("x", Deadline::after(0s)).text() == "cancelled: stopped on request");
  ChildProcess ended = shell("exit 0");
  REQUIRE(has_ended(ended));
  CHECK(ended.send("x", Deadline::never()).text() == "unavailable: cannot write to the child process: Broken pipe");
}

TEST_CASE("stop scope: the innermost one counts, in its thread alone") {
  CHECK(current_stop() == nullptr);
  const std::atomic<bool> outer{false}, inner{false};
  {
    const StopScope first(&outer);
    CHECK(current_stop() == &outer);
    {
      const StopScope second(&inner);
      CHECK(current_stop() == &inner);
      const std::atomic<bool>* elsewhere = &inner;
      std::thread([&] { elsewhere = current_stop(); }).join();
      CHECK(elsewhere == nullptr);
    }
    CHECK(current_stop() == &outer);
  }
  CHECK(current_stop() == nullptr);
}

TEST_CASE("process limits: memory is left as far as the smaller of two limits goes") {
#if defined(__SANITIZE_THREAD__)
  WARN("skipped: the thread sanitizer maps more than the limits of this case");
  return;
#endif
  const ChildEnd end = in_child([]() -> std::string {
    constexpr std::uint64_t tib = std::uint64_t{1} << 40;
    const auto limit_to = [](__rlimit_resource kind, rlim_t bytes) {
      rlimit limit{};
      if (getrlimit(kind, &limit) != 0) return false;
      limit.rlim_cur = std::min(bytes, limit.rlim_max);
      return setrlimit(kind, &limit) == 0 && limit.rlim_cur == bytes;
    };
    if (!limit_to(RLIMIT_AS, RLIM_INFINITY) || !limit_to(RLIMIT_DATA, RLIM_INFINITY)) return "skipped: limits are low";
    std::string told = check_memory_left(1'000'000 * tib).text() + "\n";
    // Above what the address sanitizer maps.
    if (!limit_to(RLIMIT_DATA, 64 * tib) || !limit_to(RLIMIT_AS, 96 * tib)) return "no limit can be set";
    for (int i = 0; i < 6; ++i) {  // of which nothing stays taken
      if (!check_memory_left(20 * tib).ok()) return "not the " + std::to_string(i) + "th time";
    }
    for (const std::uint64_t bytes : {std::uint64_t{4096}, 100 * tib}) told += check_memory_left(bytes).text() + "\n";
    if (!limit_to(RLIMIT_DATA, RLIM_INFINITY)) return "no limit can be lifted";
    return told + check_memory_left(100 * tib + 1).text();
  });
  if (end.said.starts_with("skipped")) {
    WARN(end.said);
    return;
  }
  CHECK(end.said ==
        "ok\nok\n"
        "unavailable: the memory limit of this process (67108864 MiB) leaves less than 104857600 MiB. Raise the limit "
        "(ulimit -v, ulimit -d)\n"
        "unavailable: the memory limit of this process (100663296 MiB) leaves less than 104857600 MiB. Raise the limit "
        "(ulimit -v, ulimit -d)");
}

TEST_CASE("process limits: a small file of the kernel is read from its beginning, up to 16 KiB") {
  const CacheTestFolder folder;
  CHECK(text_of_kernel_file(folder.path() / "none").empty());
  CHECK(text_of_kernel_file(folder.path()).empty());
  std::string text(16385, 'a');
  text.back() = 'b';
  std::ofstream(folder.path() / "file") << text;
  CHECK(text_of_kernel_file(folder.path() / "file") == std::string(16384, 'a'));
  std::ofstream(folder.path() / "file") << "x\n";
  CHECK(text_of_kernel_file(folder.path() / "file") == "x\n");
}

// BenchProcess on a child that is a few lines of shell: what it makes of answers, ends, hangs and pauses. What the real
// child answers is in bench_child_test.cpp.
#include "runtime/autotuner.hpp"

#include "core/runtime/runtime_fixture.hpp"
#include "support/happens.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A child that keeps its number in a file, reads the set-up, and answers each line as `body` says.
struct ShellChild {
  RuntimeFixture place;  // for its folder
  std::filesystem::path program = place.folder() / "child";
  std::filesystem::path number = place.folder() / "number";

  explicit ShellChild(const std::string& body) {
    std::ofstream(program) << "#!/bin/sh\necho $$ > '" << number.string() << "'\nread setup\nwhile read line; do\n"
                           << body << "\ndone\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::unique_ptr<BenchProcess> bench(const std::atomic<bool>* interrupted = nullptr,
                                      const decltype(BenchSetup::subject)& subject = GemmSpec{1, 2, 3}) {
    BenchSetup setup;
    setup.device = "opengl:0";
    setup.subject = subject;
    return std::make_unique<BenchProcess>(program, setup, interrupted);
  }
  pid_t pid() const {
    pid_t value = 0;
    std::ifstream(number) >> value;
    return value;
  }
  // 'T': stopped; 0: it is gone.
  static char state_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(in, text);
    const std::size_t at = text.rfind(')');
    return at == std::string::npos ? '\0' : text[at + 2];
  }
};

const std::string shell_answer =
    "echo '{\"wall_ns\":[7],\"device_ns\":[5],\"source\":\"s\",\"max_rel_error\":0.0,\"error_bound\":1.0}'";

}  // namespace

TEST_CASE("runtime::bench_process: an answer below one mebibyte is taken, and a longer one ends its child",
          "[runtime][tuning]") {
  ShellChild child(
      "case \"$line\" in full*) head -c 1048000 /dev/zero | tr '\\0' ' ';; "
      "long*) head -c 1114112 /dev/zero | tr '\\0' ' ';; esac\n" +
      shell_answer);
  const auto bench = child.bench();
  const auto full = bench->measure("full", 1, seconds(60));
  REQUIRE(full);
  CHECK(full->wall_ns == std::vector<std::uint64_t>{7});
  const pid_t pid = child.pid();
  CHECK(bench->measure("long", 1, seconds(60)).error().text() ==
        "internal: bench: the answer of the child process is too long");
  CHECK(ShellChild::state_of(pid) == '\0');
  CHECK(bench->measure("good", 1, seconds(60)));
}

TEST_CASE("runtime::bench_process: one child answers one measurement after another, and goes with its bench",
          "[runtime][tuning]") {
  ShellChild child(shell_answer);
  auto bench = child.bench();
  for (int i = 0; i < 3; ++i) {
    const auto samples = bench->measure("a", 1, seconds(20));
    REQUIRE(samples.has_value());
    CHECK(samples->wall_ns == std::vector<std::uint64_t>{7});
  }
  const pid_t pid = child.pid();
  REQUIRE(ShellChild::state_of(pid) != '\0');
  bench.reset();
  CHECK(ShellChild::state_of(pid) == '\0');
}

TEST_CASE("runtime::bench_process: what ends or hangs is told, ended with its own children, and started anew",
          "[runtime][tuning]") {
  ShellChild child(
      "case \"$line\" in crash*) kill -SEGV $$;; late*) exec >&-; sleep 0.5; kill -SEGV $$;; "
      "leave*) exit 3;; hang*) sleep 600 & echo $! > " +
      std::string("\"$0.sleeper\"; wait;; esac\n") + shell_answer);
  const auto bench = child.bench();
  CHECK_THAT(bench->measure("crash", 1, seconds(20)).error().message, Catch::Contains("SIGSEGV"));
  CHECK(bench->measure("good", 1, seconds(20)).has_value());
  // A busy machine ends a process long after it has closed its output.
  CHECK_THAT(bench->measure("late", 1, seconds(20)).error().message, Catch::Contains("SIGSEGV"));
  const auto left = bench->measure("leave", 1, seconds(20));
  CHECK(left.error().code == StatusCode::device_lost);
  CHECK_THAT(left.error().message, Catch::Contains("ended with status 3"));
  // Of a child that is there: its start is no part of the time in which it has to begin its own.
  REQUIRE(bench->measure("good", 1, seconds(20)).has_value());
  const auto hung = bench->measure("hang", 1, seconds(5));
  CHECK(hung.error().code == StatusCode::timeout);
  CHECK_THAT(hung.error().message, Catch::Contains("hung for 5000 ms"));
  pid_t sleeper = 0;
  std::ifstream(child.program.string() + ".sleeper") >> sleeper;
  REQUIRE(sleeper > 0);
  CHECK(happens([&] { return ShellChild::state_of(sleeper) == '\0' || ShellChild::state_of(sleeper) == 'Z'; }));
  CHECK(bench->measure("good", 1, seconds(20)).has_value());
}

TEST_CASE("runtime::bench_process: outputs that a child keeps are there for the child that comes after it",
          "[runtime][tuning]") {
  ShellChild child(
      "case \"$line\" in keep*) printf kept >&3; kill -SEGV $$;; "
      "look*) test \"$(cat /proc/self/fd/3)\" = kept || exit 3;; esac\n" +
      shell_answer);
  const auto bench = child.bench(nullptr, std::string("a job"));
  CHECK(bench->measure("keep", 1, seconds(20)).error().code == StatusCode::device_lost);
  CHECK(bench->measure("look", 1, seconds(20)).has_value());
  const auto other = child.bench();  // a shape has its reference: its child has no such file
  CHECK_FALSE(other->measure("look", 1, seconds(20)).has_value());
}

TEST_CASE("runtime::bench_process: what a child prepares may take longer than a run, and a run no longer for it",
          "[runtime][tuning]") {
  constexpr seconds limit{3};
  ShellChild child(
      "case \"$line\" in slow*) echo preparing; sleep 4; echo prepared;; "
      "hang*) echo preparing; echo prepared; sleep 600 & wait;; esac\n" +
      shell_answer);
  const auto bench = child.bench();
  REQUIRE(bench->measure("good", 1, seconds(20)).has_value());
  const auto slow = bench->measure("slow", 1, limit);
  REQUIRE(slow.has_value());
  CHECK(slow->wall_ns == std::vector<std::uint64_t>{7});
  const auto hung = bench->measure("hang", 1, limit);
  CHECK(hung.error().code == StatusCode::timeout);
  CHECK_THAT(hung.error().message, Catch::Contains("hung for 3000 ms"));
}

TEST_CASE("runtime::bench_process: a child that ends while it prepares says nothing of the variant",
          "[runtime][tuning]") {
  ShellChild child("case \"$line\" in killed*) echo preparing; kill -9 $$;; esac\n" + shell_answer);
  const auto bench = child.bench();
  const auto killed = bench->measure("killed", 1, seconds(20));
  CHECK(killed.error().code == StatusCode::unavailable);
  CHECK_THAT(killed.error().message, Catch::Contains("no reference was computed") && Catch::Contains("SIGKILL"));
  CHECK(bench->measure("good", 1, seconds(20)).has_value());
}

TEST_CASE("runtime::bench_process: an interrupt is heeded while the child is waited for", "[runtime][tuning]") {
  ShellChild child("case \"$line\" in long*) echo > \"$0.said\"; sleep 600 & wait;; esac\n" + shell_answer);
  std::atomic<bool> interrupted{false};
  const auto bench = child.bench(&interrupted);
  std::thread interrupting([&] {
    (void)happens([&] { return std::filesystem::exists(child.program.string() + ".said"); });
    interrupted = true;
  });
  const auto left = bench->measure("long", 1, seconds(300));
  interrupting.join();
  CHECK(left.error().text() == "cancelled: bench: interrupted");
}

TEST_CASE("runtime::bench_process: what was being prepared at a pause goes on to be prepared", "[runtime][tuning]") {
  constexpr seconds limit{3};
  ShellChild child(
      "case \"$line\" in first*) echo preparing; echo > \"$0.said\"; while [ ! -e \"$0.go\" ]; do sleep 0.01; done; "
      "echo prepared;; esac\n" +
      shell_answer);
  const auto bench = child.bench();
  REQUIRE(bench->measure("good", 1, seconds(20)).has_value());
  Result<VariantSamples> first = unavailable("not measured"), second = unavailable("not measured");
  std::thread measuring([&] { first = bench->measure("first", 1, seconds(60)); });
  const bool said = happens([&] { return std::filesystem::exists(child.program.string() + ".said"); });
  bench->pause();
  measuring.join();
  REQUIRE(said);
  REQUIRE_FALSE(first.has_value());
  CHECK(first.error().code == StatusCode::cancelled);
  bench->resume();
  measuring = std::thread([&] { second = bench->measure("second", 1, limit); });
  std::this_thread::sleep_for(limit + seconds(1));
  std::ofstream(child.program.string() + ".go") << "go";
  measuring.join();
  INFO((second ? std::string() : second.error().text()));
  CHECK(second.has_value());
}

TEST_CASE("runtime::bench_process: a paused child stands still; its late answer is nobody's, the next is taken",
          "[runtime][tuning]") {
  // The first measurement answers 1 when it is let, the others 2. It starts no program while it waits: a shell that is
  // stopped between vfork and exec is not shown as stopped.
  ShellChild child(
      "case \"$line\" in first*) while [ ! -e \"$0.go\" ]; do :; done; value=1;; *) value=2;; esac\n"
      "echo '{\"wall_ns\":['$value'],\"device_ns\":[5],\"source\":\"s\",\"max_rel_error\":0.0,"
      "\"error_bound\":1.0}'");
  const auto bench = child.bench();
  Result<VariantSamples> first = unavailable("not measured");
  std::thread measuring([&] { first = bench->measure("first", 1, seconds(60)); });
  REQUIRE(happens([&] { return child.pid() != 0; }));
  std::this_thread::sleep_for(milliseconds(50));
  bench->pause();
  measuring.join();
  REQUIRE_FALSE(first.has_value());
  CHECK(first.error().text() == "cancelled: bench: paused");
  CHECK(happens([&] { return ShellChild::state_of(child.pid()) == 'T'; }));
  std::ofstream(child.program.string() + ".go") << "go";
  bench->resume();
  const auto second = bench->measure("second", 1, seconds(60));
  REQUIRE(second.has_value());
  CHECK(second->wall_ns == std::vector<std::uint64_t>{2});
}

TEST_CASE(
    "runtime::bench_process: a child that stands still is ended with its bench, and one started while paused "
    "stands still",
    "[runtime][tuning]") {
  ShellChild child(shell_answer);
  auto bench = child.bench();
  bench->pause();
  CHECK(bench->measure("a", 1, seconds(20)).error().code == StatusCode::cancelled);
  bench->resume();
  REQUIRE(bench->measure("a", 1, seconds(20)).has_value());
  bench->pause();
  const pid_t pid = child.pid();
  CHECK(happens([&] { return ShellChild::state_of(pid) == 'T'; }));
  bench.reset();
  CHECK(ShellChild::state_of(pid) == '\0');
  bench = child.bench();
  REQUIRE(bench->measure("a", 1, seconds(20)).has_value());
  const pid_t resting = child.pid();
  bench->rest();
  CHECK(ShellChild::state_of(resting) == '\0');
  CHECK(bench->measure("a", 1, seconds(20)).has_value());
}

TEST_CASE("runtime::bench_process: a program that is not there, or listens to nothing, is no end of this process",
          "[runtime][tuning]") {
  BenchProcess none("/proc/none/kiln-probe", {});
  CHECK_THAT(none.measure("a", 1, seconds(1)).error().message, Catch::Contains("/proc/none/kiln-probe"));
  BenchProcess deaf("/bin/true", {});
  for (int i = 0; i < 5; ++i) {
    const auto answered = deaf.measure("a", 1, seconds(20));
    REQUIRE_FALSE(answered.has_value());
    std::this_thread::sleep_for(milliseconds(5));
  }
}

}  // namespace kiln::test

// What the main function of every test binary adds to Catch2's: a limit on the time of a case, and skips that count.
#include <catch2/catch.hpp>

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "support/case_limit.hpp"
#include "support/own_process.hpp"

using Catch::Matchers::Contains;
using kiln::support::ChildResult;
using kiln::support::run_child;

namespace {

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("test main: a case that hangs fails, with its name and the stacks of all threads, and leaves no process") {
  const ChildResult ended =
      run_child("[.hangs]", {{"KILN_TEST_CASE_LIMIT", "1"}});  // until its children have ended too
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.output, Contains("test case 'hangs: three threads and a process' has not ended after 1 s"));
  CHECK_THAT(ended.output, Contains("FAILED: test case 'hangs: three threads and a process': it ran too long"));
  CHECK(times(ended.output, "-- thread ") >= 4);  // one of the child process
  CHECK_THAT(ended.output, Contains("libc.so"));
  CHECK_THAT(ended.output, Contains("it blocks signals: no stack"));
  CHECK_THAT(ended.output, Contains("-- child process ") && Contains("sleep 1000"));
}

TEST_CASE("test main: a case within its limit passes, and no limit holds after it") {
  CHECK(run_child("[.sleeps]", {{"KILN_TEST_CASE_LIMIT", "60"}}).status == 0);
  CHECK(run_child("[.sleeps]", {{"KILN_TEST_CASE_LIMIT", "0"}}).status == 0);
}

TEST_CASE("test main: the default limit is longer on a busy machine, four times at most") {
  CHECK(kiln::test::limit_under_load(240, 0.5, 2) == 240);
  CHECK(kiln::test::limit_under_load(240, 3.0, 2) == 360);
  CHECK(kiln::test::limit_under_load(600, 8.0, 2) == 2400);
  CHECK(kiln::test::limit_under_load(240, 100.0, 2) == 960);
}

TEST_CASE("test main: a binary whose cases are all skipped counts as skipped, another lists what was") {
  const auto list = std::filesystem::temp_directory_path() / ("kiln-skips-" + std::to_string(getpid()));
  const auto run = [&](const std::string& tag) { return run_child(tag, {{"KILN_TEST_SKIPPED", list.string()}}); };
  const auto listed = [&] {
    std::ifstream file(list);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const ChildResult whole = run("[.skips_whole]");
  CHECK(whole.status == 77);
  CHECK_THAT(whole.output, Contains("skipped 1 of 1 test cases, 1 of them whole:"));
  CHECK(listed() == "skips: whole: there is no such device\n");

  const ChildResult both = run("[.skips_whole],[.skips_in_part],[.sleeps]");
  CHECK(both.status == 0);
  CHECK_THAT(both.output, Contains("skipped 2 of 3 test cases, 1 of them whole:"));
  CHECK(times(listed(), "\n") == 2);
  CHECK_THAT(listed(), Contains("skips: in part: the long form's\n"));

  CHECK(run("[.sleeps]").status == 0);
  CHECK(listed().empty());
  const ChildResult failed = run("[.skips_whole],[.fails_here]");
  CHECK(failed.status == 1);
  CHECK_THAT(failed.output, !Contains("warning"));
  CHECK(listed() == "skips: whole: there is no such device\n");
  std::filesystem::remove(list);
}

TEST_CASE("test main: the parts of a binary run each of its visible cases once") {
  const auto names = [](const std::string& part) {
    std::set<std::string> all;
    const ChildResult listed = run_child("--list-test-names-only", {{"KILN_TEST_PART", part}});
    std::istringstream lines(listed.output);
    for (std::string line; std::getline(lines, line);) all.insert(line);
    return all;
  };
  const std::set<std::string> whole = names("");
  REQUIRE(whole.size() > 10);
  std::set<std::string> joined;
  std::size_t count = 0;
  for (const char* part : {"1/3", "2/3", "3/3"}) {
    const std::set<std::string> share = names(part);
    CHECK(share.size() >= whole.size() / 3);
    count += share.size();
    joined.insert(share.begin(), share.end());
  }
  CHECK(count == whole.size());
  CHECK(joined == whole);
  for (const char* part : {"0/3", "4/3", "3", "x"}) {
    CHECK_THAT(run_child("--list-test-names-only", {{"KILN_TEST_PART", part}}).output,
               Contains(std::string("KILN_TEST_PART: found '") + part + "', expected I/N such as 2/6"));
  }
}

TEST_CASE("test main: a name with \"quotes\", a comma, [brackets] and a \\ is one of its part's too") {
  std::string all;
  for (const char* share : {"1/2", "2/2"})
    all += run_child("--list-test-names-only", {{"KILN_TEST_PART", share}}).output;
  CHECK(times(all, "a name with \"quotes\", a comma, [brackets] and a \\ is one") == 1);
}

TEST_CASE("hangs: three threads and a process", "[.hangs]") {
  char program[] = "sleep", seconds[] = "1000";
  char* const words[] = {program, seconds, nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawnp(&child, program, nullptr, nullptr, words, environ) == 0);
  std::mutex mutex;
  std::condition_variable never;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    never.wait(lock, [] { return false; });
  };
  const auto waits = std::async(std::launch::async, wait);
  const auto blocks = std::async(std::launch::async, [&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    wait();
  });
  waits.wait();
}

TEST_CASE("sleeps", "[.sleeps]") { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

TEST_CASE("skips: whole", "[.skips_whole]") { WARN("skipped: there is no such device"); }

TEST_CASE("skips: in part", "[.skips_in_part]") {
  CHECK(times("aa", "a") == 2);
  WARN("skipped: the long form's");
}

TEST_CASE("fails", "[.fails_here]") { CHECK(times("aa", "a") == 1); }

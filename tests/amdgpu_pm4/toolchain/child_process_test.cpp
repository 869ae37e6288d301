// A child's input, output and words; its end by itself, by a signal, and by its deadline.
#include <catch2/catch.hpp>
#include <fstream>

#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ChildRequest request_for(std::string program) {
  ChildRequest request;
  request.program = std::move(program);
  request.deadline = soon();
  return request;
}

}  // namespace

TEST_CASE("child: gets its input and arguments, and both streams come back apart") {
  const FakeCompiler scripts;
  ChildRequest request = request_for(scripts.write("echo", "echo \"$1|$2\" >&2; cat; exit 3"));
  request.arguments = {"two words", ""};
  const std::string input(300000, 'x');  // more than a pipe holds
  request.input = std::as_bytes(std::span(input));
  const auto result = run_child(request);
  REQUIRE(result.has_value());
  CHECK(result->exit_code == 3);
  CHECK(result->signal == 0);
  CHECK(text_of(result->output) == input);
  CHECK(result->said == "two words|\n");
}

TEST_CASE("child: a child that reads nothing takes nothing with it") {
  const FakeCompiler scripts;
  ChildRequest request = request_for(scripts.write("deaf", "exec <&-; echo done"));
  const std::string input(300000, 'x');
  request.input = std::as_bytes(std::span(input));
  const auto result = run_child(request);
  REQUIRE(result.has_value());
  CHECK(text_of(result->output) == "done\n");
}

TEST_CASE("child: its environment is small") {
  const FakeCompiler scripts;
  setenv("CPATH", "/somewhere", 1);
  const auto result = run_child(request_for(scripts.write("env", "env")));
  unsetenv("CPATH");
  REQUIRE(result.has_value());
  CHECK_THAT(text_of(result->output), Contains("LC_ALL=C") && Contains("PATH=") && !Contains("CPATH=/somewhere"));
}

TEST_CASE("child: a signal that ended it is told") {
  const FakeCompiler scripts;
  const auto result = run_child(request_for(scripts.write("crash", "echo last words >&2; kill -SEGV $$")));
  REQUIRE(result.has_value());
  CHECK(result->signal == 11);
  CHECK(result->said == "last words\n");
}

TEST_CASE("child: at its deadline it is ended, with what it started") {
  const FakeCompiler scripts;
  const std::string mark = (scripts.folder() / "mark").string();
  ChildRequest request =
      request_for(scripts.write("hang", "echo begun >&2; (sleep 5; echo late > " + mark + ") & sleep 600"));
  request.deadline = Deadline::after(std::chrono::seconds(3));  // within which it has begun
  const auto before = Clock::now();
  const auto result = run_child(request);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == StatusCode::timeout);
  CHECK_THAT(result.error().message, Contains("did not finish before the deadline") && Contains("begun"));
  CHECK(Clock::now() - before < std::chrono::seconds(60));
  // The same where it has closed its streams and goes on.
  request.program = scripts.write("closed", "exec >&- 2>&-; sleep 600");
  request.deadline = Deadline::after(std::chrono::seconds(3));  // at which the first would have left its mark
  const auto closed = run_child(request);
  REQUIRE_FALSE(closed.has_value());
  CHECK(closed.error().code == StatusCode::timeout);
  CHECK_FALSE(std::filesystem::exists(mark));
}

TEST_CASE("child: too much output is an error, too many words are cut") {
  const FakeCompiler scripts;
  ChildRequest request = request_for(scripts.write("flood", "head -c 200000 /dev/zero"));
  request.most_output = 100000;
  const auto flood = run_child(request);
  REQUIRE_FALSE(flood.has_value());
  CHECK_THAT(flood.error().text(), Contains("unavailable: ") && Contains("wrote more than 100000 bytes"));
  request = request_for(scripts.write("chatter", "head -c 200000 /dev/zero | tr '\\0' 'x' >&2"));
  request.most_said = 1000;
  const auto chatter = run_child(request);
  REQUIRE(chatter.has_value());
  CHECK(chatter->said.substr(0, 1000) == std::string(1000, 'x'));
  CHECK(chatter->said.substr(1000) == "\n(and more, left out here)\n");
}

TEST_CASE("child: a program that is not there, or none, is named") {
  const FakeCompiler scripts;
  const auto missing = run_child(request_for("/nowhere/at/all"));
  REQUIRE_FALSE(missing.has_value());
  CHECK_THAT(missing.error().text(), Contains("unavailable: /nowhere/at/all cannot be started: No such file"));
  const std::string path = (scripts.folder() / "text").string();
  std::ofstream(path) << "no program";
  CHECK_THAT(run_child(request_for(path)).error().text(), Contains("Permission denied"));
}

}  // namespace kiln::amdgpu_pm4

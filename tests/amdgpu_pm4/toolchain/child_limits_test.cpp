// How much a child may write and say, which exit codes mean what, and deadlines that have passed already.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <utility>

#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Deadline long_ago() { return {Clock::now() - std::chrono::seconds(1)}; }

Result<ChildResult> run_script(const FakeCompiler& scripts, const std::string& lines, std::size_t most_output,
                               std::size_t most_said) {
  ChildRequest request;
  request.program = scripts.write("script", lines);
  request.most_output = most_output;
  request.most_said = most_said;
  request.deadline = soon();
  return run_child(request);
}

}  // namespace

TEST_CASE("child limits: output up to the last byte that is allowed, words up to the last that is kept") {
  const FakeCompiler scripts;
  const std::string lines = "printf 12345; printf abcde >&2";
  const auto exact = run_script(scripts, lines, 5, 5);
  REQUIRE(exact);
  CHECK(exact->output.size() == 5);
  CHECK(exact->said == "abcde");
  CHECK(run_script(scripts, lines, 4, 5).error().text() ==
        "unavailable: " + (scripts.folder() / "script").string() + " wrote more than 4 bytes");
  const auto cut = run_script(scripts, lines, 5, 4);
  REQUIRE(cut);
  CHECK(cut->said == "abcd\n(and more, left out here)\n");
  const auto cut_once = run_script(scripts, "printf abcde >&2; printf fghij >&2", 5, 3);
  REQUIRE(cut_once);
  CHECK(cut_once->said == "abc\n(and more, left out here)\n");
  CHECK(ChildRequest{}.most_output == 67108864);
  CHECK(ChildRequest{}.most_said == 1048576);
}

TEST_CASE("child limits: each exit code and signal is told by its number") {
  const FakeCompiler scripts;
  for (const int code : {0, 1, 2, 255}) {
    const auto ended = run_script(scripts, "exit " + std::to_string(code), 5, 5);
    REQUIRE(ended);
    CHECK(ended->exit_code == code);
    CHECK(ended->signal == 0);
  }
  for (const int signal : {9, 15}) {
    const auto ended = run_script(scripts, "kill -" + std::to_string(signal) + " $$", 5, 5);
    REQUIRE(ended);
    CHECK(ended->exit_code == 0);
    CHECK(ended->signal == signal);
  }
}

TEST_CASE("child limits: a compiler refuses the text with exit code 1 alone") {
  const FakeCompiler scripts;
  const std::string path = scripts.write("clang", "");
  const auto said = [&](const std::string& lines) {
    scripts.write("clang", lines);
    ChildClang clang(stamp_of(path), "a clang version", {});
    const auto compiled = clang.compile({"text"}, Target::gfx1100, soon());
    return compiled ? "compiled to " + std::to_string(compiled->object.size()) + " bytes: " + compiled->said
                    : compiled.error().text();
  };
  CHECK(said("printf abc; printf warned >&2") == "compiled to 3 bytes: warned");
  CHECK(said("printf wrong >&2; exit 1") == "invalid_argument: wrong");
  CHECK(said("exit 1") == "invalid_argument: " + path + " rejected the text without a message");
  CHECK(said("printf wrong >&2; exit 2") == "unavailable: " + path + " exited with 2; output: wrong");
  CHECK(said("exit 2") == "unavailable: " + path + " exited with 2");
  CHECK(said("printf odd >&2") == "unavailable: " + path + " wrote no code; output: odd");
  CHECK(said("true") == "unavailable: " + path + " wrote no code");
  CHECK(said("kill -9 $$") == "unavailable: " + path + " was terminated by signal 9 (Killed)");
}

TEST_CASE("child limits: a deadline that has passed ends every child at once") {
  const FakeCompiler scripts;
  const std::string path = scripts.write("clang", "exec sleep 600");
  ChildRequest request;
  request.program = path;
  request.deadline = long_ago();
  CHECK(run_child(request).error().text() == "timeout: " + path + " did not finish before the deadline and was ended");
  ChildClang clang(stamp_of(path), "a clang version", {});
  OpenClText text{"text"};
  text.name = "k.cl";
  CHECK(clang.compile(text, Target::gfx1100, long_ago()).error().text() ==
        "timeout: clang timed out after 0 s while compiling k.cl ([plugin.amdgpu_pm4] compile_timeout)");
  CHECK(version_of(stamp_of(path), nullptr, long_ago()).error().code == StatusCode::timeout);
}

TEST_CASE("child limits: a version is the first line of a clang that ended well") {
  const FakeCompiler scripts;
  const std::string path = scripts.write("clang", "");
  const auto version = [&](const std::string& lines) {
    scripts.write("clang", lines);
    const auto told = version_of(stamp_of(path), nullptr, soon());
    return told ? *told : told.error().text();
  };
  const auto refused = [&path](const std::string& line) {
    return "unavailable: " + path + " --version printed '" + line + "', expected a clang version";
  };
  CHECK(version("echo clang version 19; echo more") == "clang version 19");
  CHECK(version("printf 'a clang version 19'") == "a clang version 19");
  CHECK(version("echo clang version 19; exit 1") == refused("clang version 19"));
  CHECK(version("echo clang version 19; kill -9 $$") == refused("clang version 19"));
  CHECK(version("echo gcc; echo clang version 19") == refused("gcc"));
  CHECK(version("true") == refused(""));
  CHECK(version("printf '%0200d' 0") == refused(std::string(200, '0')));
  CHECK(version("printf '%0201d' 0") == refused(std::string(200, '0')));
  const std::string begin = "clang version ";
  CHECK(version("printf 'clang version %04082d' 0") == begin + std::string(4082, '0'));  // 4096 bytes
  CHECK(version("printf 'clang version %04083d' 0") == "unavailable: " + path + " wrote more than 4096 bytes");
}

TEST_CASE("child limits: a compiler is the first program of its name that can be executed") {
  const FakeCompiler first, second;
  const std::string a = first.folder().string(), b = second.folder().string();
  CHECK(find_compiler("", a).error().text() == "invalid_argument: no OpenCL C compiler is set");
  const std::string in_a = first.write("clang", ""), in_b = second.write("clang", "");
  CHECK(find_compiler("clang", a + ":" + b)->path == in_a);
  CHECK(find_compiler("clang", b + ":" + a)->path == in_b);
  CHECK(find_compiler("clang", ":" + b + ":")->path == in_b);
  std::filesystem::create_directory(first.folder() / "folder");
  CHECK(find_compiler("folder", a).error().text() == "unavailable: OpenCL C compiler 'folder' was not found in " + a);
  CHECK(find_compiler("clang-20", a + ":relative:" + b).error().text() ==
        "unavailable: OpenCL C compiler 'clang-20' was not found in " + a + ", " + b);
  CHECK(find_compiler("clang", "relative").error().text() ==
        "unavailable: OpenCL C compiler 'clang' was not found in PATH, which names no folder");
}

}  // namespace kiln::amdgpu_pm4

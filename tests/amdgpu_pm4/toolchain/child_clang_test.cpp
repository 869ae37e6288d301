// Compilers that answer, refuse, crash, hang or lie: each has its own error.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/toolchain/child/child_clang.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::StartsWith;

Result<Compiled> compile_with(const std::string& script, Deadline deadline = soon()) {
  const FakeCompiler scripts;
  ChildClang clang(stamp_of(scripts.write("clang", script)), "a clang version", {});
  return compile_kernel(clang, opencl("__kernel void kiln_kernel() {}"), "k.cl", Target::gfx1100, deadline);
}

}  // namespace

TEST_CASE("clang: a compiler that refuses is quoted whole") {
  CHECK(compile_with("echo 'k.cl:3:1: error: no' >&2; exit 1").error().text() ==
        "invalid_argument: k.cl:3:1: error: no\n");
  CHECK_THAT(compile_with("exit 1").error().text(), Contains("refuses the text without a word"));
}

TEST_CASE("clang: a compiler that crashes is unavailable, and its last words are told") {
  const Status crashed = compile_with("echo stack dump >&2; kill -SEGV $$").error();
  CHECK_THAT(crashed.text(), StartsWith("unavailable: ") && Contains("was ended by signal 11 (Segmentation fault)") &&
                                 Contains("it said: stack dump"));
  CHECK_THAT(compile_with("echo LLVM ERROR >&2; exit 70").error().text(),
             StartsWith("unavailable: ") && Contains("exited with 70; it said: LLVM ERROR"));
}

TEST_CASE("clang: a compiler that hangs is ended at the deadline") {
  const Status late = compile_with("sleep 600", Deadline::after(std::chrono::milliseconds(300))).error();
  CHECK_THAT(late.text(), StartsWith("timeout: ") && Contains("had not finished at its deadline"));
}

TEST_CASE("clang: what it writes is looked at") {
  CHECK_THAT(compile_with("exit 0").error().text(), Contains("wrote no code"));
  CHECK_THAT(compile_with("echo some text").error().text(),
             StartsWith("corrupt: what the compiler wrote for k.cl: ") && Contains("bytes"));
  const std::string cat = "cat '" KILN_SOURCE_DIR "/tests/corpus/code_object/";
  CHECK_THAT(compile_with(cat + "readable-gfx1030'").error().text(),
             StartsWith("internal: the compiler wrote code for gfx1030, asked for gfx1100"));
  CHECK(compile_with(cat + "readable-gfx1100'").error().text() ==
        "invalid_argument: entry 'kiln_kernel' is no kernel of the text, which has: saxpy");
}

TEST_CASE("clang: gets the arguments and the text") {
  const FakeCompiler scripts;
  ChildClang clang(stamp_of(scripts.write("clang", "echo \"$@\" >&2; exit 1")), "a clang version", {});
  const auto refused = clang.compile({"text"}, Target::gfx1101, soon());
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message,
             Contains("-mcpu=gfx1101") && Contains("-nogpulib") && Contains("-ffp-contract=on") && Contains("-o - -"));
  CHECK_THAT(clang.compile({"text"}, Target::invalid, soon()).error().text(),
             Contains("no target, expected one of gfx1030"));
  CHECK_THAT(identity_of(clang), StartsWith("a clang version, recipe "));
}

}  // namespace kiln::amdgpu_pm4

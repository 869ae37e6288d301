// `kernel build` and `pm4 dump`: what they make, and what they say of what cannot be.
#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

const std::string scale = R"(__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void scale(__global float* values, float by) {
  const unsigned at = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  values[at] *= by;
}
)";

bool has_clang() { return std::system("command -v clang-19 >/dev/null 2>&1") == 0; }

std::string cache_dir(const TemporaryFolder& folder) { return (folder / "cache").string(); }

}  // namespace

TEST_CASE("kernel build: a code object, and what its kernel takes") {
  if (!has_clang()) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder("with a space");
  const auto source = folder.write("scale.cl", scale);
  for (const std::string target : {"gfx1100", "gfx1030"}) {
    const Finished built =
        run_kiln({"kernel", "build", source.string(), "--target", target, "--json", "--cache-dir", cache_dir(folder)},
                 {.folder = folder.path()});
    INFO(built.err);
    REQUIRE(built.status == 0);
    const auto json = built.json();
    CHECK(json["target"] == target);
    REQUIRE(json["kernels"].size() == 1);
    CHECK(json["kernels"][0]["name"] == "scale");
    CHECK(json["kernels"][0]["facts"]["dispatch"] == "offered");  // which simulate_test.cpp dispatches
    const auto file = folder / ("scale." + target + ".co");
    REQUIRE(std::filesystem::exists(file));
    CHECK(std::filesystem::file_size(file) == json["bytes"].get<std::uintmax_t>());
    std::string magic(4, '\0');
    std::ifstream(file, std::ios::binary).read(magic.data(), 4);
    CHECK(magic ==
          "\x7f"
          "ELF");
  }
}

TEST_CASE("kernel build: what a dispatch of each kernel needs") {
  if (!has_clang()) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  const auto source = folder.write("shared.cl", R"(__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void shared(global float* values, local float* row) {
  const unsigned at = get_local_id(0);
  row[at] = values[at];
  barrier(CLK_LOCAL_MEM_FENCE);
  values[at] = row[63 - at];
}
kernel void anywhere(global float* values) { values[get_global_id(0)] = 1; }
)");
  const Finished built =
      run_kiln({"kernel", "build", source.string(), "--target", "gfx1100", "--json", "--cache-dir", cache_dir(folder)},
               {.folder = folder.path()});
  INFO(built.err);
  REQUIRE(built.status == 0);
  const auto kernels = built.json()["kernels"];
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0]["facts"]["dispatch"] == "offered where the source declares a workgroup");
  CHECK(kernels[1]["facts"]["dispatch"] == "offered");
  CHECK_THAT(kernels[1]["facts"]["arguments"].get<std::string>(), Contains("dynamic_shared_pointer row of 4 at 8"));
}

TEST_CASE("kernel build: the compiler's whole log for a text that is wrong, and no file") {
  if (!has_clang()) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  const auto source = folder.write("bad.cl", "__kernel void bad(__global float* x) { *x = undefined_name; }\n");
  const Finished refused =
      run_kiln({"kernel", "build", source.string(), "--target", "gfx1100", "--cache-dir", cache_dir(folder)},
               {.folder = folder.path()});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("undefined_name"));
  CHECK_FALSE(std::filesystem::exists(folder / "bad.gfx1100.co"));
}

TEST_CASE("kernel build: a target that nobody compiles for is told with those there are") {
  const TemporaryFolder folder;
  const auto source = folder.write("scale.cl", scale);
  const auto build = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"kernel", "build"});
    words.insert(words.end(), {"--cache-dir", cache_dir(folder)});
    return run_kiln(words, {.folder = folder.path()});
  };
  const Finished unknown = build({source.string(), "--target", "gfx803"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("gfx803") && Contains("gfx1100"));
  const Finished none = build({source.string()});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("--target is missing"));
  const Finished absent = build({"absent.cl", "--target", "gfx1100"});
  CHECK(absent.status == 2);
  CHECK_THAT(absent.err, Contains("absent.cl"));
}

TEST_CASE("pm4 dump: packets in words, and what is unknown as such") {
  const TemporaryFolder folder;
  const std::uint32_t words[] = {0xC0016900u, 0u,     0u,                // SET_CONTEXT_REG: no compute ring takes it
                                 0xC0037601u, 0x207u, 64u, 1u, 1u,       // SET_SH_REG NUM_THREAD_X..Z
                                 0xC0031501u, 4u,     1u,  1u, 0x8005u,  // DISPATCH_DIRECT
                                 0xFFFF1000u};                           // one-word filler
  const auto file = folder / "stream.pm4";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(words), sizeof words);
  const Finished dumped = run_kiln({"pm4", "dump", file.string(), "--cache-dir", cache_dir(folder)});
  INFO(dumped.err);
  CHECK(dumped.status == 0);
  CHECK_THAT(dumped.out,
             Contains("SET_SH_REG") && Contains("NUM_THREAD_X") && Contains("DISPATCH_DIRECT") && Contains("NOP"));
  const Finished absent = run_kiln({"pm4", "dump", "absent.pm4", "--cache-dir", cache_dir(folder)});
  CHECK(absent.status == 2);
  CHECK_THAT(absent.err, Contains("absent.pm4"));
}

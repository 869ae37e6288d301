// The families in OpenCL C: the same description as for GLSL, in the other dialect. Where a compiler for it is
// installed, it says whether the text is OpenCL C.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "dynamic_shaders/family_plans.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

// How the compiler judges the text; empty: it takes it.
std::string judgement(const std::string& text) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "kiln-opencl-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/kernel.cl") << text;
  const std::string command = "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Werror '" +
                              folder + "/kernel.cl' 2>&1";
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) said.append(part.data(), got);
  const int status = pclose(pipe);
  fs::remove_all(folder);
  return status == 0 ? std::string() : "status " + std::to_string(status) + "\n" + said.substr(0, 2000);
}

}  // namespace

TEST_CASE("opencl: every family's plan is valid, and nothing of GLSL is left in it") {
  const std::regex glsl(R"(\b(vec4|gl_\w+|texelFetch|imageLoad|layout|uniform|buffer|void main)\b|#version)");
  for (const Pass& pass : passes_of(plans_of_families(Dialect::opencl_c))) {
    CHECK(pass.source.dialect == Dialect::opencl_c);
    CHECK(pass.source.entry == "kiln_kernel");
    CHECK(pass.source.views.empty());
    std::smatch found;
    const bool left = std::regex_search(pass.source.text, found, glsl);
    INFO((left ? found.str() : std::string()));
    CHECK_FALSE(left);
    CHECK_THAT(pass.source.text, Catch::Contains("__kernel __attribute__((reqd_work_group_size("));
  }
  for (const KernelPlan& plan : plans_of_families(Dialect::opencl_c)) CHECK(validate(plan).text() == "ok");
}

TEST_CASE("opencl: both dialects have the same passes, bindings and geometry") {
  const auto glsl = passes_of(plans_of_families(Dialect::glsl)),
             opencl = passes_of(plans_of_families(Dialect::opencl_c));
  REQUIRE(glsl.size() == opencl.size());
  for (std::size_t i = 0; i < glsl.size(); ++i) {
    CHECK(glsl[i].source.bindings == opencl[i].source.bindings);
    CHECK(glsl[i].source.workgroup == opencl[i].source.workgroup);
    CHECK(glsl[i].grid == opencl[i].grid);
  }
}

TEST_CASE("opencl: a lane's place is decoded as in GLSL, by the numbers that OpenCL C gives it") {
  DeviceInfo device = sample_device();
  const auto plain = map_lanes({100, 7, 3}, device);
  REQUIRE(plain.has_value());
  KernelWriter writer(Dialect::opencl_c, "");
  CHECK(plain->decoding(writer) ==
        "  int column = (int)(get_global_id(0));\n"
        "  int row = (int)(get_global_id(1));\n"
        "  int layer = (int)(get_global_id(2));\n"
        "  if (column >= 100) return;\n");
  device.max_grid = {5, 5, 5};
  const auto folded = map_lanes({100, 7, 3}, device);
  REQUIRE(folded.has_value());
  CHECK(folded->decoding(writer) ==
        "  uint tile = ((uint)get_group_id(2) * 5u + (uint)get_group_id(1)) * 5u + (uint)get_group_id(0);\n"
        "  if (tile >= 42u) return;\n"
        "  int column = (int)(tile % 2u * 64u + (uint)get_local_id(0));\n"
        "  int row = (int)(tile / 2u % 7u * 1u + (uint)get_local_id(1));\n"
        "  int layer = (int)(tile / 2u / 7u);\n"
        "  if (column >= 100) return;\n");
}

TEST_CASE("opencl: a compiler takes every text") {
  if (std::system("clang --version > /dev/null 2>&1") != 0) {
    WARN("skipped: no clang to judge OpenCL C");
    return;
  }
  std::string all;
  std::size_t number = 0;
  for (const Pass& pass : passes_of(plans_of_families(Dialect::opencl_c))) {
    std::string text = pass.source.text;
    const std::string entry = "kiln_kernel(";
    text.replace(text.find(entry), entry.size(), "kernel_" + std::to_string(number++) + "(");
    all += text;
  }
  CHECK(judgement(all) == "");
  CHECK(judgement("__kernel void broken() { float4 a = 1.0.xyzq; }") != "");
}

}  // namespace kiln::dynamic_shaders

// The text of a user's kernel, through the command: files that it includes, encodings, constants, errors of compilers.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* head =
    "#version 430\n"
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) readonly buffer In { float src[]; };\n"
    "layout(std430, binding = 1) buffer Out { float dst[]; };\n";

// A job of 64 lanes: dst must become 2 * src.
class SourcePlace {
 public:
  explicit SourcePlace(std::string source = "kernel.comp") : source_(std::move(source)) {}

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    folder.write(name, text);
  }
  Finished run(const std::string& text, const std::string& keys = "", std::vector<std::string> words = {},
               const std::string& sections = "") const {
    write(source_, text);
    write_values("src.npy", 1);
    write_values("dst.npy", 0);
    write_values("want.npy", 2);
    const auto file = folder.write("job.toml", sections + "[[job]]\nname = \"mine\"\nop = \"kernel\"\nsource = \"" +
                                                   source_ + "\"\n" + keys +
                                                   "\nbindings = [ { input = \"src.npy\" }, { inout = \"dst.npy\" } ]\n"
                                                   "grid = [1]\nexpect = \"want.npy\"\nverify = true\n");
    words.insert(words.end(), {"run", file, "--json", "--cache-dir", folder / "cache"});
    return run_kiln(words);
  }
  void check_right(const std::string& text, const std::string& keys = "", std::vector<std::string> words = {}) const {
    const Finished finished = run(text, keys, std::move(words));
    INFO(text << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
  }
  std::string error_of(const std::string& text, const std::string& keys = "") const {
    const Finished finished = run(text, keys);
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 1);
    return finished.json()["jobs"][0]["error"].get<std::string>();
  }

  // Found before anything runs.
  std::string refusal_of(const std::string& text, const std::string& keys = "") const {
    const Finished finished = run(text, keys);
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 2);
    return finished.err;
  }

  const TemporaryFolder folder;

 private:
  void write_values(const char* name, float scale) const {
    auto tensor = kiln::HostTensor::create(kiln::DType::f32, {64}).value();
    float next = 0;
    for (float& value : tensor->as<float>()) value = scale * next++;
    REQUIRE(kiln::data::write_npy(folder / name, *tensor).ok());
  }

  std::string source_;
};

std::string main_with(const std::string& value) {
  return "void main() { uint i = gl_GlobalInvocationID.x; dst[i] = " + value + "; }\n";
}

}  // namespace

TEST_CASE("kernel source: included files are put in, found by folder, and part of the key") {
  const SourcePlace place;
  place.write("lib/twice.glsl", "#pragma once\n#include \"scale.glsl\"\nfloat twice(float v) { return SCALE * v; }\n");
  place.write("lib/scale.glsl", "#define SCALE 3.0\n");
  const std::string text = std::string("#version 430\n#extension GL_GOOGLE_include_directive : require\n") +
                           (head + 13) + "#include <twice.glsl>\n#include \"lib/twice.glsl\"\n" +
                           main_with("twice(src[i])");
  CHECK(place.run(text, "include = [\"lib\"]").json()["jobs"][0]["verified"] == false);
  place.write("lib/scale.glsl", "#define SCALE 2.0\n");
  for (const int builds : {1, 0}) {
    const Finished finished = place.run(text, "include = [\"lib\"]");
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["builds"] == builds);
  }
}

TEST_CASE("kernel source: a compiler's error names the file and the line, also of an included file") {
  const SourcePlace place;
  place.write("lib/twice.glsl", "\n\nfloat twice(float v) { return nothing; }\n");
  const std::string included = place.error_of(
      head + std::string("#include \"lib/twice.glsl\"\n") + main_with("twice(src[i])"), "constants = { A = 1, B = 2 }");
  CHECK_THAT(included, Contains("lib/twice.glsl:3:") && Contains("nothing"));
  const std::string behind =
      place.error_of(head + std::string("#include \"lib/twice.glsl\"\n\n") + main_with("missing"));
  CHECK_THAT(behind, Contains("kernel.comp:7:") && Contains("missing"));
  CHECK_THAT(place.refusal_of(head + std::string("#include \"no.glsl\"\n") + main_with("0.0"), "include = [\"lib\"]"),
             Contains("kernel.comp:5: #include \"no.glsl\"") && Contains("lib/no.glsl"));
  const std::string reached =
      place.error_of(head + std::string("#if 1\n#include \"no.glsl\"\n#endif\n") + main_with("0.0"));
  CHECK_THAT(reached, Contains("kernel.comp:6") && Contains("no.glsl"));
  place.check_right(head + std::string("#if 0\n#include \"no.glsl\"\n#endif\n") + main_with("2.0 * src[i]"));
}

TEST_CASE("kernel source: a byte-order mark, other line ends and continued lines do no harm") {
  const SourcePlace place;
  place.write("mark.glsl", "\xef\xbb\xbf#define TWO 2.0\r\n");
  place.check_right("\xef\xbb\xbf" + std::string(head) + "#include \"mark.glsl\"\r\n" + main_with("TWO * src[i]"));
  std::string text = std::string("/* first */ // \\\n still a comment\n#\\\nversion \\\n430\n") + (head + 13) +
                     "#define TWO(x) \\\n  (2.0 * (x))\n" + main_with("TWO(src[i])");
  place.check_right(text, "constants = { A = 1 }");
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
  place.check_right(text, "constants = { A = 2 }");
  std::erase(text, '\n');  // CR alone
  place.check_right(text, "constants = { A = 3 }");
  CHECK_THAT(place.refusal_of(std::string("\xff\xfe#\0v\0", 6)), Contains("kernel.comp") && Contains("UTF-16"));
  CHECK_THAT(place.refusal_of(head + std::string("// \0\n", 5)), Contains("kernel.comp:5:4: ") && Contains("NUL"));
}

TEST_CASE("kernel source: a boolean constant serves #if and if alike") {
  const SourcePlace place;
  const std::string by_preprocessor = head + std::string("#if FAST && !SLOW\n") + main_with("2.0 * src[i]") +
                                      "#else\n" + main_with("-1.0") + "#endif\n";
  const std::string by_language = head + std::string("const bool fast = FAST;\n") +
                                  "void main() { uint i = gl_GlobalInvocationID.x; if (fast && FAST == true && !SLOW) "
                                  "dst[i] = (FAST ? 2.0 : 1.0) * src[i]; }\n";
  place.check_right(by_preprocessor, "constants = { FAST = true, SLOW = false }");
  place.check_right(by_language, "constants = { FAST = true, SLOW = false }");
  place.check_right(by_language, "constants = { FAST = \"true\", SLOW = \"false\" }");
  place.check_right(by_preprocessor, "tune = { FAST = [true, false] }\nconstants = { SLOW = false }");
  CHECK(place.run(by_preprocessor, "tune = { FAST = [false, true] }\nconstants = { SLOW = false }").status == 1);
  CHECK_THAT(place.run(by_language, "tune = { FAST = [true, false] }\nconstants = { SLOW = false }").out,
             Contains("user:FAST=true"));
}

TEST_CASE("kernel source: GLSL for Vulkan is named as such, with all that must change") {
  const SourcePlace place;
  const std::string error = place.error_of(
      "#version 430\nlayout(local_size_x = 64) in;\n"
      "layout(std430, set = 0, binding = 0) readonly buffer In { float src[]; };\n"
      "layout(std430, set = 0, binding = 1) buffer Out { float dst[]; };\n"
      "layout(push_constant) uniform Push { float gain; } push;\n"
      "layout(constant_id = 0) const int FIRST = 1;\n" +
      main_with("push.gain * src[i] + float(FIRST)"));
  CHECK_THAT(error, Contains("kernel.comp is written for Vulkan"));
  CHECK_THAT(error, Contains("kernel.comp:3, kernel.comp:4: set") && Contains("kernel.comp:5: push_constant") &&
                        Contains("kernel.comp:6: constant_id of FIRST"));
  CHECK(error.find("written for Vulkan") < error.find("GLSL compiler"));
}

TEST_CASE("kernel source: barrier() orders shared memory, unless barrier_fix is off") {
  const SourcePlace place;
  const std::string text = head + std::string("shared float lane[64];\n") +
                           "#define SYNC barrier()\n"
                           "void main() {\n  uint t = gl_LocalInvocationID.x;\n  lane[t] = src[63u - t]; SYNC;\n"
                           "  float own = lane[63u - t]; SYNC;\n  float e = 2.0 * own; lane[t] = -1.0; SYNC;\n"
                           "  dst[t] = e + lane[t] + 1.0;\n}\n";
  place.check_right(text);
  const Finished off = place.run(text, "", {}, "[plugin.opengl]\nbarrier_fix = \"off\"\n");
  INFO(off.err << off.out);
  CHECK(off.json()["cache"]["builds"] == 1);  // another program
  if (off.json()["jobs"][0]["device"]["driver"] == "Mesa 22.3.6") CHECK(off.json()["jobs"][0]["verified"] == false);
  const Finished wrong = place.run(text, "", {}, "[plugin.opengl]\nbarrier_fix = \"maybe\"\n");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, Contains("barrier_fix") && Contains("auto"));
}

TEST_CASE("kernel source: OpenCL C includes files too, and its errors name them") {
  const SourcePlace place("kernel.cl");
  place.write("lib/twice.h", "#ifndef TWICE\n#define TWICE\nfloat twice(float v) { return 2.0f * v; }\n#endif\n");
  const std::vector<std::string> simulated{"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln"};
  const std::string kernel =
      "#include \"twice.h\"\n#include <lib/twice.h>\n__attribute__((reqd_work_group_size(64, 1, 1)))\n"
      "__kernel void run(__global const float* src, __global float* dst) {\n  int i = get_global_id(0);\n"
      "#if FAST\n  if (FAST) dst[i] = twice(src[i]);\n#endif\n}\n";
  const std::string keys = "include = [\"lib\"]\ndevice = \"amdgpu:0\"\nconstants = { FAST = true }";
  place.check_right(kernel, keys, simulated);
  const auto build = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"kernel",  "build",       "kernel.cl",           "--target",
                                   "gfx1100", "--cache-dir", place.folder / "cache"};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(words, {.folder = place.folder.path()});
  };
  CHECK(build({"--include", "nowhere", "--include", "lib"}).status == 0);
  place.write("lib/twice.h", "\nfloat twice(float v) { return nothing; }\n");
  const Finished wrong = place.run(kernel, keys, simulated);
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.out, Contains("lib/twice.h:2:"));
  const Finished built = build({});
  CHECK(built.status == 2);
  CHECK_THAT(built.err, Contains("kernel.cl:1: #include \"twice.h\""));
}

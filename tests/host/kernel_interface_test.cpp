// What a GLSL program declares and what a job provides, through the command: uniforms, bindings by name and number, and
// the refusal of everything that does not fit, before a file is touched.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// A folder with kernel.comp and src.npy = 0, 1, 2, … of 64 elements; results are out.npy and others.
class InterfaceJobs {
 public:
  explicit InterfaceJobs(const std::string& declarations, const std::string& value) {
    folder.write("kernel.comp",
                 "#version 430\nlayout(local_size_x = 64) in;\n"
                 "layout(std430, binding = 0) readonly buffer Source { float src[]; };\n"
                 "layout(std430, binding = 1) buffer Result { float dst[]; };\n" +
                     declarations + "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  " + value + "\n}\n");
    auto tensor = kiln::HostTensor::create(kiln::DType::f32, {64}).value();
    float next = 0;
    for (float& element : tensor->as<float>()) element = next++;
    REQUIRE(kiln::data::write_npy(folder / "src.npy", *tensor).ok());
  }

  void add(const std::string& output, const std::string& keys = "",
           const std::string& bindings = R"({ input = "src.npy" }, )") {
    jobs_ += "[[job]]\nname = \"" + output +
             "\"\nop = \"kernel\"\nsource = \"kernel.comp\"\ngrid = [1]\nbindings = [ " + bindings + "{ output = \"" +
             output + ".npy\", shape = [64] } ]\n" + keys + "\n";
  }
  Finished run(std::vector<std::string> words = {}) {
    const auto file = folder.write("jobs.toml", jobs_);
    jobs_.clear();
    words.insert(words.begin(), {"run", file, "--json", "--cache-dir", folder / "cache"});
    return run_kiln(words);
  }
  bool exists(const std::string& output) const { return std::filesystem::exists(folder / (output + ".npy")); }
  float last(const std::string& output) const {
    const auto tensor = kiln::data::read_npy(folder / (output + ".npy"));
    REQUIRE(tensor);
    return (*tensor)->as<float>()[63];
  }

  const TemporaryFolder folder;

 private:
  std::string jobs_;
};

}  // namespace

TEST_CASE("kernel interface: uniforms belong to a job, initialisers serve the others, and values build nothing") {
  InterfaceJobs jobs("uniform float gain = 2.0;\nuniform ivec2 shift;\nuniform mat2 turn = mat2(1.0);\n",
                     "vec2 at = turn * vec2(src[i], 1.0); dst[i] = gain * at.x + float(shift.x - shift.y);");
  for (int process = 0; process < 2; ++process) {
    jobs.add("a", "uniforms = { shift = [5, 2] }");
    jobs.add("b", "uniforms = { gain = 3.5, shift = [0, 1], turn = [[2, 10], [0, 1]] }");
    jobs.add("c", "uniforms = { shift = [0, 0] }");
    if (process == 1) jobs.add("d", "uniforms = { gain = -1, shift = [7, 0] }");
    const Finished finished = jobs.run({"--repeat", "2"});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["builds"] == (process == 0 ? 1 : 0));
    CHECK(jobs.last("a") == 2.0f * 63 + 3);
    CHECK(jobs.last("b") == 3.5f * (2 * 63 + 10) - 1);
    CHECK(jobs.last("c") == 2.0f * 63);
  }
  CHECK(jobs.last("d") == -63.0f + 7);
}

TEST_CASE("kernel interface: jobs of one program with other uniforms may run at one time") {
  InterfaceJobs jobs("uniform float gain = 2.0;\nuniform float shift;\n", "dst[i] = gain * src[i] + shift;");
  for (int i = 0; i < 12; ++i) {
    jobs.add("r" + std::to_string(i),
             "uniforms = { shift = 1" + (i % 3 == 0 ? "" : ", gain = " + std::to_string(i)) + " }");
  }
  const Finished finished = jobs.run({"--jobs", "4", "--repeat", "5"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["cache"]["builds"] == 1);
  for (int i = 0; i < 12; ++i)
    CHECK(jobs.last("r" + std::to_string(i)) == 63.0f * static_cast<float>(i % 3 == 0 ? 2 : i) + 1.0f);
}

TEST_CASE("kernel interface: a value that its type cannot hold is named once, with the limit") {
  InterfaceJobs jobs("uniform uint count;\nuniform float gain;\n", "dst[i] = gain * src[i] + float(count);");
  const struct {
    const char* values;
    const char* error;
  } cases[] = {
      {"count = -1, gain = 1.0",
       "opengl:0: pass 0: uniforms.count: value -1 is out of range (expected 0 to 4294967295)"},
      {"count = 1, gain = 1e39",
       "opengl:0: pass 0: uniforms.gain: value 1e+39 is out of range (expected at most 3.4028234663852886e+38, the "
       "largest float32)"},
  };
  for (const auto& one : cases) {
    jobs.add("a", std::string("uniforms = { ") + one.values + " }");
    const Finished finished = jobs.run({"--device", "opengl:0"});
    INFO(finished.err << finished.out);
    CHECK(finished.status == 1);
    CHECK(finished.json()["jobs"][0]["error"] == one.error);
    CHECK_FALSE(jobs.exists("a"));
  }
}

TEST_CASE("kernel interface: blocks are found by number and by name, in any order and with gaps") {
  InterfaceJobs jobs("layout(std430, binding = 7) readonly buffer Letters { float scale; } letters;\n",
                     "dst[i] = letters.scale + src[i];");
  auto one = kiln::HostTensor::create(kiln::DType::f32, {1}).value();
  one->as<float>()[0] = 0.5f;
  REQUIRE(kiln::data::write_npy(jobs.folder / "one.npy", *one).ok());
  jobs.add(
      "number", "",
      R"({ binding = 7, input = "one.npy" }, { binding = 0, input = "src.npy" }, { binding = 1, output = "n.npy", shape = [64] }, )");
  const Finished two_for_one = jobs.run();
  INFO(two_for_one.err << two_for_one.out);
  CHECK(two_for_one.status == 1);  // the last element's position is 3, where the program has no block
  CHECK_THAT(two_for_one.json()["jobs"][0]["error"].get<std::string>(), Contains("bindings[3]"));
  CHECK_FALSE(jobs.exists("n"));
  const std::string forms[] = {R"({ input = "src.npy" }, )", R"({ name = "Source", input = "src.npy" }, )"};
  const std::string letters[] = {R"({ binding = 7, input = "one.npy" })", R"({ name = "Letters", input = "one.npy" })"};
  const std::string results[] = {R"({ binding = 1, output = "RESULT", shape = [64] })",
                                 R"({ name = "Result", output = "RESULT", shape = [64] })"};
  std::string text;
  int count = 0;
  for (const std::string& source : forms) {
    for (const std::string& letter : letters) {
      for (std::string result : results) {
        result.replace(result.find("RESULT"), 6, "f" + std::to_string(count) + ".npy");
        text += "[[job]]\nname = \"f" + std::to_string(count++) +
                "\"\nop = \"kernel\"\nsource = \"kernel.comp\"\ngrid = [1]\n";
        text += "bindings = [ " + source + result + ", " + letter + " ]\n";
      }
    }
  }
  const Finished finished =
      run_kiln({"run", jobs.folder.write("forms.toml", text), "--json", "--cache-dir", jobs.folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  for (int i = 0; i < count; ++i) CHECK(jobs.last("f" + std::to_string(i)) == 63.5f);
}

TEST_CASE("kernel interface: what the job does not provide is refused by name and kind, and no file is made") {
  struct Case {
    const char* declarations;
    const char* value;
    const char* keys;
    std::vector<std::string> named;
  };
  const Case cases[] = {
      {"uniform float gain;\n", "dst[i] = gain * src[i];", "", {"uniform", "gain"}},
      {"uniform float gain;\n", "dst[i] = gain * src[i];", "uniforms = { gian = 1.0 }", {"gain", "gian"}},
      {"uniform float gain;\n",
       "dst[i] = gain * src[i];",
       "uniforms = { gain = [1.0, 2.0] }",
       {"gain", "2 values", "one value"}},
      {"uniform vec3 gain;\n",
       "dst[i] = gain.z * src[i];",
       "uniforms = { gain = [1.0, 2.0] }",
       {"gain", "2 values", "3 values"}},
      {"uniform int count;\n", "dst[i] = float(count);", "uniforms = { count = 1.5 }", {"count", "integer"}},
      {"uniform bool on;\n", "dst[i] = on ? 1.0 : 0.0;", "uniforms = { on = 1 }", {"on", "true or false"}},
      {"uniform float unrelated;\n", "dst[i] = src[i];", "uniforms = { other = 1.0 }", {"other", "no such uniform"}},
      {"layout(binding = 0, rgba8) uniform readonly image2D picture;\n",
       "dst[i] = imageLoad(picture, ivec2(0)).x;",
       "",
       {"image", "picture"}},
      {"layout(binding = 0, rgba8) uniform writeonly image2D picture;\n",
       "dst[i] = 0.0; imageStore(picture, ivec2(0), vec4(1));",
       "",
       {"image", "picture"}},
      {"layout(binding = 0) uniform sampler2D texels;\n",
       "dst[i] = texelFetch(texels, ivec2(0), 0).x;",
       "",
       {"sampler", "texels"}},
      {"layout(binding = 0) uniform atomic_uint counter;\n",
       "dst[i] = float(atomicCounterIncrement(counter));",
       "",
       {"counter"}},
      {"layout(std140, binding = 2) uniform Terms { float gain; };\n",
       "dst[i] = gain * src[i];",
       "",
       {"uniform float Terms.gain", "blocks"}},
      {"layout(std430, binding = 5) buffer Extra { float extra[]; };\n", "dst[i] = extra[i];", "", {"Extra", "5"}},
      {"layout(std430, binding = 1) buffer Wide { float wide[128]; };\n",
       "dst[i] = wide[64 + i];",
       "",
       {"Wide", "512 bytes"}},
      {"layout(std430, binding = 1) readonly buffer Again { float again[]; };\n",
       "dst[i] = again[i];",
       "workgroup = [32, 1, 1]",
       {"workgroup"}},
  };
  for (const Case& one : cases) {
    InterfaceJobs jobs(one.declarations, one.value);
    jobs.add("out", one.keys);
    const Finished finished = jobs.run();
    INFO(one.declarations << one.keys << "\n" << finished.err << finished.out);
    CHECK(finished.status == 1);
    const auto json = finished.json();
    REQUIRE(json["jobs"].size() == 1);
    REQUIRE(json["jobs"][0]["error"].is_string());
    for (const std::string& word : one.named) CHECK_THAT(json["jobs"][0]["error"].get<std::string>(), Contains(word));
    CHECK_FALSE(jobs.exists("out"));
  }
}

TEST_CASE("kernel interface: a qualifier that the binding contradicts is refused, and inout files keep their bytes") {
  InterfaceJobs jobs(
      "layout(std430, binding = 2) readonly buffer Table { float table[]; };\n"
      "layout(std430, binding = 3) writeonly buffer Log { float log_[]; };\n",
      "dst[i] = table[i]; log_[i] = src[i];");
  const std::string base = R"({ input = "src.npy" }, { output = "dst.npy", shape = [64] }, )";
  const auto copy = [&](const std::string& name) {
    std::filesystem::copy_file(jobs.folder / "src.npy", jobs.folder / name,
                               std::filesystem::copy_options::overwrite_existing);
  };
  for (const char* name : {"table.npy", "log.npy"}) copy(name);
  const auto run = [&](const std::string& more) {
    return run_kiln({"run",
                     jobs.folder.write("q.toml",
                                       "[[job]]\nname = \"q\"\nop = \"kernel\"\nsource = \"kernel.comp\"\n"
                                       "grid = [1]\nbindings = [ " +
                                           base + more + " ]\n"),
                     "--json", "--cache-dir", jobs.folder / "cache"});
  };
  const auto before = std::filesystem::last_write_time(jobs.folder / "table.npy");
  const Finished table = run(R"({ inout = "table.npy" }, { inout = "log.npy" })");
  INFO(table.err << table.out);
  CHECK(table.status == 1);
  CHECK_THAT(table.json()["jobs"][0]["error"].get<std::string>(), Contains("Table") && Contains("read-only"));
  const Finished log = run(R"({ input = "table.npy" }, { input = "log.npy" })");
  INFO(log.err << log.out);
  CHECK(log.status == 1);
  CHECK_THAT(log.json()["jobs"][0]["error"].get<std::string>(), Contains("Log") && Contains("write-only"));
  CHECK(std::filesystem::last_write_time(jobs.folder / "table.npy") == before);
  CHECK_FALSE(jobs.exists("dst"));
  CHECK(jobs.last("log") == 63.0f);
  CHECK(run(R"({ input = "table.npy" }, { output = "log.npy", shape = [64] })").status == 0);
}

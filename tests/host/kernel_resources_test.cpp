// Blocks, atomic counters, uniforms and every element type of a user's kernel, through the command.
#include "host/resource_jobs.hpp"

#include <cmath>
#include <cstring>
#include <limits>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::DType;
using kiln::HostTensor;
using kiln::Shape;

TEST_CASE("kernel resources: uniform blocks by member names, and their values build nothing") {
  ResourceJobs jobs;
  jobs.shader(
      "blocks.comp",
      "#version 450\nlayout(local_size_x = 1) in;\nstruct Light { vec3 at; float power; };\n"
      "layout(std140, binding = 3) uniform Params { float scale; int count; uvec3 size; bool on; mat3 turn;\n"
      "  float weights[3]; Light lights[2]; dvec2 wide; float spare; } params;\n"
      "layout(std140, row_major) uniform Plain { mat2x3 rows; vec2 pair; };\n"
      "layout(std140) uniform Many { float gain; } many[2];\n"
      "layout(std430, binding = 0) buffer Out { double found[]; };\n"
      "void main() {\n  int n = 0;\n"
      "  found[n++] = params.scale; found[n++] = params.count; found[n++] = params.size.z;\n"
      "  found[n++] = params.on ? 1 : 0; found[n++] = (params.turn * vec3(1, 0, 0)).y;\n"
      "  found[n++] = params.weights[2]; found[n++] = params.lights[1].power; found[n++] = params.lights[1].at.z;\n"
      "  found[n++] = params.wide.y; found[n++] = rows[1].z; found[n++] = pair.y;\n"
      "  found[n++] = many[0].gain; found[n++] = many[1].gain;\n}\n");
  const auto add = [&](const std::string& name, double scale) {
    jobs.add(name, "blocks.comp",
             "grid = [1]\nbindings = [ { output = \"" + name +
                 ".npy\", shape = [13], dtype = \"float64\" } ]\n"
                 "[job.blocks.Params]\nscale = " +
                 std::to_string(scale) +
                 "\ncount = 7\nsize = [1, 2, 3]\non = true\n"
                 "turn = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]\nweights = [0.5, 0.25, 0.125]\n"
                 "lights = [ { at = [1, 2, 3], power = 4 }, { at = [5, 6, 7.5], power = 8.5 } ]\nwide = [0.1, 0.2]\n"
                 "[job.blocks.Plain]\nrows = [[1, 2], [3, 4], [5, 6]]\npair = [9, 10]\n"
                 "[[job.blocks.Many]]\ngain = 11\n[[job.blocks.Many]]\ngain = 12\n");
  };
  add("a", 1.5);
  const Finished first = jobs.run();
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  add("b", -2);
  const Finished second = jobs.run();
  INFO(second.err << second.out);
  REQUIRE(second.status == 0);
  CHECK(second.json()["cache"]["builds"] == 0);
  const std::vector<double> expected{1.5, 7, 3, 1, 4, 0.125, 8.5, 7.5, 0.2, 6, 10, 11, 12};
  const auto found = jobs.tensor("a.npy");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(i);
    CHECK(found->as<double>()[i] == expected[i]);
  }
  CHECK(jobs.tensor("b.npy")->as<double>()[0] == -2);
}

TEST_CASE("kernel resources: a uniform block from a file of its bytes, and blocks that do not fit") {
  ResourceJobs jobs;
  jobs.shader("block.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nlayout(std140) uniform Params { float scale; vec3 size; };\n"
              "layout(std430, binding = 0) buffer Out { float found; };\nvoid main() { found = scale * size.z; }\n");
  jobs.write<float>("params.npy", DType::f32, {2, 4}, {3, 0, 0, 0, 1, 2, 5, 0});
  const std::string out = "{ output = \"out.npy\", shape = [1] }";
  jobs.add("file", "block.comp",
           "grid = [1]\nbindings = [ " + out + ", { input = \"params.npy\", name = \"Params\" } ]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(jobs.tensor("out.npy")->as<float>()[0] == 15);
  const std::pair<const char*, std::vector<std::string>> wrong[] = {
      {"", {"Params.scale", "Params.size", "blocks = { Params = { scale"}},
      {"blocks = { Params = { scale = 1 } }", {"vec3 Params.size", "blocks"}},
      {"blocks = { Params = { scale = 1, size = [1, 2] } }", {"Params.size", "2 values", "3 values"}},
      {"blocks = { Params = { scale = true, size = [1, 2, 3] } }", {"Params.scale", "booleans"}},
      {"blocks = { Params = { scale = 1, size = [1, 2, 3], more = 1 } }", {"Params.more", "no such uniform"}},
      {"blocks = { Parms = { scale = 1, size = [1, 2, 3] } }", {"Parms.scale", "Params.scale"}},
  };
  for (const auto& [keys, named] : wrong) {
    INFO(keys);
    jobs.add("wrong", "block.comp", "grid = [1]\nbindings = [ " + out + " ]\n" + keys);
    const std::string error = jobs.error_of_run();
    for (const std::string& word : named) CHECK_THAT(error, Contains(word));
  }
}

TEST_CASE("kernel resources: atomic counters of one buffer, and uniforms of 64-bit integers") {
  ResourceJobs jobs;
  jobs.shader("count.comp",
              "#version 450\n#extension GL_ARB_gpu_shader_int64 : require\nlayout(local_size_x = 64) in;\n"
              "layout(binding = 1, offset = 4) uniform atomic_uint even;\n"
              "layout(binding = 1, offset = 8) uniform atomic_uint third[2];\n"
              "uniform int64_t far;\nuniform u64vec2 big;\n"
              "layout(std430, binding = 0) buffer Out { int64_t found[]; };\n"
              "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  if (i % 2 == 0) atomicCounterIncrement(even);\n"
              "  if (i % 3 == 0) atomicCounterIncrement(third[1]);\n"
              "  found[i] = far + int64_t(big.y) + int64_t(i);\n}\n");
  jobs.add("count", "count.comp",
           "grid = [1]\nbindings = [ { output = \"out.npy\", shape = [64], dtype = \"int64\" }, { output = "
           "\"counts.npy\", shape = [4], dtype = \"uint32\", name = \"even\" } ]\n"
           "uniforms = { far = -9007199254740993, big = [1, 4611686018427387905] }");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto counts = jobs.tensor("counts.npy");
  CHECK(std::ranges::equal(counts->as<std::uint32_t>(), std::vector<std::uint32_t>{0, 32, 0, 22}));
  CHECK(jobs.tensor("out.npy")->as<std::int64_t>()[63] == -9007199254740993 + 4611686018427387905 + 63);
  jobs.add(
      "none", "count.comp",
      "grid = [1]\nbindings = [ { output = \"o.npy\", shape = [64], dtype = \"int64\" } ]\nuniforms = { far = 1, big "
      "= [1, 2] }");
  CHECK_THAT(jobs.error_of_run(), Contains("atomic counter") && Contains("even") && Contains("name = \"even\""));
}

TEST_CASE("kernel resources: element types of files, and conversions without loss") {
  ResourceJobs jobs;
  const std::string head = "#version 450\n#extension GL_ARB_gpu_shader_int64 : enable\nlayout(local_size_x = 4) in;\n";
  const auto add = [&](const std::string& name, const std::string& type, const std::string& input,
                       const std::string& dtype) {
    jobs.shader(name + ".comp", head + "layout(std430, binding = 0) readonly buffer In { " + type +
                                    " from[]; };\nlayout(std430, binding = 1) buffer Out { " + type +
                                    " to[]; };\nvoid main() { uint i = gl_LocalInvocationIndex; to[i] = from[i]; }\n");
    jobs.add(name, name + ".comp",
             "grid = [1]\nbindings = [ " + input + ", { output = \"" + name + "_out.npy\", shape = [4], dtype = \"" +
                 dtype + "\" } ]");
  };
  jobs.write<std::int64_t>("long.npy", DType::i64, {4}, {-1, 2, 1ll << 40, std::numeric_limits<std::int64_t>::min()});
  jobs.write<std::uint8_t>("flags.npy", DType::boolean, {4}, {1, 0, 0, 1});
  jobs.write<double>("exact.npy", DType::f64, {4}, {0.5, -3, 1e30f, 0});
  jobs.write<double>("inexact.npy", DType::f64, {4}, {0.5, 0.1, 1, 0});
  jobs.write<std::uint16_t>("half.npy", DType::f16, {4}, {0x3C00, 0xC000, 0x0001, 0x7BFF});
  jobs.write<std::int16_t>("short.npy", DType::i16, {4}, {-1, 2, -32768, 32767});
  add("long", "int64_t", R"({ input = "long.npy" })", "int64");
  add("flags", "bool", R"({ input = "flags.npy", dtype = "uint32" })", "uint32");
  add("exact", "float", R"({ input = "exact.npy", dtype = "float32" })", "float32");
  add("half", "float", R"({ input = "half.npy", dtype = "float32" })", "float32");
  add("short", "int", R"({ input = "short.npy", dtype = "int32" })", "int32");
  add("values", "uint", R"({ values = [1, 2, 4294967295, 0] })", "uint32");
  add("zeros", "double", R"({ input = "zeros:", shape = [4], dtype = "float64" })", "float64");
  add("random", "float", R"({ input = "random:7", shape = ["2 * 2"] })", "float32");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(std::ranges::equal(jobs.tensor("long_out.npy")->bytes(), jobs.tensor("long.npy")->bytes()));
  CHECK(std::ranges::equal(jobs.tensor("flags_out.npy")->as<std::uint32_t>(), std::vector<std::uint32_t>{1, 0, 0, 1}));
  CHECK(jobs.tensor("exact_out.npy")->as<float>()[2] == 1e30f);
  CHECK(std::ranges::equal(jobs.tensor("half_out.npy")->as<float>(), std::vector<float>{1, -2, 0x1p-24f, 65504}));
  CHECK(std::ranges::equal(jobs.tensor("short_out.npy")->as<std::int32_t>(), std::vector<int>{-1, 2, -32768, 32767}));
  CHECK(jobs.tensor("values_out.npy")->as<std::uint32_t>()[2] == 4294967295u);
  CHECK(jobs.tensor("zeros_out.npy")->as<double>()[3] == 0);
  const std::string notes = finished.json()["jobs"][2]["notes"].dump();
  CHECK_THAT(notes, Contains("converted from float64 to float32 without loss"));

  const std::tuple<const char*, const char*, std::vector<std::string>> wrong[] = {
      {"float", R"({ input = "inexact.npy", dtype = "float32" })", {"float64", "float32", "[1]", "0.1"}},
      {"float", R"({ input = "exact.npy" })", {"float32", "float64", "dtype = \"float32\""}},
      {"uint", R"({ input = "flags.npy" })", {"32-bit integers", "bool", "dtype = \"uint32\""}},
      {"int", R"({ input = "short.npy" })", {"int16", "dtype = \"int32\""}},
      {"int", R"({ input = "long.npy", dtype = "int32" })", {"int64", "int32", "[2]"}},
      {"float", R"({ input = "half.npy" })", {"float32", "float16"}},
      {"uint", R"({ input = "exact.npy", dtype = "uint32" })", {"float64", "uint32", "0.5"}},
  };
  for (const auto& [type, input, named] : wrong) {
    INFO(input);
    add("wrong", type, input, std::string(type) == "float" ? "float32" : std::string(type) + "32");
    const std::string error = jobs.error_of_run();
    for (const std::string& word : named) CHECK_THAT(error, Contains(word));
    CHECK_FALSE(std::filesystem::exists(jobs.folder / "wrong_out.npy"));
  }
}

TEST_CASE("kernel resources: pictures, plain bytes and float pictures in storage blocks") {
  ResourceJobs jobs;
  jobs.shader(
      "half.comp",
      "#version 450\nlayout(local_size_x = 12) in;\nlayout(std430, binding = 0) readonly buffer In { float from[]; "
      "};\nlayout(std430, binding = 1) buffer Out { float to[]; };\nlayout(std430, binding = 2) readonly buffer "
      "Raw { uint raw[]; };\nvoid main() { uint i = gl_LocalInvocationIndex; to[i] = from[i] * float(raw[0]); }\n");
  std::vector<std::uint16_t> samples;
  for (std::uint16_t i = 0; i < 12; ++i) samples.push_back(static_cast<std::uint16_t>(i * 5000));
  jobs.write("deep.png", DType::u16, {3, 4}, samples);
  jobs.folder.write("raw.bin", std::string("\x01\x00\x00\x00", 4));
  jobs.add(
      "deep", "half.comp",
      "grid = [1]\nbindings = [ { input = \"deep.png\" }, { output = \"out.png\", shape = [1, 1, 3, 4] }, { input = "
      "\"raw.bin\" } ]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto out = kiln::data::read_samples(jobs.folder / "out.png");
  REQUIRE(out);
  CHECK(out->info.sample == DType::u8);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(out->tensor->as<std::uint8_t>()[i] == static_cast<int>(std::lround(samples[i] / 65535.0 * 255.0)));
  }
}

TEST_CASE("kernel resources: a job with uniforms and one without share a program") {
  ResourceJobs jobs;
  jobs.shader(
      "same.comp",
      "#version 450\nlayout(local_size_x = 1) in;\nuniform float gain = 2.0;\nlayout(rgba8) uniform writeonly "
      "image2D unused;\nlayout(std430, binding = 0) buffer Out { float found; };\nvoid main() { found = gain; }\n");
  const std::string out = "grid = [1]\nbindings = [ { output = \"NAME.npy\", shape = [1] } ]\n";
  const auto add = [&](const std::string& name, const std::string& keys) {
    std::string text = out;
    text.replace(text.find("NAME"), 4, name);
    jobs.add(name, "same.comp", text + keys);
  };
  add("with", "uniforms = { gain = 3.0 }");
  add("without", "");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["cache"]["builds"] == 1);
  CHECK(jobs.tensor("with.npy")->as<float>()[0] == 3);
  CHECK(jobs.tensor("without.npy")->as<float>()[0] == 2);
  add("with", "uniforms = { gain = 4.0 }");
  add("without", "");
  const Finished warm = jobs.run();
  INFO(warm.err << warm.out);
  REQUIRE(warm.status == 0);
  CHECK(warm.json()["cache"]["builds"] == 0);
  CHECK(jobs.tensor("with.npy")->as<float>()[0] == 4);
}

TEST_CASE("kernel resources: what an extension of the driver changes in the text is what the compiler sees") {
  ResourceJobs jobs;
  jobs.shader("real.comp", R"(#version 430
#ifdef GL_ARB_gpu_shader_fp64
#define real double
#else
#define real float
#endif
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer X { real x[]; };
layout(std430, binding = 1) writeonly buffer O { real o[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) o[i] = x[i] * 2; }
)");
  jobs.write<float>("single.npy", DType::f32, {4}, {1, 2, 3, 4});
  jobs.write<double>("double.npy", DType::f64, {4}, {1, 2, 3, 4});
  jobs.add("double", "real.comp",
           "bindings = [{ input = \"double.npy\" }, { output = \"o.npy\", shape = [4], dtype = \"float64\" }]\n"
           "grid = [1]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto o = jobs.tensor("o.npy");
  CHECK(std::vector<double>(o->as<double>().begin(), o->as<double>().end()) == std::vector<double>{2, 4, 6, 8});
  jobs.add("single", "real.comp",
           "bindings = [{ input = \"single.npy\" }, { output = \"p.npy\", shape = [4] }]\ngrid = [1]");
  CHECK_THAT(jobs.error_of_run(), Contains("float64") && Contains("float32"));
  CHECK_FALSE(std::filesystem::exists(jobs.folder / "p.npy"));
}

TEST_CASE("kernel resources: a row of structs with padding is as long as a struct, on OpenGL and on Vulkan") {
  const ResourceJobs jobs;
  jobs.shader("particles.comp", R"(#version 450
layout(local_size_x = 4) in;
struct Particle { vec3 at; float mass; vec3 speed; };
layout(std430, binding = 0) readonly buffer P { Particle p[]; };
layout(std430, binding = 1) buffer O { float o[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < o.length()) o[i] = p[i].mass + p[i].speed.z + p[i].at.x; }
)");
  // 8 rows of 7 are 224 bytes, as 7 structs of 32 are.
  std::vector<float> values(56);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  jobs.write<float>("without.npy", DType::f32, {8, 7}, values);
  jobs.write<float>("with.npy", DType::f32, {7, 8}, values);
  jobs.write<float>("flat.npy", DType::f32, {56}, values);
  for (const std::string device : {"opengl:0", "vulkan:0"}) {
    const auto run = [&](const std::string& file) {
      const auto config = jobs.folder.write(
          "jobs.toml",
          "[plugins]\nload = [\"opengl\", \"vulkan\", \"dynamic_shaders\"]\n[[job]]\nname = \"particles\"\n"
          "op = \"kernel\"\nsource = \"particles.comp\"\ngrid = [2]\nbindings = [{ input = \"" +
              file + "\" }, { output = \"o.npy\", shape = [7] }]\n");
      return run_kiln({"run", config, "--json", "--device", device, "--cache-dir", jobs.folder / "cache"});
    };
    const Finished refused = run("without.npy");
    INFO(device << ": " << refused.err << refused.out);
    CHECK(refused.status == 1);
    const std::string why = refused.json()["jobs"][0]["error"];
    CHECK_THAT(why, Contains("stride of 32 bytes") && Contains("elements of 28 bytes") && Contains("[8, 7]"));
    CHECK_FALSE(std::filesystem::exists(jobs.folder / "o.npy"));
    for (const char* file : {"with.npy", "flat.npy"}) {
      const Finished ran = run(file);
      INFO(file << ": " << ran.err << ran.out);
      REQUIRE(ran.status == 0);
      const std::string used = ran.json()["jobs"][0]["device"]["id"];
      if (used != device) WARN("skipped: no " + device);
      const auto o = jobs.tensor("o.npy");
      CHECK(o->as<float>()[6] == 48 + 51 + 54);
      std::filesystem::remove(jobs.folder / "o.npy");
    }
  }
}

TEST_CASE("kernel resources: a block of an array of structs needs every byte of it") {
  ResourceJobs jobs;
  jobs.shader("sized.comp", R"(#version 430
layout(local_size_x = 4) in;
struct S { vec3 a; float b; };
layout(std430, binding = 0) readonly buffer B { S s[4]; };
layout(std430, binding = 1) buffer O { float o[]; };
void main() { uint i = gl_LocalInvocationID.x; o[i] = s[i].b + s[i].a.x; }
)");
  jobs.write<float>("short.npy", DType::f32, {13}, std::vector<float>(13, 1));
  jobs.write<float>("whole.npy", DType::f32, {16}, std::vector<float>(16, 1));
  jobs.add("short", "sized.comp",
           "bindings = [{ input = \"short.npy\" }, { output = \"o.npy\", shape = [4] }]\ngrid = [1]");
  CHECK_THAT(jobs.error_of_run(), Contains("at least 64 bytes") && Contains("52 bytes"));
  jobs.add("whole", "sized.comp",
           "bindings = [{ input = \"whole.npy\" }, { output = \"o.npy\", shape = [4] }]\ngrid = [1]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  CHECK(finished.status == 0);
}

TEST_CASE("kernel resources: a job's workgroup is the local size of a text that declares none") {
  const ResourceJobs jobs;
  jobs.shader("sized.comp", R"(#version 450
#extension GL_ARB_gpu_shader_int64 : enable
layout(std430, binding = 0) buffer Y { uint y[]; };
shared uint row[gl_WorkGroupSize.x];
void main() {
  row[gl_LocalInvocationID.x] = gl_LocalInvocationID.x;
  barrier();
  y[gl_GlobalInvocationID.x] = 100u * gl_WorkGroupSize.x + row[gl_WorkGroupSize.x - 1u - gl_LocalInvocationID.x];
}
)");
  for (const std::string device : {"opengl:0", "vulkan:0"}) {
    const auto config = jobs.folder.write(
        "jobs.toml",
        "[plugins]\nload = [\"opengl\", \"vulkan\", \"dynamic_shaders\"]\n[[job]]\nname = \"sized\"\nop = \"kernel\"\n"
        "source = \"sized.comp\"\ngrid = [2]\nworkgroup = [4]\n"
        "bindings = [{ output = \"y.npy\", shape = [8], dtype = \"uint32\" }]\n");
    const Finished finished =
        run_kiln({"run", config, "--json", "--device", device, "--cache-dir", jobs.folder / "cache"});
    INFO(device << ": " << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto y = jobs.tensor("y.npy");
    CHECK(std::vector<std::uint32_t>(y->as<std::uint32_t>().begin(), y->as<std::uint32_t>().end()) ==
          std::vector<std::uint32_t>{403, 402, 401, 400, 403, 402, 401, 400});
  }
}

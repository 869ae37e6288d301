// Images, samplers, uniform blocks, atomic counters and every element type of a user's kernel, through the command.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::DType;
using kiln::HostTensor;
using kiln::Shape;

namespace {

class ResourceJobs {
 public:
  // The text behind #version and the local size of 8 x 8, or its own whole text.
  void shader(const std::string& name, const std::string& text) const {
    const bool whole = text.starts_with("#version");
    folder.write(name, whole ? text : "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n" + text);
  }
  void add(const std::string& name, const std::string& source, const std::string& keys) {
    jobs_ += "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + source + "\"\n" + keys + "\n";
  }
  Finished run(std::vector<std::string> words = {}) {
    const auto file = folder.write("jobs.toml", jobs_);
    jobs_.clear();
    words.insert(words.begin(), {"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
    return run_kiln(words);
  }
  std::string error_of_run() {
    const Finished finished = run();
    INFO(finished.err << finished.out);
    CHECK(finished.status == 1);
    const auto json = finished.json();
    REQUIRE(json["jobs"][0]["error"].is_string());
    return json["jobs"][0]["error"];
  }
  std::shared_ptr<HostTensor> tensor(const std::string& name) const {
    auto read = kiln::data::read_npy(folder / name);
    REQUIRE(read);
    return *read;
  }
  template <class T>
  void write(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) const {
    auto made = HostTensor::create(dtype, shape).value();
    REQUIRE(made->as<T>().size() == values.size());
    std::ranges::copy(values, made->template as<T>().begin());
    REQUIRE((name.ends_with(".png") ? kiln::data::write_png(folder / name, *made)
                                    : kiln::data::write_npy(folder / name, *made))
                .ok());
  }

  const TemporaryFolder folder;

 private:
  std::string jobs_;
};

const std::string copy_2d =
    "void main() {\n  ivec2 at = ivec2(gl_GlobalInvocationID.xy);\n"
    "  if (all(lessThan(at, imageSize(from)))) imageStore(to, at, imageLoad(from, at));\n}\n";

}  // namespace

TEST_CASE("kernel resources: a picture goes through an image or a sampler, and its size and contents build nothing") {
  ResourceJobs jobs;
  jobs.shader("invert.comp",
              "layout(rgba8) uniform readonly image2D photo;\nlayout(rgba8) uniform writeonly image2D shown;\n"
              "uniform float gain;\nvoid main() {\n  ivec2 at = ivec2(gl_GlobalInvocationID.xy);\n"
              "  if (any(greaterThanEqual(at, imageSize(photo)))) return;\n"
              "  vec4 c = imageLoad(photo, at);\n  imageStore(shown, at, vec4(gain - c.rgb, c.a));\n}\n");
  std::vector<std::uint8_t> grey(12 * 20);
  for (std::size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<std::uint8_t>(i);
  jobs.write("grey.png", DType::u8, {12, 20}, grey);
  std::vector<std::uint8_t> colour(5 * 7 * 3);
  for (std::size_t i = 0; i < colour.size(); ++i) colour[i] = static_cast<std::uint8_t>(2 * i);
  jobs.write("colour.png", DType::u8, {5, 7, 3}, colour);
  jobs.add("grey", "invert.comp",
           "images = { photo = { input = \"grey.png\" }, shown = { output = \"grey_out.png\", size = [20, 12] } }\n"
           "uniforms = { gain = 1.0 }\ngrid = [3, 2]");
  const Finished first = jobs.run();
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  CHECK(first.json()["cache"]["builds"] == 1);
  jobs.add("colour", "invert.comp",
           "constants = {}\nimages = { photo = { input = \"colour.png\" }, shown = { output = \"colour_out.png\", size "
           "= [7, 5] } }\nuniforms = { gain = 0.9 }\ngrid = [1]");
  const Finished second = jobs.run();
  INFO(second.err << second.out);
  REQUIRE(second.status == 0);
  CHECK(second.json()["cache"]["builds"] == 0);
  const auto grey_out = kiln::data::read_samples(jobs.folder / "grey_out.png");
  REQUIRE(grey_out);
  const auto texels = grey_out->tensor->as<std::uint8_t>();
  REQUIRE(grey_out->tensor->shape() == Shape{12, 20, 4});
  for (std::size_t i = 0; i < grey.size(); ++i) {
    CHECK(texels[4 * i] == 255 - grey[i]);
    CHECK(texels[4 * i + 2] == 255 - grey[i]);
    CHECK(texels[4 * i + 3] == 255);
  }
  const auto colour_out = kiln::data::read_samples(jobs.folder / "colour_out.png");
  REQUIRE(colour_out);
  for (std::size_t i = 0; i < 5 * 7; ++i) {
    const double expected = std::max(0.9 * 255 - colour[3 * i + 1], 0.0);
    CHECK(std::abs(colour_out->tensor->as<std::uint8_t>()[4 * i + 1] - expected) <= 1);
  }
}

TEST_CASE("kernel resources: every image format keeps every texel from a file to a file") {
  ResourceJobs jobs;
  struct Format {
    const char* name;
    const char* type;
    DType dtype;
    int channels;
  };
  const Format formats[] = {
      {"rgba32f", "image2D", DType::f32, 4},      {"rgba16f", "image2D", DType::f16, 4},
      {"rg32f", "image2D", DType::f32, 2},        {"rg16f", "image2D", DType::f16, 2},
      {"r32f", "image2D", DType::f32, 1},         {"r16f", "image2D", DType::f16, 1},
      {"rgba16", "image2D", DType::u16, 4},       {"rgba8", "image2D", DType::u8, 4},
      {"rg16", "image2D", DType::u16, 2},         {"rg8", "image2D", DType::u8, 2},
      {"r16", "image2D", DType::u16, 1},          {"r8", "image2D", DType::u8, 1},
      {"rgba16_snorm", "image2D", DType::i16, 4}, {"rgba8_snorm", "image2D", DType::i8, 4},
      {"rg16_snorm", "image2D", DType::i16, 2},   {"rg8_snorm", "image2D", DType::i8, 2},
      {"r16_snorm", "image2D", DType::i16, 1},    {"r8_snorm", "image2D", DType::i8, 1},
      {"rgba32i", "iimage2D", DType::i32, 4},     {"rgba16i", "iimage2D", DType::i16, 4},
      {"rgba8i", "iimage2D", DType::i8, 4},       {"rg32i", "iimage2D", DType::i32, 2},
      {"rg16i", "iimage2D", DType::i16, 2},       {"rg8i", "iimage2D", DType::i8, 2},
      {"r32i", "iimage2D", DType::i32, 1},        {"r16i", "iimage2D", DType::i16, 1},
      {"r8i", "iimage2D", DType::i8, 1},          {"rgba32ui", "uimage2D", DType::u32, 4},
      {"rgba16ui", "uimage2D", DType::u16, 4},    {"rgba8ui", "uimage2D", DType::u8, 4},
      {"rg32ui", "uimage2D", DType::u32, 2},      {"rg16ui", "uimage2D", DType::u16, 2},
      {"rg8ui", "uimage2D", DType::u8, 2},        {"r32ui", "uimage2D", DType::u32, 1},
      {"r16ui", "uimage2D", DType::u16, 1},       {"r8ui", "uimage2D", DType::u8, 1},
  };
  for (const Format& format : formats) {
    const std::string name = format.name;
    const std::string layout = "layout(" + name + ") uniform ";
    jobs.shader(name + ".comp", layout + "readonly " + format.type + " from;\n" + layout + "writeonly " + format.type +
                                    " to;\n" + copy_2d);
    Shape shape{6, 9};
    if (format.channels > 1) shape.push_back(format.channels);
    auto tensor = HostTensor::create(format.dtype, shape).value();
    // Exponents of 32-bit numbers stay small, and the least number of snorm, which is -1 as the next one is, is left
    // out.
    std::uint32_t next = 1;
    const std::size_t element = kiln::size_of(format.dtype);
    for (std::size_t i = 0; i < tensor->bytes().size(); ++i) {
      next = next * 1664525 + 1013904223;
      std::uint32_t byte = next >> 24;
      const bool top = i % element == element - 1;
      if (top && (format.dtype == DType::f32 || format.dtype == DType::f16)) byte = (byte & 0x83) | 0x38;
      if (top && byte == 0x80) byte = 0x81;
      tensor->bytes()[i] = static_cast<std::byte>(byte);
    }
    REQUIRE(kiln::data::write_npy(jobs.folder / (name + ".npy"), *tensor).ok());
    jobs.add(name, name + ".comp",
             "images = { from = { input = \"" + name + ".npy\" }, to = { output = \"" + name +
                 "_out.npy\", size = [9, "
                 "6], format = \"" +
                 name + "\" } }\ngrid = [2, 1]");
  }
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  for (const Format& format : formats) {
    INFO(format.name);
    const auto from = jobs.tensor(std::string(format.name) + ".npy");
    const auto to = jobs.tensor(std::string(format.name) + "_out.npy");
    CHECK(to->dtype() == from->dtype());
    CHECK(to->shape() == from->shape());
    CHECK(std::ranges::equal(to->bytes(), from->bytes()));
  }
}

TEST_CASE("kernel resources: images and samplers of every shape") {
  ResourceJobs jobs;
  struct Kind {
    const char* name;
    const char* image;
    const char* sampler;
    Shape shape;
    const char* at;     // of an image
    const char* fetch;  // from the sampler
    bool samplers = true;
  };
  // Each lane i of 48 copies one texel: through the image to `to`, and through the sampler to the buffer.
  const Kind kinds[] = {
      {"d1", "image1D", "sampler1D", {48}, "i", "texelFetch(read, i, 0)"},
      {"d2", "image2D", "sampler2D", {6, 8}, "ivec2(i % 8, i / 8)", "texelFetch(read, ivec2(i % 8, i / 8), 0)"},
      {"d3",
       "image3D",
       "sampler3D",
       {4, 3, 4},
       "ivec3(i % 4, i / 4 % 3, i / 12)",
       "texelFetch(read, ivec3(i % 4, i / 4 % 3, i / 12), 0)"},
      {"a1",
       "image1DArray",
       "sampler1DArray",
       {6, 8},
       "ivec2(i % 8, i / 8)",
       "texelFetch(read, ivec2(i % 8, i / 8), 0)"},
      {"a2",
       "image2DArray",
       "sampler2DArray",
       {4, 3, 4},
       "ivec3(i % 4, i / 4 % 3, i / 12)",
       "texelFetch(read, ivec3(i % 4, i / 4 % 3, i / 12), 0)"},
      {"rect", "image2DRect", "sampler2DRect", {6, 8}, "ivec2(i % 8, i / 8)", "texelFetch(read, ivec2(i % 8, i / 8))"},
      {"buffer", "imageBuffer", "samplerBuffer", {48}, "i", "texelFetch(read, i)"},
      {"cube", "imageCube", "samplerCube", {6, 2, 2}, "ivec3(i % 2, i / 2 % 2, i / 4)", "", false},
      {"cubes", "imageCubeArray", "samplerCubeArray", {12, 2, 2}, "ivec3(i % 2, i / 2 % 2, i / 4)", "", false},
  };
  for (const Kind& kind : kinds) {
    const std::string name = kind.name;
    std::vector<float> values(48);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.25f;
    if (name == "cube") values.resize(24);
    jobs.write(name + ".npy", DType::f32, kind.shape, values);
    const std::string count = std::to_string(values.size());
    std::string text = "#version 450\nlayout(local_size_x = " + count + ") in;\n";
    text += "layout(r32f) uniform readonly " + std::string(kind.image) + " from;\n";
    text += "layout(r32f) uniform writeonly " + std::string(kind.image) + " to;\n";
    if (kind.samplers) text += "uniform " + std::string(kind.sampler) + " read;\n";
    text +=
        "layout(std430, binding = 0) buffer Out { float found[]; };\nvoid main() {\n  int i = "
        "int(gl_LocalInvocationIndex);\n";
    text += "  imageStore(to, " + std::string(kind.at) + ", imageLoad(from, " + kind.at + "));\n";
    text += "  found[i] = " + (kind.samplers ? std::string(kind.fetch) + ".x" : "1.0") + ";\n}\n";
    jobs.shader(name + ".comp", text);
    std::string size;
    for (auto side = kind.shape.rbegin(); side != kind.shape.rend(); ++side) {
      size += (size.empty() ? "" : ", ") + std::to_string(*side);
    }
    jobs.add(name, name + ".comp",
             "images = { from = { input = \"" + name + ".npy\" }, to = { output = \"" + name +
                 "_to.npy\", format = \"r32f\", size = [" + size + "] } }\n" +
                 (kind.samplers ? "samplers = { read = { input = \"" + name + ".npy\" } }\n" : "") +
                 "bindings = [ { output = \"" + name + "_found.npy\", shape = [" + count + "] } ]\ngrid = [1]");
  }
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const std::string name = kind.name;
    const auto from = jobs.tensor(name + ".npy");
    const auto to = jobs.tensor(name + "_to.npy");
    CHECK(to->shape() == from->shape());
    CHECK(std::ranges::equal(to->as<float>(), from->as<float>()));
    if (kind.samplers) CHECK(std::ranges::equal(jobs.tensor(name + "_found.npy")->as<float>(), from->as<float>()));
  }
}

TEST_CASE("kernel resources: filter and wrap of a sampler") {
  ResourceJobs jobs;
  jobs.shader("sample.comp",
              "#version 450\nlayout(local_size_x = 5) in;\nuniform sampler1D line;\nuniform float at[5];\n"
              "layout(std430, binding = 0) buffer Out { float found[]; };\n"
              "void main() { uint i = gl_LocalInvocationIndex; found[i] = textureLod(line, at[i], 0.0).x; }\n");
  jobs.write<float>("line.npy", DType::f32, {4}, {10, 20, 30, 40});
  const auto add = [&](const std::string& name, const std::string& keys) {
    jobs.add(name, "sample.comp",
             "samplers = { line = { input = \"line.npy\"" + keys + " } }\nbindings = [ { output = \"" + name +
                 ".npy\", shape = [5] } ]\nuniforms = { at = [0.25, 0.5, -0.125, 1.125, 0.375] }\ngrid = [1]");
  };
  add("linear", "");
  add("nearest", ", filter = \"nearest\"");
  add("repeat", ", wrap = \"repeat\", filter = \"nearest\"");
  add("mirror", ", wrap = \"mirror\", filter = \"nearest\"");
  add("border", ", wrap = \"border\", filter = \"nearest\"");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["cache"]["builds"] == 1);
  const auto values = [&](const std::string& name) {
    const auto read = jobs.tensor(name + ".npy");
    return std::vector<float>(read->as<float>().begin(), read->as<float>().end());
  };
  const auto linear = values("linear");
  const float mixed[] = {15, 25, 10, 40, 20};
  for (std::size_t i = 0; i < 5; ++i) CHECK(linear[i] == Approx(mixed[i]).epsilon(0.01));
  CHECK(values("nearest") == std::vector<float>{20, 30, 10, 40, 20});
  CHECK(values("repeat") == std::vector<float>{20, 30, 40, 10, 20});
  CHECK(values("mirror") == std::vector<float>{20, 30, 10, 40, 20});
  CHECK(values("border") == std::vector<float>{20, 30, 0, 0, 20});
}

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

TEST_CASE("kernel resources: textures that do not fit are refused by name, and nothing is written") {
  ResourceJobs jobs;
  jobs.shader("plain.comp",
              "layout(rgba8) uniform readonly image2D from;\nlayout(rgba8) uniform writeonly image2D to;\n" + copy_2d);
  jobs.shader(
      "shadow.comp",
      "uniform sampler2DShadow from;\nlayout(rgba8) uniform writeonly image2D to;\nvoid main() { imageStore(to, "
      "ivec2(0), vec4(texture(from, vec3(0)))); }\n");
  jobs.shader("subroutine.comp",
              "subroutine vec4 Colour();\nsubroutine(Colour) vec4 red() { return vec4(1, 0, 0, 1); }\n"
              "subroutine(Colour) vec4 blue() { return vec4(0, 0, 1, 1); }\nsubroutine uniform Colour from;\n"
              "layout(rgba8) uniform writeonly image2D to;\nvoid main() { imageStore(to, ivec2(0), from()); }\n");
  jobs.write<std::uint8_t>("four.npy", DType::u8, {2, 2, 4}, std::vector<std::uint8_t>(16, 9));
  jobs.write<float>("floats.npy", DType::f32, {2, 2, 4}, std::vector<float>(16, 0.1f));
  jobs.write<float>("line.npy", DType::f32, {16}, std::vector<float>(16, 0.1f));
  const std::string to = "to = { output = \"out.png\", size = [2, 2] }";
  const struct {
    const char* source;
    std::string keys;
    std::vector<std::string> named;
  } cases[] = {
      {"plain.comp", "images = { " + to + " }", {"image image2D from", "images = { from"}},
      {"plain.comp", "images = { from = { input = \"floats.npy\" }, " + to + " }", {"rgba8", "float32", "uint8"}},
      {"plain.comp", "images = { from = { input = \"line.npy\" }, " + to + " }", {"[H, W]", "[16]"}},
      {"plain.comp", "images = { from = { output = \"f.png\", size = [2, 2] }, " + to + " }", {"from", "read only"}},
      {"plain.comp",
       "images = { from = { input = \"four.npy\" }, to = { input = \"four.npy\" } }",
       {"to", "write only"}},
      {"plain.comp",
       "images = { from = { input = \"four.npy\" }, to = { output = \"o.npy\", size = [2, 2], format = "
       "\"rgba16f\" } }",
       {"rgba8", "rgba16f"}},
      {"plain.comp",
       "images = { from = { input = \"four.npy\" }, " + to + ", other = { input = \"four.npy\" } }",
       {"images.other", "no such image"}},
      {"plain.comp",
       "samplers = { from = { input = \"four.npy\" } }\nimages = { " + to + " }",
       {"image image2D from", "samplers.from"}},
      {"shadow.comp",
       "samplers = { from = { input = \"four.npy\" } }\nimages = { " + to + " }",
       {"sampler2DShadow from"}},
      {"subroutine.comp", "images = { " + to + " }", {"subroutine from"}},
  };
  for (const auto& one : cases) {
    INFO(one.source << " " << one.keys);
    jobs.add("wrong", one.source, one.keys + "\ngrid = [1]");
    const std::string error = jobs.error_of_run();
    for (const std::string& word : one.named) CHECK_THAT(error, Contains(word));
    CHECK_FALSE(std::filesystem::exists(jobs.folder / "out.png"));
  }
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

TEST_CASE("kernel resources: a rectangle texture does not repeat") {
  ResourceJobs jobs;
  jobs.shader("rect.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nuniform sampler2DRect t;\n"
              "layout(std430, binding = 0) buffer O { float o[]; };\n"
              "void main() { o[0] = texture(t, vec2(0.5)).x; }\n");
  jobs.write<float>("t.npy", DType::f32, {1, 2}, {5, 6});
  const auto add = [&](const std::string& wrap) {
    jobs.add("rect", "rect.comp",
             "samplers = { t = { input = \"t.npy\", filter = \"nearest\", wrap = \"" + wrap +
                 "\" } }\nbindings = [{ output = \"o.npy\", shape = [1] }]\ngrid = [1]");
  };
  for (const char* wrap : {"repeat", "mirror"}) {
    add(wrap);
    CHECK_THAT(jobs.error_of_run(), Contains("sampler2DRect") && Contains(wrap));
  }
  add("border");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(jobs.tensor("o.npy")->as<float>()[0] == 5);
}

TEST_CASE("kernel resources: OpenCL C's own names of types, and vectors of three, are checked as what they are") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const ResourceJobs jobs;
  jobs.folder.write("named.cl", R"(
// typedef double DATA_TYPE;
typedef float DATA_TYPE;
typedef DATA_TYPE real;
typedef unsigned int count_t;
kernel void scaled(global const real* x, global real* y, global const count_t* n) {
  const int i = get_global_id(0);
  if (i < n[0]) y[i] = x[i] * 2;
}
kernel void first(global const float3* x, global float* y) { y[get_global_id(0)] = x[get_global_id(0)].x; }
)");
  std::vector<float> twelve(12);
  for (std::size_t i = 0; i < twelve.size(); ++i) twelve[i] = static_cast<float>(i);
  jobs.write<float>("single.npy", DType::f32, {4}, {1, 2, 3, 4});
  jobs.write<double>("double.npy", DType::f64, {4}, {1, 2, 3, 4});
  jobs.write<float>("packed.npy", DType::f32, {4, 3}, twelve);
  const std::string n = "{ values = [4] }";
  const auto job = [&](const std::string& entry, const std::string& input, const std::string& more) {
    return "[[job]]\nname = \"" + input + "\"\nop = \"kernel\"\nsource = \"named.cl\"\nentry = \"" + entry +
           "\"\ndevice = \"amdgpu:0\"\nworkgroup = [4]\ngrid = [1]\nbindings = [ { input = \"" + input +
           "\" }, { output = \"" + input + ".out.npy\", shape = [4] }" + more + " ]\n";
  };
  const auto file =
      jobs.folder.write("jobs.toml", job("scaled", "single.npy", ", " + n) + job("scaled", "double.npy", ", " + n) +
                                         job("first", "packed.npy", ""));
  const Finished finished = run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run",
                                      file.string(), "--json", "--cache-dir", (jobs.folder / "cache").string()});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto json = finished.json();
  CHECK(json["jobs"][0]["error"].is_null());
  const auto y = jobs.tensor("single.npy.out.npy");
  CHECK(std::vector<float>(y->as<float>().begin(), y->as<float>().end()) == std::vector<float>{2, 4, 6, 8});
  CHECK_THAT(json["jobs"][1]["error"].get<std::string>(), Contains("float32") && Contains("float64"));
  CHECK_THAT(json["jobs"][2]["error"].get<std::string>(), Contains("lie 16 bytes apart and use 12"));
}

TEST_CASE("kernel resources: asynchronous copies, sub-groups and values of every type in OpenCL C") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  // 80 work-items: two whole sub-groups of 32 and one of 16.
  folder.write("groups.cl", R"cl(
typedef struct { char tag; long big; float3 at; } Record;
__kernel void other(__global int* y) { y[0] = 1; }
__kernel void groups(__global const int* x, __global int* y, __local int* part, Record record, double half_of,
                     uchar small, float4 four) {
  const uint i = get_local_id(0);
  event_t e = async_work_group_copy(part, x, 80, 0);
  wait_group_events(1, &e);
  const int mine = part[79 - i];
  y[i] = sub_group_reduce_add(mine);
  y[80 + i] = sub_group_scan_exclusive_max(mine);
  y[160 + i] = sub_group_scan_inclusive_min(mine);
  y[240 + i] = (int)sub_group_broadcast((long)mine << 32, 5) + (int)(sub_group_broadcast((long)mine << 32, 5) >> 32);
  y[320 + i] = get_sub_group_size() * 100 + get_num_sub_groups() * 10 + get_sub_group_id();
  y[400 + i] = (int)(record.big + record.tag) + (int)(record.at.z + half_of) + small + (int)four.w +
               sub_group_any(mine == 3) * 1000;
  barrier(CLK_LOCAL_MEM_FENCE);
  part[i] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  e = async_work_group_strided_copy(y + 480, part, 80, 2, 0);
  wait_group_events(1, &e);
}
)cl");
  auto x = HostTensor::create(DType::i32, {80}).value();
  std::vector<int> values(80);
  for (int i = 0; i < 80; ++i)
    values[static_cast<std::size_t>(i)] = x->as<int>()[static_cast<std::size_t>(i)] = i * 37 % 61 - 20;
  REQUIRE(kiln::data::write_npy(folder / "x.npy", *x).ok());
  std::string record(32, '\0');
  record[0] = 2;
  record[8] = 100;
  const float at[] = {1, 2, 8};
  std::memcpy(record.data() + 16, at, sizeof at);
  folder.write("record.bin", record);
  const auto job = folder.write("job.toml", R"([[job]]
name = "groups"
op = "kernel"
source = "groups.cl"
entry = "groups"
device = "amdgpu:0"
workgroup = [80]
grid = [1]
bindings = [ { input = "x.npy" }, { output = "y.npy", shape = [640], dtype = "int32" }, { local = 320 }, { input = "record.bin" },
             { float = 0.5, dtype = "float64" }, { int = 200, dtype = "uint8" }, { values = [1.0, 2.0, 3.0, 4.0] } ]
)");
  const Finished finished = run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", job.string(),
                                      "--json", "--cache-dir", (folder / "cache").string()});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto y = kiln::data::read_npy(folder / "y.npy").value();
  const auto found = y->as<int>();
  for (std::size_t i = 0; i < 80; ++i) {
    INFO(i);
    const std::size_t first = i / 32 * 32, end = std::min<std::size_t>(first + 32, 80);
    const auto mine = [&](std::size_t lane) { return values[79 - lane]; };
    int sum = 0, most = std::numeric_limits<int>::min(), least = mine(first);
    bool any = false;
    for (std::size_t lane = first; lane < end; ++lane) {
      sum += mine(lane);
      if (lane < i) most = std::max(most, mine(lane));
      if (lane <= i) least = std::min(least, mine(lane));
      any = any || mine(lane) == 3;
    }
    CHECK(found[i] == sum);
    CHECK(found[80 + i] == most);
    CHECK(found[160 + i] == least);
    CHECK(found[240 + i] == mine(first + 5));
    CHECK(found[320 + i] == static_cast<int>((end - first) * 100 + 30 + first / 32));
    CHECK(found[400 + i] == 102 + 8 + 200 + 4 + (any ? 1000 : 0));
    CHECK(found[480 + 2 * i] == mine(i));
  }
}

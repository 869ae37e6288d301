// Images and samplers of a user's kernel, through the command.
#include "host/resource_jobs.hpp"

#include <cmath>
#include <cstring>
#include <limits>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::DType;
using kiln::HostTensor;
using kiln::Shape;

namespace {

const std::string copy_2d =
    "void main() {\n  ivec2 at = ivec2(gl_GlobalInvocationID.xy);\n"
    "  if (all(lessThan(at, imageSize(from)))) imageStore(to, at, imageLoad(from, at));\n}\n";

}  // namespace

TEST_CASE("kernel textures: a picture goes through an image or a sampler, and its size and contents build nothing") {
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

TEST_CASE("kernel textures: every image format keeps every texel from a file to a file") {
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

TEST_CASE("kernel textures: images and samplers of every shape") {
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

TEST_CASE("kernel textures: filter and wrap of a sampler") {
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

TEST_CASE("kernel textures: samplers of one tensor with filters and shapes of their own, in one pass") {
  ResourceJobs jobs;
  jobs.shader("views.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nuniform sampler1D sharp, soft, same;\n"
              "uniform sampler1DArray rows;\nlayout(std430, binding = 0) buffer Out { float found[]; };\n"
              "void main() {\n  found[0] = textureLod(sharp, 0.5, 0.0).x;\n  found[1] = textureLod(soft, 0.5, 0.0).x;\n"
              "  found[2] = textureLod(same, 0.5, 0.0).x;\n  found[3] = texelFetch(rows, ivec2(0, 3), 0).x;\n}\n");
  jobs.write<float>("line.npy", DType::f32, {4, 1}, {10, 20, 30, 40});
  const auto file = jobs.folder.write("views.toml",
                                      R"([[pipeline]]
name = "views"
tensors.line = { input = "line.npy" }
tensors.y = { output = "y.npy", shape = [4] }
[[pipeline.step]]
name = "look"
op = "kernel"
source = "views.comp"
samplers.sharp = { input = "line", filter = "nearest" }
samplers.soft = { input = "line", filter = "linear" }
samplers.same = { input = "line", filter = "nearest" }
samplers.rows = { input = "line", filter = "nearest" }
bindings = [ { output = "y" } ]
grid = [1]
)");
  const Finished finished =
      run_kiln({"run", file, "--repeat", "3", "--device", "opengl:0", "--cache-dir", jobs.folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto found = jobs.tensor("y.npy");
  CHECK(std::vector<float>(found->as<float>().begin(), found->as<float>().end()) == std::vector<float>{30, 25, 30, 40});
}

TEST_CASE("kernel textures: textures that do not fit are refused by name, and nothing is written") {
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
      {"plain.comp", "images = { from = { output = \"f.png\", size = [2, 2] }, " + to + " }", {"from", "read-only"}},
      {"plain.comp",
       "images = { from = { input = \"four.npy\" }, to = { input = \"four.npy\" } }",
       {"to", "write-only"}},
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

TEST_CASE("kernel textures: samplers of several types in one program") {
  ResourceJobs jobs;
  jobs.shader("several.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nuniform samplerCubeArray cubes;\nuniform sampler2D plane;\n"
              "uniform isampler1D line;\nlayout(r32f) uniform readonly image2D image;\n"
              "layout(std430, binding = 0) buffer O { float o[]; };\n"
              "void main() { o[0] = texture(cubes, vec4(-1, 0, 0, 1)).x + texelFetch(plane, ivec2(0), 0).x + "
              "float(texelFetch(line, 1, 0).x) + imageLoad(image, ivec2(1, 0)).x; }\n");
  std::vector<float> faces(12 * 4);
  for (std::size_t i = 0; i < faces.size(); ++i) faces[i] = static_cast<float>(i / 4);
  jobs.write<float>("faces.npy", DType::f32, {12, 2, 2}, faces);
  jobs.write<float>("plane.npy", DType::f32, {1, 2}, {100, 200});
  jobs.write<std::int32_t>("line.npy", DType::i32, {2}, {1000, 2000});
  for (int i = 0; i < 2; ++i) {  // built, and from disk
    jobs.add("several", "several.comp",
             "samplers = { cubes = { input = \"faces.npy\" }, plane = { input = \"plane.npy\" }, "
             "line = { input = \"line.npy\" } }\nimages = { image = { input = \"plane.npy\" } }\n"
             "bindings = [{ output = \"o.npy\", shape = [1] }]\ngrid = [1]");
    const Finished finished = jobs.run();
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["builds"] == (i == 0 ? 1 : 0));
    CHECK(jobs.tensor("o.npy")->as<float>()[0] == 7 + 100 + 2000 + 200);
  }
}

TEST_CASE("kernel textures: a cube is filtered over the edges of its faces") {
  ResourceJobs jobs;
  jobs.shader("edge.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nuniform samplerCube cube;\n"
              "layout(std430, binding = 0) buffer O { float o[]; };\n"
              "void main() { o[0] = textureLod(cube, vec3(1, 0.9, 0), 0).r; }\n");
  std::vector<float> texels(24);
  for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(i);
  jobs.write<float>("texels.npy", DType::f32, {6, 2, 2}, texels);
  jobs.add("edge", "edge.comp",
           "samplers = { cube = { input = \"texels.npy\" } }\n"
           "bindings = [{ output = \"o.npy\", shape = [1] }]\ngrid = [1]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  // 0.6 of the upper row of face 0, whose texels are 0 and 1, and 0.4 of the column of face 2 beside it: 9 and 11.
  CHECK(jobs.tensor("o.npy")->as<float>()[0] == Approx(4.3).epsilon(0.01));
}

TEST_CASE("kernel textures: arrays of arrays") {
  ResourceJobs jobs;
  jobs.shader("arrays.comp",
              "#version 450\nlayout(local_size_x = 1) in;\nlayout(r32f) uniform readonly image1D im[2][2];\n"
              "uniform sampler1D ss[2][2];\nstruct Light { float power; vec2 at; };\nuniform Light lights[2][3];\n"
              "layout(std140) uniform Block { Light inner[2][2]; mat2 turns[2][1]; };\n"
              "uniform mat2x3 bends[1][2][2];\n"
              "layout(std430, binding = 0) buffer O { float o[]; };\n"
              "void main() { o[0] = imageLoad(im[0][1], 0).x + 10 * texelFetch(ss[1][0], 0, 0).x; "
              "o[1] = lights[1][2].power + lights[0][1].at.y; o[2] = inner[1][0].at.x + inner[0][1].power; "
              "o[3] = turns[1][0][1][0]; o[4] = bends[0][1][0][1].z; }\n");
  for (int i = 0; i < 4; ++i)
    jobs.write<float>("t" + std::to_string(i) + ".npy", DType::f32, {1}, {1.0F + static_cast<float>(i)});
  const auto files = [](const char* key) {
    std::string text = std::string(key) + " = [";
    for (int i = 0; i < 4; ++i) {
      text += (i % 2 == 0 ? "[" : "") + std::string("{ input = \"t") + std::to_string(i) + ".npy\" }" +
              (i % 2 == 0 ? ", "
               : i == 1   ? "], "
                          : "]");
    }
    return text + "]";
  };
  int next = 0;
  const auto lights = [&](int rows, int columns) {
    std::string text = "[";
    for (int row = 0; row < rows; ++row) {
      text += row == 0 ? "[" : ", [";
      for (int i = 0; i < columns; ++i, next += 3) {
        text += (i == 0 ? "{ power = " : ", { power = ") + std::to_string(next) + ", at = [" +
                std::to_string(next + 1) + ", " + std::to_string(next + 2) + "] }";
      }
      text += "]";
    }
    return text + "]";
  };
  const std::string free = lights(2, 3), in_block = lights(2, 2);
  jobs.add("arrays", "arrays.comp",
           "images = { " + files("im") + " }\nsamplers = { " + files("ss") + " }\nuniforms = { lights = " + free +
               ", bends = [[[[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]], [[[12, 13], [14, 15], [16, 17]], "
               "[[18, 19], [20, 21], [22, 23]]]]] }\nblocks = { Block = { inner = " +
               in_block +
               ", turns = [[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]]] } }\n"
               "bindings = [{ output = \"o.npy\", shape = [5] }]\ngrid = [1]");
  const Finished finished = jobs.run();
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto found = jobs.tensor("o.npy");
  CHECK(found->as<float>()[0] == 2 + 10 * 3);
  CHECK(found->as<float>()[1] == 15 + 5);
  CHECK(found->as<float>()[2] == (18 + 6 + 1) + (18 + 3));
  CHECK(found->as<float>()[3] == 6);
  CHECK(found->as<float>()[4] == 17);
}

TEST_CASE("kernel textures: a rectangle texture does not repeat") {
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

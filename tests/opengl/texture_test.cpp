// Images, samplers, counters and uniforms of a launch that says where each resource comes from.
#include <kiln/program_interface.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

using SourceOfName = std::map<std::string, ResourceSource>;  // by the name of a resource

KernelSource user_kernel(std::string text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  return source;
}

ResourceSource from_binding(std::uint32_t binding) {
  ResourceSource source;
  source.binding = binding;
  return source;
}

ResourceSource texels_of(std::uint32_t binding, const std::array<std::uint32_t, 3>& size, Access access) {
  ResourceSource source = from_binding(binding);
  source.texture.size = size;
  source.texture.channels = 1;
  source.texture.dtype = DType::f32;
  source.texture.format = ImageFormat::r32f;
  source.texture.access = access;
  return source;
}

ResourceSource number_at(std::uint32_t binding, std::uint64_t offset) {
  ResourceSource source = from_binding(binding);
  source.offset = offset;
  source.given = UserKernelSpec::Uniform::Type::number;
  return source;
}

// One workgroup. A resource that `given` leaves out is provided by nothing.
Result<FenceResult> run_with(Device& device, const KernelSource& source, const Program& program,
                             std::vector<Buffer*> bindings, const SourceOfName& given) {
  const ProgramInterface* const declared = program.interface(source);
  REQUIRE(declared != nullptr);
  std::vector<ResourceSource> sources;
  for (const ProgramResource& resource : declared->resources) {
    const auto at = given.find(resource.name);
    sources.push_back(at == given.end() ? ResourceSource{} : at->second);
  }
  const PassLaunch launch{&program, bindings, {1, 1, 1}, sources};
  const auto value = device.submit({std::span(&launch, 1)});
  if (!value) return value.error();
  return device.wait(*value, Deadline::never());
}

void require_run(const Result<FenceResult>& fence) {
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
}

std::vector<float> steps_from(float first, std::size_t length) {
  std::vector<float> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

struct ShapeOfImage {
  const char* image;
  const char* sampler;  // empty: a fetch from it is no part of GLSL
  std::array<std::uint32_t, 3> size;
  std::size_t texels;
  const char* place;  // of texel i
  const char* level;  // what a fetch takes behind the place
};

const ShapeOfImage shapes_of_images[] = {
    {"image1D", "sampler1D", {48, 0, 0}, 48, "i", ", 0"},
    {"image2D", "sampler2D", {8, 6, 0}, 48, "ivec2(i % 8, i / 8)", ", 0"},
    {"image3D", "sampler3D", {4, 3, 4}, 48, "ivec3(i % 4, i / 4 % 3, i / 12)", ", 0"},
    {"image1DArray", "sampler1DArray", {8, 6, 0}, 48, "ivec2(i % 8, i / 8)", ", 0"},
    {"image2DArray", "sampler2DArray", {4, 3, 4}, 48, "ivec3(i % 4, i / 4 % 3, i / 12)", ", 0"},
    {"image2DRect", "sampler2DRect", {8, 6, 0}, 48, "ivec2(i % 8, i / 8)", ""},
    {"imageBuffer", "samplerBuffer", {48, 0, 0}, 48, "i", ""},
    {"imageCube", "", {2, 2, 6}, 24, "ivec3(i % 2, i / 2 % 2, i / 4)", ""},
    {"imageCubeArray", "", {2, 2, 12}, 48, "ivec3(i % 2, i / 2 % 2, i / 4)", ""}};

// Lane i copies texel i from one image to the other, and what the sampler reads there to the block.
KernelSource copying(const ShapeOfImage& shape) {
  const std::string image = shape.image, sampler = shape.sampler, place = shape.place;
  std::string text = "#version 450\nlayout(local_size_x = " + std::to_string(shape.texels) + ") in;\n";
  text += "layout(r32f) uniform readonly " + image + " from;\n";
  text += "layout(r32f) uniform writeonly " + image + " to;\n";
  if (!sampler.empty()) text += "uniform " + sampler + " looks;\n";
  text += "layout(std430, binding = 0) buffer Out { float found[]; };\n";
  text += "void main() {\n  int i = int(gl_LocalInvocationIndex);\n";
  text += "  imageStore(to, " + place + ", imageLoad(from, " + place + "));\n";
  text += "  found[i] = " + (sampler.empty() ? "1.0" : "texelFetch(looks, " + place + shape.level + ").x") + ";\n}\n";
  return user_kernel(std::move(text));
}

std::unique_ptr<Buffer> doubles_in(Device& device, const std::vector<double>& values, BufferUsage usage) {
  auto buffer = device.create_buffer({values.size() * sizeof(double), usage, {}, -1});
  REQUIRE(buffer.has_value());
  REQUIRE((*buffer)->write(0, std::as_bytes(std::span(values))).ok());
  return std::move(buffer).value();
}

}  // namespace

TEST_CASE("opengl: image texels of every shape are uploaded and read back", "[opengl][texture]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  for (const ShapeOfImage& shape : shapes_of_images) {
    INFO(shape.image);
    const KernelSource source = copying(shape);
    const auto program = build(device, source);
    const auto out = buffer_of(device, std::vector<float>(shape.texels, -1.0f), BufferUsage::readback);
    const auto from = buffer_of(device, std::vector<float>(shape.texels, -1.0f), BufferUsage::upload);
    const auto to = buffer_of(device, std::vector<float>(shape.texels, -1.0f), BufferUsage::readback);
    const SourceOfName given{{"Out", from_binding(0)},
                             {"from", texels_of(1, shape.size, Access::read)},
                             {"to", texels_of(2, shape.size, Access::write)},
                             {"looks", texels_of(1, shape.size, Access::read)}};
    for (const float first : {0.25f, 100.5f}) {  // the second job finds the textures of the first
      INFO("from " << first);
      const std::vector<float> values = steps_from(first, shape.texels);
      REQUIRE(from->write(0, std::as_bytes(std::span(values))).ok());
      require_run(run_with(device, source, *program, {out.get(), from.get(), to.get()}, given));
      CHECK(contents(*to) == values);
      CHECK(contents(*from) == values);
      CHECK(contents(*out) == (shape.sampler[0] == '\0' ? std::vector<float>(shape.texels, 1.0f) : values));
    }
  }
}

TEST_CASE("opengl: a texture is recreated when its buffer's shape changes", "[opengl][texture]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const std::vector<float> values = steps_from(0.5f, 48), blank(48, -1.0f);
  const auto from = buffer_of(device, values, BufferUsage::upload);
  const auto out = buffer_of(device, blank, BufferUsage::readback);
  const auto to = buffer_of(device, blank, BufferUsage::readback);
  for (const std::size_t at : {std::size_t{1}, std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
    const ShapeOfImage& shape = shapes_of_images[at];
    INFO(shape.image);
    const KernelSource source = copying(shape);
    const auto program = build(device, source);
    REQUIRE(to->write(0, std::as_bytes(std::span(blank))).ok());
    require_run(run_with(device, source, *program, {out.get(), from.get(), to.get()},
                         {{"Out", from_binding(0)},
                          {"from", texels_of(1, shape.size, Access::read)},
                          {"to", texels_of(2, shape.size, Access::write)},
                          {"looks", texels_of(1, shape.size, Access::read)}}));
    CHECK(contents(*to) == values);
    CHECK(contents(*out) == values);
  }
}

TEST_CASE("opengl: an atomic counter uses its buffer only during the dispatch", "[opengl][texture]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const KernelSource source = user_kernel(
      "#version 430\nlayout(local_size_x = 8) in;\n"
      "layout(binding = 1, offset = 4) uniform atomic_uint hits;\n"
      "layout(std430, binding = 0) buffer Out { float found[]; };\n"
      "void main() { found[gl_LocalInvocationIndex] = float(atomicCounterIncrement(hits) / 8u); }\n");
  const auto program = build(device, source);
  const auto out = buffer_of(device, std::vector<float>(8, -1.0f), BufferUsage::readback);
  const auto counters = buffer_of(device, {0.0f, 0.0f}, BufferUsage::readback);
  for (const std::uint32_t job : {0u, 1u}) {
    INFO("job " << job);
    require_run(run_with(device, source, *program, {out.get(), counters.get()},
                         {{"Out", from_binding(0)}, {"hits", from_binding(1)}}));
    CHECK(contents(*out) == std::vector<float>(8, static_cast<float>(job)));
    const std::vector<float> counted = contents(*counters);
    CHECK(std::bit_cast<std::uint32_t>(counted[0]) == 0u);
    CHECK(std::bit_cast<std::uint32_t>(counted[1]) == 8 * (job + 1));
    CHECK(egl_switches().counter_buffers == 0u);
  }
}

TEST_CASE("opengl: a uniform that a launch omits has its initializer's value", "[opengl][texture]") {
  OpenGl gl({{"persistent_mapping", std::string("never")}});
  if (!gl.usable()) return;
  Device& device = gl.device();
  const KernelSource source = user_kernel(
      "#version 430\nlayout(local_size_x = 1) in;\n"
      "uniform float gain = 2.5;\nuniform vec2 shift;\n"
      "layout(std430, binding = 0) buffer Out { float found[]; };\n"
      "void main() { found[0] = gain; found[1] = shift.x; found[2] = shift.y; }\n");
  const auto program = build(device, source);
  const auto out = buffer_of(device, std::vector<float>(3, -1.0f), BufferUsage::readback);
  for (const BufferUsage usage : {BufferUsage::upload, BufferUsage::storage}) {  // kept by the host, or read again
    const auto values = doubles_in(device, {3.0, 5.0, 7.0}, usage);
    const SourceOfName without{{"Out", from_binding(0)}, {"shift", number_at(1, 8)}};
    SourceOfName with = without;
    with["gain"] = number_at(1, 0);
    require_run(run_with(device, source, *program, {out.get(), values.get()}, without));
    CHECK(contents(*out) == std::vector<float>{2.5f, 5.0f, 7.0f});
    require_run(run_with(device, source, *program, {out.get(), values.get()}, with));
    CHECK(contents(*out) == std::vector<float>{3.0f, 5.0f, 7.0f});
    require_run(run_with(device, source, *program, {out.get(), values.get()}, without));
    CHECK(contents(*out) == std::vector<float>{2.5f, 5.0f, 7.0f});

    with["shift"] = number_at(1, 16);
    const auto beyond = run_with(device, source, *program, {out.get(), values.get()}, with);
    REQUIRE_FALSE(beyond.has_value());
    CHECK(beyond.error().code == StatusCode::invalid_argument);
    CHECK_THAT(beyond.error().message,
               Catch::Contains("uniforms.shift") && Catch::Contains("the values end at byte 32, expected at most 24"));
  }
}

TEST_CASE("opengl: values of several uniform blocks reach their own block, job by job", "[opengl][texture]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const KernelSource source = user_kernel(
      "#version 430\nlayout(local_size_x = 1) in;\n"
      "layout(std140, binding = 0) uniform First { float a; float b; };\n"
      "layout(std140, binding = 1) uniform Second { float c; };\n"
      "layout(std140, binding = 2) uniform Whole { vec4 d; };\n"
      "layout(std430, binding = 0) buffer Out { float found[]; };\n"
      "void main() { found[0] = a; found[1] = b; found[2] = c; found[3] = d.y; }\n");
  const auto program = build(device, source);
  const auto out = buffer_of(device, std::vector<float>(4, -1.0f), BufferUsage::readback);
  const auto whole = buffer_of(device, {8.0f, 9.0f, 10.0f, 11.0f});
  for (const double first : {1.0, 5.0}) {
    const auto values = doubles_in(device, {first, first + 1, first + 2}, BufferUsage::upload);
    SourceOfName given{{"Out", from_binding(0)}, {"Whole", from_binding(2)}};
    for (const ProgramResource& resource : program->interface(source)->resources) {
      if (resource.kind != ResourceKind::uniform || resource.block == "Whole") continue;
      given[resource.name] = number_at(1, 8u * static_cast<std::uint64_t>(resource.name.back() - 'a'));
    }
    require_run(run_with(device, source, *program, {out.get(), values.get(), whole.get()}, given));
    const auto number = static_cast<float>(first);
    CHECK(contents(*out) == std::vector<float>{number, number + 1, number + 2, 9.0f});
    CHECK(contents(*whole) == std::vector<float>{8.0f, 9.0f, 10.0f, 11.0f});
  }
}

TEST_CASE("opengl: a launch without the source of a resource is rejected", "[opengl][texture]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const KernelSource source = copying(shapes_of_images[0]);
  const auto program = build(device, source);
  const auto out = buffer_of(device, std::vector<float>(48, -1.0f), BufferUsage::readback);
  const auto from = buffer_of(device, std::vector<float>(48, 1.0f), BufferUsage::upload);
  const ResourceSource texels = texels_of(1, {48, 0, 0}, Access::read);
  const auto missing = run_with(device, source, *program, {out.get(), from.get()},
                                {{"Out", from_binding(0)}, {"from", texels}, {"looks", texels}});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == StatusCode::invalid_argument);
  CHECK_THAT(missing.error().message, Catch::Contains("image to is not provided"));

  const auto beyond = run_with(device, source, *program, {out.get(), from.get()},
                               {{"Out", from_binding(0)},
                                {"from", texels},
                                {"to", texels_of(2, {48, 0, 0}, Access::write)},  // there are two buffers
                                {"looks", texels}});
  REQUIRE_FALSE(beyond.has_value());
  CHECK_THAT(beyond.error().message, Catch::Contains("image to is not provided"));

  Buffer* const bindings[] = {out.get(), from.get()};
  const ResourceSource one[] = {from_binding(0)};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}, one};
  const auto few = device.submit({std::span(&launch, 1)});
  REQUIRE_FALSE(few.has_value());
  CHECK(few.error().code == StatusCode::invalid_argument);
  CHECK_THAT(few.error().message, Catch::Contains("1 resources are provided, expected 4"));
}

TEST_CASE("opengl: released programs, buffers and textures are deleted in the driver", "[opengl][texture]") {
  OpenGl gl({{"egl_library", std::string(KILN_WRAPPING_EGL)}, {"persistent_mapping", std::string("never")}});
  if (!gl.usable()) return;
  Device& device = gl.device();
  const std::vector<float> values = steps_from(0.5f, 48);
  const auto kept = buffer_of(device, values);
  const auto use_and_drop = [&] {
    const KernelSource source = copying(shapes_of_images[1]);
    const auto program = build(device, source);
    const auto out = buffer_of(device, std::vector<float>(48, -1.0f), BufferUsage::readback);
    const auto from = buffer_of(device, values);
    const auto to = buffer_of(device, std::vector<float>(48, -1.0f), BufferUsage::readback);
    const std::array<std::uint32_t, 3>& size = shapes_of_images[1].size;
    require_run(run_with(device, source, *program, {out.get(), from.get(), to.get()},
                         {{"Out", from_binding(0)},
                          {"from", texels_of(1, size, Access::read)},
                          {"to", texels_of(2, size, Access::write)},
                          {"looks", texels_of(1, size, Access::read)}}));
    CHECK(contents(*to) == values);
    if (device.info().max_texel_bindings == 0) return;
    KernelSource viewing = user_kernel(
        "#version 430\nlayout(local_size_x = 48) in;\n"
        "layout(binding = 0) uniform samplerBuffer x;\n"
        "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
        "void main() {\n"
        "  int i = int(gl_LocalInvocationIndex);\n"
        "  vec4 four = texelFetch(x, i / 4);\n"
        "  y[i] = four[i % 4];\n"
        "}\n");
    viewing.bindings = {Access::read, Access::write};
    viewing.views = {View::texels, View::storage};
    const auto viewer = build(device, viewing);
    require_run(run(device, *viewer, {from.get(), out.get()}, {1, 1, 1}));
    CHECK(contents(*out) == values);
  };
  const auto settle = [&] { CHECK(contents(*kept) == values); };  // on the context's thread, behind what was dropped
  use_and_drop();
  settle();  // what is made at the first use stays
  const int programs = egl_switches().programs, textures = egl_switches().textures, buffers = egl_switches().buffers;
  CHECK(buffers > 0);
  use_and_drop();
  settle();
  CHECK(egl_switches().programs == programs);
  CHECK(egl_switches().textures == textures);
  CHECK(egl_switches().buffers == buffers);
}

}  // namespace kiln::support

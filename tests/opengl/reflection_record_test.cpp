// What a program declares is stored behind its binary: a loaded program has it without a question to the driver.
#include "codec/reflection.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "opengl/support/kernels.hpp"

namespace kiln::opengl {
namespace {

using namespace kiln::support;

Reflection sample() {
  Reflection reflection;
  ProgramResource block;
  block.kind = ResourceKind::storage_block;
  block.name = "Particles";
  block.handle = 2;
  ProgramResource uniform;
  uniform.kind = ResourceKind::uniform;
  ProgramResource image;
  image.kind = ResourceKind::image;
  reflection.interface.resources = {block, uniform, image};
  reflection.uniforms = {{-1, 0x8F46, 2, {std::byte{1}, std::byte{2}}, 4, {2, 64, 48, 16, true}}};
  reflection.textures = {{7, 0x8513, 5}};
  return reflection;
}

std::vector<std::byte> bytes_of(const Reflection& reflection) {
  std::vector<std::byte> bytes;
  append(reflection, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("reflection record: every field comes back", "[opengl][codec]") {
  const std::vector<std::byte> bytes = bytes_of(sample());
  const std::optional<Reflection> read = read_reflection(bytes);
  REQUIRE(read);
  REQUIRE(read->interface.resources.size() == 3);
  CHECK(read->interface.resources[0].name == "Particles");  // the rest: program_record_test.cpp
  REQUIRE(read->uniforms.size() == 1);
  const PlainUniform& plain = read->uniforms[0];
  CHECK(plain.location == -1);
  CHECK(plain.type == 0x8F46);
  CHECK(plain.count == 2);
  CHECK(plain.initial == std::vector<std::byte>{std::byte{1}, std::byte{2}});
  CHECK(plain.block == 4);
  CHECK(plain.place.count == 2);
  CHECK(plain.place.offset == 64);
  CHECK(plain.place.array_stride == 48);
  CHECK(plain.place.matrix_stride == 16);
  CHECK(plain.place.row_major);
  REQUIRE(read->textures.size() == 1);
  CHECK(read->textures[0].location == 7);
  CHECK(read->textures[0].target == 0x8513);
  CHECK(read->textures[0].unit == 5);
}

TEST_CASE("reflection record: cut, longer or with a handle of nothing it is refused", "[opengl][codec]") {
  const std::vector<std::byte> whole = bytes_of(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size << " of " << whole.size() << " bytes");
    CHECK_FALSE(read_reflection(std::span(whole).first(size)));
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  CHECK_FALSE(read_reflection(longer));
  Reflection foreign = sample();
  foreign.interface.resources[1].handle = 1;  // there is one uniform
  CHECK_FALSE(read_reflection(bytes_of(foreign)));
  foreign = sample();
  foreign.interface.resources[2].handle = -1;
  CHECK_FALSE(read_reflection(bytes_of(foreign)));
}

TEST_CASE("reflection record: no altered bit makes the reader fail", "[opengl][codec]") {
  std::vector<std::byte> bytes = bytes_of(sample());
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    if (!read_reflection(bytes)) ++refused;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  CHECK(refused > bytes.size());  // lengths and truth values alone are more than an eighth of the bits
}

TEST_CASE("opengl: a loaded program declares what the built one does", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  if (!device.info().serializes) return;
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = R"(#version 430
layout(local_size_x = 4) in;
struct Particle { vec3 at; float mass; ivec2 cell; };
layout(std430, binding = 1) readonly buffer Particles { uint count; Particle particles[]; };
layout(std430, binding = 0) writeonly buffer Result { vec4 result[]; };
layout(std140, binding = 2) uniform Params { mat3 turn; vec4 colours[3]; } params;
layout(binding = 0) uniform atomic_uint hits;
layout(rgba8, binding = 0) uniform readonly image2D picture;
uniform sampler2D layers[2];
uniform float gain = 2.5;
uniform ivec2 places[3];
uniform float idle;
void main() {
  uint i = gl_GlobalInvocationID.x;
  atomicCounterIncrement(hits);
  vec3 turned = params.turn * particles[i].at * gain + float(places[2].y);
  result[i] = vec4(turned, particles[i].mass) + params.colours[i] + imageLoad(picture, particles[i].cell) +
              textureLod(layers[0], vec2(0.5), 0.0) + textureLod(layers[1], vec2(0.5), 0.0) + float(count);
})";
  const auto built = device.build(source);
  INFO((built ? std::string() : built.error().text()));
  REQUIRE(built);
  const auto binary = device.serialize(**built);
  REQUIRE(binary);
  const auto loaded = device.load(source, *binary);
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded);
  const ProgramInterface* const before = (*built)->interface(source);
  const ProgramInterface* const after = (*loaded)->interface(source);
  REQUIRE(before != nullptr);
  REQUIRE(after != nullptr);
  CHECK(before->resources.size() == 11);
  CHECK(std::ranges::count(before->unused, "idle", &ProgramResource::name) == 1);
  CHECK(bytes_of({*before, {}, {}}) == bytes_of({*after, {}, {}}));
  const auto again = device.serialize(**loaded);
  REQUIRE(again);
  CHECK(again->bytes == binary->bytes);
  // The record's end: its length, and the unit of the last sampler before it.
  ProgramBinary damaged = *binary;
  for (std::size_t back = 1; back <= 4; ++back) {
    damaged.bytes[damaged.bytes.size() - back] ^= std::byte{0x55};
    const auto refused = device.load(source, damaged);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == StatusCode::corrupt);
    CHECK_THAT(refused.error().message, Catch::Contains("stored list of the program's resources is damaged"));
    damaged.bytes[damaged.bytes.size() - back] ^= std::byte{0x55};
  }
}

}  // namespace kiln::opengl

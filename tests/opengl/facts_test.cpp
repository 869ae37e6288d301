// What the plugin makes of the answers of an OpenGL context: a table of functions of this file stands for the driver.
#include "codec/context.hpp"

#include <kiln/host_processor.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl {
namespace {

using BinaryBytes = std::vector<std::byte>;
using IdentityPairs = std::vector<std::pair<std::string, std::string>>;

struct FakeGl {
  std::map<GLenum, std::string> texts;
  std::map<GLenum, GLint> numbers;
  std::map<GLenum, std::array<GLint, 3>> triples;
  std::vector<GLint> formats;
  GLint64 block_bytes = 1 << 20;
  bool links = true;
  BinaryBytes program;  // the binary of what is linked
  GLenum program_format = 0x875f;
  std::optional<std::pair<GLenum, BinaryBytes>> offered;
  bool takes_offered = true;
  std::deque<GLenum> errors;  // what glGetError answers; GL_NO_ERROR behind them
  bool lost = false;          // glGetError answers GL_CONTEXT_LOST for ever
  int compiled = 0, deleted = 0;
};

FakeGl fake_gl;

const GLubyte* fake_text(GLenum name) {
  const auto at = fake_gl.texts.find(name);
  return at == fake_gl.texts.end() ? nullptr : reinterpret_cast<const GLubyte*>(at->second.c_str());
}

void fake_integer(GLenum name, GLint* value) {
  if (name == GL_PROGRAM_BINARY_FORMATS) {
    std::copy(fake_gl.formats.begin(), fake_gl.formats.end(), value);
  } else {
    *value = name == GL_NUM_PROGRAM_BINARY_FORMATS ? static_cast<GLint>(fake_gl.formats.size()) : fake_gl.numbers[name];
  }
}

void fake_program_value(GLuint, GLenum name, GLint* value) {
  const bool linked = fake_gl.offered ? fake_gl.takes_offered : fake_gl.links;
  if (name == GL_LINK_STATUS) *value = linked ? GL_TRUE : GL_FALSE;
  if (name == GL_PROGRAM_BINARY_LENGTH) *value = static_cast<GLint>(fake_gl.program.size());
}

void fake_program_binary(GLuint, GLsizei most, GLsizei* length, GLenum* format, void* bytes) {
  *length = std::min(most, static_cast<GLsizei>(fake_gl.program.size()));
  *format = fake_gl.program_format;
  std::memcpy(bytes, fake_gl.program.data(), static_cast<std::size_t>(*length));
}

Gl fake_driver() {
  Gl gl{};
  gl.GetString = fake_text;
  gl.GetIntegerv = fake_integer;
  gl.GetIntegeri_v = [](GLenum name, GLuint axis, GLint* value) { *value = fake_gl.triples[name].at(axis); };
  gl.GetInteger64v = [](GLenum, GLint64* value) { *value = fake_gl.block_bytes; };
  gl.GetError = []() -> GLenum {
    if (fake_gl.lost) return GL_CONTEXT_LOST;
    if (fake_gl.errors.empty()) return GL_NO_ERROR;
    const GLenum next = fake_gl.errors.front();
    fake_gl.errors.pop_front();
    return next;
  };
  gl.CreateShader = [](GLenum) -> GLuint { return 7; };
  gl.ShaderSource = [](GLuint, GLsizei, const GLchar* const*, const GLint*) {};
  gl.CompileShader = [](GLuint) { ++fake_gl.compiled; };
  gl.CreateProgram = []() -> GLuint {
    fake_gl.offered.reset();
    return 8;
  };
  gl.ProgramParameteri = [](GLuint, GLenum, GLint) {};
  gl.AttachShader = [](GLuint, GLuint) {};
  gl.LinkProgram = [](GLuint) {};
  gl.GetProgramiv = fake_program_value;
  gl.GetProgramBinary = fake_program_binary;
  gl.ProgramBinary = [](GLuint, GLenum format, const void* bytes, GLsizei size) {
    const auto* const first = static_cast<const std::byte*>(bytes);
    fake_gl.offered.emplace(format, BinaryBytes(first, first + size));
  };
  gl.DeleteProgram = [](GLuint) { ++fake_gl.deleted; };
  gl.DeleteShader = [](GLuint) { ++fake_gl.deleted; };
  return gl;
}

BinaryBytes counting_bytes(std::size_t count) {
  BinaryBytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

void set_fake_driver(const std::string& vendor, const std::string& renderer, const std::string& version) {
  fake_gl = {};
  fake_gl.texts = {
      {GL_VENDOR, vendor}, {GL_RENDERER, renderer}, {GL_VERSION, version}, {GL_SHADING_LANGUAGE_VERSION, "4.50"}};
  fake_gl.numbers = {{GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS, 1024},
                     {GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS, 16},
                     {GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS, 96},
                     {GL_MAX_COMPUTE_TEXTURE_IMAGE_UNITS, 32},
                     {GL_MAX_COMPUTE_IMAGE_UNIFORMS, 9},
                     {GL_MAX_IMAGE_UNITS, 8},
                     {GL_MAX_TEXTURE_BUFFER_SIZE, 65536},
                     {GL_MAX_COMPUTE_SHARED_MEMORY_SIZE, 49152}};
  fake_gl.triples = {{GL_MAX_COMPUTE_WORK_GROUP_COUNT, {65535, 65534, -1}},
                     {GL_MAX_COMPUTE_WORK_GROUP_SIZE, {1024, 512, 64}}};
  fake_gl.formats = {0x1234, 0x875f};
  fake_gl.program = counting_bytes(40);
}

Result<Facts> facts_with(DeviceKind kind, bool mesa, DriverNotes* notes = nullptr) {
  const Gl gl = fake_driver();
  return read_facts({gl, "opengl:3", kind, mesa, [&gl](std::string_view doing) { return take_errors(gl, doing); }},
                    notes);
}

class LastNote final : public DriverNotes {
 public:
  std::optional<BinaryBytes> find(std::string_view wanted) noexcept override {
    return wanted == name ? std::optional(bytes) : std::nullopt;
  }
  void keep(std::string_view wanted, std::span<const std::byte> stored) noexcept override {
    name = wanted;
    bytes.assign(stored.begin(), stored.end());
    ++kept;
  }
  std::string name;
  BinaryBytes bytes;
  int kept = 0;
};

const std::string digest_4_to_23 = "0405060708090a0b0c0d0e0f1011121314151617";

}  // namespace

TEST_CASE("opengl: facts: error and reset codes have OpenGL's names", "[opengl][facts]") {
  const std::pair<GLenum, const char*> errors[] = {{0, "GL_NO_ERROR"},
                                                   {0x0500, "GL_INVALID_ENUM"},
                                                   {0x0501, "GL_INVALID_VALUE"},
                                                   {0x0502, "GL_INVALID_OPERATION"},
                                                   {0x0503, "GL_STACK_OVERFLOW"},
                                                   {0x0504, "GL_STACK_UNDERFLOW"},
                                                   {0x0505, "GL_OUT_OF_MEMORY"},
                                                   {0x0506, "GL_INVALID_FRAMEBUFFER_OPERATION"},
                                                   {0x0507, "GL_CONTEXT_LOST"},
                                                   {0x0508, "OpenGL error 0x0508"}};
  for (const auto& [number, name] : errors) CHECK(error_name(number) == name);
  const std::pair<GLenum, const char*> resets[] = {{0, "GL_NO_ERROR"},
                                                   {0x8253, "GL_GUILTY_CONTEXT_RESET"},
                                                   {0x8254, "GL_INNOCENT_CONTEXT_RESET"},
                                                   {0x8255, "GL_UNKNOWN_CONTEXT_RESET"},
                                                   {0x8256, "reset status 0x8256"}};
  for (const auto& [number, name] : resets) CHECK(reset_name(number) == name);
}

TEST_CASE("opengl: facts: all errors are taken, and the first one or the loss decides", "[opengl][facts]") {
  const Gl gl = fake_driver();
  struct Taken {
    std::deque<GLenum> errors;
    StatusCode code;
    const char* message;
  };
  for (const auto& [errors, code, message] :
       {Taken{{}, StatusCode::ok, ""}, Taken{{0x0501}, StatusCode::internal, "work: GL_INVALID_VALUE"},
        Taken{{0x0501, 0x0505}, StatusCode::internal, "work: GL_INVALID_VALUE"},
        Taken{{0x0505, 0x0501}, StatusCode::unavailable, "work: GL_OUT_OF_MEMORY"},
        Taken{{0x0502, 0x0507}, StatusCode::device_lost, "work: GL_INVALID_OPERATION"},
        Taken{{0x0507}, StatusCode::device_lost, "work: GL_CONTEXT_LOST"}}) {
    INFO(message);
    fake_gl = {};
    fake_gl.errors = errors;
    const Status status = take_errors(gl, "work");
    CHECK(status.code == code);
    CHECK(status.message == message);
    CHECK(fake_gl.errors.empty());
  }
  fake_gl.errors.clear();
  fake_gl.lost = true;
  CHECK(take_errors(gl, "work").code == StatusCode::device_lost);
  fake_gl.lost = false;
  fake_gl.errors.assign(1000, 0x0500);
  CHECK(take_errors(gl, "work").code == StatusCode::internal);
  CHECK(fake_gl.errors.size() > 900);  // a driver that never ends is not asked for ever
}

TEST_CASE("opengl: facts: limits come from the driver, and one below zero counts as zero", "[opengl][facts]") {
  set_fake_driver("NVIDIA Corporation", "GeForce", "4.5.0 NVIDIA 525.60");
  auto facts = facts_with(DeviceKind::gpu, false);
  REQUIRE(facts.has_value());
  DeviceInfo info = facts->info;
  CHECK(info.id == "opengl:3");
  CHECK(info.kind == DeviceKind::gpu);
  CHECK(info.usable);
  CHECK(info.dialects == std::vector<Dialect>{Dialect::glsl});
  CHECK(info.max_grid == std::array<std::uint32_t, 3>{65535, 65534, 0});
  CHECK(info.max_workgroup == std::array<std::uint32_t, 3>{1024, 512, 64});
  CHECK(info.max_workgroup_lanes == 1024);
  CHECK(info.max_bindings == 16);
  CHECK(info.max_texel_bindings == 32);
  CHECK(info.max_image_bindings == 8);
  CHECK(info.max_view_texels == 65536);
  CHECK(info.max_shared_bytes == 49152);
  CHECK(info.max_buffer_bytes == 1 << 20);
  CHECK(info.simd_lanes == 0);
  CHECK(info.roof_gflops == 0);
  CHECK(info.shared_resource == "");
  CHECK(info.glsl_barrier == "");

  fake_gl.numbers[GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS] = 64;
  fake_gl.numbers[GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS] = 12;
  fake_gl.numbers[GL_MAX_COMPUTE_IMAGE_UNIFORMS] = 5;
  fake_gl.numbers[GL_MAX_COMPUTE_TEXTURE_IMAGE_UNITS] = -1;
  fake_gl.numbers[GL_MAX_TEXTURE_BUFFER_SIZE] = -1;
  fake_gl.block_bytes = -1;
  info = facts_with(DeviceKind::gpu, false).value().info;
  CHECK(info.max_bindings == 12);
  CHECK(info.max_image_bindings == 5);
  CHECK(info.max_texel_bindings == 0);
  CHECK(info.max_view_texels == 0);
  CHECK(info.max_buffer_bytes == 0);

  fake_gl.errors = {0x0500};
  facts = facts_with(DeviceKind::gpu, false);
  REQUIRE_FALSE(facts.has_value());
  CHECK(facts.error().message == "reading the device's facts: GL_INVALID_ENUM");
}

TEST_CASE("opengl: facts: a program of one driver is not one of another", "[opengl][facts]") {
  set_fake_driver("NVIDIA Corporation", "GeForce (rev 2)", "4.5.0 NVIDIA 525.60");
  Facts facts = facts_with(DeviceKind::gpu, false).value();
  CHECK(facts.info.name == "GeForce (rev 2)");
  CHECK(facts.info.device_identity == IdentityPairs{{"vendor", "NVIDIA Corporation"}, {"renderer", "GeForce (rev 2)"}});
  fake_gl.program_format = 0x1234;
  facts = facts_with(DeviceKind::gpu, false).value();
  CHECK(facts.info.serializes);
  CHECK(facts.binary_formats == std::vector<GLenum>{0x1234, 0x875f});
  const auto last = [&] { return facts.info.driver_identity.back(); };
  CHECK(last() == std::pair<std::string, std::string>("renderer", "GeForce (rev 2)"));

  set_fake_driver("AMD", "AMD Radeon (navi31, LLVM 15.0.6)", "4.6 (Core Profile) Mesa 22.3.6");
  facts = facts_with(DeviceKind::gpu, true).value();
  CHECK(facts.info.name == "AMD Radeon (navi31, LLVM 15.0.6)");
  CHECK(facts.info.device_identity == IdentityPairs{{"vendor", "AMD"}, {"renderer", "AMD Radeon"}});
  CHECK(facts.info.driver_identity.front() ==
        std::pair<std::string, std::string>("gl", "4.6 (Core Profile) Mesa 22.3.6"));
  CHECK(facts.info.driver_identity.at(1) == std::pair<std::string, std::string>("glsl", "4.50"));
  CHECK(last() == std::pair<std::string, std::string>("mesa_sha1", digest_4_to_23));
  CHECK(facts.info.glsl_barrier == "(memoryBarrierShared(), barrier())");
  CHECK(facts.info.simd_lanes == 0);
  for (const std::size_t bytes : {std::size_t{23}, std::size_t{24}}) {  // the digest ends at byte 24
    INFO(bytes);
    fake_gl.program = counting_bytes(bytes);
    facts = facts_with(DeviceKind::gpu, true).value();
    CHECK(last().first == (bytes == 24 ? "mesa_sha1" : "renderer"));
    CHECK(facts.info.serializes);
  }

  set_fake_driver("Mesa", "llvmpipe (LLVM 15.0.6, 256 bits)", "4.5 (Core Profile) Mesa 22.3.6");
  facts = facts_with(DeviceKind::software, true).value();
  CHECK(facts.info.device_identity == IdentityPairs{{"vendor", "Mesa"}, {"rasterizer", "software"}});
  CHECK(last() == std::pair<std::string, std::string>("renderer", "llvmpipe"));
  CHECK(facts.info.driver_identity.rbegin()[1] == std::pair<std::string, std::string>("mesa_sha1", digest_4_to_23));
  CHECK(facts.info.simd_lanes == 8);
  CHECK(facts.info.shared_resource == "host-cores");
  CHECK(facts.info.roof_gflops == host_roof_gflops());
  facts = facts_with(DeviceKind::simulated, true).value();
  CHECK(facts.info.shared_resource == "host-cores");
  CHECK(facts.info.roof_gflops == 0);
}

TEST_CASE("opengl: facts: the driver's words and the width of its vectors are read from its texts", "[opengl][facts]") {
  const std::pair<const char*, const char*> versions[] = {{"4.5 (Core Profile) Mesa 22.3.6", "Mesa 22.3.6"},
                                                          {"4.5.0 NVIDIA 525.60", "NVIDIA 525.60"},
                                                          {"4.6 Mesa 23", "Mesa 23"},
                                                          {"4.5.0", "4.5.0"},
                                                          {"4.5 (Core Profile)", "4.5 (Core Profile)"},
                                                          {"4.5 (Core Profile) ", "4.5 (Core Profile) "},
                                                          {"4.5 ", "4.5 "},
                                                          {"", ""}};
  for (const auto& [version, words] : versions) {
    INFO(version);
    set_fake_driver("V", "R", version);
    CHECK(facts_with(DeviceKind::gpu, false).value().info.driver == words);
  }
  const std::pair<const char*, std::uint32_t> renderers[] = {
      {"llvmpipe (LLVM 15.0.6, 128 bits)", 4}, {"llvmpipe (512 bits)", 16}, {"llvmpipe (LLVM 15.0.6)", 0},
      {"llvmpipe (LLVM 15.0.6, x bits)", 0},   {"softpipe 128", 0},         {"softpipe", 0}};
  for (const auto& [renderer, lanes] : renderers) {
    INFO(renderer);
    set_fake_driver("V", renderer, "4.5");
    CHECK(facts_with(DeviceKind::software, true).value().info.simd_lanes == lanes);
  }
}

TEST_CASE("opengl: facts: a driver without formats or binaries stores nothing", "[opengl][facts]") {
  set_fake_driver("V", "R", "4.5");
  LastNote notes;
  fake_gl.formats.clear();
  Facts facts = facts_with(DeviceKind::gpu, false, &notes).value();
  CHECK_FALSE(facts.info.serializes);
  CHECK(facts.binary_formats.empty());
  CHECK(fake_gl.compiled == 0);
  fake_gl.formats = {0x1234};
  fake_gl.program.clear();
  facts = facts_with(DeviceKind::gpu, false, &notes).value();
  CHECK_FALSE(facts.info.serializes);
  CHECK(facts.binary_formats.empty());
  fake_gl.program = counting_bytes(8);
  fake_gl.links = false;
  facts = facts_with(DeviceKind::gpu, false, &notes).value();
  CHECK_FALSE(facts.info.serializes);
  CHECK(notes.kept == 0);
  fake_gl.links = true;
  CHECK(facts_with(DeviceKind::gpu, false, &notes).value().info.serializes);
  CHECK(notes.kept == 1);
}

TEST_CASE("opengl: facts: a stored canary is used where the driver takes it", "[opengl][facts]") {
  const Gl gl = fake_driver();
  fake_gl = {};
  fake_gl.program = counting_bytes(8);
  fake_gl.program_format = 0x875f;
  LastNote notes;
  const std::vector<GLenum> formats{0x1234, 0x875f};
  const auto read = [&] { return read_canary(gl, formats, "driver of words", &notes); };
  Canary canary = read();
  CHECK(canary.format == 0x875f);
  CHECK(canary.binary == counting_bytes(8));
  CHECK(notes.name == "canary of driver of words");
  CHECK(fake_gl.compiled == 1);
  CHECK(fake_gl.deleted == 2);  // the program and its shader
  const BinaryBytes stored = notes.bytes;
  REQUIRE(stored.size() == 12);

  canary = read();
  CHECK(canary.format == 0x875f);
  CHECK(canary.binary == counting_bytes(8));
  REQUIRE(fake_gl.offered);
  CHECK(fake_gl.offered->first == 0x875f);
  CHECK(fake_gl.offered->second == counting_bytes(8));
  CHECK(fake_gl.compiled == 1);
  CHECK(fake_gl.deleted == 3);
  fake_gl.errors = {0x0502};  // of what was offered
  read();
  CHECK(fake_gl.errors.empty());
  CHECK(fake_gl.compiled == 1);

  fake_gl.takes_offered = false;
  read();
  CHECK(fake_gl.compiled == 2);
  fake_gl.takes_offered = true;
  fake_gl.offered.reset();
  for (const BinaryBytes& damaged :
       {BinaryBytes(), BinaryBytes(stored.begin(), stored.begin() + 4), counting_bytes(12)}) {
    notes.bytes = damaged;
    const int before = fake_gl.compiled;
    CHECK(read().binary == counting_bytes(8));
    CHECK(fake_gl.compiled == before + 1);
    CHECK(notes.bytes == stored);
  }
  CHECK(read_canary(gl, {}, "driver of words", &notes).binary.empty());
  CHECK(read_canary(gl, formats, "driver of words", nullptr).binary == counting_bytes(8));
}

}  // namespace kiln::opengl

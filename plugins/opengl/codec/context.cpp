#include "codec/context.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <kiln/host_processor.hpp>

#include "codec/source_text.hpp"

namespace kiln::opengl {
namespace {

std::string hexadecimal(GLenum value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", value);
  return text;
}

}  // namespace

std::string error_name(GLenum error) {
  switch (error) {
    case GL_NO_ERROR:
      return "GL_NO_ERROR";
    case GL_INVALID_ENUM:
      return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE:
      return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION:
      return "GL_INVALID_OPERATION";
    case GL_INVALID_FRAMEBUFFER_OPERATION:
      return "GL_INVALID_FRAMEBUFFER_OPERATION";
    case GL_OUT_OF_MEMORY:
      return "GL_OUT_OF_MEMORY";
    case GL_STACK_OVERFLOW:
      return "GL_STACK_OVERFLOW";
    case GL_STACK_UNDERFLOW:
      return "GL_STACK_UNDERFLOW";
    case GL_CONTEXT_LOST:
      return "GL_CONTEXT_LOST";
    default:
      return "OpenGL error " + hexadecimal(error);
  }
}

std::string reset_name(GLenum reset_status) {
  switch (reset_status) {
    case GL_NO_ERROR:
      return "GL_NO_ERROR";
    case GL_GUILTY_CONTEXT_RESET:
      return "GL_GUILTY_CONTEXT_RESET";
    case GL_INNOCENT_CONTEXT_RESET:
      return "GL_INNOCENT_CONTEXT_RESET";
    case GL_UNKNOWN_CONTEXT_RESET:
      return "GL_UNKNOWN_CONTEXT_RESET";
    default:
      return "reset status " + hexadecimal(reset_status);
  }
}

Status take_errors(const Gl& gl, std::string_view doing) {
  const GLenum first = gl.GetError();
  if (first == GL_NO_ERROR) return {};
  // A lost context may answer GL_CONTEXT_LOST for ever: never drain without a bound.
  GLenum next = first;
  for (int drained = 0; drained < 16 && next != GL_NO_ERROR && next != GL_CONTEXT_LOST; ++drained) next = gl.GetError();
  std::string message = std::string(doing) + ": " + error_name(first);
  if (first == GL_CONTEXT_LOST || next == GL_CONTEXT_LOST) return device_lost(std::move(message));
  if (first == GL_OUT_OF_MEMORY) return unavailable(std::move(message));
  return internal_error(std::move(message));
}

namespace {

constexpr GLenum mesa_binary_format = 0x875f;  // GL_PROGRAM_BINARY_FORMAT_MESA
constexpr std::size_t mesa_digest_offset = 4;  // after the header's internal format
constexpr std::size_t mesa_digest_bytes = 20;

// Settings of Mesa's software rasterizer that change its code but not its version, and stand in no string it answers.
constexpr const char* code_settings[] = {
    "GALLIUM_DRIVER", "GALLIVM_PERF", "LP_NATIVE_VECTOR_WIDTH", "LP_FORCE_SSE2", "GALLIUM_OVERRIDE_CPU_CAPS",
    "GALLIUM_NOSSE"};

std::string text_of(const Gl& gl, GLenum name) {
  const GLubyte* text = gl.GetString(name);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

GLint integer_of(const Gl& gl, GLenum name) {
  GLint value = 0;
  gl.GetIntegerv(name, &value);
  return value;
}

std::array<std::uint32_t, 3> three_of(const Gl& gl, GLenum name) {
  std::array<std::uint32_t, 3> values{};
  for (GLuint axis = 0; axis < 3; ++axis) {
    GLint value = 0;
    gl.GetIntegeri_v(name, axis, &value);
    values[axis] = static_cast<std::uint32_t>(std::max(value, 0));
  }
  return values;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

// "Mesa 22.3.6" out of "4.5 (Core Profile) Mesa 22.3.6"; the whole text where there is nothing behind the version.
std::string driver_words(const std::string& version) {
  std::size_t at = version.find(' ');
  if (at != std::string::npos && at + 1 < version.size() && version[at + 1] == '(') at = version.find(") ", at);
  if (at == std::string::npos) return version;
  const std::size_t word = version.find_first_not_of(") ", at);
  return word == std::string::npos ? version : version.substr(word);
}

// "llvmpipe" out of "llvmpipe (LLVM 15.0.6, 256 bits)": in its parentheses Mesa tells versions (of LLVM, of the
// kernel), which are no part of what the device is.
std::string device_words(const std::string& renderer) { return renderer.substr(0, renderer.find(" (")); }

// A software rasterizer tells the width of its vectors: 8 out of "llvmpipe (LLVM 15.0.6, 256 bits)". 0: none told.
std::uint32_t told_lanes(const std::string& renderer) {
  const std::size_t bits = renderer.find(" bits)");
  if (bits == std::string::npos) return 0;
  const std::size_t before = renderer.find_last_not_of("0123456789", bits - 1);
  std::uint32_t width = 0;
  std::from_chars(renderer.data() + before + 1, renderer.data() + bits, width);
  return width / 32;
}

}  // namespace

Result<Facts> read_facts(const CurrentContext& context, DriverNotes* notes) {
  const Gl& gl = context.gl;
  Facts facts;
  DeviceInfo& info = facts.info;
  const std::string version = text_of(gl, GL_VERSION);
  info.id = context.id;
  info.kind = context.kind;
  info.name = text_of(gl, GL_RENDERER);
  info.driver = driver_words(version);
  const std::string renderer = context.mesa ? device_words(info.name) : info.name;
  // What rasterizes in software is a driver, and its device this host: a program of llvmpipe's that softpipe is asked
  // for was held under another driver.
  const bool software = info.kind == DeviceKind::software;
  info.device_identity = {
      {"vendor", text_of(gl, GL_VENDOR)},
      software ? std::pair("rasterizer", std::string("software")) : std::pair("renderer", renderer)};
  info.driver_identity = {{"gl", version}, {"glsl", text_of(gl, GL_SHADING_LANGUAGE_VERSION)}};
  for (const char* setting : code_settings) {
    if (const char* value = std::getenv(setting); value != nullptr && *value != 0)
      info.driver_identity.emplace_back(setting, value);
  }

  if (const GLint formats = integer_of(gl, GL_NUM_PROGRAM_BINARY_FORMATS); formats > 0) {
    std::vector<GLint> values(static_cast<std::size_t>(formats));
    gl.GetIntegerv(GL_PROGRAM_BINARY_FORMATS, values.data());
    facts.binary_formats.assign(values.begin(), values.end());
  }
  const Canary canary =
      read_canary(gl, facts.binary_formats, text_of(gl, GL_VENDOR) + "; " + info.name + "; " + version, notes);
  if (canary.binary.empty()) facts.binary_formats.clear();  // formats that no program comes in
  info.serializes = !facts.binary_formats.empty();
  if (canary.format == mesa_binary_format && canary.binary.size() >= mesa_digest_offset + mesa_digest_bytes) {
    info.driver_identity.emplace_back(
        "mesa_sha1", hexadecimal(std::span(canary.binary).subspan(mesa_digest_offset, mesa_digest_bytes)));
    if (software) info.driver_identity.emplace_back("renderer", renderer);
  } else {
    info.driver_identity.emplace_back("renderer", info.name);
  }

  info.dialects = {Dialect::glsl};
  if (context.mesa) info.glsl_barrier = mesa_barrier;
  if (info.kind != DeviceKind::gpu) info.shared_resource = "host-cores";
  info.max_grid = three_of(gl, GL_MAX_COMPUTE_WORK_GROUP_COUNT);
  info.max_workgroup = three_of(gl, GL_MAX_COMPUTE_WORK_GROUP_SIZE);
  info.max_workgroup_lanes = static_cast<std::uint32_t>(integer_of(gl, GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS));
  info.max_bindings = static_cast<std::uint32_t>(std::min(integer_of(gl, GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS),
                                                          integer_of(gl, GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS)));
  const auto limit = [&gl](GLenum name) { return static_cast<std::uint32_t>(std::max(integer_of(gl, name), 0)); };
  info.max_texel_bindings = limit(GL_MAX_COMPUTE_TEXTURE_IMAGE_UNITS);
  info.max_image_bindings = std::min(limit(GL_MAX_COMPUTE_IMAGE_UNIFORMS), limit(GL_MAX_IMAGE_UNITS));
  info.max_view_texels = limit(GL_MAX_TEXTURE_BUFFER_SIZE);
  info.max_shared_bytes = limit(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
  info.simd_lanes = told_lanes(info.name);
  // A rasterizer in software computes on the host's cores; of a simulated device's clock they say nothing.
  if (info.kind == DeviceKind::software) info.roof_gflops = host_roof_gflops();
  GLint64 block = 0;
  gl.GetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &block);
  info.max_buffer_bytes = static_cast<std::uint64_t>(std::max<GLint64>(block, 0));
  if (Status status = context.check("reading the device's facts"); !status.ok()) return status;
  info.usable = true;
  return facts;
}

namespace {

constexpr const char* text =
    "#version 430 core\n"
    "layout(local_size_x = 1) in;\n"
    "layout(std430, binding = 0) buffer Data { uint value; };\n"
    "void main() { value = 1u; }\n";

Canary build(const Gl& gl) {
  const GLuint shader = gl.CreateShader(GL_COMPUTE_SHADER);
  gl.ShaderSource(shader, 1, &text, nullptr);
  gl.CompileShader(shader);
  const GLuint program = gl.CreateProgram();
  gl.ProgramParameteri(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  gl.AttachShader(program, shader);
  gl.LinkProgram(program);
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  GLint length = 0;
  if (linked == GL_TRUE) gl.GetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &length);
  Canary canary;
  canary.binary.resize(static_cast<std::size_t>(std::max(length, 0)));
  GLsizei written = 0;
  if (length > 0) gl.GetProgramBinary(program, length, &written, &canary.format, canary.binary.data());
  canary.binary.resize(static_cast<std::size_t>(std::max(written, 0)));
  gl.DeleteProgram(program);
  gl.DeleteShader(shader);
  return canary;
}

bool takes(const Gl& gl, const Canary& canary) {
  const GLuint program = gl.CreateProgram();
  gl.ProgramBinary(program, canary.format, canary.binary.data(), static_cast<GLsizei>(canary.binary.size()));
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  gl.DeleteProgram(program);
  static_cast<void>(take_errors(gl, "offering a stored program"));
  return linked == GL_TRUE;
}

// A note: the format's number, then the binary.
std::vector<std::byte> encode(const Canary& canary) {
  std::vector<std::byte> bytes(sizeof canary.format);
  std::memcpy(bytes.data(), &canary.format, sizeof canary.format);
  bytes.insert(bytes.end(), canary.binary.begin(), canary.binary.end());
  return bytes;
}

Canary decode(const std::vector<std::byte>& bytes) {
  Canary canary;
  if (bytes.size() <= sizeof canary.format) return canary;
  std::memcpy(&canary.format, bytes.data(), sizeof canary.format);
  canary.binary.assign(bytes.begin() + sizeof canary.format, bytes.end());
  return canary;
}

}  // namespace

Canary read_canary(const Gl& gl, const std::vector<GLenum>& formats, std::string_view driver, DriverNotes* notes) {
  if (formats.empty()) return {};
  const std::string name = "canary of " + std::string(driver);
  if (notes != nullptr) {
    if (const auto kept = notes->find(name)) {
      Canary canary = decode(*kept);
      const bool known = std::find(formats.begin(), formats.end(), canary.format) != formats.end();
      if (known && takes(gl, canary)) return canary;
    }
  }
  Canary canary = build(gl);
  if (notes != nullptr && !canary.binary.empty()) notes->keep(name, encode(canary));
  return canary;
}

}  // namespace kiln::opengl

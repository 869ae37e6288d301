#include "codec/program_codec.hpp"

#include "codec/source_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>

namespace kiln::opengl {
namespace {

// A name of an OpenGL object that is deleted unless it is released; on a context's thread.
class ShaderName {
 public:
  explicit ShaderName(const Gl& gl) : gl_(gl), name_(gl.CreateShader(GL_COMPUTE_SHADER)) {}
  ShaderName(const ShaderName&) = delete;
  ShaderName& operator=(const ShaderName&) = delete;
  ~ShaderName() { gl_.DeleteShader(name_); }
  GLuint get() const noexcept { return name_; }

 private:
  const Gl& gl_;
  GLuint name_;
};

template <class Length, class Text>
std::string whole_log(GLuint name, Length length_of, Text text_of) {
  GLint length = 0;
  length_of(name, GL_INFO_LOG_LENGTH, &length);  // with its terminating zero
  if (length <= 1) return "(the driver returned no log)";
  std::string log(static_cast<std::size_t>(length), '\0');
  GLsizei written = 0;
  text_of(name, length, &written, log.data());
  log.resize(static_cast<std::size_t>(std::max(written, 0)));
  return log;
}

std::string program_log(const Gl& gl, GLuint program) {
  return whole_log(program, gl.GetProgramiv, gl.GetProgramInfoLog);
}

std::string sizes(const std::array<std::uint32_t, 3>& value) {
  return std::to_string(value[0]) + "x" + std::to_string(value[1]) + "x" + std::to_string(value[2]);
}

// Where the source tells its workgroup, the text must declare the same one.
Status check_workgroup(const Gl& gl, GLuint program, const KernelSource& source) {
  constexpr std::array<std::uint32_t, 3> declared_by_text{0, 0, 0};
  if (source.workgroup == declared_by_text) return {};
  std::array<GLint, 3> found{};
  gl.GetProgramiv(program, GL_COMPUTE_WORK_GROUP_SIZE, found.data());
  const std::array<std::uint32_t, 3> size{static_cast<std::uint32_t>(found[0]), static_cast<std::uint32_t>(found[1]),
                                          static_cast<std::uint32_t>(found[2])};
  if (size == source.workgroup) return {};
  return invalid_argument("the text declares a workgroup of " + sizes(size) + ", expected " + sizes(source.workgroup));
}

// An estimate of what a driver keeps of a program that is linked and was dispatched: intermediate forms and machine
// code. docs/measurements/program-cache.md: llvmpipe (Mesa 22.3) takes 0.17 MB for a binary of 5 KB and 0.48 MB for one
// of 25 KB. Where a driver tells no size, the source stands in for it.
std::uint64_t charge_of(const KernelSource& source, std::uint64_t binary_bytes) {
  constexpr std::uint64_t for_any = 80 << 10, for_each_byte = 16;
  return for_any + for_each_byte * (binary_bytes != 0 ? binary_bytes : source.text.size());
}

// The driver's binary, the reflection and the length of the reflection, one behind the other.
struct StoredParts {
  std::span<const std::byte> driver, reflection;
};

std::optional<StoredParts> parts_of(std::span<const std::byte> bytes) {
  std::uint32_t behind = 0;
  if (bytes.size() < sizeof behind) return std::nullopt;
  const std::size_t end = bytes.size() - sizeof behind;
  std::memcpy(&behind, bytes.data() + end, sizeof behind);
  if (behind >= end) return std::nullopt;
  return StoredParts{bytes.first(end - behind), bytes.subspan(end - behind, behind)};
}

}  // namespace

std::string format_tag(GLenum format) {
  char text[16];
  std::snprintf(text, sizeof text, "gl2:%04x", format);
  return text;
}

Result<LinkedProgram> build_program(const CurrentContext& context, const KernelSource& source, const std::string& text,
                                    std::atomic<std::uint64_t>& counter) {
  const Gl& gl = context.gl;
  const ShaderName shader(gl);
  LinkedProgram program(gl);
  const char* pointer = text.c_str();
  const GLint length = static_cast<GLint>(text.size());
  gl.ShaderSource(shader.get(), 1, &pointer, &length);
  counter.fetch_add(1, std::memory_order_relaxed);
  gl.CompileShader(shader.get());
  GLint compiled = GL_FALSE;
  gl.GetShaderiv(shader.get(), GL_COMPILE_STATUS, &compiled);
  if (Status status = context.check("compiling"); !status.ok()) return status;
  if (compiled != GL_TRUE) {
    const std::string log = whole_log(shader.get(), gl.GetShaderiv, gl.GetShaderInfoLog);
    return invalid_argument(context.id + ": " + vulkan_advice(text, source.files) +
                            "GLSL compiler: " + with_file_names(log, source.files));
  }
  gl.ProgramParameteri(program.get(), GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  gl.AttachShader(program.get(), shader.get());
  gl.LinkProgram(program.get());
  gl.DetachShader(program.get(), shader.get());
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program.get(), GL_LINK_STATUS, &linked);
  if (Status status = context.check("linking"); !status.ok()) return status;
  if (linked != GL_TRUE) {
    const std::string file = source.files.empty() ? "" : source.files[0] + ": ";
    return invalid_argument(context.id + ": " + file + "GLSL linker: " + program_log(gl, program.get()));
  }
  if (Status status = check_workgroup(gl, program.get(), source); !status.ok()) return status.within(context.id);
  GLint bytes = 0;
  gl.GetProgramiv(program.get(), GL_PROGRAM_BINARY_LENGTH, &bytes);
  program.set_charge(charge_of(source, static_cast<std::uint64_t>(std::max(bytes, 0))));
  program.reflection() = reflect(gl, program.get(), source);
  return program;
}

Result<LinkedProgram> load_program(const CurrentContext& context, const KernelSource& source,
                                   const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                   std::atomic<std::uint64_t>& counter) {
  const auto format =
      std::find_if(formats.begin(), formats.end(), [&](GLenum known) { return format_tag(known) == binary.format; });
  if (format == formats.end()) {
    std::string known;
    for (const GLenum each : formats) known += (known.empty() ? "" : ", ") + format_tag(each);
    return unsupported(context.id + ": program binary of format '" + binary.format + "', the driver supports " +
                       (known.empty() ? "none" : known));
  }
  const std::string what =
      context.id + ": program binary of " + std::to_string(binary.bytes.size()) + " bytes, format " + binary.format;
  if (binary.bytes.empty()) return corrupt(what + ": expected at least 1 byte");
  const auto parts = parts_of(binary.bytes);
  std::optional<Reflection> reflection;
  if (parts) reflection = read_reflection(parts->reflection);
  if (!reflection) return corrupt(what + ": the stored list of the program's resources is damaged");
  const Gl& gl = context.gl;
  LinkedProgram program(gl);
  gl.ProgramParameteri(program.get(), GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  counter.fetch_add(1, std::memory_order_relaxed);
  gl.ProgramBinary(program.get(), *format, parts->driver.data(), static_cast<GLsizei>(parts->driver.size()));
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program.get(), GL_LINK_STATUS, &linked);
  const Status status = context.check("loading a program binary");
  if (status.code == StatusCode::device_lost) return status;
  if (!status.ok()) return corrupt(what + ": the driver rejected the binary: " + status.message);
  if (linked != GL_TRUE) return corrupt(what + ": the driver rejected the binary: " + program_log(gl, program.get()));
  if (Status fits = check_workgroup(gl, program.get(), source); !fits.ok()) return corrupt(what + ": " + fits.message);
  program.set_charge(charge_of(source, parts->driver.size()));
  program.reflection() = std::move(*reflection);
  return program;
}

Result<ProgramBinary> serialize_program(const CurrentContext& context, GLuint program, const Reflection& reflection) {
  const Gl& gl = context.gl;
  GLint length = 0;
  gl.GetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &length);
  ProgramBinary binary;
  GLenum format = 0;
  GLsizei written = 0;
  if (length > 0) {
    binary.bytes.resize(static_cast<std::size_t>(length));
    gl.GetProgramBinary(program, length, &written, &format, binary.bytes.data());
  }
  if (Status status = context.check("reading a program binary"); !status.ok()) return status;
  if (written <= 0) return unsupported(context.id + ": the driver returned no binary for the program");
  binary.bytes.resize(static_cast<std::size_t>(written));
  binary.format = format_tag(format);
  append(reflection, binary.bytes);
  const auto behind = static_cast<std::uint32_t>(binary.bytes.size() - static_cast<std::size_t>(written));
  const auto size = std::as_bytes(std::span(&behind, 1));
  binary.bytes.insert(binary.bytes.end(), size.begin(), size.end());
  return binary;
}

void set_uniform(const Gl& gl, GLuint program, const PlainUniform& uniform, const std::byte* components) {
  const GLint at = uniform.location;
  const GLsizei n = uniform.count;
  const auto* f = reinterpret_cast<const GLfloat*>(components);
  const auto* d = reinterpret_cast<const GLdouble*>(components);
  const auto* i = reinterpret_cast<const GLint*>(components);
  const auto* u = reinterpret_cast<const GLuint*>(components);
  switch (uniform.type) {
    case GL_FLOAT:
      return gl.ProgramUniform1fv(program, at, n, f);
    case GL_FLOAT_VEC2:
      return gl.ProgramUniform2fv(program, at, n, f);
    case GL_FLOAT_VEC3:
      return gl.ProgramUniform3fv(program, at, n, f);
    case GL_FLOAT_VEC4:
      return gl.ProgramUniform4fv(program, at, n, f);
    case GL_DOUBLE:
      return gl.ProgramUniform1dv(program, at, n, d);
    case GL_DOUBLE_VEC2:
      return gl.ProgramUniform2dv(program, at, n, d);
    case GL_DOUBLE_VEC3:
      return gl.ProgramUniform3dv(program, at, n, d);
    case GL_DOUBLE_VEC4:
      return gl.ProgramUniform4dv(program, at, n, d);
    case GL_INT:
    case GL_BOOL:
      return gl.ProgramUniform1iv(program, at, n, i);
    case GL_INT_VEC2:
    case GL_BOOL_VEC2:
      return gl.ProgramUniform2iv(program, at, n, i);
    case GL_INT_VEC3:
    case GL_BOOL_VEC3:
      return gl.ProgramUniform3iv(program, at, n, i);
    case GL_INT_VEC4:
    case GL_BOOL_VEC4:
      return gl.ProgramUniform4iv(program, at, n, i);
    case GL_UNSIGNED_INT:
      return gl.ProgramUniform1uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC2:
      return gl.ProgramUniform2uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC3:
      return gl.ProgramUniform3uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC4:
      return gl.ProgramUniform4uiv(program, at, n, u);
    case GL_FLOAT_MAT2:
      return gl.ProgramUniformMatrix2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3:
      return gl.ProgramUniformMatrix3fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4:
      return gl.ProgramUniformMatrix4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT2x3:
      return gl.ProgramUniformMatrix2x3fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT2x4:
      return gl.ProgramUniformMatrix2x4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3x2:
      return gl.ProgramUniformMatrix3x2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3x4:
      return gl.ProgramUniformMatrix3x4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4x2:
      return gl.ProgramUniformMatrix4x2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4x3:
      return gl.ProgramUniformMatrix4x3fv(program, at, n, GL_FALSE, f);
    case GL_DOUBLE_MAT2:
      return gl.ProgramUniformMatrix2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3:
      return gl.ProgramUniformMatrix3dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4:
      return gl.ProgramUniformMatrix4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT2x3:
      return gl.ProgramUniformMatrix2x3dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT2x4:
      return gl.ProgramUniformMatrix2x4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3x2:
      return gl.ProgramUniformMatrix3x2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3x4:
      return gl.ProgramUniformMatrix3x4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4x2:
      return gl.ProgramUniformMatrix4x2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4x3:
      return gl.ProgramUniformMatrix4x3dv(program, at, n, GL_FALSE, d);
    default:
      break;
  }
  // GL_ARB_gpu_shader_int64: one function for each number of components.
  const auto* l = reinterpret_cast<const GLint64*>(components);
  const auto* ul = reinterpret_cast<const GLuint64*>(components);
  switch (uniform.type) {
    case 0x140E:
      return gl.ProgramUniform1i64vARB(program, at, n, l);
    case 0x8FE9:
      return gl.ProgramUniform2i64vARB(program, at, n, l);
    case 0x8FEA:
      return gl.ProgramUniform3i64vARB(program, at, n, l);
    case 0x8FEB:
      return gl.ProgramUniform4i64vARB(program, at, n, l);
    case 0x140F:
      return gl.ProgramUniform1ui64vARB(program, at, n, ul);
    case 0x8FF5:
      return gl.ProgramUniform2ui64vARB(program, at, n, ul);
    case 0x8FF6:
      return gl.ProgramUniform3ui64vARB(program, at, n, ul);
    case 0x8FF7:
      return gl.ProgramUniform4ui64vARB(program, at, n, ul);
    default:
      return;
  }
}

}  // namespace kiln::opengl

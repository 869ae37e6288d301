#include "codec/reflection.hpp"

#include "glsl/preprocessor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace kiln::opengl {
namespace {

struct TypeFacts {
  GLenum type;
  const char* name;
  ElementType element;
  std::uint32_t columns, rows;  // of a matrix; of a vector 1 and its components
};

constexpr TypeFacts numeric_types[] = {
    {GL_FLOAT, "float", ElementType::f32, 1, 1},
    {GL_FLOAT_VEC2, "vec2", ElementType::f32, 1, 2},
    {GL_FLOAT_VEC3, "vec3", ElementType::f32, 1, 3},
    {GL_FLOAT_VEC4, "vec4", ElementType::f32, 1, 4},
    {GL_DOUBLE, "double", ElementType::f64, 1, 1},
    {GL_DOUBLE_VEC2, "dvec2", ElementType::f64, 1, 2},
    {GL_DOUBLE_VEC3, "dvec3", ElementType::f64, 1, 3},
    {GL_DOUBLE_VEC4, "dvec4", ElementType::f64, 1, 4},
    {GL_INT, "int", ElementType::i32, 1, 1},
    {GL_INT_VEC2, "ivec2", ElementType::i32, 1, 2},
    {GL_INT_VEC3, "ivec3", ElementType::i32, 1, 3},
    {GL_INT_VEC4, "ivec4", ElementType::i32, 1, 4},
    {GL_UNSIGNED_INT, "uint", ElementType::u32, 1, 1},
    {GL_UNSIGNED_INT_VEC2, "uvec2", ElementType::u32, 1, 2},
    {GL_UNSIGNED_INT_VEC3, "uvec3", ElementType::u32, 1, 3},
    {GL_UNSIGNED_INT_VEC4, "uvec4", ElementType::u32, 1, 4},
    {GL_BOOL, "bool", ElementType::boolean, 1, 1},
    {GL_BOOL_VEC2, "bvec2", ElementType::boolean, 1, 2},
    {GL_BOOL_VEC3, "bvec3", ElementType::boolean, 1, 3},
    {GL_BOOL_VEC4, "bvec4", ElementType::boolean, 1, 4},
    {GL_FLOAT_MAT2, "mat2", ElementType::f32, 2, 2},
    {GL_FLOAT_MAT3, "mat3", ElementType::f32, 3, 3},
    {GL_FLOAT_MAT4, "mat4", ElementType::f32, 4, 4},
    {GL_FLOAT_MAT2x3, "mat2x3", ElementType::f32, 2, 3},
    {GL_FLOAT_MAT2x4, "mat2x4", ElementType::f32, 2, 4},
    {GL_FLOAT_MAT3x2, "mat3x2", ElementType::f32, 3, 2},
    {GL_FLOAT_MAT3x4, "mat3x4", ElementType::f32, 3, 4},
    {GL_FLOAT_MAT4x2, "mat4x2", ElementType::f32, 4, 2},
    {GL_FLOAT_MAT4x3, "mat4x3", ElementType::f32, 4, 3},
    {GL_DOUBLE_MAT2, "dmat2", ElementType::f64, 2, 2},
    {GL_DOUBLE_MAT3, "dmat3", ElementType::f64, 3, 3},
    {GL_DOUBLE_MAT4, "dmat4", ElementType::f64, 4, 4},
    {GL_DOUBLE_MAT2x3, "dmat2x3", ElementType::f64, 2, 3},
    {GL_DOUBLE_MAT2x4, "dmat2x4", ElementType::f64, 2, 4},
    {GL_DOUBLE_MAT3x2, "dmat3x2", ElementType::f64, 3, 2},
    {GL_DOUBLE_MAT3x4, "dmat3x4", ElementType::f64, 3, 4},
    {GL_DOUBLE_MAT4x2, "dmat4x2", ElementType::f64, 4, 2},
    {GL_DOUBLE_MAT4x3, "dmat4x3", ElementType::f64, 4, 3},
    // GL_ARB_gpu_shader_int64, whose names the loader does not define.
    {0x140E, "int64_t", ElementType::i64, 1, 1},
    {0x8FE9, "i64vec2", ElementType::i64, 1, 2},
    {0x8FEA, "i64vec3", ElementType::i64, 1, 3},
    {0x8FEB, "i64vec4", ElementType::i64, 1, 4},
    {0x140F, "uint64_t", ElementType::u64, 1, 1},
    {0x8FF5, "u64vec2", ElementType::u64, 1, 2},
    {0x8FF6, "u64vec3", ElementType::u64, 1, 3},
    {0x8FF7, "u64vec4", ElementType::u64, 1, 4},
};

const TypeFacts* facts_of(GLenum type) noexcept {
  const auto* found = std::find_if(std::begin(numeric_types), std::end(numeric_types),
                                   [type](const TypeFacts& facts) { return facts.type == type; });
  return found == std::end(numeric_types) ? nullptr : found;
}

std::uint32_t bytes_of(ElementType element) noexcept {
  return element == ElementType::f64 || element == ElementType::i64 || element == ElementType::u64 ? 8 : 4;
}

std::uint32_t components(const TypeFacts& facts) noexcept { return facts.columns * facts.rows; }

// Image types take the values from GL_IMAGE_1D on without a gap; every other type that is no number is a sampler.
bool is_image(GLenum type) noexcept {
  return type >= GL_IMAGE_1D && type <= GL_UNSIGNED_INT_IMAGE_2D_MULTISAMPLE_ARRAY;
}

std::string name_of(const Gl& gl, GLuint program, GLenum interface, GLuint index) {
  GLint length = 0;
  const GLenum wanted = GL_NAME_LENGTH;
  gl.GetProgramResourceiv(program, interface, index, 1, &wanted, 1, nullptr, &length);
  std::string name(static_cast<std::size_t>(std::max(length, 1)), '\0');
  GLsizei written = 0;
  gl.GetProgramResourceName(program, interface, index, length, &written, name.data());
  name.resize(static_cast<std::size_t>(std::max(written, 0)));
  return name;
}

template <std::size_t count>
std::array<GLint, count> properties(const Gl& gl, GLuint program, GLenum interface, GLuint index,
                                    const std::array<GLenum, count>& wanted) {
  std::array<GLint, count> values{};
  gl.GetProgramResourceiv(program, interface, index, static_cast<GLsizei>(count), wanted.data(),
                          static_cast<GLsizei>(count), nullptr, values.data());
  return values;
}

GLuint count_of(const Gl& gl, GLuint program, GLenum interface) {
  GLint count = 0;
  gl.GetProgramInterfaceiv(program, interface, GL_ACTIVE_RESOURCES, &count);
  return static_cast<GLuint>(std::max(count, 0));
}

std::string array_text(std::string type, GLint length) {
  return length == 1 ? type : type + "[" + std::to_string(length) + "]";
}

std::string without_index(std::string name) {
  if (name.ends_with("[0]")) name.resize(name.size() - 3);
  return name;
}

// The members of a block: their common type, and the array that it ends with or is.
void add_members(const Gl& gl, GLuint program, GLuint block, ProgramResource& resource) {
  const std::array<GLenum, 1> number{GL_NUM_ACTIVE_VARIABLES};
  const GLint count = properties(gl, program, GL_SHADER_STORAGE_BLOCK, block, number)[0];
  if (count <= 0) return;
  std::vector<GLint> variables(static_cast<std::size_t>(count));
  const GLenum list = GL_ACTIVE_VARIABLES;
  gl.GetProgramResourceiv(program, GL_SHADER_STORAGE_BLOCK, block, 1, &list, count, nullptr, variables.data());
  bool alike = true;
  for (const GLint variable : variables) {
    const std::array<GLenum, 6> wanted{GL_TYPE,   GL_ARRAY_SIZE,           GL_ARRAY_STRIDE,
                                       GL_OFFSET, GL_TOP_LEVEL_ARRAY_SIZE, GL_TOP_LEVEL_ARRAY_STRIDE};
    const auto [type, size, stride, offset, top_size, top_stride] =
        properties(gl, program, GL_BUFFER_VARIABLE, static_cast<GLuint>(variable), wanted);
    const TypeFacts* facts = facts_of(static_cast<GLenum>(type));
    const ElementType element = facts == nullptr ? ElementType::unknown : facts->element;
    if (variable == variables.front()) resource.element = element;
    alike = alike && element == resource.element;
    const bool open = size == 0 || top_size == 0;
    const GLint step = top_size != 1 || top_stride != 0 ? top_stride : stride;
    const bool whole = count == 1 && step != 0;
    if (!open && !whole) continue;
    // Members of a struct in the array may come in any order: the first byte of the array is that of the first of them.
    const auto begin = static_cast<std::uint64_t>(offset);
    resource.array_offset = resource.open_ended ? std::min(resource.array_offset, begin) : begin;
    resource.array_stride = static_cast<std::uint64_t>(step);
    resource.open_ended = resource.open_ended || open;
    if (whole && facts != nullptr && top_stride == 0) {
      resource.element_bytes = std::uint64_t{components(*facts)} * bytes_of(element);
    }
  }
  if (!alike) resource.element = ElementType::unknown;
}

void add_storage_blocks(const Gl& gl, GLuint program, Reflection& reflection) {
  const GLuint count = count_of(gl, program, GL_SHADER_STORAGE_BLOCK);
  for (GLuint block = 0; block < count; ++block) {
    const std::array<GLenum, 2> wanted{GL_BUFFER_BINDING, GL_BUFFER_DATA_SIZE};
    const auto [binding, bytes] = properties(gl, program, GL_SHADER_STORAGE_BLOCK, block, wanted);
    ProgramResource& resource = reflection.resources.emplace_back();
    resource.kind = ResourceKind::storage_block;
    resource.name = name_of(gl, program, GL_SHADER_STORAGE_BLOCK, block);
    resource.number = static_cast<std::uint32_t>(binding);
    resource.handle = block;
    add_members(gl, program, block, resource);
    // Drivers round a block's size up; what its array needs is known to the byte.
    resource.bytes = static_cast<std::uint64_t>(bytes);
    if (resource.open_ended) {
      const std::uint64_t first = resource.element_bytes != 0 ? resource.element_bytes : resource.array_stride;
      resource.bytes = std::min(resource.bytes, resource.array_offset + first);
    }
  }
}

std::vector<std::byte> initial_value(const Gl& gl, GLuint program, const PlainUniform& uniform,
                                     const TypeFacts& facts) {
  const std::size_t each = std::size_t{components(facts)} * bytes_of(facts.element);
  std::vector<std::byte> value(each * static_cast<std::size_t>(uniform.count));
  for (GLsizei i = 0; i < uniform.count; ++i) {
    std::byte* to = value.data() + each * static_cast<std::size_t>(i);
    const GLint at = uniform.location + i;
    if (facts.element == ElementType::f32) {
      gl.GetUniformfv(program, at, reinterpret_cast<GLfloat*>(to));
    } else if (facts.element == ElementType::f64) {
      gl.GetUniformdv(program, at, reinterpret_cast<GLdouble*>(to));
    } else if (facts.element == ElementType::u32) {
      gl.GetUniformuiv(program, at, reinterpret_cast<GLuint*>(to));
    } else {
      gl.GetUniformiv(program, at, reinterpret_cast<GLint*>(to));
    }
  }
  return value;
}

void add_uniform(const Gl& gl, GLuint program, GLuint index, Reflection& reflection) {
  const std::array<GLenum, 5> wanted{GL_TYPE, GL_ARRAY_SIZE, GL_LOCATION, GL_BLOCK_INDEX,
                                     GL_ATOMIC_COUNTER_BUFFER_INDEX};
  const auto [kind, size, location, block, counters] = properties(gl, program, GL_UNIFORM, index, wanted);
  const auto type = static_cast<GLenum>(kind);
  const std::string name = name_of(gl, program, GL_UNIFORM, index);
  if (block >= 0 || name.starts_with("gl_")) return;
  ProgramResource resource;
  resource.name = without_index(name);
  if (counters >= 0) {
    const std::array<GLenum, 1> number{GL_BUFFER_BINDING};
    resource.kind = ResourceKind::atomic_counter;
    resource.type = array_text("atomic_uint", size);
    resource.number = static_cast<std::uint32_t>(
        properties(gl, program, GL_ATOMIC_COUNTER_BUFFER, static_cast<GLuint>(counters), number)[0]);
  } else if (const TypeFacts* facts = facts_of(type)) {
    resource.kind = ResourceKind::uniform;
    resource.type = array_text(facts->name, size);
    resource.element = facts->element;
    resource.matrix = facts->columns > 1;
    if (name != resource.name || size > 1) resource.shape.push_back(static_cast<std::uint32_t>(size));
    if (facts->rows > 1) resource.shape.push_back(facts->rows);
    if (facts->columns > 1) resource.shape.push_back(facts->columns);
    resource.bytes = std::uint64_t{components(*facts)} * bytes_of(facts->element) * static_cast<std::uint64_t>(size);
    resource.handle = static_cast<std::int64_t>(reflection.uniforms.size());
    PlainUniform& uniform = reflection.uniforms.emplace_back(PlainUniform{location, type, size, {}});
    uniform.initial = initial_value(gl, program, uniform, *facts);
  } else {
    GLint unit = 0;
    if (location >= 0) gl.GetUniformiv(program, location, &unit);
    resource.kind = is_image(type) ? ResourceKind::image : ResourceKind::sampler;
    resource.type = array_text(is_image(type) ? "image" : "sampler", size);
    resource.number = static_cast<std::uint32_t>(unit);
  }
  reflection.resources.push_back(std::move(resource));
}

// What a text declares at its outermost level.
struct Declared {
  ResourceKind kind = ResourceKind::invalid;
  std::string name;
  std::string type;
  std::optional<std::uint32_t> number;
  Access access = Access::read_write;
  bool has_default = false;
};

using glsl::Token;
using glsl::Tokens;

bool contains(Tokens tokens, std::string_view word) {
  return std::ranges::find(tokens, word, &Token::text) != tokens.end();
}

Access access_of(Tokens qualifiers) {
  if (contains(qualifiers, "readonly")) return contains(qualifiers, "writeonly") ? Access::read_write : Access::read;
  return contains(qualifiers, "writeonly") ? Access::write : Access::read_write;
}

// binding = N, where N is a number.
std::optional<std::uint32_t> binding_in(Tokens qualifiers) {
  for (std::size_t i = 0; i + 2 < qualifiers.size(); ++i) {
    if (qualifiers[i].text != "binding" || qualifiers[i + 1].text != "=") continue;
    const std::string_view digits = qualifiers[i + 2].text;
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// Of the members' own qualifiers, where the block has none: what all of them have.
Access access_of_members(Tokens members) {
  std::optional<Access> common;
  for (std::size_t begin = 0; begin < members.size();) {
    std::size_t end = begin;
    while (end < members.size() && members[end].text != ";") ++end;
    const Access access = access_of(members.subspan(begin, end - begin));
    if (common.value_or(access) != access) return Access::read_write;
    common = access;
    begin = end + 1;
  }
  return common.value_or(Access::read_write);
}

class DeclarationReader {
 public:
  explicit DeclarationReader(Tokens tokens) : rest_(tokens) {}

  std::vector<Declared> all() {
    while (!rest_.empty()) read_one();
    return std::move(declared_);
  }

 private:
  // A declaration ends with ";", a function with its body.
  void read_one() {
    std::size_t at = 0;
    while (at < rest_.size() && rest_[at].text != ";" && rest_[at].text != "{") {
      at = glsl::is_opening(rest_[at].text) ? glsl::past_brackets(rest_, at) : at + 1;
    }
    const Tokens head = rest_.first(at);
    if (at == rest_.size() || rest_[at].text == ";") {
      if (contains(head, "uniform")) read_uniforms(head);
      rest_ = rest_.subspan(std::min(at + 1, rest_.size()));
      return;
    }
    const Tokens members = glsl::in_brackets(rest_, at);
    rest_ = rest_.subspan(glsl::past_brackets(rest_, at));
    const bool buffer = contains(head, "buffer");
    if (buffer || contains(head, "uniform")) {
      Declared& block = declared_.emplace_back();
      block.kind = buffer ? ResourceKind::storage_block : ResourceKind::uniform_block;
      block.name = head.back().text;
      block.number = binding_in(head);
      block.access = access_of(head);
      if (block.access == Access::read_write) block.access = access_of_members(members);
    }
    // An instance's name, or nothing; a function ends without a ";".
    const bool function = !head.empty() && head.back().text == ")";
    if (function) return;
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end].text != ";") ++end;
    rest_ = rest_.subspan(std::min(end + 1, rest_.size()));
  }

  // uniform TYPE a, b[2], c = 1.0
  void read_uniforms(Tokens head) {
    const Access access = access_of(head);
    for (const Tokens piece : glsl::split(head, ",")) {
      std::size_t end = 0;
      std::size_t name = piece.size();
      bool has_default = false;
      while (end < piece.size()) {
        if (piece[end].text == "=") {
          has_default = true;
          break;
        }
        if (glsl::is_opening(piece[end].text)) {
          end = glsl::past_brackets(piece, end);
          continue;
        }
        if (glsl::is_name(piece[end].text)) name = end;
        ++end;
      }
      if (name == piece.size()) continue;
      Declared& uniform = declared_.emplace_back();
      uniform.kind = ResourceKind::uniform;
      uniform.name = piece[name].text;
      uniform.number = binding_in(head);
      uniform.access = access;
      uniform.has_default = has_default;
      if (name > 0) uniform.type = piece[name - 1].text;
    }
  }

  Tokens rest_;
  std::vector<Declared> declared_;
};

// "light" of "light.colours[2].r", "Blocks" of "Blocks[3]".
std::string_view root_of(std::string_view name) { return name.substr(0, name.find_first_of(".[")); }

template <class To>
void append(std::vector<std::byte>& to, To value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

template <class To>
Status convert_integer(std::int64_t value, std::vector<std::byte>& to) {
  if constexpr (std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) {
      return invalid_argument("value " + std::to_string(value) + " is out of range (expected " +
                              std::to_string(std::numeric_limits<To>::min()) + " to " +
                              std::to_string(std::numeric_limits<To>::max()) + ")");
    }
  } else {
    const To held = static_cast<To>(value);
    if (static_cast<long double>(held) != static_cast<long double>(value)) {
      return invalid_argument("value " + std::to_string(value) +
                              " is not exact in the type. Write it with a decimal point");
    }
  }
  append(to, static_cast<To>(value));
  return {};
}

Status convert_value(ElementType element, const std::byte* from, UserKernelSpec::Uniform::Type given,
                     std::vector<std::byte>& to) {
  if (given == UserKernelSpec::Uniform::Type::number) {
    double value = 0;
    std::memcpy(&value, from, sizeof value);
    if (element == ElementType::f64) return append(to, value), Status();
    if (element != ElementType::f32) return internal_error("a number for a type without fractions");
    if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
      return invalid_argument("value " + std::to_string(value) + " is beyond float32");
    }
    return append(to, static_cast<float>(value)), Status();
  }
  std::int64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  switch (element) {
    case ElementType::boolean:
      return convert_integer<std::int32_t>(value != 0 ? 1 : 0, to);
    case ElementType::i32:
      return convert_integer<std::int32_t>(value, to);
    case ElementType::u32:
      return convert_integer<std::uint32_t>(value, to);
    case ElementType::f32:
      return convert_integer<float>(value, to);
    case ElementType::f64:
      return convert_integer<double>(value, to);
    default:
      return unsupported("uniforms of 64-bit integers cannot be provided");
  }
}

}  // namespace

Reflection reflect(const Gl& gl, GLuint program) {
  Reflection reflection;
  add_storage_blocks(gl, program, reflection);
  const GLuint blocks = count_of(gl, program, GL_UNIFORM_BLOCK);
  for (GLuint block = 0; block < blocks; ++block) {
    const std::array<GLenum, 1> wanted{GL_BUFFER_BINDING};
    ProgramResource& resource = reflection.resources.emplace_back();
    resource.kind = ResourceKind::uniform_block;
    resource.name = name_of(gl, program, GL_UNIFORM_BLOCK, block);
    resource.number = static_cast<std::uint32_t>(properties(gl, program, GL_UNIFORM_BLOCK, block, wanted)[0]);
    resource.handle = block;
  }
  const GLuint uniforms = count_of(gl, program, GL_UNIFORM);
  for (GLuint index = 0; index < uniforms; ++index) add_uniform(gl, program, index, reflection);
  return reflection;
}

ProgramInterface complete(std::vector<ProgramResource> resources, const KernelSource& source) {
  ProgramInterface interface;
  interface.resources = std::move(resources);
  const glsl::Preprocessed text = glsl::preprocessed(source.text, source.constants);
  for (const Declared& declared : DeclarationReader(text.tokens).all()) {
    bool used = false;
    for (ProgramResource& resource : interface.resources) {
      if (root_of(resource.name) != declared.name) continue;
      const bool block = declared.kind == ResourceKind::storage_block || declared.kind == ResourceKind::uniform_block;
      if (block ? resource.kind != declared.kind
                : resource.kind == ResourceKind::storage_block || resource.kind == ResourceKind::uniform_block) {
        continue;
      }
      used = true;
      resource.access = declared.access;
      resource.has_default = declared.has_default;
      const bool opaque = resource.kind == ResourceKind::image || resource.kind == ResourceKind::sampler;
      if (opaque && !declared.type.empty()) resource.type = declared.type;
    }
    if (used) continue;
    ProgramResource& unused = interface.unused.emplace_back();
    unused.kind = declared.kind;
    unused.name = declared.name;
    unused.type = declared.type;
    unused.number = declared.number;
  }
  return interface;
}

Result<std::vector<std::byte>> converted(const ProgramResource& resource, const std::byte* values,
                                         UserKernelSpec::Uniform::Type given) {
  const std::uint64_t count = values_in(resource);
  // Matrices come row by row and go column by column.
  const std::size_t dimensions = resource.shape.size();
  const std::uint64_t columns = resource.matrix ? resource.shape[dimensions - 1] : 1;
  const std::uint64_t rows = resource.matrix ? resource.shape[dimensions - 2] : 1;
  std::vector<std::byte> components;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t matrix = i / (rows * columns);
    const std::uint64_t within = i % (rows * columns);
    const std::uint64_t at = matrix * rows * columns + within % rows * columns + within / rows;
    Status status = convert_value(resource.element, values + at * sizeof(double), given, components);
    if (!status.ok()) return status.within("uniforms." + resource.name);
  }
  return components;
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
      return;  // 64-bit integers: converted() refuses them
  }
}

}  // namespace kiln::opengl

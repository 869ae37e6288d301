#include "codec/reflection.hpp"

#include "codec/declarations.hpp"
#include "codec/preprocessor.hpp"
#include "codec/shader_types.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::opengl {
namespace {

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

struct BlockMember {
  const TypeFacts* facts = nullptr;  // null: of a type that is not known here
  GLint size = 0, stride = 0, offset = 0, top_size = 0, top_stride = 0;
  std::uint64_t end = 0;  // of its last component, an array of unknown length counted with one element

  bool is_open() const noexcept { return size == 0 || top_size == 0; }
  bool is_in_fixed_array() const noexcept { return top_stride != 0 && top_size != 0; }  // of structs or arrays
  std::uint64_t bytes_without_padding() const {  // in one element of an array of structs or of arrays
    return facts == nullptr ? 0
                            : std::uint64_t{components(*facts)} * bytes_of(facts->element) *
                                  static_cast<unsigned>(std::max(size, 1));
  }
};

BlockMember member_of(const Gl& gl, GLuint program, GLuint variable) {
  const std::array<GLenum, 8> wanted{GL_TYPE,          GL_ARRAY_SIZE,           GL_ARRAY_STRIDE,
                                     GL_OFFSET,        GL_TOP_LEVEL_ARRAY_SIZE, GL_TOP_LEVEL_ARRAY_STRIDE,
                                     GL_MATRIX_STRIDE, GL_IS_ROW_MAJOR};
  const auto [type, size, stride, offset, top_size, top_stride, matrix_stride, row_major] =
      properties(gl, program, GL_BUFFER_VARIABLE, variable, wanted);
  BlockMember member{facts_of(static_cast<GLenum>(type)), size, stride, offset, top_size, top_stride, 0};
  if (member.facts == nullptr) return member;
  const auto after_first = [](GLint elements, GLint step) {
    return static_cast<std::uint64_t>(std::max(elements, 1) - 1) * static_cast<std::uint64_t>(step);
  };
  if (member.is_in_fixed_array()) {  // Mesa may list an element behind the first: its end is that of the last one
    const std::string name = name_of(gl, program, GL_BUFFER_VARIABLE, variable);
    std::uint32_t index = 0;
    const std::size_t at = name.find('[') + 1;
    std::from_chars(name.data() + at, name.data() + name.size(), index);
    member.offset -= static_cast<GLint>(index) * top_stride;
  }
  const std::uint32_t vectors = row_major != 0 ? member.facts->rows : member.facts->columns;
  const std::uint64_t vector = std::uint64_t{components(*member.facts) / vectors} * bytes_of(member.facts->element);
  member.end = static_cast<std::uint64_t>(member.offset) + after_first(top_size, top_stride) +
               after_first(size, stride) + after_first(static_cast<GLint>(vectors), matrix_stride) + vector;
  return member;
}

// The members of a block: their common type, where the last of them ends, and the array that it ends with or is.
// `resource` has the block's size, which drivers round up. Whether one of them is an array of structs or of arrays, of
// known length.
bool add_members(const Gl& gl, GLuint program, GLuint block, ProgramResource& resource) {
  const std::array<GLenum, 1> number{GL_NUM_ACTIVE_VARIABLES};
  const GLint count = properties(gl, program, GL_SHADER_STORAGE_BLOCK, block, number)[0];
  if (count <= 0) return false;
  std::vector<GLint> variables(static_cast<std::size_t>(count));
  const GLenum list = GL_ACTIVE_VARIABLES;
  gl.GetProgramResourceiv(program, GL_SHADER_STORAGE_BLOCK, block, 1, &list, count, nullptr, variables.data());
  std::uint64_t end = 0, used = 0;
  bool fixed_array = false, one_array = true;  // one_array: the block is one array of structs or of arrays
  for (const GLint variable : variables) {
    const BlockMember member = member_of(gl, program, static_cast<GLuint>(variable));
    one_array = one_array && member.facts != nullptr && member.top_stride != 0 && member.top_size == 0;
    used += member.bytes_without_padding();
    fixed_array = fixed_array || member.is_in_fixed_array();
    end = std::max(end, member.facts == nullptr ? resource.bytes : member.end);
    const ElementType element = member.facts == nullptr ? ElementType::unknown : member.facts->element;
    resource.element = variable == variables.front() ? element : common(resource.element, element);
    const GLint step = member.top_size != 1 || member.top_stride != 0 ? member.top_stride : member.stride;
    const bool whole = count == 1 && step != 0;
    if (!member.is_open() && !whole) continue;
    // Members of a struct in the array may come in any order: the first byte of the array is that of the first of them.
    const auto begin = static_cast<std::uint64_t>(member.offset);
    resource.array_offset = resource.open_ended ? std::min(resource.array_offset, begin) : begin;
    resource.array_stride = static_cast<std::uint64_t>(step);
    resource.open_ended = resource.open_ended || member.is_open();
    if (whole && member.facts != nullptr && member.top_stride == 0) {
      resource.element_bytes = std::uint64_t{components(*member.facts)} * bytes_of(element);
    }
  }
  if (one_array) {
    resource.element_bytes = used;
    const std::string first = name_of(gl, program, GL_BUFFER_VARIABLE, static_cast<GLuint>(variables.front()));
    resource.struct_elements = first.find("].") != std::string::npos;
  }
  resource.bytes = std::min(resource.bytes, end);
  return fixed_array;
}

bool is_mesa(const Gl& gl) {
  const auto* version = reinterpret_cast<const char*>(gl.GetString(GL_VERSION));
  return version != nullptr && std::string_view(version).find("Mesa") != std::string_view::npos;
}

void add_storage_blocks(const Gl& gl, GLuint program, Reflection& reflection) {
  const GLuint count = count_of(gl, program, GL_SHADER_STORAGE_BLOCK);
  std::vector<ProgramResource> sizes;  // the blocks with nothing but their size
  bool fixed_array = false;
  for (GLuint block = 0; block < count; ++block) {
    const std::array<GLenum, 2> wanted{GL_BUFFER_BINDING, GL_BUFFER_DATA_SIZE};
    const auto [binding, bytes] = properties(gl, program, GL_SHADER_STORAGE_BLOCK, block, wanted);
    ProgramResource& resource = reflection.interface.resources.emplace_back();
    resource.kind = ResourceKind::storage_block;
    resource.name = name_of(gl, program, GL_SHADER_STORAGE_BLOCK, block);
    resource.number = static_cast<std::uint32_t>(binding);
    resource.handle = block;
    resource.bytes = static_cast<std::uint64_t>(bytes);
    sizes.push_back(resource);
    fixed_array = add_members(gl, program, block, resource) || fixed_array;
  }
  // Where one block has such an array, Mesa (seen in 22.3.6) leaves members out of the lists of all blocks, or lists
  // elements behind the first. The sizes are right, rounded up to 16 bytes; the members that are listed end within.
  if (!fixed_array || !is_mesa(gl)) return;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t rounded = sizes[i].bytes;
    sizes[i].bytes = std::max(reflection.interface.resources[i].bytes, rounded - std::min<std::uint64_t>(rounded, 15));
  }
  reflection.interface.resources = std::move(sizes);
}

std::vector<std::byte> initial_value(const Gl& gl, GLuint program, const PlainUniform& uniform,
                                     const TypeFacts& facts) {
  const std::size_t each = std::size_t{components(facts)} * bytes_of(facts.element);
  std::vector<std::byte> value(each * static_cast<std::size_t>(uniform.count));
  for (GLsizei i = 0; i < uniform.count; ++i) {
    std::byte* to = value.data() + each * static_cast<std::size_t>(i);
    const GLint at = uniform.location + i;
    if (facts.element == ElementType::i64) {
      gl.GetUniformi64vARB(program, at, reinterpret_cast<GLint64*>(to));
    } else if (facts.element == ElementType::u64) {
      gl.GetUniformui64vARB(program, at, reinterpret_cast<GLuint64*>(to));
    } else if (facts.element == ElementType::f32) {
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

ProgramResource numeric_resource(const std::string& name, const TypeFacts& facts, GLint size) {
  ProgramResource resource;
  resource.kind = ResourceKind::uniform;
  resource.name = without_index(name);
  resource.type = array_text(std::string(facts.name), size);
  resource.element = facts.element;
  resource.matrix = facts.columns > 1;
  if (name != resource.name || size > 1) resource.shape.push_back(static_cast<std::uint32_t>(size));
  if (facts.rows > 1) resource.shape.push_back(facts.rows);
  if (facts.columns > 1) resource.shape.push_back(facts.columns);
  resource.bytes = std::uint64_t{components(facts)} * bytes_of(facts.element) * static_cast<std::uint64_t>(size);
  return resource;
}

// Of an array each element.
void add_textures(const Gl& gl, GLuint program, const std::string& name, GLenum type, GLint size, GLint location,
                  Reflection& reflection) {
  const TextureFacts* facts = texture_facts_of(type);
  const bool array = name.ends_with("[0]");
  for (GLint i = 0; i < size; ++i) {
    ProgramResource resource;
    resource.name = array ? without_index(name) + "[" + std::to_string(i) + "]" : name;
    resource.kind = ResourceKind::sampler;
    resource.type = "type " + std::to_string(type);
    resource.unusable = "a job cannot provide this type";
    if (facts != nullptr) {
      const bool is_int = type == facts->of_int, is_uint = type == facts->of_uint;
      if (facts->name.starts_with("image")) resource.kind = ResourceKind::image;
      resource.type = (is_int ? "i" : is_uint ? "u" : "") + std::string(facts->name);
      resource.element = is_int ? ElementType::i32 : is_uint ? ElementType::u32 : ElementType::f32;
      resource.texture = facts->shape;
      if (facts->target != GL_NONE) resource.unusable.clear();
    }
    GLint unit = 0;
    if (location >= 0) gl.GetUniformiv(program, location + i, &unit);
    resource.number = static_cast<std::uint32_t>(unit);
    resource.handle = static_cast<std::int64_t>(reflection.textures.size());
    reflection.textures.push_back({location + i, facts == nullptr ? static_cast<GLenum>(GL_NONE) : facts->target});
    reflection.interface.resources.push_back(std::move(resource));
  }
}

void add_uniform(const Gl& gl, GLuint program, GLuint index, Reflection& reflection) {
  const std::array<GLenum, 6> wanted{GL_TYPE,        GL_ARRAY_SIZE, GL_LOCATION,
                                     GL_BLOCK_INDEX, GL_OFFSET,     GL_ATOMIC_COUNTER_BUFFER_INDEX};
  const auto [kind, size, location, block, offset, counters] = properties(gl, program, GL_UNIFORM, index, wanted);
  const auto type = static_cast<GLenum>(kind);
  const std::string name = name_of(gl, program, GL_UNIFORM, index);
  if (block >= 0 || name.starts_with("gl_")) return;
  if (counters >= 0) {
    const std::array<GLenum, 1> number{GL_BUFFER_BINDING};
    ProgramResource& resource = reflection.interface.resources.emplace_back();
    resource.kind = ResourceKind::atomic_counter;
    resource.name = without_index(name);
    resource.type = array_text("atomic_uint", size);
    resource.element = ElementType::u32;
    resource.bytes = static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(size) * sizeof(GLuint);
    resource.number = static_cast<std::uint32_t>(
        properties(gl, program, GL_ATOMIC_COUNTER_BUFFER, static_cast<GLuint>(counters), number)[0]);
  } else if (const TypeFacts* facts = facts_of(type)) {
    ProgramResource& resource = reflection.interface.resources.emplace_back(numeric_resource(name, *facts, size));
    resource.handle = static_cast<std::int64_t>(reflection.uniforms.size());
    PlainUniform& uniform = reflection.uniforms.emplace_back(PlainUniform{location, type, size, {}});
    uniform.initial = initial_value(gl, program, uniform, *facts);
  } else {
    add_textures(gl, program, name, type, size, location, reflection);
  }
}

// The name of a member behind that of its block: "Params.light.power", where OpenGL has "Params.light.power" or, for a
// block without an instance, "light.power".
std::string member_name(const std::string& block, const std::string& name) {
  const std::string bare = block.substr(0, block.find('['));
  return block + "." + (name.starts_with(bare + ".") ? name.substr(bare.size() + 1) : name);
}

void add_block_members(const Gl& gl, GLuint program, GLuint block, const std::string& block_name,
                       Reflection& reflection) {
  const std::array<GLenum, 1> number{GL_NUM_ACTIVE_VARIABLES};
  const GLint count = properties(gl, program, GL_UNIFORM_BLOCK, block, number)[0];
  std::vector<GLint> variables(static_cast<std::size_t>(std::max(count, 0)));
  const GLenum list = GL_ACTIVE_VARIABLES;
  if (count > 0) {
    gl.GetProgramResourceiv(program, GL_UNIFORM_BLOCK, block, 1, &list, count, nullptr, variables.data());
  }
  for (const GLint variable : variables) {
    const std::array<GLenum, 6> wanted{GL_TYPE,         GL_ARRAY_SIZE,    GL_OFFSET,
                                       GL_ARRAY_STRIDE, GL_MATRIX_STRIDE, GL_IS_ROW_MAJOR};
    const auto [type, size, offset, array_stride, matrix_stride, row_major] =
        properties(gl, program, GL_UNIFORM, static_cast<GLuint>(variable), wanted);
    const TypeFacts* facts = facts_of(static_cast<GLenum>(type));
    if (facts == nullptr) continue;  // a sampler in a block, which no version of GLSL allows
    const std::string name = member_name(block_name, name_of(gl, program, GL_UNIFORM, static_cast<GLuint>(variable)));
    ProgramResource& resource = reflection.interface.resources.emplace_back(numeric_resource(name, *facts, size));
    resource.block = block_name;
    resource.handle = static_cast<std::int64_t>(reflection.uniforms.size());
    PlainUniform& uniform = reflection.uniforms.emplace_back(PlainUniform{-1, static_cast<GLenum>(type), size, {}});
    uniform.block = static_cast<GLint>(block);
    const auto unsigned_of = [](GLint value) { return static_cast<std::uint32_t>(std::max(value, 0)); };
    uniform.place = {unsigned_of(size), unsigned_of(offset), unsigned_of(array_stride), unsigned_of(matrix_stride),
                     row_major != 0};
  }
}

void add_uniform_blocks(const Gl& gl, GLuint program, Reflection& reflection) {
  const GLuint blocks = count_of(gl, program, GL_UNIFORM_BLOCK);
  for (GLuint block = 0; block < blocks; ++block) {
    const std::array<GLenum, 2> wanted{GL_BUFFER_BINDING, GL_BUFFER_DATA_SIZE};
    const auto [binding, bytes] = properties(gl, program, GL_UNIFORM_BLOCK, block, wanted);
    ProgramResource& resource = reflection.interface.resources.emplace_back();
    resource.kind = ResourceKind::uniform_block;
    resource.name = name_of(gl, program, GL_UNIFORM_BLOCK, block);
    resource.number = static_cast<std::uint32_t>(binding);
    resource.bytes = static_cast<std::uint64_t>(bytes);
    resource.handle = block;
    const std::string name = resource.name;
    add_block_members(gl, program, block, name, reflection);
  }
}

// Their functions are chosen at each use of a program, which no key of a job says.
void add_subroutines(const Gl& gl, GLuint program, Reflection& reflection) {
  const GLuint count = count_of(gl, program, GL_COMPUTE_SUBROUTINE_UNIFORM);
  for (GLuint index = 0; index < count; ++index) {
    ProgramResource& resource = reflection.interface.resources.emplace_back();
    resource.kind = ResourceKind::uniform;
    resource.type = "subroutine";
    resource.name = name_of(gl, program, GL_COMPUTE_SUBROUTINE_UNIFORM, index);
    resource.unusable = "a job cannot choose the function of a subroutine uniform. Use an int uniform and if";
  }
}

// "light.colours" of "light.colours[2]": as glsl::Declaration has it.
std::string without_indices(std::string_view name) {
  std::string bare;
  int depth = 0;
  for (const char c : name) {
    if (c == '[') ++depth;
    if (depth == 0) bare += c;
    if (c == ']') --depth;
  }
  return bare;
}

bool is_block(ResourceKind kind) noexcept {
  return kind == ResourceKind::storage_block || kind == ResourceKind::uniform_block;
}

// Mesa (seen in 22.3.6) stores the members of a struct one behind the other, and reads them where those of 64 bits are
// aligned: with members of both sizes it reads wrong values.
void refuse_misplaced_members(const Gl& gl, std::vector<ProgramResource>& resources) {
  if (!is_mesa(gl)) return;
  std::map<std::string, std::set<std::uint32_t>> sizes;  // of the members of each struct
  const auto root = [](const ProgramResource& uniform) {
    return uniform.name.substr(0, uniform.name.find_first_of(".["));
  };
  const auto is_member = [](const ProgramResource& resource) {
    return resource.kind == ResourceKind::uniform && resource.block.empty() &&
           resource.name.find('.') != std::string::npos;
  };
  for (const ProgramResource& resource : resources) {
    if (is_member(resource)) sizes[root(resource)].insert(bytes_of(resource.element));
  }
  for (ProgramResource& resource : resources) {
    if (!is_member(resource) || sizes[root(resource)].size() < 2) continue;
    resource.unusable =
        "Mesa reads wrong values from a struct that has members of 32 and of 64 bits (expected one size). Use float "
        "instead of double, or declare separate uniforms";
  }
}

// Most texts name none: asking for all of them takes as long as the rest of the reflection.
std::vector<std::string> extensions_in(const Gl& gl, std::string_view text) {
  std::vector<std::string> named;
  if (text.find("GL_") == std::string_view::npos) return named;
  GLint count = 0;
  gl.GetIntegerv(GL_NUM_EXTENSIONS, &count);
  for (GLint i = 0; i < count; ++i) {
    const auto* name = reinterpret_cast<const char*>(gl.GetStringi(GL_EXTENSIONS, static_cast<GLuint>(i)));
    if (name != nullptr && text.find(name) != std::string_view::npos) named.emplace_back(name);
  }
  return named;
}

// A member of a uniform block that the text does not read needs no value.
void note_member(const glsl::Declaration& block, ProgramResource& resource) {
  if (resource.block.empty() || without_indices(resource.block) != block.name) return;
  const std::string member = resource.name.substr(resource.block.size() + 1);
  const std::string_view root = std::string_view(member).substr(0, member.find_first_of(".["));
  resource.mentioned = block.mentioned && std::ranges::find(block.unread, root) == block.unread.end();
}

// What the text says. extensions: of the driver, which the text names: the compiler defines their macros.
void add_from_text(const std::vector<std::string>& extensions, const KernelSource& source,
                   ProgramInterface& interface) {
  std::vector<Define> macros;
  for (const std::string& extension : extensions) macros.push_back({extension, "1"});
  macros.insert(macros.end(), source.constants.begin(), source.constants.end());
  const glsl::Preprocessed text = glsl::preprocessed(source.text, macros);
  for (const glsl::Declaration& declared : glsl::declarations(text.tokens)) {
    std::set<std::string_view> used;
    for (ProgramResource& resource : interface.resources) {
      if (declared.kind == ResourceKind::uniform_block) note_member(declared, resource);
      const bool same_kind =
          is_block(declared.kind) ? resource.kind == declared.kind : !is_block(resource.kind) && resource.block.empty();
      if (!same_kind || without_indices(resource.name) != declared.name) continue;
      used.insert(resource.name);
      resource.access = declared.access;
      resource.has_default = declared.has_default;
      resource.mentioned = declared.mentioned;
      if (resource.kind == ResourceKind::storage_block) {
        // The driver is right about sizes; the text tells bool from uint, and what the driver left out.
        const ElementType told = element_of(declared.members);
        const bool known = told != ElementType::unknown && resource.element != ElementType::unknown;
        if (!known || bytes_of(told) == bytes_of(resource.element)) resource.element = told;
      }
      if (resource.kind == ResourceKind::uniform) resource.lengths = declared.lengths;
      resource.texture.format = declared.format;
    }
    for (std::size_t i = 0; i < declared.resources.size(); ++i) {
      if (used.contains(declared.resources[i])) continue;
      ProgramResource& unused = interface.unused.emplace_back();
      unused.kind = declared.kind;
      unused.name = declared.resources[i];
      unused.type = declared.type;
      unused.number = declared.number;
      if (unused.number && is_block(unused.kind)) *unused.number += static_cast<std::uint32_t>(i);
      if (!is_block(unused.kind)) unused.lengths = declared.lengths;
    }
  }
}

}  // namespace

Reflection reflect(const Gl& gl, GLuint program, const KernelSource& source) {
  Reflection reflection;
  add_storage_blocks(gl, program, reflection);
  add_uniform_blocks(gl, program, reflection);
  const GLuint uniforms = count_of(gl, program, GL_UNIFORM);
  for (GLuint index = 0; index < uniforms; ++index) add_uniform(gl, program, index, reflection);
  add_subroutines(gl, program, reflection);
  refuse_misplaced_members(gl, reflection.interface.resources);
  add_from_text(extensions_in(gl, source.text), source, reflection.interface);
  return reflection;
}

}  // namespace kiln::opengl

// ProgramInterface: the resources that a built program declares; provide(): which part of a request provides each.
//
// Thread-safety: values and a pure function. Ownership: values.
//
//   if (const ProgramInterface* declared = program.interface(source)) {
//     auto sources = provide(*declared, kernel);
//     if (!sources) return sources.error();  // "uniform float gain: the job provides nothing for it. Add …"
//   }
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// GLSL: storage_block to atomic_counter. OpenCL C: buffer_argument to local_argument, in the order of the arguments.
enum class ResourceKind : std::uint8_t {
  invalid = 0,
  storage_block,
  uniform,
  uniform_block,
  image,
  sampler,
  atomic_counter,
  buffer_argument,
  value_argument,
  local_argument,
};

std::string_view to_string(ResourceKind kind) noexcept;  // "storage block"

// The base type of the elements that a resource holds. unknown: several, a struct, or not reported by the compiler.
enum class ElementType : std::uint8_t { unknown = 0, boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

struct ProgramResource {
  ResourceKind kind = ResourceKind::invalid;
  std::string name;                     // of the block, uniform or argument
  std::string type;                     // for messages: "mat4", "float[16]", "image2D", "float*"; empty for a block
  std::optional<std::uint32_t> number;  // GLSL: its binding; OpenCL C: the argument's index
  Access access = Access::read_write;   // as declared by readonly, writeonly, const
  ElementType element = ElementType::unknown;
  std::vector<std::uint32_t> shape;  // of a uniform, as UserKernelSpec::Uniform has it
  bool matrix = false;               // of a uniform: the last two dimensions are a matrix's rows and columns
  // Of a uniform, the lengths that the source declares, outermost first, also those that the name has an index for
  // ("a[1]" of float a[2][3]: 2, 3). `shape` holds fewer elements where the program uses fewer. 0: not known.
  std::vector<std::uint32_t> lengths;
  bool has_default = false;  // of a uniform: an initialiser gives its value where the job gives none
  bool mentioned = true;     // of a block: false where the source only declares it. Nothing need provide it then
  // Bytes that must be there: of a block at least, an array of unknown length counted with one element; of a value
  // exactly; of local memory a multiple.
  std::uint64_t bytes = 0;
  // Of a block's array of unknown length, or of a block that is one array: where it begins, the bytes from one element
  // to the next (0: there is none), and how many of them an element uses (0: not known).
  std::uint64_t array_offset = 0;
  std::uint64_t array_stride = 0;
  std::uint64_t element_bytes = 0;
  bool open_ended = false;  // the array's length is that of the buffer
  std::string unusable;     // not empty: why no value can be given to it on this device
  std::int64_t handle = 0;  // the device's own: a block's index, a uniform's location
};

struct ProgramInterface {
  std::vector<ProgramResource> resources;
  // Declared in the source, but not used by the program: what a job provides for them is accepted and ignored. Elements
  // of arrays, and members of structs, are one each.
  std::vector<ProgramResource> unused;
};

// What provides one resource: bytes of a binding of the launch, from `offset`. For local memory: `binding` is `none`
// and `offset` the number of bytes. A uniform with a default that the job does not set, and a block that is not
// mentioned: `none` too.
struct ResourceSource {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t binding = none;
  std::uint64_t offset = 0;
  UserKernelSpec::Uniform::Type given = UserKernelSpec::Uniform::Type::invalid;  // of a uniform's values
  bool operator==(const ResourceSource&) const = default;
};

std::uint64_t values_in(const ProgramResource& uniform) noexcept;  // product of its shape; 1 for a scalar

// One ResourceSource for each resource of the program, in order. invalid_argument names every resource, with its kind,
// for which the job provides nothing or another kind, type, size or access; and whatever the job provides that no
// resource takes.
Result<std::vector<ResourceSource>> provide(const ProgramInterface& declared, const UserKernelSpec& kernel);

}  // namespace kiln

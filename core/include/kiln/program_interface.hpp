// ProgramInterface: the resources that a built program declares, and their assignment to the bindings of a request.
//
// Thread-safety: values and a pure function. Ownership: values. Sizes are in bytes.
//
//   if (const kiln::ProgramInterface* declared = program.interface(source)) {
//     auto sources = kiln::provide(*declared, kernel);
//     if (!sources) return sources.error();  // "uniform float gain: not provided by the job. Add …"
//   }
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// GLSL: storage_block to atomic_counter and sampler_state. OpenCL C: buffer_argument to local_argument, in the order of
// the arguments.
// sampler: a sampler with its texture, or a separate texture. sampler_state: a sampler without a texture (Vulkan).
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
  sampler_state,
};

std::string_view to_string(ResourceKind kind) noexcept;  // "storage block"

// Element type of a resource. unknown: mixed types, a struct, or not reported by the compiler.
enum class ElementType : std::uint8_t { unknown = 0, boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

// The texture of an image or sampler. cube: six layers for each cube. buffer: the tensor itself, without a copy. alone: a
// texture that uses the filter and wrap of a sampler_state.
struct TextureShape {
  std::uint32_t dimensions = 0;  // 1 to 3
  bool layered = false, cube = false, buffer = false, alone = false;
  ImageFormat format = ImageFormat::declared;  // of the layout qualifier
};

struct ProgramResource {
  ResourceKind kind = ResourceKind::invalid;
  std::string name;                     // name of the block, uniform or argument
  std::string type;                     // for messages: "mat4", "float[16]", "image2D", "float*"; empty for a block
  std::optional<std::uint32_t> number;  // GLSL: binding; OpenCL C: argument index
  Access access = Access::read_write;   // as declared by readonly, writeonly, const
  ElementType element = ElementType::unknown;
  std::vector<std::uint32_t> shape;  // of a uniform, as in UserKernelSpec::Uniform
  bool matrix = false;               // of a uniform: the last two dimensions are matrix rows and columns
  // Of a uniform: the declared array lengths, outermost first, including indexed dimensions ("a[1]" of float a[2][3]:
  // 2, 3). `shape` has fewer elements if the program uses fewer elements. 0: unknown.
  std::vector<std::uint32_t> lengths;
  bool has_default = false;  // of a uniform: has an initializer
  bool mentioned = true;     // of a block: false if the program declares but does not use it; it then needs no binding
  // Required size. Block: minimum, with one element of an array of unknown length. Value: exact. Local memory: divisor
  // of the size.
  std::uint64_t bytes = 0;
  // Of a block with an array of unknown length, or of one array only: offset, distance of elements (0: no array), and
  // used bytes per element (0: unknown).
  std::uint64_t array_offset = 0;
  std::uint64_t array_stride = 0;
  std::uint64_t element_bytes = 0;
  bool struct_elements = false;  // the elements are structs; a tensor of one dimension may also contain them
  bool open_ended = false;       // the buffer determines the array length
  std::string block;        // of a uniform: the uniform block that it is a member of ("Params[1]"); empty: none
  TextureShape texture;     // of an image or sampler
  std::string unusable;     // reason why it cannot be set on this device; empty: it can
  std::int64_t handle = 0;  // device-specific: block index or uniform location
};

struct ProgramInterface {
  std::vector<ProgramResource> resources;
  // Declared but unused resources. provide() accepts and ignores values for them. Array elements and struct members are
  // separate elements of this list.
  std::vector<ProgramResource> unused;
};

// The tensor and the sampling parameters of an image or sampler.
struct TextureSource {
  std::array<std::uint32_t, 3> size{0, 0, 0};  // width, height, depth or layers; 0: no such dimension
  std::uint32_t channels = 0;                  // of the tensor
  DType dtype = DType::invalid;                // of the tensor
  ImageFormat format = ImageFormat::declared;  // of the texture; never `declared` for a used resource
  TextureFilter filter = TextureFilter::automatic;
  TextureWrap wrap = TextureWrap::clamp;
  Access access = Access::invalid;  // read: the tensor is not written
  bool operator==(const TextureSource&) const = default;
};

// Source of one resource: a binding of the launch, from `offset`. Local memory: `binding` is `none` and `offset` is the
// size. `binding` is also `none` for an unset uniform with a default, an unused block, and a sampler_state.
struct ResourceSource {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t binding = none;
  std::uint64_t offset = 0;
  UserKernelSpec::Uniform::Type given = UserKernelSpec::Uniform::Type::invalid;  // type of the given uniform values
  TextureSource texture{};                                                       // of an image or sampler
  bool operator==(const ResourceSource&) const = default;
};

std::uint64_t values_in(const ProgramResource& uniform) noexcept;  // product of its shape; 1 for a scalar

// Returns one ResourceSource per resource, in order. invalid_argument: a resource has no value, or a value with a wrong kind,
// type, size or access, or a value has no resource. The error lists all of them.
Result<std::vector<ResourceSource>> provide(const ProgramInterface& declared, const UserKernelSpec& kernel);

}  // namespace kiln

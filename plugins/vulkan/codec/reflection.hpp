// The interface of a SPIR-V module: its resources, where the bytes of its uniforms lie, and its descriptors.
//
// To parse a module costs as much time as the driver takes to load its program: what was found is stored beside it.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/program_interface.hpp>
#include <kiln/uniform_values.hpp>

#include <vulkan/vulkan.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/spirv_module.hpp"

namespace kiln::vulkan {

// A descriptor binding of the one set of a program; `count` descriptors.
struct DescriptorSlot {
  VkDescriptorType type = VK_DESCRIPTOR_TYPE_MAX_ENUM;
  std::uint32_t count = 1;
  std::uint32_t declared = 0;  // the binding that the program declares
};

// A block whose bytes are values of uniforms: a uniform block, the block of plain uniforms, or the push constants.
struct ValueBlock {
  std::uint32_t bytes = 0;
  std::optional<std::uint32_t> slot;  // its descriptor slot; nullopt: the push constants
  std::uint32_t element = 0;          // of an array of blocks
};

struct UniformMember {
  std::uint32_t block = 0;  // index into Reflection::blocks
  UniformPlace place;
};

struct TextureSlot {
  std::uint32_t slot = 0, element = 0;
  VkImageViewType view = VK_IMAGE_VIEW_TYPE_2D;
  std::vector<std::size_t> samplers;  // indices into Reflection::resources: the separate samplers that read it
};

// What a module asks of the device.
struct ModuleNeeds {
  std::uint32_t version = 0;  // 0x00010300: SPIR-V 1.3
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};
  std::uint64_t shared_bytes = 0;  // without padding
  std::uint64_t uses = 0;          // bits of codec/module_uses.hpp
  std::vector<std::uint32_t> capabilities;
};

struct Reflection {
  // ProgramResource::handle: of a storage block and of an atomic counter, slot << 32 | element; of a uniform, an index
  // into `members`; of a uniform block, into `blocks`; of an image or sampler, into `textures`; of a separate sampler,
  // slot << 32 | element.
  std::vector<ProgramResource> resources;
  std::vector<ProgramResource> unused;
  std::vector<DescriptorSlot> slots;  // by binding number in the module that the driver gets
  std::vector<ValueBlock> blocks;
  std::vector<UniformMember> members;
  std::vector<TextureSlot> textures;
  std::uint32_t push_constant_bytes = 0;
  std::vector<std::optional<std::uint32_t>> bindings;  // SpirvModule::with_bindings()
};

ModuleNeeds needs_of(const SpirvModule& module);

// invalid_argument or unsupported: a resource that no job can provide; the error names it.
Result<Reflection> reflect(const SpirvModule& module);

// With what only the text says: which members are bool. A text that is not GLSL changes nothing.
ProgramInterface complete(const Reflection& reflection, const KernelSource& source);

// The module that the driver gets, with what parsing it would find. As bytes, for the same build, and back.
struct ModuleRecord {
  std::vector<std::uint32_t> words;
  std::string entry;
  ModuleNeeds needs;
  Reflection reflection;
};
void append(const ModuleRecord& module, std::vector<std::byte>& bytes);
std::optional<ModuleRecord> read_module(std::span<const std::byte> bytes);  // nullopt: not what append() writes

}  // namespace kiln::vulkan

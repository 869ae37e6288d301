// Uniform values: converts the values of a job to the bytes that a GPU program reads.
//
// Thread-safety: pure functions. Ownership: values. Offsets and strides are in bytes.
//
//   auto components = kiln::uniform_components(resource, values, given);
//   if (!components) return components.error();  // "uniforms.count: value -1 is out of range …"
//   kiln::place_in_block(resource, place, *components, block);
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// Position of a member in its block.
struct UniformPlace {
  std::uint32_t count = 1;  // elements of an array
  std::uint32_t offset = 0, array_stride = 0, matrix_stride = 0;
  bool row_major = false;
};

// Converts the values of a uniform, 8 bytes each (UserKernelSpec::Uniform), to components of its declared type. The
// components of a matrix are in column order. invalid_argument: the type cannot represent a value.
Result<std::vector<std::byte>> uniform_components(const ProgramResource& resource, const std::byte* values,
                                                  UserKernelSpec::Uniform::Type given);

// Writes a member's components to the bytes of its block. REQUIRES: the number of components matches the member.
void place_in_block(const ProgramResource& resource, const UniformPlace& member, std::span<const std::byte> components,
                    std::vector<std::byte>& block);

}  // namespace kiln

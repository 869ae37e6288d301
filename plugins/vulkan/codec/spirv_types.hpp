// The types of a SPIR-V module: numbers, and where the bytes of blocks lie.
//
// Thread-safety: const methods from any thread. Ownership: borrows the module.
#pragma once

#include <kiln/program_interface.hpp>
#include <kiln/uniform_values.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "codec/spirv_module.hpp"

namespace kiln::vulkan {

// A scalar, vector or matrix.
struct Numeric {
  ElementType element = ElementType::unknown;
  std::uint32_t bytes = 0;              // of a component
  std::uint32_t columns = 1, rows = 1;  // of a vector 1 and its components

  std::uint64_t components() const noexcept { return std::uint64_t{columns} * rows; }
};

ImageFormat image_format_of(std::uint32_t spirv) noexcept;  // of an spv::ImageFormat; declared: none, or not known
std::string type_name(const Numeric& type, std::uint32_t length);  // as in GLSL: "vec3", "uint[4]"; length 0: no array

// What is common to the members of a block.
struct BlockFacts {
  std::uint64_t end = 0;  // of the last component, an array of unknown length counted with one element
  bool any = false;
  ElementType element = ElementType::unknown;  // unknown: of several types
};

class SpirvTypes {
 public:
  static constexpr int deepest = 64;  // types that are nested more deeply are not looked into

  explicit SpirvTypes(const SpirvModule& module) : module_(module) {}

  std::optional<Numeric> numeric(std::uint32_t type) const;  // nullopt: another type
  UniformPlace place_of(std::uint32_t type, std::uint32_t member) const;
  BlockFacts facts_of(std::uint32_t block) const;
  // A member that reaches into the next, or an array whose elements do, such as "s[].a"; empty: there is none. glslang
  // makes such a layout where the length of an array is an expression of specialization constants.
  std::string overlapping(std::uint32_t block) const { return overlapping(block, {}, 0); }
  std::uint64_t bytes_without_padding(std::uint32_t type) const {
    return bytes_without_padding(type, 0);
  }  // 0: unknown

 private:
  // Where a type at `offset` ends; its arrays of unknown length are counted with one element.
  std::uint64_t end_of(std::uint32_t type, std::uint64_t offset, const UniformPlace& matrix, BlockFacts& facts,
                       int depth) const;
  std::string overlapping(std::uint32_t type, const UniformPlace& matrix, int depth) const;
  std::uint64_t bytes_without_padding(std::uint32_t type, int depth) const;

  const SpirvModule& module_;
};

}  // namespace kiln::vulkan

// What SPIR-V says of single instructions: their results, their literals, and the values of operations on integers.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <glslang/SPIRV/spirv.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln::vulkan::spirv {

// The operand that is the result of an instruction that declares something outside functions; 0: none.
std::size_t result_operand(spv::Op op) noexcept;

// The first operand of an instruction of a function from which on there are literals or ids of values only.
std::size_t first_literal(spv::Op op) noexcept;
// A literal in front of operands that may be variables.
bool is_literal(spv::Op op, std::size_t operand) noexcept;

// An execution model: "a vertex shader".
std::string words_of_model(std::uint32_t model);

// Of the first `bits` bits, from 1 to 64.
std::uint64_t cut(std::uint64_t value, std::uint32_t bits) noexcept;
std::int64_t sign_extended(std::uint64_t value, std::uint32_t bits) noexcept;
// An operation on integers and booleans of `bits` bits. nullopt: another one, or one that has no result. Bits beyond
// the result's type are without meaning.
std::optional<std::uint64_t> value_of(spv::Op op, std::uint32_t bits, std::uint64_t a, std::uint64_t b,
                                      std::uint64_t c) noexcept;

}  // namespace kiln::vulkan::spirv

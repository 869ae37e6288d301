// GLSL to SPIR-V, and which names a GLSL text declares as bool.
//
// Which names a GLSL text declares as bool: SPIR-V has no bool in a block, and glslang declares uint.
//
// Thread-safety: a pure function. Ownership: the names borrow from the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

namespace kiln::vulkan {

// The names of bools: of uniforms outside blocks, and of members of structs and blocks. A member has its own name only,
// without that of its struct: members of one name in two structs are not distinguished.
struct BoolNames {
  std::vector<std::string_view> uniforms, members;
  std::vector<std::string_view> others;  // words of the declarations of other uniforms

  // is_member: of a uniform block or struct. A push constant is one, but its name does not say so.
  bool contains(std::string_view name, bool is_member) const;
};

BoolNames bool_names(std::string_view text);

// GLSL to SPIR-V by glslang, in this process.
//
// Thread-safety: any thread, several at once. Ownership: values.

// The SPIR-V 1.3 of a compute shader. GLSL for OpenGL is accepted: uniforms outside blocks become members of the block
// uniform_block_name, atomic counters members of a storage block counter_block_name with "_" and their binding, and a
// resource without a binding has binding 0. A text without #version is "#version 430 core".
// invalid_argument: the error has the compiler's whole log with the user's file names. unsupported: another dialect.
Result<std::vector<std::uint32_t>> compile_glsl(const KernelSource& source);

inline constexpr const char* uniform_block_name = "kiln_uniforms";
inline constexpr const char* counter_block_name = "kiln_counters";

}  // namespace kiln::vulkan

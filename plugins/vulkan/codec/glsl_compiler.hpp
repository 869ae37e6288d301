// GLSL to SPIR-V by glslang, in this process.
//
// Thread-safety: any thread, several at once. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <vector>

namespace kiln::vulkan {

// The SPIR-V 1.3 of a compute shader. GLSL for OpenGL is accepted: uniforms outside blocks become members of the block
// uniform_block_name, atomic counters members of a storage block counter_block_name with "_" and their binding, and a
// resource without a binding has binding 0. A text without #version is "#version 430 core".
// invalid_argument: the error has the compiler's whole log with the user's file names. unsupported: another dialect.
Result<std::vector<std::uint32_t>> compile_glsl(const KernelSource& source);

inline constexpr const char* uniform_block_name = "kiln_uniforms";
inline constexpr const char* counter_block_name = "kiln_counters";

}  // namespace kiln::vulkan

// The line between the plugin and libkiln_glslang.so, which links glslang and SPIRV-Tools, and its loading at first
// use: their tables take tens of milliseconds to set up, which a process that only loads stored programs does not pay.
//
// Thread-safety: glslang_module() and what it answers, from any thread, several at once. Ownership: values; the module
// stays loaded until the process exits.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::vulkan {

struct CompiledGlsl {
  std::vector<std::uint32_t> words;
  std::vector<Define> values;  // the constants of the job that the text declares with constant_id: not yet in the words
};

enum class LineNumbers : std::uint8_t { none, kept };  // kept: OpLine before each instruction, for messages only

// What a device takes.
struct SpirvRules {
  std::uint32_t vulkan_version = 0;
  bool scalar_blocks = false;   // members are aligned to their components only
  bool local_size_ids = false;  // also before Vulkan 1.3
};

// What GLSL's built-in constants say of a device, such as gl_MaxComputeWorkGroupSize; no more than an int holds.
struct GlslLimits {
  std::array<std::int32_t, 3> workgroup_count{}, workgroup_size{};
  std::int32_t uniform_components = 0;
  std::int32_t textures = 0, all_textures = 0, images = 0, all_images = 0;  // of a stage, and of all
  std::int32_t counter_blocks = 0, counter_block_bytes = 0;
  std::int32_t least_texel_offset = 0, most_texel_offset = 0;
  std::int32_t samples = 0, image_samples = 0;
};

struct GlslangModule {
  // The SPIR-V 1.3 of a compute shader. GLSL for OpenGL is accepted: uniforms outside blocks become members of the
  // block uniform_block_name, atomic counters members of a storage block counter_block_name with "_" and their binding,
  // and a resource without a binding has binding 0. A text without #version is "#version 430 core". invalid_argument:
  // the error has the compiler's whole log with the user's file names. unsupported: another dialect.
  Result<CompiledGlsl> (*compile)(const KernelSource& source, const GlslLimits& device, LineNumbers lines);
  // The words in this machine's byte order, validated by these rules.
  // A source language that SPIRV-Tools do not know becomes 0. invalid_argument: the error has the validator's message,
  // and the file and line where the module has them.
  Result<std::vector<std::uint32_t>> (*validated)(std::string_view bytes, const SpirvRules& rules);
  // Of a SPIR-V capability, as its specification writes it; "number N" where glslang does not know it.
  std::string (*capability_name)(std::uint32_t capability);
};

inline constexpr const char* uniform_block_name = "kiln_uniforms";
inline constexpr const char* counter_block_name = "kiln_counters";

inline constexpr const char* glslang_module_symbol = "kiln_glslang_module";

// Opens libkiln_glslang.so in the folder above the plugin's own. unavailable: it cannot be loaded; the error has the
// dynamic linker's words.
Result<const GlslangModule*> glslang_module();

}  // namespace kiln::vulkan

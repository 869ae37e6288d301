// The text of a case as OpenGL or Vulkan wants it, and its parameters as one block of bytes.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "witnesses/catalog/shader_case.hpp"

#include <string>
#include <vector>

namespace kiln::witness {

enum class Dialect : std::uint8_t { invalid = 0, opengl, vulkan };

std::string source_text(const ShaderCase& shader, Dialect dialect);

// The push constants of one pass, laid out as std430 has them; empty where there are none.
std::vector<std::uint32_t> push_constants(const ShaderCase& shader, std::uint32_t pass);

}  // namespace kiln::witness

// The types of GLSL: OpenGL's numbers of them, their names, and what they hold.
//
// Thread-safety: pure functions. Ownership: the facts live until the program ends.
#pragma once

#include "codec/context.hpp"

#include <kiln/program_interface.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::opengl {

// A number, vector or matrix.
struct TypeFacts {
  GLenum type;
  std::string_view name;
  ElementType element;
  std::uint32_t columns, rows;  // of a matrix; of a vector 1 and its components
};
inline std::uint32_t components(const TypeFacts& facts) noexcept { return facts.columns * facts.rows; }

// The types that are no numbers. An unusable one has no target.
struct TextureFacts {
  GLenum first;  // of float; the types of int and uint have numbers of their own
  GLenum of_int, of_uint;
  std::string_view name;  // without the prefix "i" or "u"
  GLenum target;
  TextureShape shape;
};

const TypeFacts* facts_of(GLenum type) noexcept;             // nullptr: not a number, vector or matrix
const TextureFacts* texture_facts_of(GLenum type) noexcept;  // nullptr: neither an image nor a sampler
ElementType element_of(std::string_view type) noexcept;
// Of all of these types. unknown: they differ.
ElementType element_of(const std::vector<std::string>& types) noexcept;
// The type that stands for both. int, uint and bool may stand for each other: their bits lie alike. unknown: none.
ElementType common(ElementType a, ElementType b) noexcept;
std::uint32_t bytes_of(ElementType element) noexcept;  // in a block or uniform

}  // namespace kiln::opengl

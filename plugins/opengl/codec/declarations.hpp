// What a preprocessed GLSL text declares at its outermost level and OpenGL does not report of a linked program:
// qualifiers, initialisers, lengths of arrays, and what the program does not use.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/program_interface.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/source_text.hpp"

namespace kiln::opengl::glsl {

// A block, or a uniform outside blocks (also an image, a sampler, a counter); of a uniform of a struct type each
// member.
struct Declaration {
  ResourceKind kind = ResourceKind::invalid;  // storage_block, uniform_block or uniform
  std::string name;                           // "lights.power": without indices
  std::string type;                           // of a uniform
  std::optional<std::uint32_t> number;        // the binding; 0 where none is declared; nullopt: not known
  Access access = Access::read_write;
  bool has_default = false;
  bool mentioned = true;             // of a block: its members, or its instance, stand anywhere else in the text
  std::vector<std::string> members;  // of a block: the types of all its members, also of those in structs
  std::vector<std::string> unread;   // of a block: its members whose names stand nowhere else in the text
  ImageFormat format = ImageFormat::declared;  // of an image: its layout qualifier
  std::vector<std::uint32_t> lengths;          // of an array, of the last member in the name; 0: not known
  // The names of its resources, as OpenGL spells them: "lights[1].power"; empty where a length is not known.
  std::vector<std::string> resources;
};

std::vector<Declaration> declarations(Tokens tokens);

}  // namespace kiln::opengl::glsl

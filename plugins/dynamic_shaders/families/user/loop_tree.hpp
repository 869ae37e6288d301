// A user's GLSL kernel as trees of statements, one for each function, in which its loops can be followed.
//
// Thread-safety: a pure function. Ownership: everything here borrows from the tokens that it was read from.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

struct Statement {
  enum class Kind : std::uint8_t {
    simple = 0,  // also the head of an if or of a switch
    block,       // in braces, or an if with what belongs to it: all branches in one row
    for_loop,
    while_loop,
    do_loop,
  };
  Kind kind = Kind::simple;
  std::uint32_t line = 0;              // where it begins
  Tokens words;                        // of a loop: in the brackets of its head; a for loop's have three parts
  std::vector<Statement> inside;       // of a block and a loop
  std::set<std::string_view> changed;  // of a for loop: names that are given a value inside
};

struct FunctionParameter {
  std::string_view type, name;
  bool is_written = false;  // out or inout
};

struct Function {
  std::string_view name;
  std::vector<FunctionParameter> parameters;
  std::vector<Statement> body;
};

struct LoopTree {
  std::vector<Function> functions;
  std::set<std::string_view> looping;  // functions that hold a loop or call, by others perhaps, one that does
  std::vector<Tokens> declarations;    // outside of functions
  std::set<std::string_view> changed;  // names that are given a value behind their declaration, anywhere
};

// tokens: of preprocessed(). Text that no compiler takes is borne, with nothing said of what becomes of it.
LoopTree loop_tree(Tokens tokens);

}  // namespace kiln::dynamic_shaders

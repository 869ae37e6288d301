// A random compute program together with what it declares and computes.
//
// Thread-safety: none is needed; values. Ownership: values; a Random borrows its engine.
#pragma once

#include <kiln/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "opengl/support/interface_types.hpp"

namespace kiln::support {

inline constexpr std::uint32_t lanes = 8;  // of the one workgroup

class Random {
 public:
  explicit Random(std::mt19937_64& engine) : engine_(engine) {}
  std::uint32_t below(std::uint64_t end) { return static_cast<std::uint32_t>(engine_() % end); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  int small(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    std::ranges::shuffle(all, engine_);
  }

 private:
  std::mt19937_64& engine_;
};

// A storage block that the shader sees; the elements of an array of blocks are one each.
struct InterfaceBlock {
  std::string name;    // "Blocks[1]"
  std::string access;  // an expression in front of a member: "", "b1.", "b1[0]."
  std::optional<std::uint32_t> number;
  Packing packing = Packing::std430;
  std::vector<GlslMember> members;
  bool readonly = false, writeonly = false;
  bool read = false, written = false;
  bool active = false;  // also: an element of an array that is used elsewhere

  bool used() const { return read || written; }
  bool open() const { return !members.back().lengths.empty() && members.back().lengths[0] == 0; }
};

struct InterfaceUniform {
  std::string name;  // "light[1].power"
  GlslType type;
  std::vector<std::uint32_t> lengths;
  std::vector<int> defaults;  // by element, then by component, a matrix column by column; none: there is no default
  bool used = false;
  bool asked = false;       // the driver may count it as used: another member of the struct is
  std::uint32_t least = 0;  // elements of the first dimension that the program reaches

  std::uint32_t elements() const {
    std::uint32_t count = 1;
    for (const std::uint32_t length : lengths) count *= length;
    return count;
  }
  std::uint32_t values() const { return elements() * type.rows * type.columns; }
};

// acc += factor * int(EXPRESSION)
struct InterfaceTerm {
  int factor = 1;
  std::size_t index = 0;  // of a block or uniform
  bool uniform = false;
  bool length = false;  // .length() of the last member
  std::size_t member = 0;
  std::uint32_t count = 0;    // the element is lane % count; 0: it is `element`
  std::uint32_t element = 0;  // of an array
  Component component;
  std::size_t value = 0;  // of a uniform: which of an element's values

  std::uint32_t at(std::uint32_t lane) const { return count == 0 ? element : lane % count; }
};

struct InterfaceProgram {
  std::string text;
  std::vector<Define> constants;
  std::vector<InterfaceBlock> blocks;
  std::vector<InterfaceUniform> uniforms;
  std::vector<InterfaceTerm> terms;
  int bias = 0;
  std::vector<std::string> refused;  // what no job can provide: its name and kind
};

InterfaceProgram random_program(std::mt19937_64& engine);

}  // namespace kiln::support

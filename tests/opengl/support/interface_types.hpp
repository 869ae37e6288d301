// Types of GLSL and their std140 and std430 layout by the rules of the specification, for tests that compute on the CPU
// what a kernel reads. Shares no code with the plugin.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::support {

enum class Packing { std140, std430 };

struct GlslType {
  struct Member;
  std::string name;
  char base = 'f';            // f, d, i, u, b; s: a struct
  std::uint32_t rows = 1;     // components of a vector, rows of a matrix
  std::uint32_t columns = 1;  // more than one: a matrix
  std::vector<Member> members;
};

// A member of a struct or block, or a uniform. `lengths` are those of its array dimensions; the first may be 0, in a
// block: as long as the buffer.
struct GlslType::Member {
  std::string name;
  GlslType type;
  std::vector<std::uint32_t> lengths;
};

using GlslMember = GlslType::Member;

const std::vector<GlslType>& numeric_types();  // scalars, vectors and matrices of all five bases

std::uint64_t round_up(std::uint64_t value, std::uint64_t to);
std::uint64_t scalar_bytes(char base);
std::uint64_t alignment(const GlslType& type, Packing packing, bool in_array = false);
std::uint64_t size(const GlslType& type, Packing packing);    // without padding behind it
std::uint64_t stride(const GlslType& type, Packing packing);  // from one element of an array to the next
std::uint64_t size(const GlslMember& member, Packing packing, std::uint64_t open_length = 1);
// The offset of each member, and behind them the end of the last.
std::vector<std::uint64_t> offsets(const std::vector<GlslMember>& members, Packing packing,
                                   std::uint64_t open_length = 1);

// One scalar: what to append to an expression of the type, and where it lies.
struct Component {
  std::string suffix;
  std::uint64_t offset = 0;
  char base = 'f';
};
std::vector<Component> components(const GlslType& type, Packing packing);

double read_scalar(const std::byte* at, char base);
void write_scalar(std::byte* at, char base, double value);

std::string declaration(const GlslMember& member);  // "vec3 w[2]"

}  // namespace kiln::support

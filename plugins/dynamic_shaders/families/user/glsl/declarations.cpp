#include "dynamic_shaders/families/user/glsl/declarations.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

// Bytes of one element of an array in a buffer, at the least.
std::uint64_t element_bytes(std::string_view type) {
  if (type == "float" || type == "int" || type == "uint" || type == "bool") return 4;
  if (type == "vec2" || type == "ivec2" || type == "uvec2" || type == "double") return 8;
  if (type == "vec3" || type == "ivec3" || type == "uvec3" || type == "vec4" || type == "ivec4" || type == "uvec4") {
    return 16;
  }
  return 1;
}

class Globals {
 public:
  explicit Globals(const UserKernelSpec& spec) : spec_(spec) {}

  void read(Tokens declaration, const std::set<std::string_view>& changed) {
    Range binding;
    for (std::size_t at = 0; at < declaration.size();) {
      const Tokens inside = is_opening(declaration[at].text) ? in_brackets(declaration, at) : Tokens();
      if (at > 0 && declaration[at].text == "(" && declaration[at - 1].text == "layout") read_layout(inside, binding);
      if (declaration[at].text == "{") read_block(inside, binding);
      at = past_brackets(declaration, at);
    }
    declare(declaration, {nullptr, &values_}, changed, values_);
  }

  // What the language says of where a lane is.
  void add_positions() {
    constexpr std::array axes = {"x", "y", "z"};
    double lanes = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double groups = spec_.grid[axis];
      const Range size = local_size_[axis].lo >= 1 ? local_size_[axis] : Range{1, Range{}.hi, true};
      lanes *= size.hi;
      values_.add_member("gl_NumWorkGroups", axes[axis], exactly(groups));
      values_.add_member("gl_WorkGroupSize", axes[axis], size);
      values_.add_member("gl_WorkGroupID", axes[axis], {0, groups - 1, true});
      values_.add_member("gl_LocalInvocationID", axes[axis], {0, size.hi - 1, true});
      values_.add_member("gl_GlobalInvocationID", axes[axis], {0, groups * size.hi - 1, true});
    }
    values_.add("gl_LocalInvocationIndex", {0, lanes - 1, true});
  }

  Values take() { return std::move(values_); }

 private:
  void read_layout(Tokens entries, Range& binding) {
    constexpr std::array<std::string_view, 3> sizes = {"local_size_x", "local_size_y", "local_size_z"};
    for (const Tokens entry : split(entries, ",")) {
      if (entry.size() < 3 || entry[1].text != "=") continue;
      const Range number = value_of(entry.subspan(2), {nullptr, &values_});
      if (entry[0].text == "binding") binding = number;
      const auto axis = std::ranges::find(sizes, entry[0].text);
      if (axis != sizes.end()) local_size_[static_cast<std::size_t>(axis - sizes.begin())] = number;
    }
  }

  // Of a buffer: an array without a size goes to the buffer's end at most.
  void read_block(Tokens members, Range binding) {
    const auto bindings = static_cast<double>(spec_.bindings.size());
    if (!binding.is_one_value() || binding.lo < 0 || binding.lo >= bindings) return;
    const std::uint64_t bytes = spec_.bindings[static_cast<std::size_t>(binding.lo)].bytes;
    for (std::size_t i = 1; i + 2 < members.size(); ++i) {
      if (members[i + 1].text != "[" || members[i + 2].text != "]") continue;
      const auto most = static_cast<double>(bytes / element_bytes(members[i - 1].text));
      values_.add_member(members[i].text, "length", {0, most, true});
    }
  }

  const UserKernelSpec& spec_;
  Values values_;
  std::array<Range, 3> local_size_{exactly(1), exactly(1), exactly(1)};
};

}  // namespace

void declare(Tokens statement, NamesInSight names, const std::set<std::string_view>& changed, Values& values) {
  bool constant = false;
  while (!statement.empty() && (is_qualifier(statement[0].text) || statement[0].text == "layout")) {
    constant |= statement[0].text == "const";
    const bool is_layout = statement[0].text == "layout" && statement.size() > 1;
    statement = statement.subspan(is_layout ? past_brackets(statement, 1) : 1);
  }
  if (statement.size() < 2 || !is_name(statement[0].text) || !is_name(statement[1].text)) return;
  const std::string_view type = statement[0].text;
  if (type == "return") return;
  for (const Tokens piece : split(statement.subspan(1), ",")) {
    if (piece.empty()) continue;
    const std::string_view name = piece[0].text;
    const Tokens length = piece.size() > 1 && piece[1].text == "[" ? in_brackets(piece, 1) : Tokens();
    if (!length.empty()) values.add_member(name, "length", held_by("int", value_of(length, names)));
    const bool known = piece.size() > 2 && piece[1].text == "=" && (constant || !changed.contains(name));
    values.add(name, held_by(type, known ? value_of(piece.subspan(2), names) : Range{}));
    if (!type.starts_with("uvec")) continue;
    for (const std::string_view member : {"x", "y", "z", "w"}) values.add_member(name, member, held_by("uint", {}));
  }
}

Values globals_of(std::span<const Tokens> declarations, const std::set<std::string_view>& changed,
                  const UserKernelSpec& spec) {
  Globals globals(spec);
  for (const Tokens declaration : declarations) globals.read(declaration, changed);
  globals.add_positions();
  return globals.take();
}

}  // namespace kiln::dynamic_shaders

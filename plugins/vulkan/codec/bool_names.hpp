// Which names a GLSL text declares as bool: SPIR-V has no bool in a block, and glslang declares uint.
//
// Thread-safety: a pure function. Ownership: the names borrow from the text.
#pragma once

#include <string_view>
#include <vector>

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

}  // namespace kiln::vulkan

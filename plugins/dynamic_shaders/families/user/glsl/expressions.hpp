// What an expression of a user's kernel can come to, where that is known before it runs.
//
// Thread-safety: pure functions; Values none. Ownership: Values borrows the names that it is given.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamic_shaders/families/user/glsl/ranges.hpp"
#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

// What the names in sight stand for; the one that was added last hides those before it.
class Values {
 public:
  void add(std::string_view name, Range range) { add_member(name, {}, range); }
  void add_member(std::string_view name, std::string_view member, Range range);
  const Range* find(std::string_view name, std::string_view member) const noexcept;
  std::size_t size() const noexcept { return added_.size(); }
  void shrink_to(std::size_t size);  // those that were added first stay

 private:
  using Key = std::pair<std::string_view, std::string_view>;  // a name, and a member of it or nothing
  std::map<Key, std::vector<Range>> ranges_;                  // the last one hides the others; none is empty
  std::vector<Key> added_;                                    // in this order
};

struct NamesInSight {
  const Values* locals = nullptr;  // null: none
  const Values* globals = nullptr;
};

Range value_of(Tokens expression, NamesInSight names);

}  // namespace kiln::dynamic_shaders

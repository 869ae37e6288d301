// What an expression of a user's kernel can come to, where that is known before it runs.
//
// Thread-safety: pure functions; Values none. Ownership: Values borrows the names that it is given.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/user/glsl/ranges.hpp"
#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

// What the names in sight stand for; the one that was added last hides those before it.
class Values {
 public:
  void add(std::string_view name, Range range) { entries_.push_back({name, {}, range}); }
  void add_member(std::string_view name, std::string_view member, Range range) {
    entries_.push_back({name, member, range});
  }
  const Range* find(std::string_view name, std::string_view member) const noexcept;
  std::size_t size() const noexcept { return entries_.size(); }
  void shrink_to(std::size_t size) { entries_.resize(size); }

 private:
  struct Entry {
    std::string_view name, member;
    Range range;
  };
  std::vector<Entry> entries_;
};

struct NamesInSight {
  const Values* locals = nullptr;  // null: none
  const Values* globals = nullptr;
};

Range value_of(Tokens expression, NamesInSight names);

}  // namespace kiln::dynamic_shaders

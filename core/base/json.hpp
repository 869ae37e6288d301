// Json: documents for tools, people and other processes. The library's parser and writer take longer to compile than
// most of our sources: they are compiled once, here.
//
// Thread-safety: pure. Ownership: values. Members keep the order in which they were put.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln {

using Json = nlohmann::ordered_json;

// Memory for lists of documents. Where the system refuses it, it comes from a reserve: the library's destructor, which
// may not throw, makes such a list. Thread-safety: any thread.
void* allocate_json_list(std::size_t bytes);
void free_json_list(void* list) noexcept;

}  // namespace kiln

template <>
struct std::allocator<kiln::Json> {
  using value_type = kiln::Json;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  constexpr allocator() noexcept = default;
  template <class Other>
  constexpr allocator(const std::allocator<Other>&) noexcept {}

  kiln::Json* allocate(std::size_t count) {
    return static_cast<kiln::Json*>(kiln::allocate_json_list(count * 2 * sizeof(void*)));
  }
  void deallocate(kiln::Json* list, std::size_t) noexcept { kiln::free_json_list(list); }
  friend constexpr bool operator==(const allocator&, const allocator&) noexcept { return true; }
};

namespace kiln {

static_assert(sizeof(Json) == 2 * sizeof(void*));

// is_discarded() where the text is no JSON.
Json parse_json(std::string_view text);

// Over several lines with `indent` spaces a level; on one line without. What is no UTF-8, in a driver's name or a path,
// is written as U+FFFD, and characters that a terminal obeys as escapes.
std::string json_text(const Json& json, int indent = -1);

}  // namespace kiln

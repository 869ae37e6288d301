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

// Memory for lists of documents, and for the lists and tables within a document. Where the system refuses it, it comes
// from a reserve: the library's destructor, which may not throw, makes such a list, and a document that became a table
// without memory for it cannot be destroyed. Thread-safety: any thread.
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

// An allocator of the same kind for what a document points to.
template <class Part>
struct KilnJsonPartAllocator {
  using value_type = Part;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  constexpr KilnJsonPartAllocator() noexcept = default;

  Part* allocate(std::size_t count) { return static_cast<Part*>(kiln::allocate_json_list(count * sizeof(Part))); }
  void deallocate(Part* part, std::size_t) noexcept { kiln::free_json_list(part); }
  friend constexpr bool operator==(const KilnJsonPartAllocator&, const KilnJsonPartAllocator&) noexcept { return true; }
};

template <>
struct std::allocator<kiln::Json::object_t> : KilnJsonPartAllocator<kiln::Json::object_t> {
  constexpr allocator() noexcept = default;
  template <class Other>
  constexpr allocator(const std::allocator<Other>&) noexcept {}
};
template <>
struct std::allocator<kiln::Json::array_t> : KilnJsonPartAllocator<kiln::Json::array_t> {
  constexpr allocator() noexcept = default;
  template <class Other>
  constexpr allocator(const std::allocator<Other>&) noexcept {}
};

namespace kiln {

static_assert(sizeof(Json) == 2 * sizeof(void*));

// is_discarded() where the text is no JSON, or has more than 512 lists and tables within each other.
Json parse_json(std::string_view text);

// Over several lines with `indent` spaces a level; on one line without. What is no UTF-8, in a driver's name or a path,
// is written as U+FFFD, and characters that a terminal obeys as escapes.
std::string json_text(const Json& json, int indent = -1);

}  // namespace kiln

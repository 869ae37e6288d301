// The bytes of a text, for what takes or answers them as a vector.
//
// Thread-safety: a pure function. Ownership: the answer is the caller's.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::test {

inline std::vector<std::byte> copied_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace kiln::test

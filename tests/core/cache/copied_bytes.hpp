// The bytes of a text, for what takes or answers them as a vector, and the text of bytes.
//
// Thread-safety: pure functions. Ownership: the answer is the caller's.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

inline std::vector<std::byte> copied_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string copied_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::test

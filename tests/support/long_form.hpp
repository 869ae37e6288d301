// Whether the tests' long forms are asked for: KILN_TEST_LONG=1, as `scripts/test --long` sets it.
#pragma once

#include <cstdlib>
#include <string_view>

namespace kiln::test {

inline bool is_long() {
  const char* value = std::getenv("KILN_TEST_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace kiln::test

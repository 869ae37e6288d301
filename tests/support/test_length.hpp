// How much of a test's space one run walks through: its short form, its long one, or the short one under a sanitizer.
#pragma once

#include <cstdlib>
#include <string_view>

namespace kiln::test {

// Whether the long forms are asked for: KILN_TEST_LONG=1, as `scripts/test --long` sets it.
inline bool is_long() {
  const char* value = std::getenv("KILN_TEST_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

// A sanitizer watches Kiln's own code, which a fraction of the shapes leads through all of; the numbers are proven by
// the builds without one, and most of the time is the drivers' compilers'.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace kiln::test

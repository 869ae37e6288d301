// Whether tensors share memory: what a job reads of memory that it writes would depend on the device.
//
// Thread-safety: pure functions. Ownership: borrow their arguments.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace kiln {

inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  const std::less<const std::byte*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

inline Status shared_memory(const std::string& written, const std::string& other) {
  return invalid_argument("tensor " + written + " is written and shares memory with tensor " + other +
                          ", expected separate memory");
}

}  // namespace kiln

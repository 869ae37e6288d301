// The C library's own functions behind those that this library takes the place of.
//
// Thread-safety: any thread. Ownership: none.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace kiln::simulator::shim {

// The next definition after this library's. A C library without it is none that this library was built for.
template <class Function>
Function* next(const char* name) noexcept {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

// The same, looked up once, for a constant-initialised static: no guard stands before it, as a sanitizer's runtime,
// which counts guards, maps memory before it can.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) noexcept : name_(name) {}

  Function* get() noexcept {
    Function* known = found_.load(std::memory_order_relaxed);
    if (known == nullptr) found_.store(known = next<Function>(name_), std::memory_order_relaxed);
    return known;
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace kiln::simulator::shim

// The C library's own functions behind those that this library takes the place of.
//
// Thread-safety: any thread. Ownership: none.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

namespace kiln::simulator::shim {

// The next definition after this library's. A C library without it is none that this library was built for.
template <class Function>
Function* next(const char* name) noexcept {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

}  // namespace kiln::simulator::shim

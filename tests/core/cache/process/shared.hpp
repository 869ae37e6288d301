// Shared: a value in memory that this process and the children it forks have in common.
//
// Thread-safety: that of the value, which should be made of atomics. Ownership: unmapped by its maker; a child's
// mapping goes with the child.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace kiln::test {

template <class T>
class Shared {
 public:
  Shared() {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    value_ = new (memory) T;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(value_, sizeof(T)); }

  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_ = nullptr;
};

}  // namespace kiln::test

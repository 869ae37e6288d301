// Workspace: the memory in which programs keep reordered tensors and oneDNN's scratchpads while they run.
//
// Thread-safety: none; the device that owns it runs one program at a time. Ownership: owns its memory, which only
// grows: all programs of a device share it, so that it stays in the caches and costs no page faults after the largest
// has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace kiln::cpu {

class Workspace {
 public:
  // 64-byte aligned memory of at least so many bytes; contents undefined; null for none. Throws std::bad_alloc. Memory
  // that an earlier call answered may be gone.
  std::byte* at_least(std::uint64_t bytes);

 private:
  struct Release {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kiln::cpu

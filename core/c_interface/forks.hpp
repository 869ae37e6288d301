// A forked child has the memory of its parent and none of its threads: handles of the parent would wait there for ever.
//
// Thread-safety: every function from any thread. Ownership: a value.
#pragma once

#include <kiln/status.hpp>

#include <atomic>
#include <cstdint>

namespace kiln::c_interface {

// The process that opened a handle.
class OpeningProcess {
 public:
  OpeningProcess() noexcept;

  bool is_this() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }
  // unavailable in a forked child: "kiln_job_run: the runtime was opened before fork() ...".
  Status check(const char* function, const char* handle) const;

 private:
  static std::atomic<std::uint32_t> forks;  // how many led from the process that loaded the library to this one

  const std::uint32_t forks_ = forks;
};

}  // namespace kiln::c_interface

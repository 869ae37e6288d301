// A forked child has the memory of its parent and none of its threads: handles of the parent would wait there for ever.
//
// Thread-safety: every function from any thread. Ownership: a value.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>

namespace kiln::c_interface {

// The process that opened a handle.
class OpeningProcess {
 public:
  OpeningProcess() noexcept;

  bool is_this() const noexcept;
  // unavailable in a forked child: "kiln_job_run: the runtime was opened before fork() ...".
  Status check(const char* function, const char* handle) const;

 private:
  const std::uint32_t forks_;  // before this process
};

}  // namespace kiln::c_interface

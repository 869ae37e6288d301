// run_child(): another program, run with bytes on its standard input, for its output and what it says.
//
// Thread-safety: from any thread, also several at once. Ownership: values; no process and no descriptor outlives a
// call. Started by posix_spawn in a process group of its own, with PATH, LD_LIBRARY_PATH and LC_ALL=C as its whole
// environment. What is still running at the deadline, or has written more than is allowed, is killed with its group.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln::amdgpu_pm4 {

struct ChildRequest {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::span<const std::byte> input;
  std::size_t most_output = std::size_t{64} << 20;  // more is an error
  std::size_t most_said = std::size_t{1} << 20;     // more is left out, and that is said
  Deadline deadline;
};

struct ChildResult {
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: it exited
  std::vector<std::byte> output;
  std::string said;  // on standard error
};

// unavailable: it cannot be started, with the system's reason, or it wrote more than most_output. timeout: the deadline
// passed; the message ends with what it had said.
Result<ChildResult> run_child(const ChildRequest& request) noexcept;

}  // namespace kiln::amdgpu_pm4

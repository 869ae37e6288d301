// How many system calls a piece of work makes, counted by the kernel: the work runs in a child that this process
// traces.
//
// Thread-safety: call it before there is a second thread. Ownership: the child is gone when it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

// Given to the work: calls between begin() and end() are counted, of the thread that calls both.
class SystemCallSpan {
 public:
  void begin() const;
  void end() const;
};

// One count a span, in order. Nothing where this process may not trace, with the reason in `why`. Throws
// std::runtime_error where the work fails.
std::optional<std::vector<std::uint64_t>> count_system_calls(const std::function<void(const SystemCallSpan&)>& work,
                                                             std::string& why);

}  // namespace kiln::bench

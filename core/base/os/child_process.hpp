// ChildProcess: a program that is started with pipes as its standard input and output, in a process group of its own.
//
// Thread-safety: one thread at a time; signal_group() from any thread that knows that the child was not reaped.
// Ownership: the child and its group are gone when this dies. Started by posix_spawn, never by fork alone, so the
// calling process may have threads. The child gets no other descriptor of its parent's, and its signals at their
// defaults.
#pragma once

#include <sys/types.h>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;                   // behind the program's name
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; nullopt: this process's
  int extra = -1;                                       // becomes descriptor 3 of the child; -1: it has none
};

class ChildProcess {
 public:
  // unavailable: there is no pipe, or the system cannot start it.
  static Result<ChildProcess> start(const ChildOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const noexcept { return pid_; }
  int output() const noexcept { return from_child_.get(); }
  // unavailable: the child does not read any more. Never a signal.
  Status send(std::span<const std::byte> bytes);
  Status send(std::string_view text);
  // Whether it has ended; does not wait. Then what it left in its group is killed.
  bool ended() noexcept;
  // As waitpid() reports it; nullopt: it has not ended, or another thread of this process reaped it.
  std::optional<int> status() const noexcept { return status_; }
  // The child reads the end of its input.
  void close_input() noexcept { to_child_ = UniqueFd(); }
  // Closes the pipes and waits for so long that the child ends by itself, then kills its group. How it ended: "ended by
  // SIGSEGV", "ended with status 1", "was ended".
  std::string stop(std::chrono::nanoseconds grace);

 private:
  ChildProcess(pid_t pid, UniqueFd to_child, UniqueFd from_child) noexcept
      : pid_(pid), to_child_(std::move(to_child)), from_child_(std::move(from_child)) {}

  pid_t pid_;  // -1: moved from, or reaped
  std::optional<int> status_;
  UniqueFd to_child_, from_child_;
};

}  // namespace kiln

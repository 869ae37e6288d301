// ChildProcess: runs a program in its own process group, with pipes as standard input and output.
//
// It uses posix_spawn, so the calling process may have threads. The child inherits no other descriptors, and its
// signals have default actions.
// Thread-safety: one thread at a time; signal_group() from any thread if the child is not reaped. Ownership: the
// destructor ends the child and its group.
#pragma once

#include <sys/types.h>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;                   // without the program name
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; nullopt: inherited
  int extra = -1;                                       // becomes descriptor 3 of the child; -1: none
};

class ChildProcess {
 public:
  // unavailable: no pipe could be created, or the program could not be started.
  static Result<ChildProcess> start(const ChildOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const noexcept { return pid_; }
  int output() const noexcept { return from_child_.get(); }
  // unavailable: the child no longer reads. timeout: it did not read in time. cancelled: the StopScope of the thread
  // was set. Raises no SIGPIPE.
  Status send(std::string_view text, Deadline deadline);
  // Returns whether the child has ended, without waiting. If so, kills the rest of its group.
  bool ended() noexcept;
  // Status of waitpid(); nullopt: not ended, or reaped by another thread.
  std::optional<int> status() const noexcept { return status_; }
  // Sends end of file to the child.
  void close_input() noexcept { to_child_ = UniqueFd(); }
  // Closes the pipes, waits up to `grace` for the child to end, then kills its group. Returns how it ended: "ended by
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

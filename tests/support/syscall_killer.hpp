// A process that is killed at its n-th system call, for tests of what it leaves.
//
// Thread-safety: one call at a time in a process. Ownership: the child has ended when the call returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kiln::test {

struct SystemCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
};

struct KilledRun {
  bool is_traced = false;  // false: ptrace is not permitted here, and nothing ran
  bool was_killed = false;
  int status = -1;        // exit status where it ended by itself
  std::size_t calls = 0;  // counted before the end
};

struct KillPoint {
  std::size_t call = 0;                                   // from 1; 0: never
  std::function<bool(const SystemCall&)> counts_from{};   // the first call that counts; empty: the first of all
  std::function<void(const SystemCall&)> at_each_call{};  // before each call that counts
};

// Runs `child` in a forked process and kills it (SIGKILL) before that system call begins. All threads and children of
// it count. `child` ends in _exit() or exec.
KilledRun run_and_kill(const std::function<void()>& child, const KillPoint& point);

// Whether the call creates a nameless file: with which Kiln begins to write a result.
bool opens_nameless_file(const SystemCall& call);

// For a child: from now on the kernel refuses nameless files (O_TMPFILE) or exchanges (RENAME_EXCHANGE), as some file
// systems do. False: it cannot be arranged here.
bool refuse_nameless_files();
bool refuse_exchange();
// Likewise for a child: every flush of a file or file system (fsync, syncfs) fails with this errno.
bool refuse_flush(int error);
// For a child: from now on any system call of this thread but _exit() ends the process (SIGSYS). False: it cannot be
// arranged here.
bool end_at_next_call();

}  // namespace kiln::test

// A limit on the time of one test case: past it, the stacks of all threads are printed and the process ends with
// status 1.
//
// KILN_TEST_CASE_LIMIT sets the seconds, 240 by default, more for sanitizers, long forms and busy machines; 0 means no
// limit. Child processes are listed and ended too. It uses a timer and signals, no thread: tests fork, and count threads.
// With a sanitizer it also makes each fork() wait until the other threads sleep, since a child may else hang.
// Thread-safety: one case at a time.
#pragma once

#include <sys/types.h>

#include <string>

namespace kiln::test {

// Prints a child's command line and its threads with the system calls that they are in, and kills it.
void end_child(pid_t child) noexcept;

// The default limit where `load` threads want to run on `cores`: as many times as long, four times at most.
long limit_under_load(long seconds, double load, long cores) noexcept;

class CaseLimit {
 public:
  CaseLimit();
  CaseLimit(const CaseLimit&) = delete;
  CaseLimit& operator=(const CaseLimit&) = delete;

  void begin(const std::string& name) noexcept;
  void end() noexcept;

 private:
  void set(long seconds) noexcept;

  void* timer_ = nullptr;
  long seconds_ = 0;
  bool is_usual_ = true;
};

}  // namespace kiln::test

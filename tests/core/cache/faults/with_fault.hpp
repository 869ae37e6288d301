// with_fault: runs work in a child process whose system calls are answered one by one, so that one of them can fail.
//
// The kernel asks before each call (seccomp, user notification); a second thread of the child answers: go on, or this
// error. It is not asked about memory and waiting. Nothing is traced and no right is needed. Thread-safety: call it
// while the test has no other thread; the work stays on its thread. Ownership: values.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

struct Fault {
  int call = -1;  // SYS_openat; -1: none fails
  int when = 0;   // the how manieth of them, from 1
  int error = 0;  // EIO
};

struct FaultEnd {
  std::string why_not;     // the kernel does not let us; empty where it does
  std::string said;        // what the work answered; empty where it had nothing to complain of
  int signal = 0;          // what killed it; 0: it ended by itself
  std::vector<int> calls;  // of those that could fail: which were made, in order
};

// The work answers what is wrong, or nothing. An exception counts as an answer. Where no call fails, all are listed.
FaultEnd with_fault(const Fault& fault, const std::function<std::string()>& work);

}  // namespace kiln::test

// in_child: runs work in a child process that may be killed, limited or unprivileged, and brings back what it says.
//
// Thread-safety: call it while the test has no other thread. Ownership: values.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace kiln::test {

struct ChildEnd {
  std::string said;  // what the work answered; empty where it had nothing to complain of
  int signal = 0;    // what killed it; 0: it ended by itself
};

class Child {
 public:
  // The work answers what is wrong, or nothing. An exception counts as an answer.
  explicit Child(const std::function<std::string()>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  void kill(int signal);
  bool is_stopped() const;  // by a signal
  ChildEnd wait();

 private:
  pid_t pid_ = -1;
  int said_ = -1;
};

inline ChildEnd in_child(const std::function<std::string()>& work) { return Child(work).wait(); }

// The same as an ordinary user: as uid and gid 65534 where this process is root.
ChildEnd in_unprivileged_child(const std::function<std::string()>& work);

}  // namespace kiln::test

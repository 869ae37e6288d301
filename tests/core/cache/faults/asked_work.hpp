// asked_work: runs work whose system calls the kernel asks about, one by one, before it makes them.
//
// Seccomp with user notification: nothing is traced and no right is needed. A second thread of the same process
// answers, so it sees the memory and the open files of whoever called. The filter stays for the rest of the process:
// call it in a child. Thread-safety: as fork(), and the answer runs on the second thread alone. Ownership: values.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

enum class OtherCalls : unsigned char { invalid = 0, made, asked };

class CallFilter {
 public:
  CallFilter();
  CallFilter& ask(long call);
  // Only where the argument of that number, from 0, has one of the bits.
  CallFilter& ask_where(long call, unsigned argument, unsigned any_of);
  CallFilter& make(long call);

  // From now on, for this thread and those that it starts. Answers where the kernel asks, or -1.
  int install(OtherCalls others) const;

 private:
  void on(long call, unsigned answer);

  std::vector<sock_filter> filter_;
};

// What becomes of a call: filled in by whoever is asked. As it comes it says that the kernel makes the call.
using OnCall = std::function<void(const seccomp_data&, seccomp_notif_resp&)>;

struct AskedEnd {
  std::string why_not;  // the kernel does not let us; empty where it does, and only then did the work run
  std::string said;     // what the work answered, or what it threw
};

AskedEnd asked_work(const CallFilter& filter, OtherCalls others, OnCall on_call,
                    const std::function<std::string()>& work);

}  // namespace kiln::test

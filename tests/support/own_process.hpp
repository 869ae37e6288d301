// This test binary once more, as a process of its own with some variables set: for what is decided once a process.
// Thread-safety: any thread. Ownership: the child has ended when the call returns.
#pragma once

#include <map>
#include <string>

namespace kiln::support {

struct ChildResult {
  int status = -1;     // its exit status; -1: a signal ended it
  std::string output;  // both streams
};

// Runs the hidden tests of the tag ("[.fresh]"), all of them. An empty value unsets a variable.
ChildResult run_child(const std::string& tag, const std::map<std::string, std::string>& variables = {});

}  // namespace kiln::support

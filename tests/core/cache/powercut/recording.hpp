// Recording: a folder as it was, and the operations on it of work that was done there.
//
// Thread-safety: call it while the test has no other thread. Ownership: values.
#pragma once

#include "core/cache/powercut/operations.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

struct Recording {
  std::string why_not;  // the kernel does not let us record; empty where it does
  std::string wrong;    // the work complains, or the operations do not lead to what lies on disk
  FolderImage before;
  std::vector<Operation> operations;
};

// Runs the work in a child process. It answers what is wrong, or nothing.
Recording record(const std::filesystem::path& folder, const std::function<std::string()>& work);

}  // namespace kiln::test

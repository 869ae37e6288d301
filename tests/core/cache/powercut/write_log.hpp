// WriteLog: every change that work makes below a folder, in order, as the system calls that made it.
//
// The work runs in a child process; each of its calls that may change a file is made in its place and noted, with the
// bytes. Thread-safety: call it while the test has no other thread; the work may have some. Ownership: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

enum class Change : std::uint8_t {
  invalid = 0,
  file_made,
  folder_made,
  written,
  cut,  // to a size
  moved,
  linked,
  removed,
  flushed,
};

struct WriteCall {
  Change change = Change::invalid;
  std::uint64_t inode = 0;   // of what was made, written, cut or flushed
  std::string path;          // below the folder, as it was at that moment; of what was written: one of its names
  std::string to;            // moved, linked: the new path
  std::uint64_t offset = 0;  // written: where; cut: the size
  std::string bytes;         // written
};

struct WriteLog {
  std::string why_not;  // the kernel does not let us; empty where it does
  std::string wrong;    // what the work answered, or what became of it; empty where it had nothing to complain of
  std::vector<WriteCall> calls;
};

// The work answers what is wrong, or nothing. An exception counts as an answer.
WriteLog record_writes(const std::filesystem::path& folder, const std::function<std::string()>& work);

}  // namespace kiln::test

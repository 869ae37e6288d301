// Journal: the lines that the simulated device writes where a kernel would write to its log: what it refused and why,
// faults, resets; on demand every ioctl. Keeps the text of the last fault for whoever asks.
//
// Thread-safety: any thread. Ownership: owns its file.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "simulator/kernel/base/unique_fd.hpp"

namespace kiln::simulator::kernel {

class Journal {
 public:
  // Lines are appended to `path`; to the standard error stream where it is empty or cannot be opened.
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(std::string_view line) noexcept;  // one line, whole even where processes share the file
  void fault(std::string text);                // a line, and the last fault from now on
  std::string last_fault() const;              // empty where there was none

 private:
  UniqueFd file_;
  mutable std::mutex mutex_;
  std::string last_fault_;
};

}  // namespace kiln::simulator::kernel

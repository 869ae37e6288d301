// BriefLock: a lock between processes on a small file of an open folder, waited for a bounded time and no longer.
//
// For what may be left undone: who does not get it goes on without. Thread-safety: independent objects, also in one
// process, exclude each other. Ownership: holds the lock until it dies; the file stays.
#pragma once

#include <kiln/buffer.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace kiln {

class BriefLock {
 public:
  // nullopt: others hold it all the time, or there is no such lock to be had here.
  static std::optional<BriefLock> take(int folder, const std::string& name, std::chrono::milliseconds most);

  // The locked file, for reading and writing.
  int file() const noexcept { return file_.get(); }

 private:
  explicit BriefLock(UniqueFd file) noexcept : file_(std::move(file)) {}

  UniqueFd file_;  // closing it lets the lock go
};

}  // namespace kiln

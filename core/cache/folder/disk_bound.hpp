// DiskBound: keeps what lies below one cache folder within a number of bytes.
//
// The figure comes from a survey, made when it is first asked for and again after an eighth of the bound was written,
// so that what other processes wrote is seen; in between it runs along. Over the bound, the least recently used entries
// go until seven eighths are left. Opening a cache therefore walks nothing. Thread-safety: every method from any
// thread. Ownership: borrows the root's descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace kiln {

class DiskBound {
 public:
  DiskBound(int root, std::uint64_t most_bytes) noexcept : root_(root), most_bytes_(most_bytes) {}

  std::uint64_t most_bytes() const noexcept { return most_bytes_; }
  // After `bytes` were published: answers how many entries had to go.
  std::size_t published(std::uint64_t bytes);
  void removed(std::uint64_t bytes);
  std::uint64_t bytes();

 private:
  const int root_;
  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::optional<std::uint64_t> bytes_;  // nullopt: not surveyed yet
  std::uint64_t written_ = 0;           // since the last survey
};

}  // namespace kiln

// File descriptors: their owner, and the identity of the open file behind one.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <compare>
#include <optional>
#include <utility>

namespace kiln::simulator::kernel {

// UniqueFd: owns a file descriptor.
//
// Thread-safety: none. Ownership: closes what it holds.

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Inode: what tells one open file from every other one, whatever number or copy of a descriptor leads to it. The
// simulator's device files, buffers and fences are recognised by it.
//
// Thread-safety and ownership: values.

struct Inode {
  dev_t device = 0;
  ino_t number = 0;
  auto operator<=>(const Inode&) const = default;
};

// Nothing where `fd` is no open descriptor.
inline std::optional<Inode> inode_of(int fd) noexcept {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return std::nullopt;
  return Inode{facts.st_dev, facts.st_ino};
}

}  // namespace kiln::simulator::kernel

// Inode: what tells one open file from every other one, whatever number or copy of a descriptor leads to it. The
// simulator's device files, buffers and fences are recognised by it.
//
// Thread-safety and ownership: values.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <optional>

namespace kiln::simulator::kernel {

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

// Which filesystems have locks that hold among all processes that can see a file.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
// Only kinds that are known to keep their locks in this machine's kernel are trusted: a network filesystem may lock
// among its clients, within one of them or not at all, one in user space as its author liked, and an unknown one is
// taken for one of those.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <string>

namespace kiln {

using FilesystemMagic = std::uint32_t;  // statfs::f_type

Result<FilesystemMagic> filesystem_of(int file);
bool locks_hold_on(FilesystemMagic filesystem) noexcept;
// "nfs", or the number where it has no name here.
std::string name_of_filesystem(FilesystemMagic filesystem);

}  // namespace kiln

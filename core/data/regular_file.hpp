// RegularFile: a regular file opened for reading, its size known before anything is allocated for its contents.
//
// Thread-safety: one thread at a time. Ownership: owns the descriptor. A FIFO, a device or a folder is refused, so that
// a wrong path can never block. Every error names the file.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace kiln::data {

class RegularFile {
 public:
  // not_found: there is none. invalid_argument: it is not a regular file. io: it cannot be opened.
  static Result<RegularFile> open(const std::filesystem::path& path);

  std::uint64_t bytes() const noexcept { return bytes_; }
  // Fills `to` from `offset`. corrupt where the file ends before (it has shrunk since it was opened).
  Status read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  RegularFile(std::string name, UniqueFd fd, std::uint64_t bytes) noexcept;

  std::string name_;
  UniqueFd fd_;
  std::uint64_t bytes_;
};

}  // namespace kiln::data

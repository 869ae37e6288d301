// RegularFile: a regular file opened for reading, its size known before anything is allocated for its contents.
//
// Every file that Kiln reads as a whole is read through it. A FIFO, a device, a socket or a folder is refused without
// waiting, so that a wrong path never blocks. Thread-safety: one thread at a time. Ownership: owns the descriptor.
// Every error names the file.
//
//   auto text = kiln::read_whole_file("list.csv", 4 << 20);
//   if (!text) return text.error();  // "file list.csv: 5000000 bytes, expected at most 4194304"
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// What a symbolic link as the last part of the path leads to. refuse: invalid_argument.
enum class SymbolicLink : std::uint8_t { invalid = 0, follow, refuse };

class RegularFile {
 public:
  // not_found: there is none. invalid_argument: it is not a regular file. io: it cannot be opened.
  static Result<RegularFile> open(const std::filesystem::path& path, SymbolicLink link = SymbolicLink::follow);
  // The file `path` below the open folder `folder`.
  static Result<RegularFile> open_at(int folder, const std::string& path, SymbolicLink link);

  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(facts_.st_size); }  // when it was opened
  const struct stat& facts() const noexcept { return facts_; }
  // Fills `to` from `offset`. corrupt where the file ends before (it has shrunk since it was opened).
  Status read(std::uint64_t offset, std::span<std::byte> to) const;
  // Its bytes() from the beginning; fewer where it has shrunk. invalid_argument, without reading: more than
  // `most_bytes`. unavailable: no memory for them.
  Result<std::vector<std::byte>> contents(std::uint64_t most_bytes) const;
  Result<std::string> text(std::uint64_t most_bytes) const;
  // SHA-256 of the first `count` bytes, read piece by piece. corrupt where the file ends before.
  Result<Digest> digest_of_first(std::uint64_t count) const;

 private:
  RegularFile(std::string name, UniqueFd fd, const struct stat& facts) noexcept;
  Result<std::size_t> read_some(std::uint64_t offset, std::span<std::byte> to) const;
  Status check_size(std::uint64_t most_bytes) const;

  std::string name_;
  UniqueFd fd_;
  struct stat facts_;
};

// The whole file as text: RegularFile::open(), then text().
Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t most_bytes,
                                    SymbolicLink link = SymbolicLink::follow);

}  // namespace kiln

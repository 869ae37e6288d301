// RegularFile: a regular file, open for reading. Its size is known before memory is allocated.
//
// open() rejects a FIFO, device, socket or folder and does not block. Use this class for every file that is read as a whole.
// Every error names the file.
// Thread-safety: one thread at a time. Ownership: the object owns the descriptor. Sizes are in bytes.
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

namespace [[gnu::visibility("default")]] kiln {

// Handling of a symbolic link as the last path component. refuse: invalid_argument.
enum class SymbolicLink : std::uint8_t { invalid = 0, follow, refuse };

class RegularFile {
 public:
  // not_found: no such file. invalid_argument: not a regular file. io: the file cannot be opened.
  static Result<RegularFile> open(const std::filesystem::path& path, SymbolicLink link = SymbolicLink::follow);
  // Opens `path` relative to the folder descriptor `folder`.
  static Result<RegularFile> open_at(int folder, const std::string& path, SymbolicLink link);

  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(facts_.st_size); }  // at the time of open()
  const struct stat& facts() const noexcept { return facts_; }
  // Reads to.size() bytes from `offset`. corrupt: the file is shorter, because it was truncated after open().
  Status read(std::uint64_t offset, std::span<std::byte> to) const;
  // Returns the whole content, or less if the file was truncated. invalid_argument: the file is larger than `most_bytes`;
  // nothing was read. unavailable: out of memory.
  Result<std::vector<std::byte>> contents(std::uint64_t most_bytes) const;
  Result<std::string> text(std::uint64_t most_bytes) const;
  // SHA-256 of the first `count` bytes, read in blocks. corrupt: the file is shorter.
  Result<Digest> digest_of_first(std::uint64_t count) const;

 private:
  RegularFile(std::string name, UniqueFd fd, const struct stat& facts) noexcept;
  Result<std::size_t> read_some(std::uint64_t offset, std::span<std::byte> to) const;
  Status check_size(std::uint64_t most_bytes) const;

  std::string name_;
  UniqueFd fd_;
  struct stat facts_;
};

// Opens the file and returns its content as text.
Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t most_bytes,
                                    SymbolicLink link = SymbolicLink::follow);

}  // namespace kiln

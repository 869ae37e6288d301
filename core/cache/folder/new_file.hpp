// NewFile: a file of an open folder that appears under its name complete, or not at all.
//
// Bytes go to a temporary name in the same folder; commit() renames it onto the final one; the destructor discards what
// was not committed. Unlike base/atomic_file.hpp it works on a descriptor, so that no part of the path can be
// exchanged, and it does not flush: what a power cut leaves behind is told from its checksum. A temporary file of a
// process that was killed is swept by survey(). Thread-safety: one thread at a time. Ownership: owns the temporary
// file; borrows the folder's descriptor.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

class NewFile {
 public:
  static Result<NewFile> create(int folder, std::string name);

  NewFile(NewFile&& other) noexcept = default;
  ~NewFile();

  // After a failure the file can only be discarded.
  Status write(std::span<const std::byte> bytes);
  Status commit();

  static bool is_temporary(std::string_view name) noexcept;

 private:
  NewFile(int folder, std::string name, std::string temporary, UniqueFd file) noexcept;

  int folder_;
  std::string name_;
  std::string temporary_;
  UniqueFd file_;  // empty: committed or moved from
};

// create, write, commit.
Status write_file(int folder, const std::string& name, std::span<const std::byte> bytes);

// A file that is overwritten has one page at most: one call of the system, which a killed process has made or has not.
inline constexpr std::size_t most_overwritten_bytes = 4096;
// Puts the bytes over those of a file of exactly their number: ten times cheaper than a new file, and a reader beside
// it may see a part of both, so this is for what can be done without. false: there is no such file of this user's
// alone.
bool overwrite_file(int folder, const std::string& name, std::span<const std::byte> bytes) noexcept;

}  // namespace kiln

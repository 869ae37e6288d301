// Opening folders, and files that processes share, so that no other user can change them: by descriptor, owned by this
// user or root, and writable by nobody else.
//
// Thread-safety: pure calls of the operating system. Ownership: the answered descriptor is the caller's.
// "Absent" is an empty descriptor; every Status names the folder and both sides of a mismatch.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <kiln/buffer.hpp>
#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class Create : std::uint8_t { invalid = 0, no, yes };

// The path in normal form, without a slash at its end.
std::filesystem::path without_slash(const std::filesystem::path& path);

// This user, or root, who can change everything anyway.
bool is_trusted_owner(uid_t owner) noexcept;

// The absolute `path` with its symbolic links followed; what is missing stays as it is written. unavailable: a link, or
// a folder above the last part, belongs to somebody who is not trusted, or is a folder without the sticky bit that
// others can write: they could exchange what the path leads to.
Result<std::filesystem::path> followed_path(const std::filesystem::path& path);

// `path` is absolute. Links above its last part are followed as the system does; a link as its last part is followed by
// followed_path(). yes: it and its parents are made (0700) where they are missing.
Result<UniqueFd> open_folder(const std::filesystem::path& path, Create create);

// The folder `name` in `parent`. `who` is what a message calls it.
Result<UniqueFd> open_subfolder(int parent, const std::string& name, const std::string& who, Create create);

// A file of this user's in `folder`, for reading and writing by several processes. yes: an empty one is made (0600)
// where it is missing.
Result<UniqueFd> open_shared_file(int folder, const std::string& name, const std::string& who, Create create);

// What is in the folder, without "." and ".."; empty where it cannot be read.
std::vector<std::string> names_in(int folder);

// io_error with the system's text for `error`, an errno.
Status system_error(std::string_view who, std::string_view what, int error);

// Reading one whole file of an open folder: a regular file of this user's, of a bounded size, never through a link.
//
// Thread-safety: pure calls of the operating system. Ownership: values.

enum class FileState : std::uint8_t {
  invalid = 0,
  absent,
  read,
  foreign,    // another user's
  misplaced,  // a link, a folder or a device where Kiln writes files only
  too_large,
  unreadable,  // the operating system refused
};

struct FileContents {
  FileState state = FileState::invalid;
  std::vector<std::byte> bytes;  // set where it was read
  std::string why;               // set where it is neither read nor absent
  std::int64_t modified_ns = 0;  // since 1970; set where it could be looked at
};

// When it was last modified, since 1970.
std::int64_t modified_ns(const struct stat& at) noexcept;

FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes);

// NewFile: a file of an open folder that appears under its name complete, or not at all.
//
// Bytes go to a temporary name in the same folder; commit() renames it onto the final one; the destructor discards what
// was not committed. Unlike base/atomic_file.hpp it works on a descriptor, so that no part of the path can be
// exchanged, and it does not flush: what a power cut leaves behind is told from its checksum. A temporary file of a
// process that was killed is swept by survey(). Thread-safety: one thread at a time. Ownership: owns the temporary
// file; borrows the folder's descriptor.

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

// Where the signing key must not lie: below the folder whose entries it signs. Whoever copies, shares or mounts the
// cache would hand the key over with it.
//
// Thread-safety: pure calls of the operating system. Ownership: values.

// not_found: nothing names the folder, or the key file.
Status no_cache_folder();
Status no_key_file();

// invalid_argument, naming both, where it does; also by way of links.
Status check_key_file_place(const CacheConfig& config);

// The bytes of a file as text; it views them.
inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether an open folder has been removed by its last name.
bool is_removed(int folder) noexcept;

}  // namespace kiln

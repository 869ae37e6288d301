// Private folders: opens folders and reads and writes their files so that no other user can change or replace them.
//
// All access is by descriptor. A folder must belong to this user or root and be writable by nobody else. An absent
// folder or file is an empty descriptor. Every error names the folder with the expected and the found value.
// Thread-safety: functions from any thread; NewFile: one thread at a time. Ownership: the caller owns returned
// descriptors.
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

// Normal form of the path, without a trailing slash.
std::filesystem::path without_slash(const std::filesystem::path& path);

// This user or root.
bool is_trusted_owner(uid_t owner) noexcept;

// Resolves the symbolic links of the absolute `path`; missing components are kept. unavailable: a link or parent folder
// belongs to an untrusted user, or others can write to a parent without the sticky bit. They could replace the target.
Result<std::filesystem::path> followed_path(const std::filesystem::path& path);

// `path` is absolute. Links in parent components are followed normally; a link as last component is resolved by
// followed_path(). Create::yes: missing folders are created with mode 0700.
Result<UniqueFd> open_folder(const std::filesystem::path& path, Create create);

// Opens the folder `name` in `parent`. `who` is its name in messages.
Result<UniqueFd> open_subfolder(int parent, const std::string& name, const std::string& who, Create create);
// Empty where it is missing or is refused.
UniqueFd existing_subfolder(int parent, const std::string& name);

// Opens a file of this user in `folder` for reading and writing by several processes. Create::yes: a missing file is
// created with mode 0600.
Result<UniqueFd> open_shared_file(int folder, const std::string& name, const std::string& who, Create create);

// Names in the folder without "." and ".."; empty if it cannot be read.
std::vector<std::string> names_in(int folder);

// Returns an io error with the system's text for `error` (an errno).
Status system_error(std::string_view who, std::string_view what, int error);

enum class FileState : std::uint8_t {
  invalid = 0,
  absent,
  read,
  foreign,    // owned by another user
  misplaced,  // a link, folder or device in place of a regular file
  too_large,
  unreadable,  // refused by the operating system
};

struct FileContents {
  FileState state = FileState::invalid;
  std::vector<std::byte> bytes;  // set if read
  std::string why;               // set if neither read nor absent
  std::int64_t modified_ns = 0;  // since 1970; set if the file was found
};

// Modification time in nanoseconds since 1970.
std::int64_t modified_ns(const struct stat& at) noexcept;

// Reads a whole regular file of this user. Does not follow links.
FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes);

// A file in an open folder that appears under its name complete, or not at all.
//
// Bytes go to a temporary file that commit() renames; the destructor discards an uncommitted file. Unlike AtomicFile it
// works on a folder descriptor, so no path component can be replaced. It does not sync: a checksum must detect damage
// after a power failure. survey() removes temporary files of killed processes.
// Thread-safety: one thread at a time. Ownership: owns the temporary file; borrows the folder's descriptor.
class NewFile {
 public:
  // mode: less the bits of the umask.
  static Result<NewFile> create(int folder, std::string name, mode_t mode = 0600);

  NewFile(NewFile&& other) noexcept = default;
  ~NewFile();

  // After a failure, the file can only be discarded.
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

// Writes a file with NewFile.
Status write_file(int folder, const std::string& name, std::span<const std::byte> bytes);

// At most one page, so that a write is a single system call that a killed process has made or not.
inline constexpr std::size_t most_overwritten_bytes = 4096;
// Overwrites a file of exactly this size in place. It is ten times cheaper than a new file, but a reader may see a mix
// of old and new bytes. false: there is no such private file of this user.
bool overwrite_file(int folder, const std::string& name, std::span<const std::byte> bytes) noexcept;

// Error for a configuration without a key file; no_cache_folder() is in kiln/cache_admin.hpp.
Status no_key_file();

// invalid_argument: the key file is below the cache folder, also through links. Whoever copies or shares the cache
// would also get the key.
Status check_key_file_place(const CacheConfig& config);

// Returns a view of the bytes as text.
inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns whether the open folder has been removed.
bool is_removed(int folder) noexcept;

}  // namespace kiln

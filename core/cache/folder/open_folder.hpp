// Opening folders, and files that processes share, so that no other user can change them: by descriptor, owned by this
// user or root, and writable by nobody else.
//
// Thread-safety: pure calls of the operating system. Ownership: the answered descriptor is the caller's.
// "Absent" is an empty descriptor; every Status names the folder and both sides of a mismatch.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
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

}  // namespace kiln

#include "base/secret_key.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

namespace kiln {
namespace {

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

Status failed(const std::string& who, std::string_view what, int error) {
  return io_error(who + ": " + std::string(what) + ": " + std::generic_category().message(error));
}

// mkdir -p with 0700: what exists already stays as it is.
Status make_folders(const std::filesystem::path& folder, const std::string& who) {
  if (folder.empty() || folder == folder.root_path()) return {};
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return failed(who, "cannot create folder " + folder.string(), errno);
  if (Status status = make_folders(folder.parent_path(), who); !status.ok()) return status;
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return failed(who, "cannot create folder " + folder.string(), errno);
}

// Others must not be able to put another file in the key's place: not writable by them, or sticky.
Status check_folder(int folder, const std::string& who) {
  struct stat at {};
  if (fstat(folder, &at) != 0) return failed(who, "the attributes of the parent folder cannot be read", errno);
  if (at.st_uid != geteuid() && at.st_uid != 0) {
    return unavailable(who + ": the parent folder belongs to user " + std::to_string(at.st_uid) + ", expected " +
                       std::to_string(geteuid()) + (geteuid() == 0 ? "" : " or root"));
  }
  if ((at.st_mode & 022) != 0 && (at.st_mode & S_ISVTX) == 0) {
    return unavailable(who + ": the parent folder has mode " + octal(at.st_mode) +
                       ", expected write permission only for the owner");
  }
  return {};
}

// nullopt: there is no such file.
Result<std::optional<SecretKey>> read_at(int folder, const std::string& name, const std::string& who) {
  const UniqueFd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::optional<SecretKey>();
    if (errno == ELOOP) return unavailable(who + ": is a symbolic link, expected a file");
    return failed(who, "cannot be opened", errno);
  }
  struct stat at {};
  if (fstat(file.get(), &at) != 0) return failed(who, "attributes cannot be read", errno);
  if (!S_ISREG(at.st_mode)) return unavailable(who + ": is not a regular file");
  if (at.st_uid != geteuid() && at.st_uid != 0) {
    return unavailable(who + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                       std::to_string(geteuid()) + (geteuid() == 0 ? "" : " or root"));
  }
  // A group that root chose may read root's key: it authenticates folders that only root can write.
  const mode_t too_much = at.st_uid == 0 ? 037 : 077;
  if ((at.st_mode & too_much) != 0) return unavailable(who + ": has mode " + octal(at.st_mode) + ", expected 0600");
  SecretKey key;
  if (at.st_size != static_cast<off_t>(key.bytes.size())) {
    return corrupt(who + ": has " + std::to_string(at.st_size) + " bytes, expected " +
                   std::to_string(key.bytes.size()));
  }
  const ssize_t got = pread(file.get(), key.bytes.data(), key.bytes.size(), 0);
  if (got != static_cast<ssize_t>(key.bytes.size())) return failed(who, "cannot be read", got < 0 ? errno : EIO);
  if (std::ranges::all_of(key.bytes, [](std::byte each) { return each == std::byte{0}; })) {
    return corrupt(who +
                   ": every byte is 0, expected 32 random bytes. Remove the file. The next run creates a new key");
  }
  return std::optional<SecretKey>(key);
}

// Gives the finished file its name, unless there is one by now: then that one counts.
Status publish_new(int folder, const std::string& from, const std::string& to, const std::string& who) {
  if (linkat(folder, from.c_str(), folder, to.c_str(), 0) == 0 || errno == EEXIST) return {};
  if (renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0 || errno == EEXIST) return {};
  return failed(who, "cannot be renamed from its temporary name", errno);
}

Status write_new(int folder, const std::string& name, const std::string& who) {
  SecretKey key;
  if (getrandom(key.bytes.data(), key.bytes.size(), 0) != static_cast<ssize_t>(key.bytes.size())) {
    return failed(who, "cannot get random bytes", errno);
  }
  const std::string unfinished = "." + name + "." + std::to_string(getpid()) + "." + std::to_string(now_ns()) + ".tmp";
  const UniqueFd file(openat(folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed(who, "cannot be created", errno);
  const ssize_t written = write(file.get(), key.bytes.data(), key.bytes.size());
  Status status;
  // Without the sync a power cut could leave an empty key, and every entry signed with the lost one would be foreign.
  if (written != static_cast<ssize_t>(key.bytes.size()) || fsync(file.get()) != 0) {
    status = failed(who, "cannot be written", written < 0 ? errno : ENOSPC);
  } else {
    status = publish_new(folder, unfinished, name, who);
  }
  unlinkat(folder, unfinished.c_str(), 0);
  return status;
}

}  // namespace

SecretKey::~SecretKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Result<SecretKey> read_secret_key(const std::filesystem::path& path, IfMissing if_missing) {
  const std::string who = "key file " + path.string();
  if (!path.is_absolute() || path.filename().empty()) {
    return invalid_argument(who + ": expected an absolute path to a file");
  }
  if (if_missing == IfMissing::create) {
    if (Status status = make_folders(path.parent_path(), who); !status.ok()) return status;
  }
  const UniqueFd folder(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return failed(who, "its folder cannot be opened", errno);
  if (Status status = check_folder(folder.get(), who); !status.ok()) return status;

  Result<std::optional<SecretKey>> key = read_at(folder.get(), path.filename(), who);
  if (key && !key->has_value() && if_missing == IfMissing::create) {
    if (Status status = write_new(folder.get(), path.filename(), who); !status.ok()) return status;
    key = read_at(folder.get(), path.filename(), who);
  }
  if (!key) return key.error();
  if (!key->has_value()) return not_found(who + ": does not exist");
  return **key;
}

}  // namespace kiln

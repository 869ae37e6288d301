// `kiln cache key`: the named keys of shared programs.
#include "base/os/private_folder.hpp"
#include "cache/signing_keys.hpp"

#include <kiln/cache_sharing.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <span>
#include <utility>

namespace kiln {
namespace {

std::filesystem::path secret_file(const std::filesystem::path& folder, const std::string& name) {
  return folder / "keys.d" / (name + ".secret");
}

SharingKey described(const TrustedKey& key, const CacheConfig& cache) {
  const std::int64_t now_s = std::time(nullptr);
  SharingKey shown;
  shown.name = key.name;
  shown.public_key = hex_of(key.key);
  if (key.until_s) shown.until = date_text(*key.until_s - 1);
  shown.revoked = key.revoked;
  shown.expired = key.until_s && now_s >= *key.until_s;
  shown.file = key.file;
  const auto secret = read_signing_key(cache.trust_folders, key.name);
  const auto of_secret = secret ? public_key_of(*secret) : Result<BundlePublicKey>(secret.error());
  shown.signs = of_secret && *of_secret == key.key;
  return shown;
}

Result<std::filesystem::path> folder_of(const CacheConfig& cache, KeyFolder which) {
  if (cache.trust_folders.empty() || (which == KeyFolder::user && cache.trust_folders.size() < 2 && geteuid() != 0)) {
    return not_found("no key folder is configured. Set HOME or XDG_CONFIG_HOME to an absolute path");
  }
  return which == KeyFolder::system ? cache.trust_folders.front() : cache.trust_folders.back();
}

Result<std::optional<std::int64_t>> end_of(const std::string& until) {
  if (until.empty()) return std::optional<std::int64_t>();
  const auto end = end_of_date(until);
  if (!end) return invalid_argument("date '" + until + "': expected year, month and day, such as 2027-01-31");
  return end;
}

Status check_name(const std::string& name) {
  if (is_key_name(name)) return {};
  return invalid_argument("key name '" + name +
                          "': expected 1 to 64 letters, digits and ._-, beginning with a letter or digit");
}

Status write_key(const std::filesystem::path& folder, const TrustedKey& key) {
  // Opened like every reader opens it: what others can write is refused here too.
  const Result<UniqueFd> root = open_folder(folder, Create::yes);
  if (!root) return root.error();
  const std::string who = "folder " + (folder / "trust.d").string();
  const Result<UniqueFd> opened = open_subfolder(root->get(), "trust.d", who, Create::yes);
  if (!opened) return opened.error();
  const std::string text = encode_trusted_key(key, std::time(nullptr));
  const std::string file = key.name + ".key";
  if (Status status = write_file(opened->get(), file, std::as_bytes(std::span(text))); !status.ok()) return status;
  // Public: other users may need root's keys.
  if (geteuid() != 0) return {};
  static_cast<void>(fchmod(root->get(), 0755));
  static_cast<void>(fchmod(opened->get(), 0755));
  static_cast<void>(fchmodat(opened->get(), file.c_str(), 0644, 0));
  return {};
}

// Each folder is read alone: a name in one hides the same name in the other.
Status check_not_revoked(const CacheConfig& cache, const TrustedKey& key) {
  for (const std::filesystem::path& folder : cache.trust_folders) {
    const TrustedKeys known = read_trusted_keys(std::span(&folder, 1));
    for (const TrustedKey& other : known.keys) {
      if (!other.revoked || other.key != key.key) continue;
      return invalid_argument("key '" + key.name + "': is revoked by " + other.file.string() +
                              ". Trust another public key");
    }
  }
  return {};
}

Result<SharingKey> add_key(const CacheConfig& cache, TrustedKey key, const std::filesystem::path& folder) {
  const TrustedKeys known = read_trusted_keys(cache.trust_folders);
  if (const TrustedKey* other = known.find(key.name)) {
    return invalid_argument("key '" + key.name + "': already in " + other->file.string() + ". Choose another name");
  }
  if (Status status = check_not_revoked(cache, key); !status.ok()) return status;
  if (Status status = write_key(folder, key); !status.ok()) return status;
  const TrustedKeys now = read_trusted_keys(cache.trust_folders);
  const TrustedKey* added = now.find(key.name);
  if (added == nullptr) {
    return unavailable("key '" + key.name + "': was written to " + (folder / "trust.d").string() +
                       ", which is not used" + (now.problems.empty() ? "" : ": " + now.problems.front()));
  }
  return described(*added, cache);
}

}  // namespace

SharingKeys sharing_keys(const CacheConfig& cache) {
  TrustedKeys trusted = read_trusted_keys(cache.trust_folders);
  SharingKeys all;
  for (const TrustedKey& key : trusted.keys) all.keys.push_back(described(key, cache));
  all.problems = std::move(trusted.problems);
  return all;
}

Result<SharingKey> create_sharing_key(const CacheConfig& cache, const std::string& name, const std::string& until,
                                      KeyFolder which) {
  if (Status status = check_name(name); !status.ok()) return status;
  const auto end = end_of(until);
  if (!end) return end.error();
  const auto folder = folder_of(cache, which);
  if (!folder) return folder.error();
  const TrustedKeys known = read_trusted_keys(cache.trust_folders);
  if (const TrustedKey* other = known.find(name)) {
    return invalid_argument("key '" + name + "': already in " + other->file.string() + ". Choose another name");
  }
  const std::filesystem::path file = secret_file(*folder, name);
  struct stat at {};
  if (lstat(file.c_str(), &at) == 0) {
    return invalid_argument("key '" + name + "': the secret key " + file.string() + " exists. Choose another name");
  }
  const Result<SecretKey> secret = read_secret_key(file, IfMissing::create);
  if (!secret) return secret.error();
  const Result<BundlePublicKey> key = public_key_of(*secret);
  if (!key) return key.error();
  Result<SharingKey> added = add_key(cache, {name, *key, *end, false, {}}, *folder);
  if (!added) unlink(file.c_str());  // nothing is signed with a key that nobody here trusts
  return added;
}

Result<SharingKey> trust_sharing_key(const CacheConfig& cache, const std::string& name, const std::string& key,
                                     const std::string& until, KeyFolder which) {
  if (Status status = check_name(name); !status.ok()) return status;
  const auto end = end_of(until);
  if (!end) return end.error();
  const auto folder = folder_of(cache, which);
  if (!folder) return folder.error();
  const Result<BundlePublicKey> trusted = read_trusted_key(key);
  if (!trusted) return trusted.error();
  return add_key(cache, {name, *trusted, *end, false, {}}, *folder);
}

Result<SharingKey> revoke_sharing_key(const CacheConfig& cache, const std::string& name, KeyFolder which) {
  const auto folder = folder_of(cache, which);
  if (!folder) return folder.error();
  const TrustedKeys known = read_trusted_keys(cache.trust_folders);
  const TrustedKey* found = known.find(name);
  if (found == nullptr) return not_found("key '" + name + "': not in trust.d. `kiln cache key list` prints the names");
  TrustedKey key = *found;
  key.revoked = true;
  if (Status status = write_key(*folder, key); !status.ok()) return status;
  const std::filesystem::path secret = secret_file(*folder, name);
  if (unlink(secret.c_str()) != 0 && errno != ENOENT) {
    return system_error("secret key " + secret.string(), "cannot be removed", errno);
  }
  return described(key, cache);
}

}  // namespace kiln

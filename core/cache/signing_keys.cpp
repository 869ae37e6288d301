#include "cache/signing_keys.hpp"

#include "base/os/private_folder.hpp"

#include <kiln/clock.hpp>
#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace kiln {

namespace {

constexpr std::size_t key_digits = 64;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::filesystem::path bundle_key_file(const CacheConfig& cache) {
  return std::filesystem::path(cache.key_file.string() + ".bundle");
}

Result<SecretKey> read_bundle_key(const CacheConfig& cache, IfMissing if_missing) {
  if (cache.key_file.empty()) return unavailable(no_key_file().message);
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  return read_secret_key(bundle_key_file(cache), if_missing);
}

Result<BundlePublicKey> public_key_of(const SecretKey& secret) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  BundlePublicKey made;
  if ((*by)->public_key(raw(secret.bytes), reinterpret_cast<unsigned char*>(made.data())) != 1) {
    return internal_error("Ed25519: the public key cannot be computed");
  }
  return made;
}

Result<BundleSignature> sign_bundle(const SecretKey& secret, std::span<const std::byte> message) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  BundleSignature signature;
  if ((*by)->sign(raw(secret.bytes), raw(message), message.size(),
                  reinterpret_cast<unsigned char*>(signature.data())) != 1) {
    return internal_error("Ed25519: signing failed");
  }
  return signature;
}

Result<bool> is_signed_by(const BundlePublicKey& key, std::span<const std::byte> message,
                          const BundleSignature& signature) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  return (*by)->verify(raw(key), raw(message), message.size(), raw(signature)) == 1;
}

std::string hex_of(const BundlePublicKey& key) {
  Digest digest;
  std::memcpy(digest.bytes.data(), key.data(), key.size());
  return digest.hex();
}

std::optional<BundlePublicKey> public_key_from_hex(std::string_view hex) {
  const auto digest = Digest::from_hex(hex);
  if (!digest) return std::nullopt;
  BundlePublicKey key;
  std::memcpy(key.data(), digest->bytes.data(), key.size());
  return key;
}

Result<BundlePublicKey> read_trusted_key(const std::string& trust) {
  if (const auto key = public_key_from_hex(trust)) return *key;
  const Result<RegularFile> file = RegularFile::open(trust);
  if (trust.empty() || !file) {
    return invalid_argument("trusted key '" + trust + "': expected 64 hexadecimal digits or a readable file" +
                            (trust.empty() ? "" : " (" + file.error().message + ")"));
  }
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), key_digits + 1)), '\0');
  if (Status status = file->read(0, std::as_writable_bytes(std::span(text))); !status.ok()) {
    return status.within("trusted key");
  }
  const auto key = public_key_from_hex(std::string_view(text).substr(0, key_digits));
  if (!key ||
      (text.size() > key_digits && text[key_digits] != '\n' && text[key_digits] != '\r' && text[key_digits] != ' ')) {
    return invalid_argument("trusted key file " + trust +
                            ": expected a public key of 64 hexadecimal digits at the beginning");
  }
  return *key;
}

namespace {

constexpr std::uint64_t most_trust_bytes = 64 << 10;
constexpr std::string_view key_suffix = ".key";
constexpr std::int64_t day_s = 86'400;
constexpr std::uint64_t life_of_keys_ns = 1'000'000'000;

// Whether it exists. What cannot be looked at may exist, and is an error.
Result<bool> can_be_there(const std::filesystem::path& path, const char* what) {
  struct stat at {};
  if (lstat(path.c_str(), &at) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return system_error(what + path.string(), "attributes cannot be read", errno);
}

// Opens FOLDER/INNER. An empty descriptor: it does not exist.
Result<UniqueFd> open_trust_folder(const std::filesystem::path& folder, const char* inner) {
  const std::filesystem::path path = folder / inner;
  const Result<bool> there = can_be_there(path, "folder ");
  if (!there) return there.error();
  if (!*there) return UniqueFd();
  // Links and parents are checked too: whoever can replace one of them can replace the keys.
  Result<std::filesystem::path> real = followed_path(path);
  if (!real) return real.error();
  return open_folder(*real, Create::no);
}

// The text of a file that only its owner can write. nullopt: it does not exist.
Result<std::optional<std::string>> read_trust_file(int folder, const std::string& name, const std::string& who,
                                                   mode_t others_may_not) {
  const Result<RegularFile> file = RegularFile::open_at(folder, name, SymbolicLink::refuse);
  if (!file && file.error().code == StatusCode::not_found) return std::optional<std::string>();
  if (!file) return file.error().within(who);
  const struct stat& at = file->facts();
  if (!is_trusted_owner(at.st_uid)) {
    return unavailable(who + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                       std::to_string(geteuid()) + (geteuid() == 0 ? "" : " or root"));
  }
  // A group that root chose may read root's file.
  const mode_t too_much = at.st_uid == 0 ? others_may_not & 037u : others_may_not;
  if ((at.st_mode & too_much) != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(at.st_mode & 07777));
    return unavailable(who + ": has mode " + mode + ", expected " + (others_may_not == 077 ? "read" : "write") +
                       " permission only for the owner");
  }
  Result<std::string> text = file->text(most_trust_bytes);
  if (!text) return text.error().within(who);
  return std::optional(std::move(*text));
}

// Calls line(number, word, value) for each line that is neither empty nor a comment, until one returns a failure.
template <class OnLine>
Status for_each_line(std::string_view text, const OnLine& on_line) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string_view value = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (Status status = on_line(number, line.substr(0, space), value); !status.ok()) return status;
  }
  return {};
}

Status bad_line(std::size_t number, std::string_view what) {
  return corrupt("line " + std::to_string(number) + ": " + std::string(what));
}

// Of the remotes that Kiln has.
constexpr std::string_view credential_words[] = {"url",        "user",          "password",    "token",
                                                 "authority",  "certificate",   "private_key", "access_key",
                                                 "secret_key", "session_token", "region",      "endpoint"};

std::string list_of(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

// The public key that a text names, whatever else is in it.
std::optional<BundlePublicKey> public_key_in(std::string_view text) {
  std::optional<BundlePublicKey> found;
  static_cast<void>(for_each_line(text, [&](std::size_t, std::string_view word, std::string_view value) {
    if (word == "public" && !found) found = public_key_from_hex(value);
    return ok_status();
  }));
  return found;
}

// What could not be used: it may hold a revocation or an end.
struct Unusable {
  std::vector<std::string> names;        // no key of these names is used
  std::vector<BundlePublicKey> revoked;  // what such files name
  bool folder = false;                   // no key is used at all
};

void add_keys_of(const std::filesystem::path& folder, TrustedKeys& to, Unusable& unusable) {
  const std::filesystem::path path = folder / "trust.d";
  const Result<UniqueFd> opened = open_trust_folder(folder, "trust.d");
  if (!opened) {
    unusable.folder = true;
    to.problems.push_back(opened.error().message + ": no key is used, because this folder may revoke keys");
    return;
  }
  if (!*opened) return;
  std::vector<std::string> names = names_in(opened->get());
  std::ranges::sort(names);
  for (const std::string& file : names) {
    if (!file.ends_with(key_suffix)) continue;
    const std::string name = file.substr(0, file.size() - key_suffix.size());
    const std::string who = "trusted key " + (path / file).string();
    if (!is_key_name(name)) {
      to.problems.push_back(who + ": not a name of a key");
      continue;
    }
    const auto text = read_trust_file(opened->get(), file, who, 022);
    if (!text) {
      unusable.names.push_back(name);
      to.problems.push_back(text.error().message + ": key '" + name + "' is not used");
      continue;
    }
    if (!*text) continue;
    Result<TrustedKey> key = decode_trusted_key(**text);
    if (!key) {
      unusable.names.push_back(name);
      if (const auto named = public_key_in(**text)) unusable.revoked.push_back(*named);
      to.problems.push_back(key.error().within(who).message + ": key '" + name + "' is not used");
      continue;
    }
    key->name = name;
    key->file = path / file;
    to.keys.push_back(std::move(*key));
  }
}

}  // namespace

const TrustedKey* TrustedKeys::find(std::string_view name) const noexcept {
  const auto at = std::ranges::find(keys, name, &TrustedKey::name);
  return at == keys.end() ? nullptr : &*at;
}

TrustedKeys read_trusted_keys(std::span<const std::filesystem::path> folders) {
  TrustedKeys all;
  Unusable unusable;
  for (const std::filesystem::path& folder : folders) {
    if (!folder.empty()) add_keys_of(folder, all, unusable);
  }
  if (unusable.folder) all.keys.clear();
  std::erase_if(all.keys, [&](const TrustedKey& key) {
    return std::ranges::find(unusable.names, key.name) != unusable.names.end() ||
           std::ranges::find(unusable.revoked, key.key) != unusable.revoked.end();
  });
  // A revocation counts for the key itself, whatever its name is elsewhere.
  for (TrustedKey& key : all.keys) {
    key.revoked =
        std::ranges::any_of(all.keys, [&](const TrustedKey& other) { return other.revoked && other.key == key.key; });
  }
  std::vector<TrustedKey> first;
  for (TrustedKey& key : all.keys) {
    if (std::ranges::find(first, key.name, &TrustedKey::name) == first.end()) first.push_back(std::move(key));
  }
  all.keys = std::move(first);
  return all;
}

CurrentKeys::CurrentKeys(std::vector<std::filesystem::path> folders)
    : folders_(std::move(folders)),
      keys_(std::make_shared<const TrustedKeys>(read_trusted_keys(folders_))),
      read_ns_(now_ns()) {}

std::shared_ptr<const TrustedKeys> CurrentKeys::get() {
  const std::lock_guard lock(mutex_);
  if (now_ns() - read_ns_ >= life_of_keys_ns) {
    keys_ = std::make_shared<const TrustedKeys>(read_trusted_keys(folders_));
    read_ns_ = now_ns();
  }
  return keys_;
}

std::vector<TrustedKey> chosen_keys(const TrustedKeys& all, std::span<const std::string> names,
                                    std::vector<std::string>& problems) {
  if (names.empty()) return all.keys;
  std::vector<TrustedKey> chosen;
  for (const std::string& name : names) {
    if (const TrustedKey* key = all.find(name)) {
      chosen.push_back(*key);
    } else {
      problems.push_back("key '" + name + "': not in trust.d. Add it with `kiln cache key trust " + name + " KEY`");
    }
  }
  return chosen;
}

std::optional<std::int64_t> end_of_date(std::string_view date) {
  std::tm utc{};
  if (strptime(std::string(date).c_str(), "%Y-%m-%d", &utc) == nullptr) return std::nullopt;
  const std::time_t start = timegm(&utc);
  if (start < 0 || date_text(start) != date) return std::nullopt;  // before 1970, no such day, or written otherwise
  return start + day_s;
}

std::string date_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&time, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::string encode_trusted_key(const TrustedKey& key, std::int64_t now_s) {
  std::string text = "public " + hex_of(key.key) + "\n";
  if (key.until_s) text += "until " + date_text(*key.until_s - day_s) + "\n";
  if (key.revoked) text += "revoked " + date_text(now_s) + "\n";
  return text;
}

Result<TrustedKey> decode_trusted_key(std::string_view text) {
  TrustedKey key;
  bool has_key = false;
  const Status status = for_each_line(text, [&](std::size_t number, std::string_view word, std::string_view value) {
    if (word == "public" && !has_key) {
      const auto decoded = public_key_from_hex(value);
      if (!decoded) return bad_line(number, "expected a public key of 64 hexadecimal digits");
      key.key = *decoded;
      has_key = true;
    } else if (word == "until" && !key.until_s) {
      key.until_s = end_of_date(value);
      if (!key.until_s) return bad_line(number, "expected a date such as 2027-01-31");
    } else if (word == "revoked" && !key.revoked) {
      key.revoked = true;
    } else {
      // What is not understood may be a restriction: the key is not used.
      return bad_line(number, "found '" + std::string(word) + "', expected public, until or revoked, each once");
    }
    return ok_status();
  });
  if (!status.ok()) return status;
  if (!has_key) return corrupt("has no line `public KEY` with a key of 64 hexadecimal digits");
  return key;
}

Result<SecretKey> read_signing_key(std::span<const std::filesystem::path> folders, const std::string& name) {
  if (!is_key_name(name)) {
    return invalid_argument("signing key '" + name + "': expected a key name of letters, digits and ._-");
  }
  for (const std::filesystem::path& folder : folders) {
    if (folder.empty()) continue;
    const Result<UniqueFd> opened = open_trust_folder(folder, "keys.d");
    if (!opened) return opened.error();
    if (!*opened) continue;
    const std::filesystem::path file = folder / "keys.d" / (name + ".secret");
    const Result<bool> there = can_be_there(file, "secret key ");
    if (!there) return there.error();
    if (!*there) continue;
    return read_secret_key(file, IfMissing::fail);
  }
  return not_found("signing key '" + name + "': not in keys.d. Create it with `kiln cache key create " + name + "`");
}

Status check_signer(const TrustedKeys& trusted, const SecretKey& signer, const std::string& name) {
  const Result<BundlePublicKey> own = public_key_of(signer);
  if (!own) return own.error();
  const std::int64_t now_s = std::time(nullptr);
  const TrustedKey* unusable = nullptr;
  for (const TrustedKey& key : trusted.keys) {
    if (key.key != *own) continue;
    if (!key.revoked && (!key.until_s || now_s < *key.until_s)) return {};
    unusable = &key;
  }
  if (unusable == nullptr) return {};  // readers elsewhere may trust it
  return invalid_argument(
      "signing key '" + name + "': " +
      (unusable->revoked ? std::string("is revoked")
                         : "expired on " + date_text(*unusable->until_s - day_s) + ", today is " + date_text(now_s)) +
      " (" + unusable->file.string() + "). Readers reject programs that are signed with this key");
}

Result<std::map<std::string, std::string>> read_credentials(std::span<const std::filesystem::path> folders,
                                                            const std::string& name, std::string_view url) {
  const std::string what = "credentials '" + name + "'";
  if (!is_key_name(name)) return invalid_argument(what + ": expected the name of a file in credentials.d");
  for (const std::filesystem::path& folder : folders) {
    if (folder.empty()) continue;
    const Result<UniqueFd> opened = open_trust_folder(folder, "credentials.d");
    if (!opened) return opened.error();
    if (!*opened) continue;
    const std::string who = what + " " + (folder / "credentials.d" / name).string();
    const auto text = read_trust_file(opened->get(), name, who, 077);
    if (!text) return text.error();
    if (!*text) continue;
    std::map<std::string, std::string> values;
    const Status status = for_each_line(**text, [&](std::size_t number, std::string_view word, std::string_view value) {
      if (value.empty()) return bad_line(number, "expected a word and a value");
      if (std::ranges::find(credential_words, word) == std::end(credential_words)) {
        return bad_line(number,
                        "'" + std::string(word) + "' is not known, expected one of " + list_of(credential_words));
      }
      if (!values.emplace(word, value).second) return bad_line(number, "'" + std::string(word) + "' is given twice");
      return ok_status();
    });
    if (!status.ok()) return status.within(who);
    const auto prefix = values.find("url");
    if (prefix == values.end()) return corrupt(who + ": has no line `url PREFIX` with the URL of the server");
    if (!is_below_url(url, prefix->second)) {
      return invalid_argument(who + ": expected a URL below " + prefix->second + ", found " + std::string(url));
    }
    values.erase(prefix);
    return values;
  }
  return not_found(what + ": not in credentials.d");
}

std::map<std::string, std::string> environment_credentials(std::string_view url) {
  std::map<std::string, std::string> values;
  const char* prefix = std::getenv("KILN_REMOTE_URL");
  if (prefix == nullptr || !is_below_url(url, prefix)) return values;
  constexpr std::pair<const char*, const char*> words[] = {
      {"user", "KILN_REMOTE_USER"}, {"password", "KILN_REMOTE_PASSWORD"}, {"token", "KILN_REMOTE_TOKEN"}};
  for (const auto& [word, variable] : words) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') values.emplace(word, value);
  }
  return values;
}

bool is_below_url(std::string_view url, std::string_view prefix) noexcept {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.find("://") == std::string_view::npos || !url.starts_with(prefix)) return false;
  return url.size() == prefix.size() || url[prefix.size()] == '/';
}

}  // namespace kiln

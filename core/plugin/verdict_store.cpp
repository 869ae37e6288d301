#include "plugin/verdict_store.hpp"

#include <kiln/buffer.hpp>
#include <kiln/plugin.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/version.hpp>
#include <kiln_json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t schema = 1;
constexpr std::size_t most_entries = 256;
constexpr std::size_t most_file_bytes = 1 << 20;

// Nothing where there is no file that this user alone wrote.
std::optional<std::string> read_own_file(const fs::path& path) {
  const Result<RegularFile> file = RegularFile::open(path, SymbolicLink::refuse);
  if (!file || file->facts().st_uid != geteuid() || (file->facts().st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return std::nullopt;
  }
  Result<std::string> text = file->text(most_file_bytes);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// 0, or the errno of what failed; `path` holds the whole text or what it held before.
int replace_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::string temporary = path.string() + ".XXXXXX";
  const UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return errno;
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = write(fd.get(), text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int why = count < 0 ? errno : EIO;
      unlink(temporary.c_str());
      return why;
    }
    at += static_cast<std::size_t>(count);
  }
  if (rename(temporary.c_str(), path.c_str()) == 0) return 0;
  const int why = errno;
  unlink(temporary.c_str());
  return why;
}

template <class T>
bool take(const Json& from, const char* name, T& to) {
  const auto at = from.find(name);
  if (at == from.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!at->is_string()) return false;
  } else if constexpr (std::is_unsigned_v<T>) {
    if (!at->is_number_unsigned()) return false;
  } else {
    if (!at->is_number_integer()) return false;
  }
  to = at->get<T>();
  return true;
}

}  // namespace

std::optional<std::vector<VerdictStore::Entry>> VerdictStore::parse(const std::string& text) {
  const Json whole = parse_json(text);
  std::uint64_t found_schema = 0;
  if (!whole.is_object() || !take(whole, "schema", found_schema) || found_schema != schema) return std::nullopt;
  const auto list = whole.find("verdicts");
  if (list == whole.end() || !list->is_array() || list->size() > most_entries) return std::nullopt;
  std::vector<Entry> entries;
  for (const Json& item : *list) {
    Entry entry;
    std::string verdict, code;
    if (!item.is_object() || !take(item, "path", entry.path) || !take(item, "host", entry.host) ||
        !take(item, "device", entry.identity.device) || !take(item, "inode", entry.identity.inode) ||
        !take(item, "size", entry.identity.size) || !take(item, "mtime_ns", entry.identity.mtime_ns) ||
        !take(item, "verdict", verdict) || !take(item, "code", code) ||
        !take(item, "message", entry.verdict.status.message)) {
      return std::nullopt;
    }
    const auto kind = verdict_kind_of(verdict);
    if (!kind) return std::nullopt;
    entry.verdict.kind = *kind;
    if (*kind != VerdictKind::ok) {
      const auto status = status_code_of(code);
      if (!status) return std::nullopt;
      entry.verdict.status.code = *status;
    }
    if (std::uint64_t attempts = 0; take(item, "attempts", attempts)) {
      entry.verdict.attempts = static_cast<std::uint32_t>(std::min<std::uint64_t>(attempts, 1000));
    }
    if (!take(item, "again_at", entry.verdict.again_at_s)) entry.verdict.again_at_s = 0;
    const std::int64_t latest_s = std::time(nullptr) + pause_after(entry.verdict.attempts).count();
    if (entry.verdict.again_at_s > latest_s) entry.verdict.again_at_s = 0;  // the clock was set back
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string VerdictStore::text() const {
  Json list = Json::array();
  for (const Entry& entry : entries_) {
    list.push_back({{"path", entry.path},
                    {"host", entry.host},
                    {"device", entry.identity.device},
                    {"inode", entry.identity.inode},
                    {"size", entry.identity.size},
                    {"mtime_ns", entry.identity.mtime_ns},
                    {"verdict", to_string(entry.verdict.kind)},
                    {"code", to_string(entry.verdict.status.code)},
                    {"message", entry.verdict.status.message}});
    if (entry.verdict.kind == VerdictKind::hung) {
      list.back()["attempts"] = entry.verdict.attempts;
      list.back()["again_at"] = entry.verdict.again_at_s;
    }
  }
  // A name that is not UTF-8 is written with replacements and so never found again: such a plugin is probed each time.
  return json_text({{"schema", schema}, {"verdicts", list}}, 1) + "\n";
}

VerdictStore::VerdictStore(fs::path file, std::string host, Log log)
    : file_(std::move(file)), host_(std::move(host)), log_(log) {
  if (file_.empty()) return;
  const auto text = read_own_file(file_);
  if (!text) return;
  if (auto entries = parse(*text)) {
    entries_ = *std::move(entries);
  } else {
    log_.write(LogLevel::info, "plugin",
               "verdicts " + file_.string() + ": damaged or of another version: written anew");
  }
}

std::optional<ProbeVerdict> VerdictStore::find(const fs::path& plugin, const PluginFileIdentity& identity) const {
  for (const Entry& entry : entries_) {
    if (entry.identity == identity && entry.path == plugin.string() && entry.host == host_) return entry.verdict;
  }
  return std::nullopt;
}

ProbeVerdict VerdictStore::put(const fs::path& plugin, const PluginFileIdentity& identity, ProbeVerdict verdict) {
  if (verdict.kind == VerdictKind::hung) {
    const auto before = find(plugin, identity);
    verdict.attempts = 1 + (before && before->kind == VerdictKind::hung ? before->attempts : 0);
    verdict.again_at_s = std::time(nullptr) + pause_after(verdict.attempts).count();
  }
  if (file_.empty()) return verdict;
  const auto erased =
      std::erase_if(entries_, [&](const Entry& e) { return e.path == plugin.string() && e.host == host_; });
  changed_ = changed_ || erased > 0 || verdict.lasting();
  if (!verdict.lasting()) return verdict;
  if (entries_.size() >= most_entries) entries_.erase(entries_.begin());
  entries_.push_back({plugin.string(), host_, identity, verdict});
  return verdict;
}

void VerdictStore::save() {
  if (file_.empty() || !changed_) return;
  changed_ = false;
  const int error = replace_file(file_, text());
  if (error == 0) return;
  log_.write(LogLevel::warning, "plugin",
             "verdicts " + file_.string() +
                 ": cannot be written, so each start tries every plugin in kiln-probe: " + std::strerror(error));
}

std::string host_identity() {
  std::string identity(version);
  identity += ' ';
  identity += build_fingerprint;
  struct stat info {};
  if (stat(core_file().c_str(), &info) == 0) {
    for (const std::uint64_t number :
         {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
          static_cast<std::uint64_t>(info.st_mtim.tv_nsec)}) {
      identity += " " + std::to_string(number);
    }
  }
  return identity;
}

}  // namespace kiln

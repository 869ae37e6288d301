#include "base/os/commit_journal.hpp"

#include "base/checksum.hpp"
#include "base/os/file_lock.hpp"

#include <kiln/stop_scope.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <thread>

namespace kiln {
namespace {

constexpr std::chrono::seconds patience{60};  // for another process that commits
constexpr std::chrono::milliseconds patience_when_stopped{500};
constexpr std::chrono::milliseconds longest_pause{20};
constexpr off_t most_bytes = 16 << 20;
constexpr mode_t owner_alone = 0600;

constexpr std::string_view first_line = "kiln results 1\n";
constexpr char journal_digits[] = "0123456789abcdef";

// One word, whatever bytes it has.
std::string as_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '%') {
      word.push_back(c);
    } else {
      word.append({'%', journal_digits[byte >> 4], journal_digits[byte & 15]});
    }
  }
  return word;
}

std::optional<std::string> from_word(std::string_view word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      text.push_back(word[i]);
      continue;
    }
    unsigned byte = 0;
    if (i + 3 > word.size()) return std::nullopt;
    const char* const end = word.data() + i + 3;
    if (std::from_chars(word.data() + i + 1, end, byte, 16).ptr != end) return std::nullopt;
    text.push_back(static_cast<char>(byte));
    i += 2;
  }
  return text;
}

std::string identity_text(const FileIdentity& file) {
  return std::to_string(file.inode) + ":" + std::to_string(file.bytes) + ":" + std::to_string(file.modified_ns) + ":" +
         std::to_string(file.owner);
}

// Up to `end`, which is taken too.
std::string_view take(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

template <class Integer>
bool parse_number(std::string_view text, Integer& into) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, into);
  return !text.empty() && error == std::errc{} && at == end;
}

bool parse_identity(std::string_view text, FileIdentity& into) {
  return parse_number(take(text, ':'), into.inode) && parse_number(take(text, ':'), into.bytes) &&
         parse_number(take(text, ':'), into.modified_ns) && parse_number(take(text, ':'), into.owner) && text.empty();
}

bool is_token(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of(journal_digits) == std::string_view::npos;
}

bool parse_entry(std::string_view line, CommitEntry& entry) {
  if (!parse_identity(take(line, ' '), entry.made)) return false;
  const std::string_view old = take(line, ' ');
  if (old != "-" && !parse_identity(old, entry.old.emplace())) return false;
  entry.token = take(line, ' ');
  const auto path = from_word(line);
  if (!path || !is_token(entry.token) || path->find('\0') != std::string::npos) return false;
  entry.path = *path;
  return entry.path.is_absolute() && entry.path.has_filename() && entry.path.filename() != "." &&
         entry.path.filename() != "..";
}

std::string checksum_of(std::string_view text) {
  std::string hex;
  for (const std::byte byte : xxh3_128(std::as_bytes(std::span(text.data(), text.size())))) {
    hex.push_back(journal_digits[std::to_integer<unsigned>(byte) >> 4]);
    hex.push_back(journal_digits[std::to_integer<unsigned>(byte) & 15]);
  }
  return hex;
}

}  // namespace

std::string format_commit_units(const std::vector<CommitUnit>& units) {
  std::string text(first_line);
  for (const CommitUnit& unit : units) {
    text += "unit " + std::to_string(unit.begun_s) + "\n";
    for (const CommitEntry& entry : unit.entries) {
      text += "file " + identity_text(entry.made) + " " + (entry.old ? identity_text(*entry.old) : "-") + " " +
              entry.token + " " + as_word(entry.path.native()) + "\n";
    }
  }
  return text + "checksum " + checksum_of(text) + "\n";
}

std::optional<std::vector<CommitUnit>> parse_commit_units(std::string_view text) {
  std::string_view rest = text;
  if (!rest.starts_with(first_line)) return std::nullopt;
  rest.remove_prefix(first_line.size());
  std::vector<CommitUnit> units;
  while (!rest.empty()) {
    const std::string_view checked = text.substr(0, text.size() - rest.size());
    std::string_view line = take(rest, '\n');
    const std::string_view kind = take(line, ' ');
    const bool is_complete = text[text.size() - rest.size() - 1] == '\n';
    if (!is_complete) return std::nullopt;
    if (kind == "checksum") return line == checksum_of(checked) ? std::optional(std::move(units)) : std::nullopt;
    if (kind == "unit") {
      if (!parse_number(line, units.emplace_back().begun_s)) return std::nullopt;
    } else if (kind != "file" || units.empty() || !parse_entry(line, units.back().entries.emplace_back())) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// "process 4711 (kiln)", or "another process" where that cannot be found out. The kernel lists a lock with the
// descriptor that holds it.
std::string holder_of(const struct stat& journal) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code unreadable;
    for (fs::directory_iterator file(at->path() / "fd", unreadable), last; !unreadable && file != last;
         file.increment(unreadable)) {
      struct stat found {};
      if (::stat(file->path().c_str(), &found) != 0 || found.st_ino != journal.st_ino ||
          found.st_dev != journal.st_dev) {
        continue;
      }
      std::ifstream info(at->path() / "fdinfo" / file->path().filename());
      for (std::string line; std::getline(info, line);) {
        if (!line.starts_with("lock:")) continue;
        std::ifstream comm(at->path() / "comm");
        std::string name;
        std::getline(comm, name);
        return "process " + pid + " (" + name + ")";
      }
    }
  }
  return "another process";
}

// A file that is removed by its holder while another waits for it is opened anew.
Result<CommitJournal> CommitJournal::open(const std::filesystem::path& path, Missing missing) {
  const Clock::time_point begun = Clock::now();
  struct stat found {};
  const int create = missing == Missing::create ? O_CREAT : 0;
  for (auto pause = std::chrono::milliseconds(1); Clock::now() - begun < patience;
       pause = std::min(2 * pause, longest_pause)) {
    CommitJournal journal(
        path, UniqueFd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | create, owner_alone)));
    if (!journal && (errno == ENOENT || errno == ENOTDIR) && create == 0) return journal;
    if (!journal) return journal.failed("cannot be opened", errno);
    if (::fstat(journal.file(), &found) != 0) return journal.failed("cannot be looked at", errno);
    if (found.st_nlink == 0) continue;
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || found.st_nlink != 1 || (found.st_mode & 077) != 0) {
      return unavailable("journal " + path.string() + ": expected a file of user " + std::to_string(::geteuid()) +
                         " with mode 0600 and one name. Remove it");
    }
    const bool is_busy = try_lock_all_bytes(journal.file()) == LockAnswer::busy;
    struct stat named {};
    if (!is_busy && ::lstat(path.c_str(), &named) == 0 && named.st_ino == found.st_ino &&
        named.st_dev == found.st_dev) {
      return journal;
    }
    const std::atomic<bool>* const stop = current_stop();
    if (stop != nullptr && stop->load() && Clock::now() - begun > patience_when_stopped) {
      return cancelled("journal " + path.string() + ": stopped on request while " + holder_of(found) + " held it");
    }
    std::this_thread::sleep_for(pause);
  }
  return unavailable("journal " + path.string() + ": " + holder_of(found) + " has held it for " +
                     std::to_string(patience.count()) + " s. End that process");
}

Result<std::string> CommitJournal::read() const {
  struct stat found {};
  if (::fstat(file_.get(), &found) != 0) return failed("cannot be looked at", errno);
  if (found.st_size > most_bytes) {
    return corrupt("journal " + path_.string() + ": has " + std::to_string(found.st_size) +
                   " bytes, expected at most " + std::to_string(most_bytes));
  }
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
  if (got < 0) return failed("cannot be read", errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

Status CommitJournal::write(const std::string& text) const {
  if (::ftruncate(file_.get(), 0) != 0) return failed("cannot be written", errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::pwrite(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return failed("cannot be written", errno);
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

void CommitJournal::remove() const noexcept { ::unlink(path_.c_str()); }

Status CommitJournal::failed(const std::string& what, int error) const {
  return io_error("journal " + path_.string() + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace kiln

#include "base/os/commit_journal.hpp"

#include "base/digest.hpp"
#include "base/os/file_lock.hpp"

#include <kiln/stop_scope.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
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

constexpr std::string_view kind_of_file = "kiln results ";
constexpr int version = 2, version_of_one_copy = 1;
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

// The first line. folder: 0 in version 1.
bool parse_header(std::string_view line, int& found, std::uint64_t& folder) {
  folder = 0;
  if (!line.starts_with(kind_of_file)) return false;
  line.remove_prefix(kind_of_file.size());
  if (!parse_number(take(line, ' '), found)) return false;
  return found == version ? parse_number(line, folder) : line.empty();
}

// nullopt: damaged, or of another version.
std::optional<std::vector<CommitUnit>> parse_copy(std::string_view text, std::uint64_t& folder) {
  std::string_view rest = text;
  int found = 0;
  if (!parse_header(take(rest, '\n'), found, folder)) return std::nullopt;
  if (found != version && found != version_of_one_copy) return std::nullopt;
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

Result<std::string> read_all(int file, off_t bytes) {
  if (bytes > most_bytes) {
    return corrupt("has " + std::to_string(bytes) + " bytes, expected at most " + std::to_string(most_bytes));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  if (got < 0) return io_error("cannot be read: " + std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

// "a folder of user 0 with mode 0755 and 2 hard links"
std::string description_of(const struct stat& found) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "0%03o", static_cast<unsigned>(found.st_mode & 07777));
  return std::string(S_ISREG(found.st_mode)   ? "a file"
                     : S_ISDIR(found.st_mode) ? "a folder"
                     : S_ISLNK(found.st_mode) ? "a symbolic link"
                                              : "a device, FIFO or socket") +
         " of user " + std::to_string(found.st_uid) + " with mode " + mode + " and " + std::to_string(found.st_nlink) +
         (found.st_nlink == 1 ? " hard link" : " hard links");
}

}  // namespace

std::string format_commit_units(const std::vector<CommitUnit>& units, std::uint64_t folder) {
  std::string text = std::string(kind_of_file) + std::to_string(version) + " " + std::to_string(folder) + "\n";
  for (const CommitUnit& unit : units) {
    text += "unit " + std::to_string(unit.begun_s) + "\n";
    for (const CommitEntry& entry : unit.entries) {
      text += "file " + identity_text(entry.made) + " " + (entry.old ? identity_text(*entry.old) : "-") + " " +
              entry.token + " " + as_word(entry.path.native()) + "\n";
    }
  }
  text += "checksum " + checksum_of(text) + "\n";
  return text + text;
}

Result<std::vector<CommitUnit>> parse_commit_units(std::string_view text, std::uint64_t folder) {
  std::uint64_t written_in = 0;
  auto units = parse_copy(text, written_in);
  if (!units) units = parse_copy(text.substr(text.size() / 2), written_in);
  if (!units) {
    int found = 0;
    const bool has_header = parse_header(text.substr(0, text.find('\n')), found, written_in);
    if (has_header && found != version && found != version_of_one_copy) {
      return corrupt("has version " + std::to_string(found) + ", expected " + std::to_string(version_of_one_copy) +
                     " or " + std::to_string(version));
    }
    return corrupt("is damaged");
  }
  if (folder != 0 && written_in != 0 && folder != written_in) {
    return corrupt("was written in another folder (expected inode " + std::to_string(folder) + ", found " +
                   std::to_string(written_in) + ")");
  }
  return std::move(*units);
}

std::set<std::filesystem::path> outputs_listed_in(const std::filesystem::path& journal) {
  std::set<std::filesystem::path> outputs;
  const UniqueFd file(::open(journal.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return outputs;
  const auto text = read_all(file.get(), found.st_size);
  if (!text) return outputs;
  std::string_view rest = *text;
  while (rest.find('\n') != std::string_view::npos) {  // a path may have lost its end in the last line
    std::string_view line = take(rest, '\n');
    CommitEntry entry;
    if (take(line, ' ') == "file" && parse_entry(line, entry)) outputs.insert(entry.path);
  }
  return outputs;
}

std::string commit_token(std::string_view name, std::string_view random) {
  constexpr std::size_t half = 8;
  return checksum_of(name).substr(0, half) + std::string(random.substr(half));
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
    const int error = journal ? 0 : errno;
    if (create == 0 && (error == ENOENT || error == ENOTDIR)) return journal;
    const bool is_short = error == EMFILE || error == ENFILE || error == ENOMEM;
    if (error != 0 && (is_short || ::lstat(path.c_str(), &found) != 0))
      return journal.failed("cannot be opened", error);
    if (error == 0 && ::fstat(journal.file(), &found) != 0) return journal.failed("attributes cannot be read", errno);
    if (error == 0 && found.st_nlink == 0) continue;
    const bool is_private =
        S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && found.st_nlink == 1 && (found.st_mode & 077) == 0;
    if (error != 0 || !is_private) {
      return corrupt("journal " + path.string() + ": cannot be used" +
                     (error == 0 ? "" : " (" + std::generic_category().message(error) + ")") +
                     ": expected a file of user " + std::to_string(::geteuid()) +
                     " with mode 0600 and 1 hard link, found " + description_of(found));
    }
    const bool is_busy = try_lock_all_bytes(journal.file()) == LockAnswer::busy;
    struct stat named {};
    if (!is_busy && ::lstat(path.c_str(), &named) == 0 && named.st_ino == found.st_ino &&
        named.st_dev == found.st_dev) {
      journal.bytes_ = named.st_size;
      // Both times are the same until something is written, and nobody reads an empty file.
      journal.was_written_ =
          named.st_mtim.tv_sec != named.st_atim.tv_sec || named.st_mtim.tv_nsec != named.st_atim.tv_nsec;
      if (::stat(path.parent_path().c_str(), &found) == 0) journal.folder_ = found.st_ino;
      return journal;
    }
    const std::atomic<bool>* const stop = current_stop();
    if (stop != nullptr && stop->load() && Clock::now() - begun > patience_when_stopped) {
      return cancelled("journal " + path.string() + ": stopped on request while " + holder_of(found) +
                       " held the lock");
    }
    std::this_thread::sleep_for(pause);
  }
  return unavailable("journal " + path.string() + ": timed out after " + std::to_string(patience.count()) +
                     " s: " + holder_of(found) + " holds the lock. End that process");
}

Result<std::vector<CommitUnit>> CommitJournal::read() const {
  const std::string who = "journal " + path_.string();
  if (bytes_ == 0) {
    if (was_written_) return corrupt(who + ": was emptied");
    return std::vector<CommitUnit>();  // its process was killed before it began
  }
  const auto text = read_all(file_.get(), bytes_);
  if (!text) return text.error().within(who);
  auto units = parse_commit_units(*text, folder_);
  if (!units) return units.error().within(who);
  return units;
}

// Writes over the text before, which may hold units that are still needed.
Status CommitJournal::write(const std::vector<CommitUnit>& units) {
  const std::string text = format_commit_units(units, folder_);
  if (static_cast<off_t>(text.size()) > most_bytes) return failed("cannot be written", EFBIG);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::pwrite(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return failed("cannot be written", errno);
    done += static_cast<std::size_t>(wrote);
    bytes_ = std::max(bytes_, static_cast<off_t>(done));
  }
  const auto bytes = static_cast<off_t>(text.size());
  if (bytes_ > bytes && ::ftruncate(file_.get(), bytes) != 0) return failed("cannot be written", errno);
  bytes_ = bytes;
  return {};
}

// In a folder that became read-only, a journal without units stands for none.
void CommitJournal::remove() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) (void)write({});
}

Status CommitJournal::failed(const std::string& what, int error) const {
  return io_error("journal " + path_.string() + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace kiln

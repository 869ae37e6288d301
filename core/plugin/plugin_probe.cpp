#include "plugin/plugin_probe.hpp"

#include "base/os/child_process.hpp"

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/plugin.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/version.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kiln_json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>

namespace kiln {
namespace {

constexpr std::size_t most_answer_bytes = 4096;
// How often the child's state is looked at while it says nothing. What it says wakes at once.
constexpr int look_ms = 5;
// Of one such look at most so much counts: the rest, this process did not run.
constexpr std::chrono::milliseconds most_counted{100};

// False once there is nothing more to come.
bool take_answer(int fd, std::string& answer) {
  char bytes[512];
  const ssize_t count = ::read(fd, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  if (answer.size() < most_answer_bytes) answer.append(bytes, static_cast<std::size_t>(count));
  return true;
}

void wait_a_little(int fd, bool open, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
  pollfd waited{fd, POLLIN, 0};
  poll(&waited, open ? 1 : 0, static_cast<int>(std::clamp<std::int64_t>(left, 0, open ? look_ms : 1)));
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

ProbeVerdict crashed(std::string how) {
  return {VerdictKind::crashed,
          unsupported(std::move(how) +
                      " in kiln-probe: blocked until the plugin file changes or `kiln plugins --retry` is run")};
}

// Signals that others send, not what a plugin does to itself.
bool from_outside(int number) noexcept {
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

Result<ProbeVerdict> judge(std::optional<int> status, const std::string& answer) {
  const auto told = verdict_of_line(answer);
  if (!status) return told ? *told : crashed("ended without an answer");
  if (WIFSIGNALED(*status)) {
    const std::string name = signal_name(WTERMSIG(*status));
    if (from_outside(WTERMSIG(*status)))
      return unavailable("kiln-probe was killed with " + name + " while loading the plugin");
    return crashed("crashed with " + name + (told ? " while the process was exiting" : ""));
  }
  const int code = WEXITSTATUS(*status);
  if (code == probe_exit_channel_lost) return crashed("closed file descriptors that the plugin did not open");
  if (!told) return crashed("ended the process with status " + std::to_string(code));
  const int expected = told->kind == VerdictKind::ok ? 0 : probe_exit_failed;
  if (code != expected) return crashed("changed the exit status to " + std::to_string(code));
  return *told;
}

}  // namespace

Result<ProbeVerdict> probe_plugin(const std::filesystem::path& probe, const std::filesystem::path& plugin,
                                  std::chrono::nanoseconds timeout) {
  auto started = ChildProcess::start({probe, {"load", plugin.string()}, std::nullopt, -1});
  if (!started) return std::move(started).error().within("a new plugin is loaded in kiln-probe first");
  ChildProcess child = std::move(*started);
  child.close_input();
  const int from_child = child.output();
  fcntl(from_child, F_SETFL, O_NONBLOCK);

  // Time counts in which this process ran too: where it was frozen or stopped, so was the child, as a rule.
  std::chrono::nanoseconds waited{0};
  std::string answer;
  bool open = true;
  while (!child.ended()) {
    if (waited >= timeout) {
      (void)child.stop(std::chrono::nanoseconds(0));
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
      return ProbeVerdict{VerdictKind::hung,
                          timed_out("registration in kiln-probe timed out after " + std::to_string(ms) + " ms")};
    }
    const Clock::time_point before = Clock::now();
    wait_a_little(from_child, open, Deadline::after(timeout - waited));
    waited += std::min<std::chrono::nanoseconds>(Clock::now() - before, most_counted);
    if (open) open = take_answer(from_child, answer);
  }
  // What was written before the end is in the pipe; a process that escaped may hold the other end, so no waiting for
  // EOF.
  for (int i = 0; i < 64 && open; ++i) {
    pollfd more{from_child, POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) break;
    open = take_answer(from_child, answer);
  }
  return judge(child.status(), answer);
}

namespace {

constexpr std::string_view ok_line = "kiln-probe 1 ok";
constexpr std::string_view failed_line = "kiln-probe 1 failed ";
// A pipe takes a line of this size in one piece.
constexpr std::size_t most_line_bytes = 2048;

constexpr StatusCode failures[] = {StatusCode::invalid_argument, StatusCode::not_found,   StatusCode::unsupported,
                                   StatusCode::unavailable,      StatusCode::corrupt,     StatusCode::io,
                                   StatusCode::timeout,          StatusCode::device_lost, StatusCode::internal};

}  // namespace

std::string_view to_string(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::ok:
      return "ok";
    case VerdictKind::failed:
      return "failed";
    case VerdictKind::crashed:
      return "crashed";
    case VerdictKind::hung:
      return "hung";
    case VerdictKind::invalid:
      break;
  }
  return "invalid";
}

std::optional<VerdictKind> verdict_kind_of(std::string_view name) noexcept {
  for (const VerdictKind kind : {VerdictKind::ok, VerdictKind::failed, VerdictKind::crashed, VerdictKind::hung}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<StatusCode> status_code_of(std::string_view name) noexcept {
  for (const StatusCode code : failures) {
    if (name == to_string(code)) return code;
  }
  return std::nullopt;
}

std::chrono::seconds pause_after(std::uint32_t attempts) noexcept {
  if (attempts <= 1) return std::chrono::seconds(0);
  constexpr std::uint32_t most_doublings = 6;
  return std::chrono::seconds(60) * (1u << std::min(attempts - 2, most_doublings));  // at most about an hour
}

std::uint32_t patience_after(std::uint32_t attempts) noexcept { return std::min(attempts + 1, 4u); }

bool ProbeVerdict::lasting() const noexcept {
  return kind != VerdictKind::failed || (status.code != StatusCode::unavailable && status.code != StatusCode::io &&
                                         status.code != StatusCode::timeout && status.code != StatusCode::not_found);
}

std::string to_line(const Status& outcome) {
  if (outcome.ok()) return std::string(ok_line) += '\n';
  std::string line(failed_line);
  line += to_string(outcome.code);
  line += ' ';
  line += outcome.message;
  std::ranges::replace(line, '\n', ' ');
  line.resize(std::min(line.size(), most_line_bytes));
  return line + "\n";
}

std::optional<ProbeVerdict> verdict_of_line(std::string_view line) {
  if (!line.ends_with('\n')) return std::nullopt;
  line.remove_suffix(1);
  if (line == ok_line) return ProbeVerdict{VerdictKind::ok, {}};
  if (!line.starts_with(failed_line)) return std::nullopt;
  line.remove_prefix(failed_line.size());
  const auto code = status_code_of(line.substr(0, line.find(' ')));
  if (!code) return std::nullopt;
  const std::size_t message = line.find(' ');
  return ProbeVerdict{VerdictKind::failed, {*code, std::string(message == line.npos ? "" : line.substr(message + 1))}};
}

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

VerdictStore::VerdictStore(fs::path file, std::string host, Log log, VerdictFile use)
    : file_(std::move(file)), host_(std::move(host)), log_(log), use_(use) {
  if (file_.empty()) return;
  const auto text = read_own_file(file_);
  if (!text) return;
  if (auto entries = parse(*text)) {
    entries_ = *std::move(entries);
  } else {
    log_.write(LogLevel::info, "plugin",
               "verdict file " + file_.string() + ": damaged or of another version, and is " +
                   (use_ == VerdictFile::read_only ? "ignored" : "replaced"));
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
  if (file_.empty() || !changed_ || use_ == VerdictFile::read_only) return;
  changed_ = false;
  const int error = replace_file(file_, text());
  if (error == 0) return;
  log_.write(LogLevel::warning, "plugin",
             "verdict file " + file_.string() +
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

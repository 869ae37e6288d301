#include "core/cache/powercut/write_log.hpp"

#include "core/cache/faults/asked_work.hpp"
#include "support/in_child.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace kiln::test {
namespace {

using Call = seccomp_data;

// Read as another process would: a thread sanitizer cannot know that whoever called waits.
std::string memory_at(std::uint64_t address, std::size_t size) {
  std::string bytes(size, '\0');
  iovec to{bytes.data(), size};
  iovec from{reinterpret_cast<void*>(address), size};
  const long got = syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

// Pages are read one by one: the text may end before one that is not there.
std::string text_at(std::uint64_t address) {
  constexpr std::uint64_t page = 4096;
  std::string text;
  for (;;) {
    const std::string more = memory_at(address, page - address % page);
    const std::size_t end = more.find('\0');
    text += more.substr(0, end);
    if (more.empty() || end != std::string::npos) return text;
    address += more.size();
  }
}

std::string path_of(int file) {
  std::array<char, 4096> path;
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path.data(), path.size());
  return {path.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

class Recorder {
 public:
  explicit Recorder(const std::filesystem::path& folder) : inside_(folder.string() + "/") {}

  // Makes the call, in the place of whoever asked for it.
  void make(const Call& call, seccomp_notif_resp& answer) {
    const std::lock_guard lock(mutex_);
    std::optional<WriteCall> change = change_of(call);
    const auto argument = [&](int place) { return call.args[place]; };
    const long made = syscall(call.nr, argument(0), argument(1), argument(2), argument(3), argument(4), argument(5));
    answer.flags = 0;
    answer.error = made < 0 ? -errno : 0;
    answer.val = made < 0 ? 0 : made;
    if (made < 0 || !change) return;
    if (change->change == Change::written) {
      change->bytes = memory_at(call.args[1], static_cast<std::size_t>(made));
    } else if (change->change == Change::file_made) {
      change->inode = inode_of(static_cast<int>(made));
    } else if (change->change == Change::folder_made) {
      struct stat at {};
      if (lstat((inside_ + change->path).c_str(), &at) == 0) change->inode = at.st_ino;
    }
    calls_.push_back(std::move(*change));
  }

  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const WriteCall& call : calls_) {
      const auto number = [&](std::uint64_t value) { text += std::to_string(value) + ' '; };
      number(static_cast<std::uint64_t>(call.change));
      number(call.inode);
      number(call.offset);
      for (const std::string* part : {&call.path, &call.to, &call.bytes}) {
        number(part->size());
        text += *part;
      }
    }
    return text;
  }

 private:
  // What the call would change below the folder, as far as it can be told before it is made.
  std::optional<WriteCall> change_of(const Call& call) const {
    const auto argument = [&](int place) { return static_cast<int>(call.args[place]); };
    switch (call.nr) {
      case SYS_openat:
        return opened(named(argument(0), call.args[1]), argument(2));
      case SYS_mkdir:
        return at(Change::folder_made, named(AT_FDCWD, call.args[0]));
      case SYS_mkdirat:
        return at(Change::folder_made, named(argument(0), call.args[1]));
      case SYS_write: {
        const off_t offset = lseek(argument(0), 0, SEEK_CUR);
        return of(Change::written, argument(0), static_cast<std::uint64_t>(offset));
      }
      case SYS_pwrite64:
        return of(Change::written, argument(0), call.args[3]);
      case SYS_ftruncate:
        return of(Change::cut, argument(0), call.args[1]);
      case SYS_fsync:
      case SYS_fdatasync:
        return of(Change::flushed, argument(0), 0);
      case SYS_rename:
        return from_to(Change::moved, named(AT_FDCWD, call.args[0]), named(AT_FDCWD, call.args[1]));
      case SYS_renameat:
      case SYS_renameat2:
        return from_to(Change::moved, named(argument(0), call.args[1]), named(argument(2), call.args[3]));
      case SYS_linkat:
        return from_to(Change::linked, named(argument(0), call.args[1]), named(argument(2), call.args[3]));
      case SYS_unlink:
        return at(Change::removed, named(AT_FDCWD, call.args[0]));
      case SYS_unlinkat:
        return at(Change::removed, named(argument(0), call.args[1]));
      default:
        return std::nullopt;
    }
  }

  // Below the folder; empty: elsewhere.
  std::string below(const std::string& path) const {
    return path.starts_with(inside_) ? path.substr(inside_.size()) : std::string();
  }
  std::string named(int folder, std::uint64_t name) const {
    std::string path = text_at(name);
    if (!path.starts_with('/')) path = path_of(folder) + "/" + path;
    return below(path);
  }
  static std::uint64_t inode_of(int file) {
    struct stat at {};
    return fstatat(file, "", &at, AT_EMPTY_PATH) == 0 ? at.st_ino : 0;
  }

  std::optional<WriteCall> opened(const std::string& path, int flags) const {
    struct stat found {};
    const bool exists = !path.empty() && lstat((inside_ + path).c_str(), &found) == 0;
    if (exists && (flags & O_TRUNC) != 0) return WriteCall{Change::cut, found.st_ino, path, {}, 0, {}};
    return exists ? std::nullopt : at(Change::file_made, path);
  }
  static std::optional<WriteCall> at(Change change, std::string path) {
    if (path.empty()) return std::nullopt;
    return WriteCall{change, 0, std::move(path), {}, 0, {}};
  }
  static std::optional<WriteCall> from_to(Change change, std::string from, std::string to) {
    if (from.empty() && to.empty()) return std::nullopt;
    return WriteCall{change, 0, std::move(from), std::move(to), 0, {}};
  }
  std::optional<WriteCall> of(Change change, int file, std::uint64_t offset) const {
    std::string path = below(path_of(file));
    if (path.empty()) return std::nullopt;
    return WriteCall{change, inode_of(file), std::move(path), {}, offset, {}};
  }

  const std::string inside_;
  mutable std::mutex mutex_;
  std::vector<WriteCall> calls_;
};

CallFilter changing_calls() {
  CallFilter filter;
  filter.ask_where(SYS_openat, 2, O_CREAT | O_TRUNC);
  for (const long call : {SYS_mkdir, SYS_mkdirat, SYS_write, SYS_pwrite64, SYS_ftruncate, SYS_fsync, SYS_fdatasync,
                          SYS_rename, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_unlink, SYS_unlinkat}) {
    filter.ask(call);
  }
  return filter;
}

std::vector<WriteCall> calls_in(std::string_view text) {
  std::vector<WriteCall> calls;
  const auto number = [&] {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) throw std::runtime_error("the log of writes cannot be read");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return value;
  };
  while (!text.empty()) {
    WriteCall& call = calls.emplace_back();
    call.change = static_cast<Change>(number());
    call.inode = number();
    call.offset = number();
    for (std::string* part : {&call.path, &call.to, &call.bytes}) {
      const std::uint64_t size = number();
      *part = text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return calls;
}

constexpr std::string_view refused = "refused: ", complains = "complains: ", recorded = "recorded: ";

}  // namespace

WriteLog record_writes(const std::filesystem::path& folder, const std::function<std::string()>& work) {
  const std::filesystem::path inside = std::filesystem::canonical(folder);
  const ChildEnd end = in_child([&]() -> std::string {
    const auto recorder = std::make_shared<Recorder>(inside);
    const auto on_call = [recorder](const Call& call, seccomp_notif_resp& answer) { recorder->make(call, answer); };
    const AskedEnd asked = asked_work(changing_calls(), OtherCalls::made, on_call, work);
    if (!asked.why_not.empty()) return std::string(refused) + asked.why_not;
    if (!asked.said.empty()) return std::string(complains) + asked.said;
    return std::string(recorded) + recorder->text();
  });
  WriteLog log;
  if (end.said.starts_with(refused)) {
    log.why_not = end.said.substr(refused.size());
  } else if (end.signal == 0 && end.said.starts_with(recorded)) {
    log.calls = calls_in(std::string_view(end.said).substr(recorded.size()));
  } else {
    log.wrong = end.signal != 0 ? "was killed by signal " + std::to_string(end.signal) : end.said;
  }
  return log;
}

}  // namespace kiln::test

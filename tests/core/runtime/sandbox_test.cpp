// What a process may do in the sandbox, and what the filter of its system calls answers to the rest.
#include "base/os/sandbox.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/buffer.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

// "done", or the name of the system's error.
std::string outcome_of(bool done) {
  if (done) return "done";
  const int error = errno;
  switch (error) {
    case EPERM:
      return "EPERM";
    case ENOSYS:
      return "ENOSYS";
    case EACCES:
      return "EACCES";
    case ENOTTY:
      return "ENOTTY";
    default:
      return "error " + std::to_string(error);
  }
}

std::string opening(const std::filesystem::path& file, int flags, mode_t mode = 0) {
  const UniqueFd opened(::open(file.c_str(), flags | O_CLOEXEC, mode));
  return outcome_of(static_cast<bool>(opened));
}

}  // namespace

TEST_CASE("sandbox: rejects system calls that change other files, processes or the system") {
  const CacheTestFolder folder, hidden;
  const auto kept = folder.path() / "kept", cut = folder.path() / "cut", other = hidden.path() / "other";
  for (const auto& file : {kept, cut, other}) std::ofstream(file) << "text";
  const std::string skipped = "skipped: ";
  const ChildEnd end = in_child([&]() -> std::string {
    SandboxRules rules;
    rules.readable = {folder.path()};
    rules.writable = {folder.path()};
    const std::uint32_t refuses = SECCOMP_RET_ERRNO;
    const bool has_filters = ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &refuses) == 0;
    bool files_are_open = false;
    for (const std::string& gap : enter_sandbox(rules)) {
      if (gap.starts_with("the user's files: ")) files_are_open = true;
      if (gap.find("other processes") == std::string::npos) continue;
      if (has_filters || ::setsid() < 0) return "filters work, and it is told: " + gap;
      return skipped + gap;
    }
    std::string told;
    if ((opening(other, O_RDONLY) == "done") != files_are_open) told += "what is told of files is wrong\n";
    const auto tell = [&](const char* what, const std::string& outcome) {
      told += std::string(what) + ": " + outcome + "\n";
    };
    tell("read", opening(kept, O_RDONLY));
    tell("write", opening(kept, O_WRONLY));
    tell("truncate a file that is read", opening(kept, O_RDONLY | O_TRUNC));
    tell("truncate a file that is written", opening(cut, O_WRONLY | O_TRUNC));
    // The bits of the mode are those of O_TRUNC.
    tell("create a sticky file", opening(folder.path() / "new", O_WRONLY | O_CREAT, 01600));
#if defined(__x86_64__)
    const UniqueFd opened(static_cast<int>(::syscall(SYS_open, kept.c_str(), O_RDONLY | O_TRUNC | O_CLOEXEC, 0)));
    tell("truncate by the older call", outcome_of(static_cast<bool>(opened)));
    constexpr long of_x32 = 0x40000000;
    tell("a call of x32", outcome_of(::syscall(of_x32 | SYS_getpid) >= 0));
#else
    tell("truncate by the older call", "EPERM");
    tell("a call of x32", "EPERM");
#endif
    // As the C library starts a thread where there is no clone3.
    alignas(16) static std::byte stack[64 << 10];
    const auto thread = [](void*) -> int {
      ::syscall(SYS_exit, 0);
      return 0;
    };
    constexpr int of_a_thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    tell("thread", outcome_of(::clone(thread, stack + sizeof stack, of_a_thread, nullptr) > 0));
    tell("process", outcome_of(::clone(thread, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr) > 0));
    tell("signal itself", outcome_of(::kill(::getpid(), 0) == 0));
    tell("signal its parent", outcome_of(::kill(::getppid(), 0) == 0));
    tell("signal its thread", outcome_of(::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), 0) == 0));
    rlimit limit{};
    tell("its limits", outcome_of(::prlimit(0, RLIMIT_CORE, nullptr, &limit) == 0));
    tell("its limits by number", outcome_of(::prlimit(::getpid(), RLIMIT_CORE, nullptr, &limit) == 0));
    tell("its parent's limits", outcome_of(::prlimit(::getppid(), RLIMIT_CORE, nullptr, &limit) == 0));
    tell("mode", outcome_of(::chmod(kept.c_str(), 0644) == 0));
    const UniqueFd end_of_network(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    tell("socket", outcome_of(static_cast<bool>(end_of_network)));
    tell("session", outcome_of(::setsid() >= 0));
    constexpr long clone3_number = 435, openat2_number = 437;  // of all processors; not in all headers
    tell("clone3", outcome_of(::syscall(clone3_number, nullptr, 0) >= 0));
    tell("openat2", outcome_of(::syscall(openat2_number, -1, nullptr, nullptr, 0) >= 0));
    return told;
  });
  if (end.said.starts_with(skipped)) {
    WARN(end.said);
    return;
  }
  CHECK(end.signal == 0);
  CHECK(end.said ==
        "read: done\n"
        "write: done\n"
        "truncate a file that is read: EPERM\n"
        "truncate a file that is written: done\n"
        "create a sticky file: done\n"
        "truncate by the older call: EPERM\n"
        "a call of x32: EPERM\n"
        "thread: done\n"
        "process: EPERM\n"
        "signal itself: done\n"
        "signal its parent: EPERM\n"
        "signal its thread: done\n"
        "its limits: done\n"
        "its limits by number: done\n"
        "its parent's limits: EPERM\n"
        "mode: EPERM\n"
        "socket: EPERM\n"
        "session: EPERM\n"
        "clone3: ENOSYS\n"
        "openat2: ENOSYS\n");
  CHECK(std::filesystem::file_size(kept) == 4);
  CHECK(std::filesystem::file_size(cut) == 0);
}

namespace {

std::string listing(const std::filesystem::path& folder) { return opening(folder, O_RDONLY | O_DIRECTORY); }

// Two folders of the system's data.
std::vector<std::filesystem::path> folders_in_share() {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/usr/share", error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory() && !at->is_symlink() && found.size() < 2) found.push_back(at->path());
  }
  return found;
}

}  // namespace

TEST_CASE("sandbox: opens the files of its rules and of the system, and no others") {
  namespace fs = std::filesystem;
  const CacheTestFolder folder;
  const fs::path& all = folder.path();
  for (const char* made : {"read/deep", "write/a", "write/b", "other"}) fs::create_directories(all / made);
  for (const char* made : {"read/deep/file", "write/a/file", "write/a/old", "other/file", "note", "single", "alone"})
    std::ofstream(all / made) << "text";
  const std::vector<fs::path> share = folders_in_share();
  const std::string skipped = "skipped: ";
  const pid_t parent = ::getpid();
  const ChildEnd end = in_child([&]() -> std::string {
    if (share.size() < 2) return skipped + "/usr/share has no two folders";
    SandboxRules rules;
    rules.readable = {all / "none", all / "read", all / "note"};
    rules.writable = {all / "write", all / "single"};
    rules.hidden = {share[0] / ".." / share[0].filename(), "/nowhere/at/all"};
    constexpr long create_ruleset = 444;
    const long version = ::syscall(create_ruleset, nullptr, 0, 1);  // of Landlock
    for (const std::string& gap : enter_sandbox(rules)) {
      if (!gap.starts_with("the user's files: ")) continue;
      return (version < 1 ? skipped : "Landlock works, and it is told: ") + gap;
    }
    std::string told;
    const auto tell = [&](const char* what, const std::string& outcome) {
      told += std::string(what) + ": " + outcome + "\n";
    };
    tell("read", opening(all / "read/deep/file", O_RDONLY));
    tell("list", listing(all / "read"));
    tell("write what is to be read", opening(all / "read/deep/file", O_WRONLY));
    tell("create beside it", opening(all / "read/new", O_WRONLY | O_CREAT, 0600));
    tell("remove it", outcome_of(::unlink((all / "read/deep/file").c_str()) == 0));
    tell("read a note", opening(all / "note", O_RDONLY));
    tell("write a note", opening(all / "note", O_WRONLY));
    tell("read what is to be written", opening(all / "write/a/file", O_RDONLY));
    tell("list it", listing(all / "write/a"));
    tell("write", opening(all / "write/a/file", O_RDWR));
    tell("truncate", opening(all / "write/a/file", O_WRONLY | O_TRUNC));
    tell("create", opening(all / "write/a/new", O_WRONLY | O_CREAT, 0600));
    tell("make a folder", outcome_of(::mkdir((all / "write/c").c_str(), 0700) == 0));
    tell("link", outcome_of(::symlink("a", (all / "write/link").c_str()) == 0));
    tell("make a FIFO", outcome_of(::mkfifo((all / "write/fifo").c_str(), 0600) == 0));
    tell("rename", outcome_of(::rename((all / "write/a/new").c_str(), (all / "write/a/named").c_str()) == 0));
    const bool moved = ::rename((all / "write/a/named").c_str(), (all / "write/b/named").c_str()) == 0;
    tell("move", version < 2 ? "done" : outcome_of(moved));
    tell("remove", outcome_of(::unlink((all / "write/a/old").c_str()) == 0));
    tell("remove a folder", outcome_of(::rmdir((all / "write/c").c_str()) == 0));
    tell("write a single file", opening(all / "single", O_RDWR));
    tell("truncate it", opening(all / "single", O_WRONLY | O_TRUNC));
    tell("read another", opening(all / "other/file", O_RDONLY));
    tell("read a file beside", opening(all / "alone", O_RDONLY));
    tell("list the folder of all", listing(all));
    tell("list the root", listing("/"));
    tell("list the settings", listing("/etc"));
    tell("read a setting", opening("/etc/passwd", O_RDONLY));
    tell("list libraries", listing("/usr/lib/.."));
    tell("list shared data", listing(share[1]));
    tell("list hidden data", listing(share[0]));
    tell("list the kernel's objects", listing("/sys"));
    tell("read of the machine", opening("/proc/cpuinfo", O_RDONLY));
    tell("read of itself", opening("/proc/self/maps", O_RDONLY));
    tell("read of its parent", opening("/proc/" + std::to_string(parent) + "/status", O_RDONLY));
    tell("list processes", listing("/proc"));
    const UniqueFd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
    tell("write to a device", outcome_of(static_cast<bool>(device)));
    termios terminal{};
    tell("ask a device", outcome_of(::ioctl(device.get(), TCGETS, &terminal) == 0));
    tell("create a device", opening("/dev/new", O_WRONLY | O_CREAT, 0600));
    tell("list devices", listing("/dev"));
    return told;
  });
  if (end.said.starts_with(skipped)) {
    WARN(end.said);
    return;
  }
  CHECK(end.signal == 0);
  CHECK(end.said ==
        "read: done\n"
        "list: done\n"
        "write what is to be read: EACCES\n"
        "create beside it: EACCES\n"
        "remove it: EACCES\n"
        "read a note: done\n"
        "write a note: EACCES\n"
        "read what is to be written: done\n"
        "list it: done\n"
        "write: done\n"
        "truncate: done\n"
        "create: done\n"
        "make a folder: done\n"
        "link: done\n"
        "make a FIFO: done\n"
        "rename: done\n"
        "move: done\n"
        "remove: done\n"
        "remove a folder: done\n"
        "write a single file: done\n"
        "truncate it: done\n"
        "read another: EACCES\n"
        "read a file beside: EACCES\n"
        "list the folder of all: EACCES\n"
        "list the root: EACCES\n"
        "list the settings: EACCES\n"
        "read a setting: EACCES\n"
        "list libraries: EACCES\n"
        "list shared data: done\n"
        "list hidden data: EACCES\n"
        "list the kernel's objects: done\n"
        "read of the machine: done\n"
        "read of itself: done\n"
        "read of its parent: EACCES\n"
        "list processes: EACCES\n"
        "write to a device: done\n"
        "ask a device: ENOTTY\n"
        "create a device: EACCES\n"
        "list devices: EACCES\n");
}

// What a process may do in the sandbox, and what the filter of its system calls answers to the rest.
#include "base/os/sandbox.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/buffer.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

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
    bool files_are_open = false;
    for (const std::string& gap : enter_sandbox(rules)) {
      if (gap.starts_with("the user's files: ")) files_are_open = true;
      if (gap.find("other processes") == std::string::npos) continue;
      return ::setsid() < 0 ? "the filter works, and it is told: " + gap : skipped + gap;
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

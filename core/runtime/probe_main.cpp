#include <kiln/probe.hpp>
#include <kiln/runtime.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "plugin/loaded_plugin.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/probe_process.hpp"
#include "runtime/bench_child.hpp"
#include "runtime/build_child.hpp"

namespace kiln {
namespace {

// Where the answer goes: a copy of the first standard output, far from the numbers that a plugin might close or reuse
// by mistake, and recognized before it is used.
class Channel {
 public:
  Channel() {
    for (const int far : {500, 100, 3}) {  // as far as the limit on descriptors allows
      if (fd_ < 0) fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, far);
    }
    if (fd_ < 0 || fstat(fd_, &identity_) != 0) fd_ = -1;
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    if (nothing > STDERR_FILENO) ::close(nothing);
  }

  bool write(const std::string& line) const {
    struct stat now {};
    if (fd_ < 0 || fstat(fd_, &now) != 0 || now.st_dev != identity_.st_dev || now.st_ino != identity_.st_ino)
      return false;
    return ::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

 private:
  int fd_ = -1;
  struct stat identity_ {};
};

// A crash here is an answer, not an accident: no core file. 1 rather than 0, because the kernel hands a core to a
// program named in core_pattern whatever the limit is, but for the value 1; as a size of a file it is too small as
// well.
void leave_no_core() {
  const rlimit one{1, 1};
  setrlimit(RLIMIT_CORE, &one);
}

// True where the parent was gone before its death could be told: nobody reads the pipe any more.
bool die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd answer{STDOUT_FILENO, 0, 0};
  return poll(&answer, 1, 0) == 1 && (answer.revents & POLLERR) != 0;
}

Status load(const std::filesystem::path& path) {
  const auto file = PluginFile::open(path);
  if (!file) return file.error();
  const auto note = inspect_plugin(path, file->bytes());
  if (!note) return note.error();
  const auto plugin = LoadedPlugin::open(path, *note, {});
  return plugin ? ok_status() : plugin.error();
}

int measure() {
  leave_no_core();
  if (die_with_parent()) return probe_exit_failed;
  // What is read from standard input is taken before drivers can reach for it: the stream has a descriptor of its own.
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const Channel channel;
  std::ifstream lines("/proc/self/fd/" + std::to_string(input));
  return bench_child(lines, [&channel](const std::string& line) { return channel.write(line); });
}

// Not bound to the thread that started it, which may end before: it ends when its input is closed.
int build() {
  leave_no_core();
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const Channel rest;  // what the driver reads and writes goes nowhere
  return build_child(input, output);
}

}  // namespace

int probe_main(int argc, char** argv) {
  prefer_roomy_heaps();     // what is measured here is what kiln runs
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write
  if (argc == 2 && std::string_view(argv[1]) == "measure") return measure();
  if (argc == 2 && std::string_view(argv[1]) == "build") return build();
  if (argc != 3 || std::string_view(argv[1]) != "load") {
    std::fputs("usage: kiln-probe load PATH | measure | build\n", stderr);
    return probe_exit_usage;
  }
  leave_no_core();
  if (die_with_parent()) return probe_exit_failed;
  const Channel channel;
  std::error_code error;
  const Status status = load(std::filesystem::absolute(argv[2], error));
  if (!channel.write(to_line(status))) return probe_exit_channel_lost;
  return status.ok() ? 0 : probe_exit_failed;
}

}  // namespace kiln

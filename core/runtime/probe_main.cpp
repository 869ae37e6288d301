#include "runtime/probe_main.hpp"

#include "base/os/sandbox.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/key_material.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_loader.hpp"
#include "plugin/plugin_probe.hpp"
#include "runtime/child_protocols.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/driver_cache.hpp>
#include <kiln/probe.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool read_all(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = read(fd, to, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<std::string> next_frame(int fd) {
  std::uint32_t bytes = 0;
  if (!read_all(fd, reinterpret_cast<char*>(&bytes), sizeof bytes) || bytes > most_frame_bytes) return std::nullopt;
  std::string frame(bytes, '\0');
  if (!read_all(fd, frame.data(), frame.size())) return std::nullopt;
  return frame;
}

// A compiler that never returns does not read the pipe: its parent's death ends it too.
Status end_with_parent(int input) {
  auto watching = start_thread([input] {
    pollfd end{input, 0, 0};
    while (poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    kill(0, SIGKILL);
  });
  if (watching) watching->detach();
  return watching ? Status() : watching.error();
}

void limit_memory(std::uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow is larger than any memory
  if (bytes == 0) return;
  // What can be written, not what is reserved: each thread reserves addresses that it never uses.
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_DATA, &limit);
#else
  (void)bytes;
#endif
}

std::vector<fs::path> paths_in(const char* variable, char separator) {
  const char* const text = std::getenv(variable);
  std::vector<fs::path> paths;
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0) paths.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return paths;
}

// A simulated card (docs/amdgpu.md) keeps its node and its facts in a folder of its process.
void add_simulated_card(std::vector<fs::path>& folders) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  if (preloaded == nullptr || std::string_view(preloaded).find("libkiln_amdgpu_sim") == std::string_view::npos) return;
  std::error_code error;
  for (fs::directory_iterator at(fs::temp_directory_path(error), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with("kiln-sim-")) folders.push_back(at->path());
  }
  for (const char* variable : {"KILN_SIM_LOG", "KILN_SIM_CAPTURE"}) {
    if (const char* const path = std::getenv(variable)) folders.emplace_back(path);
  }
}

// A plugin opens its own modules at first use: libkiln_….so in the folder above its own.
void add_modules_of(const fs::path& plugin, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator at(plugin.parent_path().parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with("libkiln_")) files.push_back(at->path());
  }
}

std::vector<std::string> enter_sandbox_of(const BuildSetup& setup) {
  SandboxRules rules;
  rules.readable.assign(setup.libraries.begin(), setup.libraries.end());
  rules.readable.push_back(setup.plugin);
  add_modules_of(setup.plugin, rules.readable);
  for (const char* variable : {"__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS", "DRIRC_CONFIGDIR"}) {
    for (fs::path& path : paths_in(variable, ':')) rules.readable.push_back(std::move(path));
  }
  rules.hidden.assign(setup.hidden.begin(), setup.hidden.end());
  if (!setup.driver_folder.empty()) rules.writable.push_back(setup.driver_folder);
  add_simulated_card(rules.writable);
  return enter_sandbox(rules);
}

class Builder {
 public:
  Status open(const BuildSetup& setup) {
    folder_ = setup.driver_folder;
    const auto file = PluginFile::open(setup.plugin);
    if (!file) return file.error();
    const auto note = inspect_plugin(setup.plugin, file->bytes());
    if (!note) return note.error();
    auto plugin = LoadedPlugin::open(setup.plugin, *note, {});
    if (!plugin) return std::move(plugin).error();
    plugin_.emplace(std::move(*plugin));
    const auto& drivers = plugin_->registered.drivers();
    const auto found = drivers.find(setup.driver);
    if (found == drivers.end()) return not_found("plugin " + setup.plugin.string() + " has no driver " + setup.driver);
    DriverContext context;
    context.counters = &counters_;
    context.cache_directory = setup.cache_directory;
    context.settings = setup.settings;
    auto driver = found->second.make(context);
    if (!driver) return std::move(driver).error();
    driver_ = std::move(*driver);
    auto device = driver_->open(setup.device);
    if (!device) return std::move(device).error();
    device_ = std::move(*device);
    if (device_->info().driver_cache == "none") folder_.clear();  // its programs hold all of their code
    forget_files();
    return {};
  }

  Result<ProgramBinary> serve(const BuildRequest& request) {
    auto source = source_of(request.material);
    if (!source) return not_found("the key of the program contains no source");
    source->files = request.files;
    if (key_of(*source, device_->info(), {}).material != request.material) {
      return not_found("the device or the driver differs from that of the parent process: " + device_->info().name +
                       ", " + device_->info().driver);
    }
    return request.stored ? try_stored(*source, *request.stored) : build(*source);
  }

 private:
  Result<ProgramBinary> build(const KernelSource& source) {
    forget_files();
    auto program = device_->build(source);
    if (!program) return std::move(program).error();
    auto binary = device_->serialize(**program);
    if (!binary || folder_.empty()) return binary;
    // Its parent ends a dispatch that takes too long.
    if (Status status = dispatch_nothing(*device_, **program, std::chrono::hours(1)); !status.ok()) return status;
    await_threads(Threads::all);
    auto files = read_driver_files(folder_);
    forget_files();
    if (files) {
      binary->driver_files = std::move(*files);
      binary->driver_setting = driver_setting_of(folder_.parent_path());
    }
    return binary;
  }

  // Whatever the driver answers: what counts is that it answers.
  Result<ProgramBinary> try_stored(const KernelSource& source, const ProgramBinary& stored) {
    forget_files();
    const UniqueFd folder(folder_.empty() ? -1 : ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder && stored.driver_setting == driver_setting_of(folder_.parent_path())) {
      for (const DriverFile& file : stored.driver_files) {
        if (Status status = write_driver_file(folder.get(), file); !status.ok()) return unavailable(status.message);
      }
    }
    if (auto program = device_->load(source, stored)) {
      static_cast<void>(dispatch_nothing(*device_, **program, std::chrono::hours(1)));
    }
    forget_files();
    return ProgramBinary{};
  }

  void forget_files() {
    if (folder_.empty()) return;
    await_threads(Threads::all);
    empty_driver_folder(folder_);
  }

  fs::path folder_;
  WorkCounters counters_;
  std::optional<LoadedPlugin> plugin_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
};

}  // namespace

int build_child(int input, int output) {
  const auto first = next_frame(input);
  if (!first) return 2;
  const auto setup = build_setup_of(*first);
  Builder builder;
  BuildOpened about;
  // Before the first thread, and before the plugin's code runs.
  if (setup) about.gaps = enter_sandbox_of(*setup);
  Status opened = setup ? end_with_parent(input) : setup.error();
  if (opened.ok()) opened = builder.open(*setup);
  // Not before: a plugin does not open a device where so little memory is left that its driver may not bear it.
  if (opened.ok()) limit_memory(setup->memory);
  if (!write_all(output, to_frame(opened.ok() ? Result<BuildOpened>(about) : opened))) return 4;
  while (const auto frame = next_frame(input)) {
    const auto request = build_request_of(*frame);
    const auto built = request && opened.ok() ? builder.serve(*request)
                                              : Result<ProgramBinary>(opened.ok() ? request.error() : opened);
    if (!write_all(output, to_frame(built))) return 4;
  }
  // The driver's own clean-up is not waited for: nothing that it does is of use to anybody.
  _exit(0);
}

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
  prefer_roomy_heaps();           // what is measured here is what kiln runs
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

#include "runtime/build_child.hpp"

#include "base/os/sandbox.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/key_material.hpp"
#include "plugin/loaded_plugin.hpp"
#include "plugin/plugin_file.hpp"
#include "runtime/build_protocol.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kiln/driver_cache.hpp>
#include <kiln/process_limits.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
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

std::vector<std::string> enter_sandbox_of(const BuildSetup& setup) {
  SandboxRules rules;
  rules.readable.assign(setup.libraries.begin(), setup.libraries.end());
  rules.readable.push_back(setup.plugin);
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
    if (!source) return not_found("the key of the program holds no source");
    source->files = request.files;
    if (key_of(*source, device_->info(), {}).material != request.material) {
      return not_found("another device or driver than its parent's: " + device_->info().name + ", " +
                       device_->info().driver);
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

}  // namespace kiln

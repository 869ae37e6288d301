#include "runtime/build_processes.hpp"

#include <kiln/driver_cache.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/stop_scope.hpp>

#include "cache/driver_scratch.hpp"
#include "config/config_text.hpp"

#include <link.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds look_for_stop{50};
constexpr std::chrono::nanoseconds time_to_crash = std::chrono::seconds(2);  // until the system says how it ended
constexpr std::chrono::nanoseconds time_to_open = std::chrono::seconds(30);
// A driver loads a program in milliseconds.
constexpr std::chrono::nanoseconds longest_trial = std::chrono::seconds(20);
constexpr std::string_view killed = "ended by SIGKILL";
constexpr std::string_view driver_folder_variable = "MESA_SHADER_CACHE_DIR=";

bool stop_requested() { return current_stop() != nullptr && current_stop()->load(); }

// This process's variables but for those that name the user's files and Kiln's own.
std::vector<std::string> environment_of_child(const fs::path& driver_folder) {
  std::vector<std::string> variables;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view one = *each;
    const bool simulator = one.starts_with("KILN_SIM");
    const bool named = one.starts_with("KILN_") || one.starts_with("HOME=") || one.starts_with("XDG_") ||
                       one.starts_with("PWD=") || one.starts_with("OLDPWD=");
    if ((named && !simulator) || one.starts_with(driver_folder_variable)) continue;
    variables.emplace_back(one);
  }
  variables.push_back(std::string(driver_folder_variable) +
                      (driver_folder.empty() ? no_driver_cache : driver_folder.string()));
  return variables;
}

// The driver is open in this process: what it has loaded is what the child loads, wherever it is installed.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  const auto add = [](dl_phdr_info* library, std::size_t, void* list) {
    if (library->dlpi_name[0] == '/') static_cast<std::vector<std::string>*>(list)->emplace_back(library->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &names);
  return names;
}

std::vector<std::string> files_of_user(const CacheConfig& config) {
  std::vector<std::string> paths{config.directory.string(), config.key_file.string(),
                                 config.key_file.string() + ".bundle"};
  if (const char* const home = std::getenv("HOME"); home != nullptr) paths.emplace_back(home);
  return paths;
}

}  // namespace

BuildProcesses::BuildProcesses(const CacheConfig& config, fs::path probe, Locate locate, Log log)
    : config_(config),
      probe_(std::move(probe)),
      locate_(std::move(locate)),
      log_(log),
      most_(std::clamp<std::size_t>(host_cores(), 1, 2)) {}

BuildProcesses::~BuildProcesses() {
  for (auto& [device, pool] : pools_) {
    for (auto& child : pool.idle) end(std::move(child));
  }
}

void BuildProcesses::end(std::unique_ptr<Child> child) {
  (void)child->process.stop(std::chrono::nanoseconds(0));
  if (child->folder.empty()) return;
  std::error_code error;
  fs::remove_all(child->folder, error);
}

Result<std::unique_ptr<BuildProcesses::Child>> BuildProcesses::start(const BuildSetup& located) {
  BuildSetup setup = located;
  setup.memory = config_.build_memory;
  setup.libraries = loaded_libraries();
  setup.hidden = files_of_user(config_);
  const char* told = std::getenv("MESA_SHADER_CACHE_DIR");
  if (told != nullptr && !driver_setting_of(told).empty()) {
    // Below the folder of this process, so that it goes with that.
    setup.driver_folder = fs::path(told) / (driver_folder_of_child + std::to_string(started_.fetch_add(1)));
    if (Status prepared = prepare_driver_cache(setup.driver_folder); !prepared.ok()) {
      log_.write(LogLevel::info, "build", "a compiler process has no driver folder: " + prepared.text());
      std::error_code ignored;
      fs::remove_all(setup.driver_folder, ignored);
      setup.driver_folder.clear();
    }
  }
  auto process = ChildProcess::start({probe_, {"build"}, environment_of_child(setup.driver_folder)});
  if (!process) return std::move(process).error();
  auto child = std::make_unique<Child>(Child{std::move(*process), setup.driver_folder, {}});
  const Deadline deadline = Deadline::after(time_to_open);
  Status opened = child->process.send(to_frame(setup), deadline);
  if (opened.ok()) {
    const auto frame = receive(*child, deadline);
    const auto answer = frame ? build_opened_of(*frame) : Result<BuildOpened>(frame.error());
    if (!answer) opened = answer.error();
    if (answer && !answer->gaps.empty() && !gaps_reported_.exchange(true)) {
      for (const std::string& gap : answer->gaps) {
        log_.write(LogLevel::info, "build", "the compiler process is not isolated from " + gap);
      }
    }
  }
  if (opened.ok()) return child;
  if (opened.code == StatusCode::device_lost) opened.message += ": the process " + child->process.stop(time_to_crash);
  end(std::move(child));
  return opened;
}

Result<std::string> BuildProcesses::receive(Child& child, Deadline deadline) {
  std::uint32_t bytes = 0;
  for (;;) {
    if (child.unread.size() >= sizeof bytes) {
      std::memcpy(&bytes, child.unread.data(), sizeof bytes);
      if (bytes > most_frame_bytes) return internal_error("the answer of the compiler's process is too long");
      if (child.unread.size() == sizeof bytes + bytes) return std::exchange(child.unread, {}).substr(sizeof bytes);
      if (child.unread.size() > sizeof bytes + bytes) {
        return internal_error("the compiler's process sent bytes after the end of the answer");
      }
    }
    if (stop_requested()) return cancelled("stopped on request");
    // Where this process was stopped, the answer may have come in time: it is looked for once more.
    const bool late = deadline.passed();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()) + look_for_stop / 50;
    pollfd waited{child.process.output(), POLLIN, 0};
    const int ready =
        poll(&waited, 1, static_cast<int>((late ? look_for_stop : std::min(left, look_for_stop)).count()));
    if (ready == 0 && late) return timed_out("the compiler's process timed out");
    if (ready <= 0) continue;
    char part[64 << 10];
    const ssize_t count = read(child.process.output(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return device_lost("the compiler's process ended");
    child.unread.append(part, static_cast<std::size_t>(count));
  }
}

std::optional<Result<ProgramBinary>> BuildProcesses::build(const ProgramKey& key, const KernelSource& source,
                                                           const Device& device) {
  if (!device.info().builds_apart || source.dialect == Dialect::library) return std::nullopt;
  auto answer = ask(device.info().id, {key.material, source.files}, config_.build_timeout);
  if (!answer) return std::nullopt;
  const std::string limited =
      " ([cache] build_memory = " + config::print_size(config_.build_memory) + " limits its memory)";
  if (answer->end.empty()) {
    const bool refused = !answer->program && answer->program.error().code == StatusCode::unavailable;
    if (!refused) return std::move(answer->program);
    return Result<ProgramBinary>(answer->program.error().within("program '" + key.label + "'" + limited));
  }
  const Status& why = answer->program.error();
  if (why.code == StatusCode::cancelled) return Result<ProgramBinary>(why);
  std::string message = "program '" + key.label + "': ";
  if (why.code == StatusCode::timeout) {
    message += "the compiler did not finish within " + config::print_duration(config_.build_timeout.count()) +
               " and was ended. [cache] build_timeout sets the limit";
  } else if (answer->end == killed) {
    // Its own limits do not end it like this: the machine or a control group was short of memory, or a person did it.
    return Result<ProgramBinary>(unavailable(message + "the compiler's process was killed (SIGKILL)" + limited +
                                             ". Check whether the system ran out of memory"));
  } else if (why.code == StatusCode::device_lost) {
    message += "the compiler crashed: its process " + answer->end + limited + ". Simplify the kernel";
  } else {
    message += why.message;
  }
  return Result<ProgramBinary>(invalid_argument(std::move(message)));
}

TrialOutcome BuildProcesses::try_stored(const ProgramKey& key, const ProgramBinary& stored, const DeviceInfo& device) {
  const auto answer = ask(device.id, {key.material, {}, stored}, longest_trial);
  if (!answer) return {TrialVerdict::unknown, "no child process can be used for " + device.id};
  if (answer->program) return {TrialVerdict::good, {}};
  const Status& failure = answer->program.error();
  if (failure.code == StatusCode::timeout) return {TrialVerdict::died, "timed out"};
  constexpr std::array of_its_own = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL"};
  for (const char* signal : of_its_own) {
    if (answer->end == std::string("ended by ") + signal) return {TrialVerdict::died, signal};
  }
  return {TrialVerdict::unknown, failure.message + (answer->end.empty() ? "" : ": the process " + answer->end)};
}

std::optional<BuildProcesses::Answer> BuildProcesses::ask(const std::string& device, const BuildRequest& request,
                                                          std::chrono::nanoseconds limit) {
  const auto setup = locate_(device);
  if (!setup) return std::nullopt;
  std::unique_ptr<Child> child;
  {
    std::unique_lock lock(mutex_);
    Pool& pool = pools_[device];
    while (pool.idle.empty() && pool.lent >= most_ && !pool.unusable) {
      if (stop_requested()) return Answer{cancelled("stopped on request"), "was not asked"};
      given_back_.wait_for(lock, look_for_stop);
    }
    if (pool.unusable) return std::nullopt;
    ++pool.lent;
    if (!pool.idle.empty()) {
      child = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
  }
  // Also where memory is refused below: others would wait for this child's turn to end.
  const auto end_turn = [&](BuildProcesses* of) {
    const std::lock_guard lock(of->mutex_);
    --of->pools_.find(device)->second.lent;
    of->given_back_.notify_all();
  };
  const std::unique_ptr<BuildProcesses, decltype(end_turn)> turn(this, end_turn);
  std::optional<Answer> answer;
  Status unusable;
  // One that ended while it was idle has done nothing wrong: another takes its place.
  for (int attempt = 0; attempt < 2 && !answer && unusable.ok(); ++attempt) {
    if (child == nullptr) {
      auto started = start(*setup);
      if (!started) {
        unusable = std::move(started).error();
        if (unusable.code == StatusCode::cancelled) answer = Answer{unusable, "was not started"};
        break;
      }
      child = std::move(*started);
    }
    answer = ask_one(child, request, limit);
    if (attempt == 0 && answer && answer->end == killed) answer.reset();  // by something else than what it compiled
    // It lost its device: another child opens the device anew. Where that is gone, none does.
    if (answer && answer->end.empty() && !answer->program && answer->program.error().code == StatusCode::device_lost) {
      end(std::move(child));
      if (attempt == 0) answer.reset();
    }
  }
  const std::lock_guard lock(mutex_);
  Pool& pool = pools_[device];
  if (child != nullptr) pool.idle.push_back(std::move(child));
  // It has not the parent's device, or has it no more.
  const StatusCode failure =
      answer && answer->end.empty() && !answer->program ? answer->program.error().code : StatusCode::ok;
  if (failure == StatusCode::not_found || failure == StatusCode::device_lost) {
    unusable = answer->program.error();
    answer.reset();
  }
  if (!answer && !pool.unusable) {
    pool.unusable = true;
    log_.write(LogLevel::info, "build", device + ": programs are built without a child process: " + unusable.message);
  }
  return answer;
}

std::optional<BuildProcesses::Answer> BuildProcesses::ask_one(std::unique_ptr<Child>& child,
                                                              const BuildRequest& request,
                                                              std::chrono::nanoseconds limit) {
  const Deadline deadline = Deadline::after(limit);
  const Status sent = child->process.send(to_frame(request), deadline);
  if (sent.code == StatusCode::unavailable) {
    end(std::move(child));
    return std::nullopt;
  }
  const auto frame = sent.ok() ? receive(*child, deadline) : Result<std::string>(sent);
  Result<ProgramBinary> program = frame ? built_program_of(*frame) : Result<ProgramBinary>(frame.error());
  if (frame && (program || program.error().code != StatusCode::internal)) return Answer{std::move(program), {}};
  const bool ended = program.error().code == StatusCode::device_lost;
  const std::string how = ended ? child->process.stop(time_to_crash) : "was ended";
  end(std::move(child));
  return Answer{std::move(program), how};
}

}  // namespace kiln

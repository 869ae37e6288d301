#include "amdgpu_pm4/toolchain/child_clang.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

namespace kiln::amdgpu_pm4 {
namespace {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const noexcept { return number_; }
  bool open() const noexcept { return number_ >= 0; }
  void close() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  // Above those that the child's own three are made from: a process may have closed some of them.
  bool lift() noexcept {
    if (number_ > 2) return true;
    Descriptor higher(fcntl(number_, F_DUPFD_CLOEXEC, 3));
    *this = std::move(higher);
    return number_ > 2;
  }

 private:
  int number_ = -1;
};

std::string reason(int error) { return std::strerror(error); }

struct Pipe {
  Descriptor read, write;

  Status create() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return unavailable("pipe cannot be created: " + reason(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    if (!read.lift() || !write.lift() || fcntl(read.number(), F_SETFL, O_NONBLOCK) != 0) {
      return unavailable("pipe cannot be created: " + reason(errno));
    }
    return {};
  }
};

// The input as a file in memory: nothing waits for the child to read it, and none is told when it does not.
Result<Descriptor> input_file(std::span<const std::byte> input) {
  Descriptor file(memfd_create("kiln-input", MFD_CLOEXEC));
  if (!file.open() || !file.lift()) return unavailable("memory file cannot be created: " + reason(errno));
  while (!input.empty()) {
    const ssize_t wrote = write(file.number(), input.data(), input.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return unavailable("memory file cannot be written: " + reason(errno));
    input = input.subspan(static_cast<std::size_t>(wrote));
  }
  if (lseek(file.number(), 0, SEEK_SET) != 0) return unavailable("memory file cannot be written: " + reason(errno));
  return file;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables{"LC_ALL=C"};
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH"}) {
    if (const char* const value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

constexpr const char* words_before_the_end = "; output: ";

class Child {
 public:
  explicit Child(const ChildRequest& request) : request_(request) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ > 0) end();
  }

  Status start() {
    auto input = input_file(request_.input);
    if (!input) return input.error();
    for (Pipe* const pipe : {&output_, &said_}) {
      if (Status status = pipe->create(); !status.ok()) return status;
    }
    std::vector<std::string> words{request_.program};
    words.insert(words.end(), request_.arguments.begin(), request_.arguments.end());
    std::vector<std::string> variables = environment();
    const std::vector<char*> arguments = pointers_to(words), environment_of_child = pointers_to(variables);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input->number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output_.write.number(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, said_.write.number(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawn(&id_, request_.program.c_str(), &actions, &attributes, arguments.data(),
                                  environment_of_child.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      id_ = -1;
      return unavailable(request_.program + " cannot be started: " + reason(error));
    }
    output_.write.close();
    said_.write.close();
    return {};
  }

  // Until both streams have ended.
  Status collect() {
    while (output_.read.open() || said_.read.open()) {
      if (request_.deadline.passed()) return late();
      std::array<pollfd, 2> waiting{{{output_.read.number(), POLLIN, 0}, {said_.read.number(), POLLIN, 0}}};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(request_.deadline.left()).count();
      const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(std::min<std::int64_t>(left, 1000)));
      if (ready < 0 && errno != EINTR) {
        return unavailable(request_.program + ": output cannot be read: " + reason(errno));
      }
      if (ready <= 0) continue;
      if (waiting[0].revents != 0) {
        read_from(output_.read, [this](const char* bytes, std::size_t count) {
          const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
          result_.output.insert(result_.output.end(), begin, begin + count);
        });
        if (result_.output.size() > request_.most_output) {
          return unavailable(request_.program + " wrote more than " + std::to_string(request_.most_output) + " bytes");
        }
      }
      if (waiting[1].revents != 0)
        read_from(said_.read, [this](const char* text, std::size_t count) { hear(text, count); });
    }
    return {};
  }

  // After collect(). A child that has closed its streams may still run: it too has until the deadline.
  Status wait() {
    for (std::chrono::microseconds pause(50);; pause = std::min(pause * 2, std::chrono::microseconds(2000))) {
      int state = 0;
      const pid_t ended = waitpid(id_, &state, WNOHANG);
      if (ended == id_) {
        id_ = -1;
        result_.signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
        result_.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
        return {};
      }
      if (ended < 0 && errno != EINTR) {
        id_ = -1;
        return unavailable(request_.program + ": exit status is unknown: " + reason(errno));
      }
      if (request_.deadline.passed()) return late();
      usleep(static_cast<useconds_t>(pause.count()));
    }
  }

  ChildResult take() { return std::move(result_); }

 private:
  template <class Take>
  static void read_from(Descriptor& from, Take take) {
    std::array<char, 16384> part;
    const ssize_t got = read(from.number(), part.data(), part.size());
    if (got > 0) {
      take(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      from.close();
    }
  }

  void hear(const char* text, std::size_t count) {
    static constexpr std::string_view cut = "\n(and more, left out here)\n";
    if (deaf_) return;
    const std::size_t room = request_.most_said - result_.said.size();
    result_.said.append(text, std::min(count, room));
    if (count <= room) return;
    result_.said += cut;
    deaf_ = true;
  }

  Status late() {
    end();
    return timed_out(request_.program + " did not finish before the deadline and was ended" +
                     (result_.said.empty() ? "" : words_before_the_end + result_.said));
  }

  void end() noexcept {  // of its whole group, as long as its leader is not waited for the number is its own
    kill(-id_, SIGKILL);
    kill(id_, SIGKILL);
    while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
  }

  const ChildRequest& request_;
  pid_t id_ = -1;
  Pipe output_, said_;
  bool deaf_ = false;
  ChildResult result_;
};

}  // namespace

Result<ChildResult> run_child(const ChildRequest& request) noexcept {
  Child child(request);
  if (Status status = child.start(); !status.ok()) return status;
  if (Status status = child.collect(); !status.ok()) return status;
  if (Status status = child.wait(); !status.ok()) return status;
  return child.take();
}

namespace {

constexpr int refused = 1;  // the exit code of a clang that has said what is wrong with the text

std::string with_words(std::string message, const std::string& said) {
  return said.empty() ? message : message + "; output: " + said;
}

}  // namespace

Result<Compiled> ChildClang::compile(const OpenClText& text, Target target, Deadline deadline) noexcept {
  if (target == Target::invalid) return invalid_argument("no target is set, expected one of " + target_names());
  ChildRequest request;
  request.program = compiler_.path;
  request.arguments = arguments_for(text, target);
  request.arguments.insert(request.arguments.end(), {"-o", "-", "-"});
  request.input = std::as_bytes(std::span(text.text));
  request.deadline = deadline;
  const Clock::time_point begin = Clock::now();
  auto child = run_child(request);
  if (!child && child.error().code == StatusCode::timeout) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(Clock::now() - begin).count();
    const std::size_t words = child.error().message.find(words_before_the_end);
    return timed_out(std::filesystem::path(compiler_.path).filename().string() + " timed out after " +
                     std::to_string(seconds) + " s while compiling " + text.name +
                     " ([plugin.amdgpu_pm4] compile_timeout)" +
                     (words == std::string::npos ? "" : child.error().message.substr(words)));
  }
  if (!child) return child.error();
  if (child->signal != 0) {
    const char* const name = sigdescr_np(child->signal);
    return unavailable(with_words(compiler_.path + " was terminated by signal " + std::to_string(child->signal) + " (" +
                                      std::string(name == nullptr ? "unknown" : name) + ")",
                                  child->said));
  }
  if (child->exit_code == refused) {
    return invalid_argument(child->said.empty() ? compiler_.path + " rejected the text without a message"
                                                : child->said);
  }
  if (child->exit_code != 0) {
    return unavailable(with_words(compiler_.path + " exited with " + std::to_string(child->exit_code), child->said));
  }
  if (child->output.empty()) return unavailable(with_words(compiler_.path + " wrote no code", child->said));
  return Compiled{std::move(child->output), std::move(child->said)};
}

namespace {

constexpr std::string_view version_note = "opencl compiler: ";
constexpr std::size_t most_version_bytes = 4096;

bool is_program(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return {};
  return {path, path + " " + std::to_string(facts.st_size) + " " + std::to_string(facts.st_mtim.tv_sec) + "." +
                    std::to_string(facts.st_mtim.tv_nsec) + " " + std::to_string(facts.st_dev) + ":" +
                    std::to_string(facts.st_ino)};
}

Result<FileStamp> find_compiler(const std::string& wanted, std::string_view path_list) {
  if (wanted.empty()) return invalid_argument("no OpenCL C compiler is set");
  if (wanted.find('/') != std::string::npos) {
    if (is_program(wanted)) return stamp_of(wanted);
    return unavailable("OpenCL C compiler " + wanted + ": not found, or not executable");
  }
  std::string looked;
  while (!path_list.empty()) {
    const std::string folder(path_list.substr(0, path_list.find(':')));
    path_list.remove_prefix(std::min(folder.size() + 1, path_list.size()));
    if (!folder.starts_with('/')) continue;
    const std::string path = folder + "/" + wanted;
    if (is_program(path)) return stamp_of(path);
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  return unavailable("OpenCL C compiler '" + wanted + "' was not found in " +
                     (looked.empty() ? "PATH, which names no folder" : looked));
}

Result<std::string> version_of(const FileStamp& compiler, DriverNotes* notes, Deadline deadline) {
  const std::string name = std::string(version_note) + compiler.text;
  if (notes != nullptr) {
    if (const auto kept = notes->find(name); kept && !kept->empty()) {
      return std::string(reinterpret_cast<const char*>(kept->data()), kept->size());
    }
  }
  ChildRequest request;
  request.program = compiler.path;
  request.arguments = {"--version"};
  request.most_output = most_version_bytes;
  request.deadline = deadline;
  const auto answer = run_child(request);
  if (!answer) return answer.error();
  const std::string text(reinterpret_cast<const char*>(answer->output.data()), answer->output.size());
  std::string line = text.substr(0, text.find('\n'));
  if (answer->signal != 0 || answer->exit_code != 0 || line.find("clang version") == std::string::npos) {
    return unavailable(compiler.path + " --version printed '" + line.substr(0, 200) + "', expected a clang version");
  }
  if (notes != nullptr) notes->keep(name, std::as_bytes(std::span(line)));
  return line;
}

}  // namespace kiln::amdgpu_pm4

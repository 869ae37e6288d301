#include "host/kiln_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "support/case_limit.hpp"
#include "support/test_length.hpp"

extern char** environ;

namespace kiln::test {
namespace {

// A process that writes nothing for so long is ended, and the test fails. Shorter than the limit of a test case.
constexpr int patience_ms = is_sanitized ? 300'000 : 120'000;

// What a child writes to, and this process reads: ends[1] and ends[0].
struct Channel {
  int ends[2];
  explicit Channel(StandardOutput kind) {
    if (kind == StandardOutput::terminal) {
      open_terminal();
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
  }

 private:
  void open_terminal() {
    char name[64];
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0 || ptsname_r(ends[0], name, sizeof name) != 0) {
      throw std::runtime_error("terminal");
    }
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[1] < 0) throw std::runtime_error(name);
  }
};

// With a sanitizer, a process looks for its leaks for four times as long as it runs: every sixth one does.
bool skips_leaks() {
  constexpr unsigned one_of = 6;
  static std::atomic<unsigned> started{0};
  return is_sanitized && !is_long() && started++ % one_of != 0;
}

std::vector<std::string> merged_environment(std::map<std::string, std::string> over) {
  if (const char* options = getenv("ASAN_OPTIONS"); skips_leaks() && options != nullptr) {
    over.emplace("ASAN_OPTIONS", std::string(options) + ":detect_leaks=0");
  }
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    if (!over.contains(name) && !name.starts_with("KILN_")) all.push_back(text);
  }
  for (const auto& [name, value] : over) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> to;
  for (std::string& word : words) to.push_back(word.data());
  to.push_back(nullptr);
  return to;
}

// Only async-signal-safe calls: this runs between fork and exec.
[[noreturn]] void become(char** words, char** environment, const char* folder, std::uint64_t most_file_bytes, int out,
                         int err) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  if (folder != nullptr && chdir(folder) != 0) _exit(126);
  if (most_file_bytes != 0) {
    const struct rlimit limit = {most_file_bytes, most_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  execvpe(words[0], words, environment);
  _exit(127);
}

}  // namespace

nlohmann::json Finished::json() const { return nlohmann::json::parse(out); }

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-host-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder " + pattern);
  root_ = pattern;
  std::filesystem::permissions(root_, std::filesystem::perms::owner_all | std::filesystem::perms::group_exec |
                                          std::filesystem::perms::others_exec);
  path_ = root_ / name;
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return path_ / name;
}

Finished run_process(std::vector<std::string> words, const ProcessOptions& options) {
  words.insert(words.begin(), options.before.begin(), options.before.end());
  std::vector<std::string> environment = merged_environment(options.environment);
  std::vector<char*> argv = pointers(words);
  std::vector<char*> envp = pointers(environment);
  const Channel out(options.output), err(options.errors);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    become(argv.data(), envp.data(), options.folder.empty() ? nullptr : options.folder.c_str(), options.most_file_bytes,
           out.ends[1], err.ends[1]);
  }
  close(out.ends[1]);
  close(err.ends[1]);
  Finished finished;
  bool interrupted = false;
  struct pollfd waiting[] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
  std::string* const into[] = {&finished.out, &finished.err};
  for (int open_ends = 2; open_ends > 0;) {
    if (poll(waiting, 2, patience_ms) <= 0) {
      end_child(child);
      finished.err += "\n[ended by its test: it wrote nothing for " + std::to_string(patience_ms / 1000) + " s]\n";
      break;
    }
    for (int end = 0; end < 2; ++end) {
      if (waiting[end].fd < 0 || waiting[end].revents == 0) continue;
      char bytes[4096];
      const ssize_t got = read(waiting[end].fd, bytes, sizeof bytes);
      if (got > 0) {
        into[end]->append(bytes, static_cast<std::size_t>(got));
      } else {
        waiting[end].fd = -1;
        --open_ends;
      }
    }
    if (!interrupted && !options.interrupt_when.empty() &&
        finished.err.find(options.interrupt_when) != std::string::npos) {
      kill(child, options.interrupt_by);
      interrupted = true;
    }
  }
  close(out.ends[0]);
  close(err.ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return finished;
}

Finished run_kiln(std::vector<std::string> words, const ProcessOptions& options) {
  words.insert(words.begin(), std::string(KILN_BINARY_DIR) + "/bin/kiln");
  return run_process(std::move(words), options);
}

Interrupted run_interrupted(const std::vector<std::string>& words, const ProcessOptions& options,
                            const TemporaryFolder& folder) {
  Interrupted ended;
  for (int attempt = 1; attempt <= 5; ++attempt) {
    ended.cache = folder / ("cache " + std::to_string(attempt));
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--cache-dir", ended.cache});
    ended.finished = run_kiln(std::move(all), options);
    if (ended.finished.err.find("did not stop in time") == std::string::npos) break;
  }
  return ended;
}

}  // namespace kiln::test

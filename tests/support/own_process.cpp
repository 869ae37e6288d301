#include "support/own_process.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace kiln::support {

ChildResult run_child(const std::string& tag, const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const std::string name(entry.substr(0, entry.find('=')));
    if (!variables.contains(name)) environment.emplace_back(entry);
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) environment.push_back(name + "=" + value);
  }
  std::vector<char*> pointers;
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string argument = tag;
  char* const arguments[] = {program.data(), argument.data(), nullptr};

  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int started = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ChildResult result;
  char part[4096];
  for (ssize_t got = 0; started == 0 && (got = read(ends[0], part, sizeof part)) > 0;) {
    result.output.append(part, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (started == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace kiln::support

// `kiln simulate -- COMMAND…`: another program, with the simulated AMD device present.
#include "console.hpp"
#include "exit_status.hpp"
#include "report/human.hpp"
#include "verbs/verbs.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace kiln::host {
namespace {

constexpr std::array<std::string_view, 2> targets{"gfx1100", "gfx1030"};
constexpr std::string_view library = "libkiln_amdgpu_sim.so";

// Beside the libraries that this command was installed with.
std::filesystem::path simulator_library() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / "lib" / library;
}

// In a list that colons part; what the user has set stays behind it.
void put_first(const char* list, std::string entry) {
  if (const char* others = std::getenv(list); others != nullptr && *others != '\0') entry += ":" + std::string(others);
  setenv(list, entry.c_str(), 1);
}

}  // namespace

int simulate(const Options& options) {
  const std::string target = options.target.empty() ? std::string(targets.front()) : options.target;
  if (std::ranges::find(targets, target) == targets.end()) {
    complain("--target " + visible(target) + ": no such simulated device: expected gfx1100 or gfx1030");
    return exit_usage;
  }
  const std::filesystem::path shim = simulator_library();
  if (shim.empty() || access(shim.c_str(), R_OK) != 0) {
    complain("the simulator " + visible(shim.string()) + ": cannot be read: " + std::strerror(errno));
    return exit_no_device;
  }
  const std::string folder = shim.parent_path().string();
  if (folder.find_first_of(":;$") != std::string::npos) {
    complain("the simulator " + visible(shim.string()) +
             ": cannot be preloaded from a folder with ':', ';' or '$' in its name");
    return exit_no_device;
  }
  // By name and search path: names in LD_PRELOAD are parted by blanks too, which folders may have.
  put_first("LD_LIBRARY_PATH", folder);
  put_first("LD_PRELOAD", std::string(library));
  setenv("KILN_SIM_TARGET", target.c_str(), 1);
  std::vector<char*> words;
  std::vector<std::string> command = options.subjects;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  // The command starts with the signals as a shell gives them.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execvp(words.front(), words.data());
  complain("command " + visible(command.front()) + ": cannot be started: " + std::strerror(errno));
  return exit_usage;
}

}  // namespace kiln::host

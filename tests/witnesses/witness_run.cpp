#include "witnesses/witness_run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace kiln::witness {
namespace {

using Clock = std::chrono::steady_clock;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const WitnessSetup& setup) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (!setup.environment.contains(std::string(entry.substr(0, entry.find('='))))) environment.emplace_back(entry);
  }
  for (const auto& [name, value] : setup.environment) {
    if (!value.empty()) environment.push_back(name + "=" + value);
  }
  return environment;
}

// Its exit status, or what ended it otherwise: "signal 11".
std::string run_child(const WitnessSetup& setup, const std::vector<std::string>& names, Clock::time_point deadline) {
  std::vector<std::string> words{setup.program.string()};
  words.insert(words.end(), setup.arguments.begin(), setup.arguments.end());
  words.insert(words.end(), {"--out", setup.out.string()});
  words.insert(words.end(), names.begin(), names.end());
  std::vector<std::string> environment = environment_of(setup);
  const std::string said = (setup.out / "said.txt").string();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int started = posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers_to(words).data(),
                                  pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) throw std::runtime_error(words[0] + " does not start");

  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "the time limit";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status));
}

Outcome outcome_of(const std::string& word) {
  if (word == "ok") return Outcome::ok;
  return word == "absent" ? Outcome::absent : Outcome::failed;
}

void read_status(WitnessRun& run) {
  std::ifstream file(run.out / "status.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name, word, text;
    std::getline(fields, name, '\t');
    std::getline(fields, word, '\t');
    std::getline(fields, text);
    run.cases[name] = {outcome_of(word), word == "begun" ? "begun" : text};
  }
}

std::string tail(const std::string& text) { return text.size() > 1500 ? text.substr(text.size() - 1500) : text; }

}  // namespace

Bytes WitnessRun::read(const std::string& shader, const std::string& buffer) const {
  const std::filesystem::path path = out / (shader + "." + buffer + ".bin");
  if (!std::filesystem::exists(path)) throw std::runtime_error(path.string() + " is missing");
  const std::string text = file_text(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

WitnessRun run_witness(const WitnessSetup& setup, const std::vector<ShaderCase>& cases) {
  WitnessRun run;
  run.out = setup.out;
  std::filesystem::remove_all(setup.out);
  std::filesystem::create_directories(setup.out);
  const Clock::time_point deadline = Clock::now() + setup.limit;
  for (;;) {
    std::vector<std::string> left;
    for (const ShaderCase& shader : cases) {
      if (!run.cases.contains(shader.name)) left.push_back(shader.name);
    }
    if (left.empty()) break;
    const std::size_t before = run.cases.size();
    const std::string end = run_child(setup, left, deadline);
    const std::string said = tail(file_text(setup.out / "said.txt"));
    run.renderer = file_text(setup.out / "renderer.txt");
    read_status(run);
    for (auto& [name, result] : run.cases) {
      if (result.text == "begun") result = {Outcome::failed, "the runner ended here by " + end + ": " + said};
    }
    if (run.cases.size() == before) {  // it did not even begin
      run.reason = "ended by " + end + ": " + said;
      if (before == 0) run.renderer.clear();
      break;
    }
  }
  return run;
}

}  // namespace kiln::witness

#include "amdgpu_pm4/toolchain/child_clang.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "amdgpu_pm4/toolchain/child_process.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr int refused = 1;  // the exit code of a clang that has said what is wrong with the text

std::string with_words(std::string message, const std::string& said) {
  return said.empty() ? message : message + "; it said: " + said;
}

}  // namespace

Result<Compiled> ChildClang::compile(const OpenClText& text, Target target, Deadline deadline) noexcept {
  if (target == Target::invalid) return invalid_argument("no target, expected one of " + target_names());
  ChildRequest request;
  request.program = compiler_.path;
  request.arguments = arguments_for(text, target);
  request.arguments.insert(request.arguments.end(), {"-o", "-", "-"});
  request.input = std::as_bytes(std::span(text.text));
  request.deadline = deadline;
  auto child = run_child(request);
  if (!child) return child.error();
  if (child->signal != 0) {
    const char* const name = sigdescr_np(child->signal);
    return unavailable(with_words(compiler_.path + " was ended by signal " + std::to_string(child->signal) + " (" +
                                      std::string(name == nullptr ? "unknown" : name) + ")",
                                  child->said));
  }
  if (child->exit_code == refused) {
    return invalid_argument(child->said.empty() ? compiler_.path + " refuses the text without a word" : child->said);
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
  if (wanted.empty()) return invalid_argument("no compiler is named");
  if (wanted.find('/') != std::string::npos) {
    if (is_program(wanted)) return stamp_of(wanted);
    return unavailable("the OpenCL C compiler " + wanted + " is not there, or no program");
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
  return unavailable("no OpenCL C compiler: '" + wanted + "' was looked for in " +
                     (looked.empty() ? "no folder, for PATH names none" : looked));
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
    return unavailable(compiler.path + " --version answers '" + line.substr(0, 200) + "', expected a clang version");
  }
  if (notes != nullptr) notes->keep(name, std::as_bytes(std::span(line)));
  return line;
}

}  // namespace kiln::amdgpu_pm4

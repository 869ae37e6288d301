#include "amdgpu_pm4/toolchain/child/child_clang.hpp"

#include <cstring>
#include <span>

#include "amdgpu_pm4/toolchain/child/child_process.hpp"

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

}  // namespace kiln::amdgpu_pm4

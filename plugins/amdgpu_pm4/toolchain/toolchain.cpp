#include "amdgpu_pm4/toolchain/toolchain.hpp"

#include <kiln/digest.hpp>

#include "amdgpu_pm4/code_object/read_code_object.hpp"
#include "amdgpu_pm4/toolchain/clang_arguments.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"
#include "amdgpu_pm4/toolchain/prelude/prelude.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Status check_entry(const CodeObject& code, const std::string& entry) {
  if (find_kernel(code, entry) != nullptr || (entry == "main" && code.kernels.size() == 1)) return {};
  std::string there;
  for (const KernelCode& kernel : code.kernels) there += (there.empty() ? "" : ", ") + kernel.name;
  return invalid_argument("entry '" + entry + "' is no kernel of the text, which has: " + there);
}

}  // namespace

Toolchain::~Toolchain() = default;

std::string identity_of(const Toolchain& toolchain) {
  KeyEncoder recipe;
  recipe.field("prelude", prelude());
  // The target is part of the device's identity: any one stands for the arguments.
  for (const std::string& argument : clang_arguments(Target::gfx1100)) recipe.field("argument", argument);
  recipe.field("library", toolchain.library().identity);
  return toolchain.version() + ", recipe " + recipe.digest().hex().substr(0, 16);
}

std::vector<std::string> Toolchain::arguments_for(const OpenClText& text, Target target) const {
  return text.calls_library && library_.present() ? clang_arguments(target, library_) : clang_arguments(target);
}

Result<Compiled> compile_text(Toolchain& toolchain, const OpenClText& text, Target target, Deadline deadline) noexcept {
  auto compiled = toolchain.compile(text, target, deadline);
  if (compiled || !text.calls_library || toolchain.library().present()) return compiled;
  Status status = compiled.error();
  if (status.code == StatusCode::invalid_argument) {
    status.message += "OpenCL C's function library is missing (" + toolchain.library().why_not +
                      "): functions of it are undeclared. Install Debian's rocm-device-libs, or set "
                      "[plugin.amdgpu_pm4] device_library";
  }
  return status;
}

Result<Compiled> compile_kernel(Toolchain& toolchain, const KernelSource& source, std::string_view name, Target target,
                                Deadline deadline) noexcept {
  const auto text = assemble(source, name);
  if (!text) return text.error();
  auto compiled = compile_text(toolchain, *text, target, deadline);
  if (!compiled) return compiled.error();
  const auto code = read_code_object(compiled->object);
  if (!code) return code.error().within("what the compiler wrote for " + std::string(name));
  if (code->target != target) {
    return internal_error("the compiler wrote code for " + std::string(to_string(code->target)) + ", asked for " +
                          std::string(to_string(target)));
  }
  if (Status status = check_entry(*code, source.entry); !status.ok()) return status;
  return compiled;
}

}  // namespace kiln::amdgpu_pm4

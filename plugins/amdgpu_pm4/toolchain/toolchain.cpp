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
  return toolchain.version() + ", recipe " + recipe.digest().hex().substr(0, 16);
}

Result<Compiled> compile_kernel(Toolchain& toolchain, const KernelSource& source, std::string_view name, Target target,
                                Deadline deadline) noexcept {
  const auto text = assemble(source, name);
  if (!text) return text.error();
  auto compiled = toolchain.compile(*text, target, deadline);
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

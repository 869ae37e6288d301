#include "amdgpu_pm4/toolchain/ahead_compiler.hpp"

#include <algorithm>

#include "amdgpu_pm4/code_object/describe.hpp"
#include "amdgpu_pm4/code_object/read_code_object.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {

std::vector<std::string> ClangAheadCompiler::targets() const {
  std::vector<std::string> names;
  const std::string all = target_names();
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(", ", at), all.size());
    names.push_back(all.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

Result<AheadProgram> ClangAheadCompiler::compile(const AheadSource& source) noexcept {
  const Target target = target_named(source.target);
  if (target == Target::invalid) {
    return invalid_argument("target '" + source.target + "': expected one of " + target_names());
  }
  if (toolchain_ == nullptr) {
    auto toolchain = open_toolchain(settings_, nullptr, log_);
    if (!toolchain) return toolchain.error();
    toolchain_ = std::move(*toolchain);
  }
  KernelSource kernel;
  kernel.dialect = Dialect::opencl_c;
  kernel.text = source.text;
  kernel.files = {source.file};
  kernel.files.insert(kernel.files.end(), source.includes.begin(), source.includes.end());
  const auto text = assemble(kernel, source.file);
  if (!text) return text.error();
  auto compiled = compile_text(*toolchain_, *text, target, Deadline::after(settings_.deadline));
  if (!compiled) return compiled.error();
  if (!compiled->said.empty()) log_.write(LogLevel::warning, "amdgpu_pm4", compiled->said);
  const auto code = read_code_object(compiled->object);
  if (!code) return code.error().within(source.file);
  AheadProgram program;
  program.binary = {"amdgpu:" + source.target + ":code-object", std::move(compiled->object)};
  program.extension = "co";
  for (const KernelCode& each : code->kernels) program.kernels.push_back({each.name, facts_of(*code, each)});
  return program;
}

Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(const OfflineContext& context) {
  auto settings = read_toolchain_settings(context.settings);
  if (!settings) return settings.error();
  return std::unique_ptr<AheadCompiler>(std::make_unique<ClangAheadCompiler>(std::move(*settings), context.log));
}

}  // namespace kiln::amdgpu_pm4

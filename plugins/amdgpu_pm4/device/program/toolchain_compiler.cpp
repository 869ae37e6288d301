#include "amdgpu_pm4/device/program/toolchain_compiler.hpp"

#include <utility>

namespace kiln::amdgpu_pm4 {
Compiler compiler_of(Result<std::shared_ptr<Toolchain>> toolchain, std::chrono::seconds patience) {
  if (!toolchain) {
    return {"none", [why = toolchain.error()](const KernelSource&, Target) -> Result<std::vector<std::byte>> {
              return unavailable("no compiler: " + why.message);
            }};
  }
  const std::string identity = identity_of(**toolchain);
  return {identity,
          [shared = std::move(toolchain).value(), patience](const KernelSource& source,
                                                            Target target) -> Result<std::vector<std::byte>> {
            auto compiled = compile_kernel(*shared, source, source.entry, target, Deadline::after(patience));
            if (!compiled) return compiled.error();
            return std::move(compiled->object);
          }};
}

}  // namespace kiln::amdgpu_pm4

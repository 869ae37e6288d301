#include "amdgpu_pm4/toolchain/clang_arguments.hpp"

namespace kiln::amdgpu_pm4 {

std::vector<std::string> clang_arguments(Target target) {
  return {
      "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + std::string(to_string(target)), "-O3",
      "-mcode-object-version=5", "-c",
      // A product and the sum that it goes into, within one expression, are one fused operation; across statements
      // nothing is. So "sum += x * w" rounds once on every target and at every level of optimization, and a reference
      // that adds up by fma() in the text's order agrees in every bit. Divisions and roots are rounded correctly too.
      "-ffp-contract=on", "-cl-fp32-correctly-rounded-divide-sqrt",
      // Grids are of whole workgroups: nothing is spent on a partial last one.
      "-cl-uniform-work-group-size",
      // Arguments keep their names, for messages.
      "-cl-kernel-arg-info",
      // Nothing of the machine takes part: device libraries, headers, configuration files. A crash leaves no files.
      "-nogpulib", "-nostdinc", "-cl-no-stdinc", "--no-default-config", "-fno-crash-diagnostics",
      "-fno-color-diagnostics", "-fdebug-compilation-dir=."};
}

std::vector<std::string> clang_arguments(Target target, const DeviceLibrary& library) {
  std::vector<std::string> arguments = clang_arguments(target);
  // The compiler itself declares OpenCL C's functions, each where the text first names it.
  arguments.insert(arguments.end(), {"-Xclang", "-fdeclare-opencl-builtins"});
  for (std::string& file : library.files(target)) {
    arguments.insert(arguments.end(), {"-Xclang", "-mlink-builtin-bitcode", "-Xclang", std::move(file)});
  }
  return arguments;
}

}  // namespace kiln::amdgpu_pm4

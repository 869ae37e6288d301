#include "amdgpu_pm4/code_object/describe.hpp"

#include "amdgpu_pm4/code_object/dispatch_needs.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::string workgroup_text(const KernelCode& kernel) {
  const auto& size = kernel.required_workgroup;
  if (size[0] == 0) return "up to " + std::to_string(kernel.max_workgroup_lanes) + " lanes";
  return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]) + " lanes";
}

std::string user_sgpr_text(const KernelCode& kernel) {
  std::string text = std::to_string(kernel.user_sgprs);
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    text += ", " + std::string(to_string(slot.value)) + " in s" + std::to_string(slot.first);
    if (slot.count > 1) text += " to s" + std::to_string(slot.first + slot.count - 1);
  }
  return text;
}

std::string argument_text(const KernelCode& kernel) {
  std::string text;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!text.empty()) text += ", ";
    text += argument.value_kind;
    if (!argument.name.empty()) text += " " + argument.name;
    text += " of " + std::to_string(argument.size) + " at " + std::to_string(argument.offset);
  }
  return text.empty() ? "none" : text;
}

std::string dispatch_text(const CodeObject& object, const KernelCode& kernel) {
  if (const Status status = check_dispatch(object, kernel); !status.ok()) return "refused: " + status.message;
  return kernel.required_workgroup[0] != 0 ? "offered" : "offered where the source tells a workgroup";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const CodeObject& object, const KernelCode& kernel) {
  return {{"wave", std::to_string(kernel.wave_lanes) + " lanes"},
          {"workgroup", workgroup_text(kernel)},
          {"SGPRs", std::to_string(kernel.sgprs)},
          {"VGPRs", std::to_string(kernel.vgprs)},
          {"LDS", std::to_string(kernel.lds_bytes) + " bytes"},
          {"scratch", std::to_string(kernel.scratch_bytes) + " bytes a lane"},
          {"kernarg", std::to_string(kernel.kernarg_bytes) + " bytes"},
          {"user SGPRs", user_sgpr_text(kernel)},
          {"arguments", argument_text(kernel)},
          {"dispatch", dispatch_text(object, kernel)}};
}

std::string describe(const CodeObject& object) {
  std::string text = "code object version " + std::to_string(object.version) + " for " +
                     std::string(to_string(object.target)) + ", " + std::to_string(object.image.size()) +
                     " bytes in memory, " + std::to_string(object.kernels.size()) +
                     (object.kernels.size() == 1 ? " kernel\n" : " kernels\n");
  for (const KernelCode& kernel : object.kernels) {
    text += kernel.name + "\n";
    for (const auto& [what, value] : facts_of(object, kernel)) text += "  " + what + ": " + value + "\n";
  }
  return text;
}

}  // namespace kiln::amdgpu_pm4

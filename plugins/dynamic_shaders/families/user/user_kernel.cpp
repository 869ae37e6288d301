#include "dynamic_shaders/families/user/user_kernel.hpp"

#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/user/glsl/tokens.hpp"
#include "dynamic_shaders/families/user/long_loops.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

bool is_identifier(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  return tokens.size() == 1 && is_name(text) && tokens[0].text == text;
}

// "#version" after nothing but blanks, "#" and "version" may stand apart.
bool begins_with_version(Tokens tokens) {
  while (!tokens.empty() && tokens[0].text == "\n") tokens = tokens.subspan(1);
  return tokens.size() > 1 && tokens[0].text == "#" && tokens[1].text == "version";
}

bool has(Tokens tokens, std::string_view part_of_word) {
  return std::ranges::any_of(
      tokens, [part_of_word](const Token& token) { return token.text.find(part_of_word) != std::string_view::npos; });
}

// Names that the language keeps for itself.
bool is_reserved(Dialect dialect, std::string_view name) {
  if (dialect == Dialect::opencl_c) return name.starts_with("__");
  return name.starts_with("gl_") || name.starts_with("GL_") || name.find("__") != std::string_view::npos;
}

Status check_constant(Dialect dialect, const Define& constant) {
  if (!is_identifier(constant.name) || is_reserved(dialect, constant.name)) {
    return invalid_argument("constant '" + constant.name +
                            "': expected a name of letters, digits and single underscores that " +
                            (dialect == Dialect::glsl ? "GLSL" : "OpenCL C") + " has not reserved");
  }
  if (constant.text.find_first_of("\n\r\\") != std::string::npos) {
    return invalid_argument("constant " + constant.name + ": its text must be one line without a backslash");
  }
  return {};
}

Status check_glsl(const UserKernelSpec& spec) {
  const std::vector<Token> tokens = tokens_of(spec.text);
  if (!begins_with_version(tokens)) {
    return invalid_argument("does not begin with a #version line, expected \"#version 430\" or later");
  }
  if (!has(tokens, "local_size_")) {
    return invalid_argument("declares no local size, expected \"layout(local_size_x = ...) in;\"");
  }
  if (spec.entry != "main") return invalid_argument("entry '" + spec.entry + "', expected 'main'");
  return {};
}

Status check_opencl(const UserKernelSpec& spec) {
  if (!has(tokens_of(spec.text), "reqd_work_group_size")) {
    return invalid_argument(
        "declares no workgroup size, expected \"__attribute__((reqd_work_group_size(64, 1, 1)))\" at its kernel");
  }
  if (!is_identifier(spec.entry)) {
    return invalid_argument("entry '" + spec.entry + "', expected the name of a kernel function");
  }
  return {};
}

Status check_text(const UserKernelSpec& spec) {
  if (Status status = spec.dialect == Dialect::glsl ? check_glsl(spec) : check_opencl(spec); !status.ok())
    return status;
  for (const Define& constant : spec.constants) {
    if (Status status = check_constant(spec.dialect, constant); !status.ok()) return status;
  }
  return {};
}

Status check_grid(const UserKernelSpec& spec, const DeviceInfo& device) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (spec.grid[axis] <= device.max_grid[axis]) continue;
    return unsupported("grid[" + std::to_string(axis) + "] = " + std::to_string(spec.grid[axis]) + ", device " +
                       device.id + " takes " + std::to_string(device.max_grid[axis]));
  }
  return {};
}

Status check(const UserKernelSpec& spec, const DeviceInfo& device, const KernelPlan& plan) {
  if (std::ranges::find(device.dialects, spec.dialect) == device.dialects.end()) {
    std::string taken;
    for (const Dialect dialect : device.dialects)
      taken += (taken.empty() ? "" : " or ") + std::string(to_string(dialect));
    return unsupported("written in " + std::string(to_string(spec.dialect)) + ", expected " + taken + " for device " +
                       device.id);
  }
  if (Status status = check_text(spec); !status.ok()) return status;
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  return check_grid(spec, device);
}

}  // namespace

Result<KernelPlan> user_kernel(const UserKernelSpec& kernel, std::string_view variant, const DeviceInfo& device) {
  if (Status status = check_parameters(kernel); !status.ok()) return status.within("kernel " + kernel.path);
  auto one = settled(kernel, variant);
  if (!one) return std::move(one).error();
  const UserKernelSpec& spec = *one;
  KernelPlan plan;
  plan.variant = variant;
  plan.tensors = tensors_of(spec);
  if (Status status = check(spec, device, plan); !status.ok()) return status.within("kernel " + spec.path);
  Pass& pass = plan.passes.emplace_back();
  pass.source.dialect = spec.dialect;
  pass.source.text = spec.text;
  pass.source.entry = spec.entry;
  pass.source.constants = spec.constants;
  pass.grid = spec.grid;
  // By kind, not by name: of the rasterizers in software none was met that has no such limit.
  if (device.kind == DeviceKind::software && spec.dialect == Dialect::glsl) {
    for (const std::string& sentence : long_loops(spec)) plan.notes.push_back("kernel " + spec.path + ", " + sentence);
  }
  for (std::size_t i = 0; i < spec.bindings.size(); ++i) {
    pass.source.bindings.push_back(spec.bindings[i].access);
    pass.bindings.push_back({BindingSource::tensor, static_cast<std::uint32_t>(i)});
  }
  return plan;
}

}  // namespace kiln::dynamic_shaders

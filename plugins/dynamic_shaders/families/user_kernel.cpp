#include "dynamic_shaders/families/user_kernel.hpp"

#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

void erase_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) text.erase(at, what.size());
}

// The text with a blank for each comment, its continued lines joined.
std::string without_comments(std::string text) {
  for (const std::string_view continuation : {"\\\r\n", "\\\n", "\\\r"}) erase_all(text, continuation);
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::size_t end = 1;
    if (rest.starts_with("//")) {
      end = rest.find_first_of("\r\n");
      plain += ' ';
    } else if (rest.starts_with("/*")) {
      end = rest.find("*/", 2);
      end += end == std::string_view::npos ? 0 : 2;
      plain += ' ';
    } else {
      end = rest[0] == '"' ? std::min(rest.find_first_of("\"\r\n", 1), rest.size() - 1) + 1
                           : rest.find_first_of("/\"", 1);
      plain += rest.substr(0, end);
    }
    at += std::min(end, rest.size());
  }
  return plain;
}

// Behind blanks only; blanks may stand between "#" and "version".
bool begins_with_version(std::string_view plain) {
  const std::size_t sign = plain.find_first_not_of(" \t\v\f\r\n");
  if (sign == std::string_view::npos || plain[sign] != '#') return false;
  const std::size_t word = plain.find_first_not_of(" \t", sign + 1);
  return word != std::string_view::npos && plain.substr(word).starts_with("version");
}

// Names that the language keeps for itself.
bool is_reserved(Dialect dialect, std::string_view name) {
  if (dialect == Dialect::opencl_c) return name.starts_with("__");
  return name.starts_with("gl_") || name.starts_with("GL_") || name.find("__") != std::string_view::npos;
}

Status check_constant(Dialect dialect, const Define& constant) {
  if (!is_define_name(constant.name) || is_reserved(dialect, constant.name)) {
    return invalid_argument("constant '" + constant.name +
                            "': expected a name of letters, digits and underscores that is not reserved in " +
                            (dialect == Dialect::glsl ? "GLSL" : "OpenCL C"));
  }
  if (constant.text.find_first_of("\n\r\\") != std::string::npos) {
    return invalid_argument("constant " + constant.name + ": value must be one line without a backslash");
  }
  return {};
}

// Whether the text undefines a macro and then defines it, which no GLSL compiler refuses.
bool defines_again(std::string_view plain, std::string_view name) {
  bool undefined = false;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find_first_of("\r\n", at), plain.size());
    std::string_view line = plain.substr(at, end - at);
    at = end + 1;
    const auto word = [&line] {
      line.remove_prefix(std::min(line.find_first_not_of(" \t\v\f"), line.size()));
      const auto is_part = [](char c) { return is_define_name(std::string("_") + c); };
      const auto last = std::ranges::find_if_not(line, is_part);
      const std::string_view found = line.substr(0, static_cast<std::size_t>(last - line.begin()));
      line.remove_prefix(found.size());
      return found;
    };
    word();
    if (!line.starts_with("#")) continue;
    line.remove_prefix(1);
    const std::string_view directive = word();
    if ((directive != "undef" && directive != "define") || word() != name) continue;
    if (directive == "define" && undefined) return true;
    undefined = undefined || directive == "undef";
  }
  return false;
}

// What a constant is in the text. In GLSL neither "true" nor "1" serves both `#if NAME` and `if (NAME)`.
std::string text_of(const Define& constant) {
  if (constant.text == "true") return "(1 == 1)";
  return constant.text == "false" ? "(1 == 0)" : constant.text;
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

// On a driver that needs it: a macro that takes the place of barrier().
void replace_barrier(KernelSource& source, const DeviceInfo& device) {
  const auto has = [](std::string_view text) { return text.find("barrier") != std::string_view::npos; };
  if (device.glsl_barrier.empty() || source.dialect != Dialect::glsl) return;
  if (!has(source.text) && std::ranges::none_of(source.constants, has, &Define::text)) return;
  source.constants.push_back({"barrier()", device.glsl_barrier});
}

// Where the number of the #version line stands; npos: in no place that is known here.
std::size_t version_number(std::string_view text) {
  constexpr std::string_view version = "version";
  for (std::size_t word = text.find(version); word != std::string_view::npos; word = text.find(version, word + 1)) {
    std::string until = without_comments(std::string(text.substr(0, word + version.size())));
    std::erase_if(until, [](char c) { return std::string_view(" \t\v\f\r\n").find(c) != std::string_view::npos; });
    if (until == "#version") return text.find_first_not_of(" \t", word + version.size());
    if (!until.empty() && until != "#") break;  // a word of the text, and no #version line; else one of a comment
  }
  return std::string_view::npos;
}

// GLSL 4.60 adds little to 4.50, and the compiler refuses what it adds by name. So a text that asks for 4.60 runs on a
// device with 4.50, and the report says so.
void lower_version(KernelSource& source, const DeviceInfo& device, KernelPlan& plan) {
  const auto glsl = std::ranges::find(device.driver_identity, "glsl", &std::pair<std::string, std::string>::first);
  if (source.dialect != Dialect::glsl || glsl == device.driver_identity.end() || !glsl->second.starts_with("4.50"))
    return;
  const std::size_t at = version_number(source.text);
  if (at == std::string_view::npos || source.text.compare(at, 3, "460") != 0) return;
  source.text.replace(at, 3, "450");
  plan.notes.push_back(device.id + ": supports GLSL 4.50, so the source with #version 460 was compiled as 450");
}

// Whether GLSL without comments has "local_size_x = ..." first or behind a comma in brackets, as in layout(), which a
// macro may write, or the name in a directive. Anywhere else it is a variable's.
bool declares_local_size(std::string_view plain) {
  constexpr std::string_view size = "local_size_", blanks = " \t\v\f\r\n";
  const auto is_part = [](char c) { return is_define_name(std::string("_") + c); };
  for (std::size_t at = plain.find(size); at != std::string_view::npos; at = plain.find(size, at + 1)) {
    const std::string_view before = plain.substr(0, at);
    const std::string_view line = before.substr(before.find_last_of("\r\n") + 1);  // npos + 1 is 0
    const std::size_t sign = line.find_first_not_of(blanks);
    if (sign != std::string_view::npos && line[sign] == '#') return true;
    const std::string_view statement = before.substr(before.find_last_of(";{}") + 1);
    const std::size_t last = statement.find_last_not_of(blanks);
    const bool begins = last != std::string_view::npos && (statement[last] == '(' || statement[last] == ',');
    int closed = 0;  // -1: behind a bracket that is open
    for (std::size_t i = statement.size(); i-- != 0 && closed >= 0;) {
      closed += statement[i] == ')' ? 1 : statement[i] == '(' ? -1 : 0;
    }
    if (!begins || closed >= 0) continue;
    std::string_view rest = plain.substr(at);
    rest.remove_prefix(static_cast<std::size_t>(std::ranges::find_if_not(rest, is_part) - rest.begin()));
    rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
    if (rest.starts_with('=') && !rest.starts_with("==")) return true;
  }
  return false;
}

// Where the first declaration stands: behind comments and directives, and outside #if. There #extension is behind, and
// gl_WorkGroupSize not yet used.
std::size_t first_declaration(std::string_view text) {
  // A comment that begins in the line may end in another.
  const auto end_of_line = [text](std::size_t at) {
    bool to_the_end = false;  // in a comment of that kind
    for (; at < text.size(); ++at) {
      if (text[at] == '\n' && !text.substr(0, at).ends_with('\\')) return at;
      const std::string_view rest = text.substr(at);
      to_the_end = to_the_end || rest.starts_with("//");
      if (!to_the_end && rest.starts_with("/*")) at = std::min(text.find("*/", at + 2), text.size() - 1) + 1;
    }
    return text.size();
  };
  int depth = 0;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\v\f\r\n", at)) < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
      continue;
    }
    if (rest[0] == '#') {
      const std::size_t word = rest.find_first_not_of(" \t", 1);
      const std::string_view directive = rest.substr(std::min(word, rest.size()));
      depth += directive.starts_with("if") ? 1 : directive.starts_with("endif") ? -1 : 0;
    } else if (depth == 0 && !rest.starts_with("//")) {
      return at;
    }
    at = end_of_line(at);
  }
  return text.size();
}

// A text without a local size gets that of the job.
void declare_workgroup(KernelSource& source) {
  const auto& lanes = source.workgroup;
  if (source.dialect != Dialect::glsl || lanes[0] == 0 || declares_local_size(without_comments(source.text))) return;
  source.text.insert(first_declaration(source.text), "layout(local_size_x = " + std::to_string(lanes[0]) +
                                                         ", local_size_y = " + std::to_string(lanes[1]) +
                                                         ", local_size_z = " + std::to_string(lanes[2]) + ") in; ");
}

Status check_glsl(const UserKernelSpec& spec) {
  const std::string plain = without_comments(std::string(without_mark(spec.text)));
  if (!begins_with_version(plain)) {
    return invalid_argument("does not begin with a #version line, expected \"#version 430\" or later");
  }
  if (spec.workgroup[0] == 0 && !declares_local_size(plain)) {
    return invalid_argument(
        "declares no local size, expected workgroup = [64, 1, 1] in the job or \"layout(local_size_x = 64) in;\" in "
        "the text");
  }
  if (spec.entry != "main") return invalid_argument("entry '" + spec.entry + "', expected 'main'");
  for (const Define& constant : spec.constants) {
    if (!defines_again(plain, constant.name)) continue;
    return invalid_argument("constant " + constant.name + ": the text has #undef " + constant.name + " and defines " +
                            constant.name +
                            " again, so the value in the job has no effect. Remove the #undef or the constant");
  }
  return {};
}

Status check_opencl(const UserKernelSpec& spec) {
  if (spec.workgroup[0] == 0 && without_comments(spec.text).find("reqd_work_group_size") == std::string::npos) {
    return invalid_argument(
        "declares no workgroup size, expected workgroup = [64, 1, 1] in the job or "
        "\"__attribute__((reqd_work_group_size(64, 1, 1)))\" at the kernel");
  }
  if (!is_define_name(spec.entry)) {
    return invalid_argument("entry '" + spec.entry + "', expected the name of a kernel function");
  }
  return {};
}

Status check_text(const UserKernelSpec& spec) {
  if (spec.dialect == Dialect::code_object) return {};  // checked by the device
  if (const std::size_t nul = spec.text.find('\0'); nul != std::string::npos) {
    return invalid_argument("has a NUL byte at offset " + std::to_string(nul) + ", expected text in UTF-8");
  }
  if (Status status = spec.dialect == Dialect::glsl ? check_glsl(spec) : check_opencl(spec); !status.ok())
    return status;
  for (const Define& constant : spec.constants) {
    if (Status status = check_constant(spec.dialect, constant); !status.ok()) return status;
  }
  return {};
}

Status check_grid(const UserKernelSpec& spec, const DeviceInfo& device) {
  const bool read = std::ranges::count(spec.bindings, BindingKind::grid, &UserKernelSpec::Binding::kind) != 0;
  if (read && !device.indirect_grids) {
    return unsupported("grid is a tensor, expected numbers for device " + device.id);
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (spec.grid[axis] <= device.max_grid[axis]) continue;
    return unsupported("grid[" + std::to_string(axis) + "] = " + std::to_string(spec.grid[axis]) + ", device " +
                       device.id + " takes at most " + std::to_string(device.max_grid[axis]));
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
  std::vector<TensorDecl> buffers;  // values, images and uniforms take no binding of a buffer
  std::size_t tensor = 0;
  for (const UserKernelSpec::Binding& binding : spec.bindings) {
    if (!has_tensor(binding.kind)) continue;
    const TensorDecl& declared = plan.tensors[tensor++];
    if (binding.kind != BindingKind::image && binding.kind != BindingKind::sampler) buffers.push_back(declared);
  }
  if (Status status = check_limits(buffers, device); !status.ok()) return status;
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
  pass.source.text = spec.dialect == Dialect::code_object ? std::string_view(spec.text) : without_mark(spec.text);
  pass.source.entry = spec.entry;
  pass.source.workgroup = spec.workgroup;
  for (const Define& constant : spec.constants) pass.source.constants.push_back({constant.name, text_of(constant)});
  lower_version(pass.source, device, plan);
  declare_workgroup(pass.source);
  replace_barrier(pass.source, device);
  pass.source.files = {spec.path};
  std::ranges::copy(spec.includes, std::back_inserter(pass.source.files));
  pass.grid = spec.grid;
  const auto bind = [&](Access access) {
    pass.bindings.push_back({BindingSource::tensor, static_cast<std::uint32_t>(pass.bindings.size())});
    pass.source.bindings.push_back(access);
  };
  for (const UserKernelSpec::Binding& binding : spec.bindings) {
    if (!has_tensor(binding.kind)) continue;
    const bool texels = binding.kind == BindingKind::image || binding.kind == BindingKind::sampler;
    if (binding.kind == BindingKind::grid) {
      pass.indirect =
          IndirectGrid{static_cast<std::uint32_t>(pass.bindings.size()), binding.first * sizeof(std::uint32_t)};
    }
    pass.source.views.push_back(texels ? View::pixels : View::storage);
    bind(binding.access);
  }
  if (!spec.uniforms.empty()) {
    pass.source.views.push_back(View::uniforms);
    bind(Access::read);
  }
  return plan;
}

}  // namespace kiln::dynamic_shaders

// User kernels as an operation: checks, tensors, canonical text.
#include "contract/operations.hpp"
#include "contract/resource_checks.hpp"

#include <kiln/digest.hpp>
#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace kiln {
namespace {

std::string place_in_list(std::size_t position) { return "bindings[" + std::to_string(position) + "]"; }

bool is_buffer_access(Access access) {
  return access == Access::read || access == Access::write || access == Access::read_write;
}

Status check_grid(const UserKernelSpec& spec, std::size_t i) {
  const UserKernelSpec::Binding& grid = spec.bindings[i];
  const auto wrong = [&](const std::string& what) {
    return invalid_argument("grid (" + place_in_list(i) + "): " + what);
  };
  if (std::ranges::count(spec.bindings, BindingKind::grid, &UserKernelSpec::Binding::kind) != 1) {
    return wrong("found more than one grid, expected one");
  }
  if (grid.access != Access::read) return wrong("is written, expected an input");
  if (!grid.name.empty() || grid.number)
    return wrong("has a name or a binding number, but is not a resource of the program");
  if (grid.dtype != DType::u32 && grid.dtype != DType::invalid) {
    return wrong("is " + std::string(numpy_name(grid.dtype)) + ", expected uint32");
  }
  const std::uint64_t elements = grid.bytes / sizeof(std::uint32_t);
  if (elements >= 3 && grid.first <= elements - 3) return {};
  return wrong("begins at element " + std::to_string(grid.first) + " of " + std::to_string(elements) +
               ", expected three elements from there on");
}

Status check(const UserKernelSpec& spec, std::size_t i) {
  const UserKernelSpec::Binding& binding = spec.bindings[i];
  const std::string which = described(binding, i);
  const bool glsl = spec.dialect != Dialect::opencl_c;  // or a SPIR-V module
  if (binding.bytes == 0 && binding.kind != BindingKind::sampler_state) return invalid_argument(which + ": is empty");
  switch (binding.kind) {
    case BindingKind::buffer:
      if (!is_buffer_access(binding.access))
        return invalid_argument(which + ": access is not set, expected input, output or inout");
      break;
    case BindingKind::value:
    case BindingKind::local:
      if (glsl) {
        return invalid_argument(
            which + ": is " + (binding.kind == BindingKind::value ? "a number" : "local memory") +
            ", which only an OpenCL C kernel takes as an argument. Use uniforms or shared variables");
      }
      if (binding.kind == BindingKind::value && binding.access != Access::read) {
        return invalid_argument(which + ": is passed by value and cannot be written");
      }
      break;
    case BindingKind::image:
    case BindingKind::sampler:
      if (!glsl) return unsupported(which + ": is an image, which OpenCL C kernels do not support");
      if (binding.name.empty()) return invalid_argument(place_in_list(i) + ": is an image without a name");
      if (!is_buffer_access(binding.access) ||
          (binding.kind == BindingKind::sampler && binding.access != Access::read)) {
        return invalid_argument(which + ": is an image, expected input" +
                                (binding.kind == BindingKind::image ? ", output or inout" : ""));
      }
      break;
    case BindingKind::sampler_state:
      if (!glsl) return unsupported(which + ": is a sampler, which OpenCL C kernels do not support");
      if (binding.name.empty()) return invalid_argument(place_in_list(i) + ": is a sampler without a name");
      break;
    case BindingKind::grid:
      return check_grid(spec, i);
    case BindingKind::invalid:
    default:
      return invalid_argument(which + ": has no kind");
  }
  const bool named = !binding.name.empty() || binding.number.has_value();
  if (!glsl && named) {
    return invalid_argument(which +
                            ": has a name or a binding number, but an OpenCL C kernel's arguments have only positions");
  }
  for (std::size_t before = 0; before < i; ++before) {
    const UserKernelSpec::Binding& other = spec.bindings[before];
    if (!binding.name.empty() && binding.name == other.name) {
      return invalid_argument(which + ": '" + binding.name + "' is already provided by " + described(other, before));
    }
    const auto number_of = [](const UserKernelSpec::Binding& one, std::size_t position) {
      return one.number.value_or(static_cast<std::uint32_t>(position));
    };
    if (other.kind == BindingKind::grid) continue;
    if (binding.name.empty() && other.name.empty() && number_of(binding, i) == number_of(other, before)) {
      return invalid_argument(which + ": binding number " + std::to_string(number_of(binding, i)) +
                              " is already provided by " + place_in_list(before));
    }
  }
  return {};
}

Status check(const UserKernelSpec& spec, const UserKernelSpec::Uniform& uniform) {
  const std::string which = "uniform '" + uniform.name + "'";
  if (spec.dialect == Dialect::opencl_c)
    return invalid_argument(which + ": OpenCL C has no uniforms. Pass the value as a binding");
  if (uniform.name.empty()) return invalid_argument(which + ": has no name");
  using Type = UserKernelSpec::Uniform::Type;
  if (uniform.type != Type::boolean && uniform.type != Type::integer && uniform.type != Type::number) {
    return invalid_argument(which + ": has no type");
  }
  constexpr std::uint64_t most_values = 65536;
  constexpr std::size_t most_dimensions = 8;
  if (uniform.shape.size() > most_dimensions || values_in(uniform) == 0 || values_in(uniform) > most_values) {
    return invalid_argument(which + ": has " + std::to_string(uniform.shape.size()) + " dimensions and " +
                            std::to_string(values_in(uniform)) + " values, expected at most " +
                            std::to_string(most_dimensions) + " dimensions and 1 to 65536 values");
  }
  const auto same = [&](const UserKernelSpec::Uniform& other) { return other.name == uniform.name; };
  if (std::count_if(spec.uniforms.begin(), spec.uniforms.end(), same) != 1) {
    return invalid_argument(which + ": is given twice");
  }
  return {};
}

std::string_view word_of(const UserKernelSpec::Binding& binding) {
  if (binding.kind == BindingKind::value) return "value";
  if (!has_tensor(binding.kind)) return "local";  // or a sampler without a texture
  if (binding.kind == BindingKind::image) return binding.access == Access::read ? "image" : "written_image";
  if (binding.kind == BindingKind::sampler) return "sampler";
  if (binding.kind == BindingKind::grid) return "grid_from";
  if (binding.access == Access::read) return "input";
  return binding.access == Access::write ? "output" : "inout";
}

}  // namespace

Status check(const UserKernelSpec& spec) {
  if (spec.text.empty()) return invalid_argument("the source is empty");
  for (std::size_t i = 0; i < spec.constants.size(); ++i) {
    const Define& define = spec.constants[i];
    const std::string which = "constants[" + std::to_string(i) + "]";
    if (!is_define_name(define.name)) {
      return invalid_argument(which + ": name '" + define.name +
                              "': expected letters, digits and '_', not beginning with a digit");
    }
    if (!is_define_text(define.text)) {
      return invalid_argument(which + " " + define.name + ": expected one line of text without a backslash");
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (spec.constants[before].name == define.name) {
        return invalid_argument(which + ": " + define.name + " is defined twice, first by constants[" +
                                std::to_string(before) + "]");
      }
    }
  }
  if (spec.dialect != Dialect::glsl && spec.dialect != Dialect::opencl_c && spec.dialect != Dialect::code_object) {
    return invalid_argument("dialect " + std::string(to_string(spec.dialect)) +
                            ": expected glsl, opencl_c or code_object");
  }
  for (std::size_t axis = 0; axis < spec.grid.size(); ++axis) {
    if (spec.grid[axis] == 0) {
      return invalid_argument("grid[" + std::to_string(axis) + "] = 0: expected at least one workgroup");
    }
  }
  for (std::size_t i = 0; i < spec.bindings.size(); ++i) {
    if (Status status = check(spec, i); !status.ok()) return status;
  }
  for (const UserKernelSpec::Uniform& uniform : spec.uniforms) {
    if (Status status = check(spec, uniform); !status.ok()) return status;
  }
  return check_parameters(spec);
}

std::vector<Operand> operands_of(const UserKernelSpec& spec) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < spec.bindings.size(); ++i) {
    const UserKernelSpec::Binding& binding = spec.bindings[i];
    if (!has_tensor(binding.kind)) continue;
    // What an output holds before the kernel runs is part of the request (zeros, where a file says it): kernels that
    // add to it, or leave parts of it, have a defined result. So it goes to the device as an inout does.
    operands.push_back({place_in_list(i), binding.access == Access::read ? TensorRole::input : TensorRole::inout,
                        binding.shape, binding.bytes});
  }
  std::uint64_t values = 0;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / sizeof(double);
  for (const UserKernelSpec::Uniform& uniform : spec.uniforms) {
    values += std::min(values_in(uniform), most - values);
  }
  if (values != 0) operands.push_back({"uniforms", TensorRole::input, {}, values * sizeof(double)});
  return operands;
}

std::string fields_of(const UserKernelSpec& spec) {
  FieldText fields;
  fields.word("dialect", to_string(spec.dialect)), fields.word("source", sha256(spec.text).hex()),
      fields.word("entry", spec.entry);
  for (const Define& define : spec.constants) fields.word(define.name, sha256(define.text).hex());
  for (const auto& binding : spec.bindings) {
    fields.number(word_of(binding), static_cast<std::int64_t>(binding.bytes));
    if (!binding.name.empty()) fields.word("block", sha256(binding.name).hex());
    if (binding.number) fields.number("binding", *binding.number);
    if (binding.kind == BindingKind::grid) fields.number("first", static_cast<std::int64_t>(binding.first));
    if (binding.kind == BindingKind::sampler_state) {
      fields.word("filter", to_string(binding.filter)), fields.word("wrap", to_string(binding.wrap));
    }
    if (binding.kind == BindingKind::image || binding.kind == BindingKind::sampler) {
      fields.word("texels", to_string(binding.dtype)), fields.word("shape", sha256(to_string(binding.shape)).hex());
      fields.word("format", facts_of(binding.format).name), fields.word("filter", to_string(binding.filter));
      fields.word("wrap", to_string(binding.wrap));
      if (binding.picture) fields.number("picture", 1);
      if (binding.shown) fields.number("shown", 1);
    }
  }
  for (const auto& uniform : spec.uniforms) {
    fields.word("uniform", sha256(uniform.name).hex());
    for (const std::uint32_t extent : uniform.shape) fields.number("extent", extent);
  }
  if (spec.workgroup[0] != 0) {
    for (const std::uint32_t lanes : spec.workgroup) fields.number("workgroup", lanes);
  }
  for (const std::uint32_t groups : spec.grid) fields.number("grid", groups);
  for (const auto& parameter : spec.parameters) {
    for (const std::string& each : parameter.texts) fields.word("try:" + parameter.name, sha256(each).hex());
  }
  for (std::size_t axis = 0; axis < spec.grid.size(); ++axis) {
    const std::string& expression = spec.grid_expressions[axis];
    if (!expression.empty()) fields.word("grid[" + std::to_string(axis) + "]", sha256(expression).hex());
  }
  return fields.take();
}

std::string shape_text(const UserKernelSpec& spec) {
  const std::string file = std::filesystem::path(spec.path).filename().string();
  std::string text = (file.empty() ? spec.entry : file) + " grid ";
  if (std::ranges::count(spec.bindings, BindingKind::grid, &UserKernelSpec::Binding::kind) != 0) return text + "read";
  for (std::size_t axis = 0; axis < spec.grid.size(); ++axis) {
    text += (axis == 0 ? "" : "x") + std::to_string(spec.grid[axis]);
  }
  return text;
}

std::string family_of(const UserKernelSpec& spec) { return sha256(canonical_text(spec)).hex().substr(0, 32); }

bool is_define_name(std::string_view name) noexcept {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

bool is_define_text(std::string_view text) noexcept {
  // A line's end, or a backslash before it, would let a constant grow into other lines of the source.
  return text.find_first_of(std::string_view("\n\r\\\0", 4)) == std::string_view::npos;
}

std::uint64_t values_in(const UserKernelSpec::Uniform& uniform) noexcept {
  std::uint64_t values = 1;
  for (const std::uint32_t extent : uniform.shape) {
    if (__builtin_mul_overflow(values, std::uint64_t{extent}, &values)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return values;
}

}  // namespace kiln

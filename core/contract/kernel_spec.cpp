#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace kiln {
namespace {

// Large enough for every published network, small enough that no product below leaves 64 bits.
constexpr std::int64_t most_extent = 1 << 20;
constexpr std::int64_t most_elements = std::int64_t{1} << 36;

Status out_of_range(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most) {
  return invalid_argument(std::string(field) + " = " + std::to_string(value) + ": expected " + std::to_string(least) +
                          " to " + std::to_string(most));
}

Status check_elements(std::string_view tensor, const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > most_elements) {
      return invalid_argument(std::string(tensor) + " " + to_string(shape) + ": more than 2^36 elements");
    }
  }
  return {};
}

Status check_dtype(DType dtype) {
  if (dtype == DType::f32) return {};
  return unsupported("dtype " + std::string(to_string(dtype)) + ": expected f32");
}

// An application may hold any number in an enumeration.
bool is_known(Bias bias) noexcept { return bias == Bias::none || bias == Bias::per_channel; }
bool is_known(Activation activation) noexcept {
  return activation == Activation::none || activation == Activation::relu;
}

Status check(const Conv2dSpec& spec) {
  const struct {
    std::string_view name;
    std::int64_t value, least;
  } fields[] = {{"n", spec.n, 1},
                {"c", spec.c, 1},
                {"h", spec.h, 1},
                {"w", spec.w, 1},
                {"k", spec.k, 1},
                {"r", spec.r, 1},
                {"s", spec.s, 1},
                {"stride (y)", spec.stride_y, 1},
                {"stride (x)", spec.stride_x, 1},
                {"pad (y)", spec.pad_y, 0},
                {"pad (x)", spec.pad_x, 0},
                {"dilation (y)", spec.dilation_y, 1},
                {"dilation (x)", spec.dilation_x, 1},
                {"groups", spec.groups, 1}};
  for (const auto& field : fields) {
    if (field.value < field.least || field.value > most_extent) {
      return out_of_range(field.name, field.value, field.least, most_extent);
    }
  }
  if (spec.c % spec.groups != 0 || spec.k % spec.groups != 0) {
    return invalid_argument("groups = " + std::to_string(spec.groups) + ": expected a divisor of c = " +
                            std::to_string(spec.c) + " and of k = " + std::to_string(spec.k));
  }
  const auto reach = [](std::int64_t taps, std::int64_t dilation) { return dilation * (taps - 1) + 1; };
  if (spec.h + 2 * spec.pad_y < reach(spec.r, spec.dilation_y)) {
    return invalid_argument("kernel height " + std::to_string(reach(spec.r, spec.dilation_y)) +
                            " (r with dilation): larger than the padded input height " +
                            std::to_string(spec.h + 2 * spec.pad_y));
  }
  if (spec.w + 2 * spec.pad_x < reach(spec.s, spec.dilation_x)) {
    return invalid_argument("kernel width " + std::to_string(reach(spec.s, spec.dilation_x)) +
                            " (s with dilation): larger than the padded input width " +
                            std::to_string(spec.w + 2 * spec.pad_x));
  }
  if (const Status status = check_elements("input", {spec.n, spec.c, spec.h, spec.w}); !status.ok()) return status;
  if (const Status status = check_elements("weights", {spec.k, spec.c / spec.groups, spec.r, spec.s}); !status.ok()) {
    return status;
  }
  if (const Status status = check_elements("output", {spec.n, spec.k, spec.out_h(), spec.out_w()}); !status.ok()) {
    return status;
  }
  const bool known_accuracy = spec.accuracy == Accuracy::direct || spec.accuracy == Accuracy::winograd;
  if (!is_known(spec.bias) || !is_known(spec.activation) || !known_accuracy) {
    return invalid_argument("conv2d: bias, activation and accuracy must be set");
  }
  return check_dtype(spec.dtype);
}

Status check(const GemmSpec& spec) {
  const struct {
    std::string_view name;
    std::int64_t value;
  } fields[] = {{"m", spec.m}, {"n", spec.n}, {"k", spec.k}};
  for (const auto& field : fields) {
    if (field.value < 1 || field.value > most_extent) return out_of_range(field.name, field.value, 1, most_extent);
  }
  if (const Status status = check_elements("a", {spec.m, spec.k}); !status.ok()) return status;
  if (const Status status = check_elements("b", {spec.k, spec.n}); !status.ok()) return status;
  if (const Status status = check_elements("c", {spec.m, spec.n}); !status.ok()) return status;
  if (!is_known(spec.bias) || !is_known(spec.activation)) {
    return invalid_argument("gemm: bias and activation must be set");
  }
  return check_dtype(spec.dtype);
}

bool is_buffer_access(Access access) {
  return access == Access::read || access == Access::write || access == Access::read_write;
}

Status check(const UserKernelSpec& spec, std::size_t i) {
  const UserKernelSpec::Binding& binding = spec.bindings[i];
  const std::string which = "binding " + std::to_string(i);
  const bool glsl = spec.dialect != Dialect::opencl_c;  // or a SPIR-V module
  if (binding.bytes == 0) return invalid_argument(which + ": is empty");
  switch (binding.kind) {
    case BindingKind::buffer:
      if (!is_buffer_access(binding.access)) return invalid_argument(which + ": expected input, output or inout");
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
      if (!glsl) return unsupported(which + ": is an image, which only a GLSL kernel takes");
      if (binding.name.empty()) return invalid_argument(which + ": is an image without a name");
      if (!is_buffer_access(binding.access) ||
          (binding.kind == BindingKind::sampler && binding.access != Access::read)) {
        return invalid_argument(which + " (" + binding.name + "): is an image: expected input" +
                                (binding.kind == BindingKind::image ? ", output or inout" : ""));
      }
      break;
    case BindingKind::invalid:
    default:
      return invalid_argument(which + ": has no kind");
  }
  const bool named = !binding.name.empty() || binding.number.has_value();
  if (!glsl && named) {
    return invalid_argument(which +
                            ": has a name or a binding number, but an OpenCL C kernel's arguments go by position");
  }
  for (std::size_t before = 0; before < i; ++before) {
    const UserKernelSpec::Binding& other = spec.bindings[before];
    if (!binding.name.empty() && binding.name == other.name) {
      return invalid_argument(which + ": '" + binding.name + "' is provided by binding " + std::to_string(before) +
                              " already");
    }
    const auto number_of = [](const UserKernelSpec::Binding& one, std::size_t position) {
      return one.number.value_or(static_cast<std::uint32_t>(position));
    };
    if (binding.name.empty() && other.name.empty() && number_of(binding, i) == number_of(other, before)) {
      return invalid_argument(which + ": binding number " + std::to_string(number_of(binding, i)) +
                              " is provided by element " + std::to_string(before) + " of the list already");
    }
  }
  return {};
}

Status check(const UserKernelSpec& spec, const UserKernelSpec::Uniform& uniform) {
  const std::string which = "uniform '" + uniform.name + "'";
  if (spec.dialect == Dialect::opencl_c)
    return invalid_argument(which + ": only GLSL has uniforms. Pass it as a binding");
  if (uniform.name.empty()) return invalid_argument(which + ": has no name");
  using Type = UserKernelSpec::Uniform::Type;
  if (uniform.type != Type::boolean && uniform.type != Type::integer && uniform.type != Type::number) {
    return invalid_argument(which + ": has no type");
  }
  constexpr std::uint64_t most_values = 65536;
  if (uniform.shape.size() > 3 || values_in(uniform) == 0 || values_in(uniform) > most_values) {
    return invalid_argument(which + ": has " + std::to_string(uniform.shape.size()) + " dimensions and " +
                            std::to_string(values_in(uniform)) + " values, expected at most 3 and 1 to 65536");
  }
  const auto same = [&](const UserKernelSpec::Uniform& other) { return other.name == uniform.name; };
  if (std::count_if(spec.uniforms.begin(), spec.uniforms.end(), same) != 1) {
    return invalid_argument(which + ": is given twice");
  }
  return {};
}

Status check(const UserKernelSpec& spec) {
  const std::string who = "kernel " + spec.path;
  if (spec.text.empty()) return invalid_argument(who + ": its source is empty");
  for (std::size_t i = 0; i < spec.constants.size(); ++i) {
    const Define& define = spec.constants[i];
    const std::string which = who + ": constants[" + std::to_string(i) + "]";
    if (!is_define_name(define.name)) {
      return invalid_argument(which + ": the name '" + define.name +
                              "': expected letters, digits and '_', no digit first");
    }
    if (!is_define_text(define.text)) {
      return invalid_argument(which + " " + define.name + ": its text: expected one line without a backslash");
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (spec.constants[before].name == define.name) {
        return invalid_argument(which + ": " + define.name + " is defined twice, first by constants[" +
                                std::to_string(before) + "]");
      }
    }
  }
  if (spec.dialect != Dialect::glsl && spec.dialect != Dialect::opencl_c && spec.dialect != Dialect::code_object) {
    return invalid_argument(who + ": dialect " + std::string(to_string(spec.dialect)) +
                            ": expected glsl, opencl_c or code_object");
  }
  if (spec.dialect == Dialect::code_object && !(spec.constants.empty() && spec.parameters.empty())) {
    return invalid_argument(who +
                            ": constants and tune change a text, and a SPIR-V module is compiled already. Compile it " +
                            "with them, or use uniforms");
  }
  for (std::size_t axis = 0; axis < spec.grid.size(); ++axis) {
    if (spec.grid[axis] == 0) {
      return invalid_argument(who + ": grid[" + std::to_string(axis) + "] = 0: expected at least one workgroup");
    }
  }
  for (std::size_t i = 0; i < spec.bindings.size(); ++i) {
    if (Status status = check(spec, i); !status.ok()) return status.within(who);
  }
  for (const UserKernelSpec::Uniform& uniform : spec.uniforms) {
    if (Status status = check(spec, uniform); !status.ok()) return status.within(who);
  }
  return check_parameters(spec).within(who);
}

constexpr std::uint64_t float_bytes = sizeof(float);

std::string_view word_of(const UserKernelSpec::Binding& binding) {
  if (binding.kind == BindingKind::value) return "value";
  if (binding.kind == BindingKind::local) return "local";
  if (binding.kind == BindingKind::image) return binding.access == Access::read ? "image" : "written_image";
  if (binding.kind == BindingKind::sampler) return "sampler";
  if (binding.access == Access::read) return "input";
  return binding.access == Access::write ? "output" : "inout";
}

// The functions below are called with specs that nobody has validated: a product of extents is 0 where one of them is
// negative, and the greatest number where it leaves 64 bits.
std::uint64_t product_of(std::initializer_list<std::int64_t> extents) noexcept {
  std::uint64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent <= 0) return 0;
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(extent), &product)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return product;
}

std::uint64_t float_bytes_of(std::initializer_list<std::int64_t> extents) noexcept {
  std::uint64_t bytes = 0;
  const bool beyond = __builtin_mul_overflow(product_of(extents), float_bytes, &bytes);
  return beyond ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

std::int64_t group_channels(const Conv2dSpec& conv) noexcept { return conv.groups < 1 ? 0 : conv.c / conv.groups; }

// 0 where there is no such output.
std::int64_t out_extent(std::int64_t in, std::int64_t pad, std::int64_t dilation, std::int64_t taps,
                        std::int64_t stride) noexcept {
  if (in < 1 || pad < 0 || dilation < 1 || taps < 1 || stride < 1) return 0;
  std::int64_t padded = 0, reach = 0;
  if (__builtin_mul_overflow(pad, std::int64_t{2}, &padded) || __builtin_add_overflow(padded, in, &padded) ||
      __builtin_mul_overflow(dilation, taps - 1, &reach)) {
    return 0;
  }
  return padded - 1 < reach ? 0 : (padded - 1 - reach) / stride + 1;
}

}  // namespace

std::int64_t Conv2dSpec::out_h() const noexcept { return out_extent(h, pad_y, dilation_y, r, stride_y); }
std::int64_t Conv2dSpec::out_w() const noexcept { return out_extent(w, pad_x, dilation_x, s, stride_x); }

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

Status validate(const KernelSpec& spec) {
  if (spec.valueless_by_exception()) return invalid_argument("the specification holds no operation");
  return std::visit([](const auto& held) { return check(held); }, spec).within(operation(spec));
}

std::string_view operation(const KernelSpec& spec) noexcept {
  constexpr std::string_view names[] = {"conv2d", "gemm", "kernel"};
  return spec.valueless_by_exception() ? "invalid" : names[spec.index()];
}

double flops(const KernelSpec& spec) noexcept {
  const auto product = [](std::initializer_list<std::int64_t> extents) {
    double value = 1;  // leaves 64 bits for what validate() would refuse
    for (const std::int64_t extent : extents) value *= extent > 0 ? static_cast<double>(extent) : 0;
    return value;
  };
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    return 2 * product({conv->n, conv->k, conv->out_h(), conv->out_w(), group_channels(*conv), conv->r, conv->s});
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return 2 * product({gemm->m, gemm->n, gemm->k});
  return 0;
}

double bytes_moved(const KernelSpec& spec) {
  double bytes = 0;
  for (const TensorDecl& tensor : tensors_of(spec)) {
    bytes += static_cast<double>(tensor.bytes) * (tensor.role == TensorRole::inout ? 2 : 1);
  }
  return bytes;
}

std::string canonical_text(const KernelSpec& spec) {
  std::string text(operation(spec));
  const auto number = [&text](std::string_view name, std::int64_t value) {
    text.append(" ").append(name).append("=").append(std::to_string(value));
  };
  const auto word = [&text](std::string_view name, std::string_view value) {
    text.append(" ").append(name).append("=").append(value);
  };
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    number("n", conv->n), number("c", conv->c), number("h", conv->h), number("w", conv->w);
    number("k", conv->k), number("r", conv->r), number("s", conv->s);
    number("stride_y", conv->stride_y), number("stride_x", conv->stride_x);
    number("pad_y", conv->pad_y), number("pad_x", conv->pad_x);
    number("dilation_y", conv->dilation_y), number("dilation_x", conv->dilation_x);
    number("groups", conv->groups);
    word("dtype", to_string(conv->dtype)), word("layout", "nchw");
    number("bias", conv->bias == Bias::per_channel), word("activation", to_string(conv->activation));
    word("accuracy", to_string(conv->accuracy));
  } else if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    number("m", gemm->m), number("n", gemm->n), number("k", gemm->k), word("dtype", to_string(gemm->dtype));
    number("bias", gemm->bias == Bias::per_channel), word("activation", to_string(gemm->activation));
  } else if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    word("dialect", to_string(kernel->dialect)), word("source", sha256(kernel->text).hex()),
        word("entry", kernel->entry);
    for (const Define& define : kernel->constants) word(define.name, sha256(define.text).hex());
    for (const auto& binding : kernel->bindings) {
      number(word_of(binding), static_cast<std::int64_t>(binding.bytes));
      if (!binding.name.empty()) word("block", sha256(binding.name).hex());
      if (binding.number) number("binding", *binding.number);
      if (binding.kind == BindingKind::image || binding.kind == BindingKind::sampler) {
        word("texels", to_string(binding.dtype)), word("shape", sha256(to_string(binding.shape)).hex());
        word("format", facts_of(binding.format).name), word("filter", to_string(binding.filter));
        word("wrap", to_string(binding.wrap));
      }
    }
    for (const auto& uniform : kernel->uniforms) {
      word("uniform", sha256(uniform.name).hex());
      for (const std::uint32_t extent : uniform.shape) number("extent", extent);
    }
    if (kernel->workgroup[0] != 0) {
      for (const std::uint32_t lanes : kernel->workgroup) number("workgroup", lanes);
    }
    for (const std::uint32_t groups : kernel->grid) number("grid", groups);
    for (const auto& parameter : kernel->parameters) {
      for (const std::string& each : parameter.texts) word("try:" + parameter.name, sha256(each).hex());
    }
    for (std::size_t axis = 0; axis < kernel->grid.size(); ++axis) {
      const std::string& expression = kernel->grid_expressions[axis];
      if (!expression.empty()) word("grid[" + std::to_string(axis) + "]", sha256(expression).hex());
    }
  }
  return text;
}

std::vector<TensorDecl> tensors_of(const KernelSpec& spec) {
  std::vector<TensorDecl> tensors;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    tensors.push_back({"input", TensorRole::input, float_bytes_of({conv->n, conv->c, conv->h, conv->w})});
    tensors.push_back(
        {"weights", TensorRole::constant, float_bytes_of({conv->k, group_channels(*conv), conv->r, conv->s})});
    if (conv->bias == Bias::per_channel) tensors.push_back({"bias", TensorRole::constant, float_bytes_of({conv->k})});
    tensors.push_back({"output", TensorRole::output, float_bytes_of({conv->n, conv->k, conv->out_h(), conv->out_w()})});
  } else if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    tensors.push_back({"a", TensorRole::input, float_bytes_of({gemm->m, gemm->k})});
    tensors.push_back({"b", TensorRole::constant, float_bytes_of({gemm->k, gemm->n})});
    if (gemm->bias == Bias::per_channel) tensors.push_back({"bias", TensorRole::constant, float_bytes_of({gemm->n})});
    tensors.push_back({"c", TensorRole::output, float_bytes_of({gemm->m, gemm->n})});
  } else if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    for (std::size_t i = 0; i < kernel->bindings.size(); ++i) {
      const UserKernelSpec::Binding& binding = kernel->bindings[i];
      if (binding.kind == BindingKind::local) continue;
      // What an output holds before the kernel runs is part of the request (zeros, where a file says it): kernels that
      // add to it, or leave parts of it, have a defined result. So it goes to the device as an inout does.
      tensors.push_back({"binding " + std::to_string(i),
                         binding.access == Access::read ? TensorRole::input : TensorRole::inout, binding.bytes});
    }
    std::uint64_t values = 0;
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / sizeof(double);
    for (const UserKernelSpec::Uniform& uniform : kernel->uniforms) {
      values += std::min(values_in(uniform), most - values);
    }
    if (values != 0) tensors.push_back({"uniforms", TensorRole::input, values * sizeof(double)});
  }
  return tensors;
}

}  // namespace kiln

#include <kiln/data.hpp>
#include <kiln/kernel_text.hpp>
#include <kiln/operation.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

namespace kiln::data {
namespace {

Status load_operands(const JobConfig& job, RunRequest& request, std::vector<std::string>* notes, Memory* memory) {
  const std::vector<Operand> operands = operation_of(request.spec).operands(request.spec);
  const std::vector<OperandSource> sources = sources_of(job);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& [key, source] = sources[i];
    const TensorRequest wanted{
        .dtype = DType::f32, .shape = operands[i].shape, .role = key, .alpha = job.alpha, .memory = memory};
    if (operands[i].role == TensorRole::constant) {
      auto constant = load_constant(source, job.base, wanted, memory, notes);
      if (!constant) return std::move(constant).error();
      request.tensors.push_back({nullptr, std::move(*constant)});
      continue;
    }
    const bool is_new = operands[i].role == TensorRole::output && !memory_name(source);
    auto tensor =
        is_new ? HostTensor::create(DType::f32, operands[i].shape) : load_tensor(source, job.base, wanted, notes);
    if (!tensor) return std::move(tensor).error();
    request.tensors.push_back({std::move(*tensor), nullptr});
  }
  return {};
}

// What the job has itself, or its file.
Result<KernelText> text_of_source(const JobConfig& job, Dialect dialect) {
  if (job.text.empty()) return read_kernel_text({job.base, job.source, job.include}, dialect);
  if (dialect != Dialect::code_object) return KernelText{job.text, {}};
  return invalid_argument("text: found with source " + job.source + ", expected a source in GLSL or OpenCL C");
}

bool is_texture(const KernelBindingConfig& binding) {
  return binding.kind == BindingKind::image || binding.kind == BindingKind::sampler;
}

// The tensor of an application that a result goes into: its form is as declared, or its own.
TensorRequest request_of_result(const JobConfig& job, const KernelBindingConfig& binding, const Memory* memory) {
  const Shape shape = is_texture(binding) ? form_of_output(binding).shape : binding.shape;
  return {.dtype = binding.dtype, .shape = shape, .role = "output", .alpha = job.alpha, .memory = memory};
}

// The reference of a result, and the tensor that the result goes into: for `output` without a shape, one like it.
Status add_result(const JobConfig& job, const KernelBindingConfig& binding, std::shared_ptr<HostTensor>& tensor,
                  RunRequest& request, std::vector<std::string>* notes, const Memory* memory) {
  ExpectedOutput& expected = request.expected.emplace_back();
  expected.tolerance = binding.tolerance;
  expected.name = binding.output;
  const std::string role = binding.label + ": expect";
  if (!binding.expect.empty()) {
    auto wanted = request_of_expected(job, binding, role, memory);
    if (tensor != nullptr) {
      wanted.dtype = tensor->dtype();
      if (lacks_form(binding.expect)) wanted.shape = tensor->shape();
    }
    auto reference = load_tensor(binding.expect, job.base, wanted, notes);
    if (!reference) return std::move(reference).error();
    expected.tensor = std::move(*reference);
  }
  const HostTensor* reference = expected.tensor.get();
  if (tensor == nullptr && memory_name(binding.output)) {
    auto given = load_tensor(binding.output, job.base, request_of_result(job, binding, memory));
    if (!given) return std::move(given).error();
    tensor = std::move(*given);
  }
  if (tensor == nullptr) {
    auto form = form_of_output(binding);
    const bool like_reference = form.shape.empty() && reference != nullptr;
    if (form.dtype == DType::invalid && reference != nullptr) form.dtype = reference->dtype();
    if (form.dtype == DType::invalid) {
      return invalid_argument("output " + binding.output +
                              ": type is not set. Add a format, for example format = \"rgba8\", or a dtype, for "
                              "example dtype = \"float32\"");
    }
    auto made = HostTensor::create(form.dtype, like_reference ? reference->shape() : form.shape);
    if (!made) return std::move(made).error();
    tensor = std::move(*made);
  }
  if (reference == nullptr || (tensor->dtype() == reference->dtype() && tensor->shape() == reference->shape())) {
    return {};
  }
  return invalid_argument("expect " + binding.expect + ": found " + std::string(numpy_name(reference->dtype())) + " " +
                          to_string(reference->shape()) + ", expected " + std::string(numpy_name(tensor->dtype())) +
                          " " + to_string(tensor->shape()) + " as in " +
                          (binding.input.empty() ? binding.output : binding.input));
}

// "values", "float" and "int". Integers must be exact; numbers with a fraction are rounded, as in a source.
Result<std::shared_ptr<HostTensor>> value_tensor(const KernelBindingConfig& binding) {
  const std::size_t count = std::max(binding.numbers.size(), binding.integers.size());
  Shape shape = binding.shape.empty() ? Shape{static_cast<std::int64_t>(count)} : binding.shape;
  const bool fraction = !binding.numbers.empty();
  auto tensor = HostTensor::create(fraction ? DType::f64 : DType::i64, shape);
  if (!tensor) return tensor;
  if (static_cast<std::size_t>((*tensor)->elements()) != count) {
    return invalid_argument("values: found " + std::to_string(count) + ", expected " +
                            std::to_string((*tensor)->elements()) + " for shape " + to_string(shape));
  }
  if (fraction) {
    std::ranges::copy(binding.numbers, (*tensor)->as<double>().begin());
  } else {
    std::ranges::copy(binding.integers, (*tensor)->as<std::int64_t>().begin());
  }
  if (!fraction || (binding.dtype != DType::f32 && binding.dtype != DType::f16)) {
    return (*tensor)->dtype() == binding.dtype ? tensor : converted(**tensor, binding.dtype);
  }
  auto rounded = HostTensor::create(binding.dtype, std::move(shape));
  for (std::size_t i = 0; rounded && i < count; ++i) {
    const double value = binding.numbers[i];
    const bool is_single = binding.dtype == DType::f32;
    const bool fits = is_single ? std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max())
                                : std::abs(value) < 65520;  // what is rounded to 65504 at most
    if (std::isfinite(value) && !fits) {
      return invalid_argument("value " + std::to_string(value) + ": out of range for " +
                              std::string(numpy_name(binding.dtype)));
    }
    if (is_single) {
      (*rounded)->as<float>()[i] = static_cast<float>(value);
    } else {
      (*rounded)->as<std::uint16_t>()[i] = to_half(value);
    }
  }
  return rounded;
}

Status add_binding(const JobConfig& job, std::size_t index, UserKernelSpec& spec, RunRequest& request,
                   std::vector<std::string>* notes, const Memory* memory) {
  const KernelBindingConfig& binding = job.bindings[index];
  UserKernelSpec::Binding& added = spec.bindings.emplace_back(declared(binding));
  if (!has_tensor(binding.kind)) return {};
  std::shared_ptr<HostTensor> tensor;
  if (has_values(binding) || !binding.input.empty()) {
    auto read = load_binding(job, binding, notes, memory);
    if (!read) return std::move(read).error();
    tensor = std::move(*read);
  }
  if (binding.access != Access::read) {
    Status status = add_result(job, binding, tensor, request, notes, memory);
    if (!status.ok()) return status.within(binding.label);
  }
  if (tensor->elements() == 0) return invalid_argument(binding.label + ": has no elements, expected at least one");
  added.bytes = tensor->bytes().size();
  added.dtype = tensor->dtype();
  added.shape = tensor->shape();
  request.tensors.push_back({std::move(tensor), nullptr});
  return {};
}

Status load_kernel(const JobConfig& job, RunRequest& request, std::vector<std::string>* notes, const Memory* memory) {
  auto spec = kernel_of(job);
  if (!spec) return std::move(spec).error();
  for (std::size_t i = 0; i < job.bindings.size(); ++i) {
    if (Status status = add_binding(job, i, *spec, request, notes, memory); !status.ok()) return status;
  }
  auto uniforms = add_uniforms(job, *spec);
  if (!uniforms) return std::move(uniforms).error();
  if (*uniforms != nullptr) request.tensors.push_back({std::move(*uniforms), nullptr});
  request.spec = std::move(*spec);
  const auto is_compared = [](const ExpectedOutput& expected) { return expected.tensor != nullptr; };
  if (std::ranges::none_of(request.expected, is_compared)) request.expected.clear();
  return {};
}

}  // namespace

Result<Dialect> dialect_of(const std::filesystem::path& source) {
  const std::string extension = source.extension();
  if (extension == ".cl") return Dialect::opencl_c;
  if (extension == ".spv") return Dialect::code_object;
  constexpr std::string_view glsl[] = {".comp", ".glsl", ".cs", ".compute", ".csh", ".shader"};
  if (std::ranges::find(glsl, extension) != std::end(glsl)) return Dialect::glsl;
  return invalid_argument(
      "kernel source " + source.string() + ": extension '" + extension +
      "', expected .comp, .glsl, .cs, .compute, .csh or .shader (GLSL), .cl (OpenCL C) or .spv (SPIR-V)");
}

Result<UserKernelSpec> kernel_of(const JobConfig& job) {
  auto dialect = dialect_of(job.base / job.source);
  if (!dialect) return std::move(dialect).error();
  auto source = text_of_source(job, *dialect);
  if (!source) return std::move(source).error();
  UserKernelSpec spec;
  spec.path = job.source;
  spec.text = std::move(source->text);
  spec.includes = std::move(source->includes);
  spec.dialect = *dialect;
  if (!job.entry.empty()) spec.entry = job.entry;
  spec.constants = job.constants;
  spec.grid = job.grid;
  spec.grid_expressions = job.grid_expressions;
  spec.parameters = job.tune;
  spec.workgroup = job.workgroup;
  return spec;
}

Result<std::shared_ptr<HostTensor>> add_uniforms(const JobConfig& job, UserKernelSpec& spec) {
  if (job.uniforms.empty()) return std::shared_ptr<HostTensor>();
  std::vector<std::byte> values;
  for (const UniformConfig& uniform : job.uniforms) {
    spec.uniforms.push_back(uniform.uniform);
    const auto numbers = std::as_bytes(std::span(uniform.numbers));
    const auto integers = std::as_bytes(std::span(uniform.integers));
    values.insert(values.end(), numbers.begin(), numbers.end());
    values.insert(values.end(), integers.begin(), integers.end());
  }
  auto tensor = HostTensor::create(DType::u8, {static_cast<std::int64_t>(values.size())});
  if (tensor) std::ranges::copy(values, (*tensor)->bytes().begin());
  return tensor;
}

UserKernelSpec::Binding declared(const KernelBindingConfig& binding) {
  UserKernelSpec::Binding made;
  made.access = binding.access;
  made.kind = binding.kind;
  made.name = binding.name;
  made.number = binding.number;
  made.bytes = binding.local_bytes;
  made.first = binding.first;
  made.format = binding.format;
  made.filter = binding.filter;
  made.wrap = binding.wrap;
  made.picture = is_texture(binding) && is_file(binding.input) && is_picture(binding.input);
  const std::string& result = binding.output.empty() ? binding.input : binding.output;
  made.shown = is_texture(binding) && binding.access != Access::read && is_file(result) && is_picture(result);
  return made;
}

bool has_values(const KernelBindingConfig& binding) { return !binding.numbers.empty() || !binding.integers.empty(); }

Result<std::shared_ptr<HostTensor>> load_binding(const JobConfig& job, const KernelBindingConfig& binding,
                                                 std::vector<std::string>* notes, const Memory* memory) {
  if (has_values(binding)) {
    auto made = value_tensor(binding);
    if (!made) return made.error().within(binding.label);
    return made;
  }
  const std::string role = binding.label + (binding.access == Access::read ? ": input" : ": inout");
  return load_tensor(binding.input, job.base, request_of(job, binding, role, memory), notes);
}

TensorRequest request_of(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                         const Memory* memory) {
  TensorRequest request{
      .dtype = binding.dtype, .shape = binding.shape, .role = role, .alpha = job.alpha, .memory = memory};
  if (!is_texture(binding)) return request;
  const ImageFormatFacts& format = facts_of(binding.format);
  request.channels = binding.format == ImageFormat::declared ? 4 : format.channels;
  request.texels = true;
  request.sides.assign(binding.size.rbegin(), binding.size.rend());
  if (!lacks_form(binding.input) || (is_file(binding.input) && binding.size.empty())) return request;
  const TensorForm form = form_of_output(binding);
  request.dtype = form.dtype;
  request.shape = form.shape;
  return request;
}

TensorRequest request_of_expected(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                                  const Memory* memory) {
  TensorRequest request{.dtype = binding.dtype, .shape = {}, .role = role, .alpha = job.alpha, .memory = memory};
  if (lacks_form(binding.expect) && binding.access == Access::write) {
    const TensorForm form = form_of_output(binding);
    request.dtype = form.dtype;
    request.shape = form.shape;
  }
  if (!is_texture(binding)) return request;
  request.texels = true;
  request.channels = binding.format == ImageFormat::declared ? 4 : facts_of(binding.format).channels;
  return request;
}

TensorForm form_of_output(const KernelBindingConfig& binding) {
  TensorForm form{binding.dtype, binding.shape};
  if (!is_texture(binding)) return form;
  const bool declared = binding.format == ImageFormat::declared;
  const ImageFormatFacts& format = facts_of(binding.format);
  const std::int64_t channels = declared ? 4 : format.channels;
  if (form.dtype == DType::invalid) {
    const bool narrow = is_picture(binding.output) && format.dtype != DType::u16;
    form.dtype = narrow ? DType::u8 : format.dtype;
  }
  form.shape.assign(binding.size.rbegin(), binding.size.rend());
  if (!form.shape.empty() && channels > 1) form.shape.push_back(channels);
  return form;
}

std::vector<OperandSource> sources_of(const JobConfig& job) {
  const OperandSource inputs[] = {{"input", job.input}, {"addend", job.addend}};
  const OperandSource constants[] = {{"weights", job.weights}, {"bias", job.bias}};
  std::vector<OperandSource> sources;
  std::size_t input = 0, constant = 0;
  for (const Operand& operand : operation_of(job.spec).operands(job.spec)) {
    if (operand.role == TensorRole::input) sources.push_back(inputs[input++]);
    if (operand.role == TensorRole::constant) sources.push_back(constants[constant++]);
    if (operand.role == TensorRole::output) sources.push_back({"output", job.output});
  }
  return sources;
}

Status check_source(const JobConfig& job) {
  const auto dialect = dialect_of(job.base / job.source);
  if (!dialect) return dialect.error();
  const auto text = text_of_source(job, *dialect);
  return text ? Status{} : text.error();
}

Result<RunRequest> make_request(const JobConfig& job, std::vector<std::string>* notes, Memory* memory) {
  RunRequest request;
  request.name = job.name;
  request.device = job.device;
  request.verify = job.verify;
  request.tolerance = job.tolerance;
  Status status;
  if (job.op == "kernel") {
    status = load_kernel(job, request, notes, memory);
  } else {
    request.spec = job.spec;
    status = load_operands(job, request, notes, memory);
  }
  if (!status.ok()) return status;
  return request;
}

Result<std::vector<AtomicFile>> prepare_outputs(const JobConfig& job, const RunRequest& request) {
  std::vector<AtomicFile> files;
  Status status;
  const auto prepare = [&](const std::filesystem::path& path, const HostTensor& result) {
    auto file = prepare_tensor(path, result);
    if (!file) return std::move(file).error();
    files.push_back(std::move(*file));
    return Status();
  };
  if (job.op != "kernel") {
    if (!job.output.empty()) status = prepare(job.output, *request.tensors.back().host);
  } else {
    std::size_t tensor = 0;
    for (const KernelBindingConfig& binding : job.bindings) {
      if (!has_tensor(binding.kind)) continue;
      const HostTensor& result = *request.tensors[tensor++].host;
      if (!binding.output.empty() && status.ok()) status = prepare(job.base / binding.output, result);
    }
  }
  if (!status.ok()) return status;
  return files;
}

std::vector<std::filesystem::path> outputs_of(const JobConfig& job) {
  std::vector<std::filesystem::path> outputs;
  if (!job.output.empty()) outputs.emplace_back(job.output);
  for (const KernelBindingConfig& binding : job.bindings) {
    if (!binding.output.empty()) outputs.push_back(job.base / binding.output);
  }
  return outputs;
}

}  // namespace kiln::data

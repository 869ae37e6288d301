#include "verbs/job_request.hpp"

#include "data/npy.hpp"
#include "data/tensor_source.hpp"

#include <kiln/kernel_text.hpp>

#include <algorithm>
#include <span>

namespace kiln::host {
namespace {

// conv2d and gemm: input, weights, [bias], output.
Status load_operands(const JobConfig& job, const OperandShapes& shapes, RunRequest& request,
                     std::vector<std::string>* notes) {
  const auto load = [&](const std::string& source, const Shape& shape, std::string_view role) {
    std::string note;
    auto tensor = data::load_tensor(source, job.base, {DType::f32, shape, role, job.alpha}, &note);
    if (tensor && !note.empty() && notes != nullptr) notes->push_back(std::move(note));
    return tensor;
  };
  auto input = load(job.input, shapes.input, "input");
  if (!input) return std::move(input).error();
  request.tensors.push_back({std::move(input).value(), nullptr});
  auto weights = load(job.weights, shapes.weights, "weights");
  if (!weights) return std::move(weights).error();
  request.tensors.push_back({nullptr, Constant::create(std::move(weights).value())});
  if (!job.bias.empty()) {
    auto bias = load(job.bias, shapes.bias, "bias");
    if (!bias) return std::move(bias).error();
    request.tensors.push_back({nullptr, Constant::create(std::move(bias).value())});
  }
  auto output = HostTensor::create(DType::f32, shapes.output);
  if (!output) return std::move(output).error();
  request.tensors.push_back({std::move(output).value(), nullptr});
  return {};
}

Result<Dialect> dialect_of(const std::filesystem::path& source) {
  const std::string extension = source.extension();
  if (extension == ".comp" || extension == ".glsl") return Dialect::glsl;
  if (extension == ".cl") return Dialect::opencl_c;
  return invalid_argument("kernel source " + source.string() + ": extension '" + extension +
                          "', expected .comp or .glsl (GLSL) or .cl (OpenCL C)");
}

// The reference of a result, and the tensor that the result goes into: for `output` without a shape, one like it.
Status add_result(const JobConfig& job, const KernelBindingConfig& binding, std::shared_ptr<HostTensor>& tensor,
                  RunRequest& request) {
  ExpectedOutput& expected = request.expected.emplace_back();
  expected.tolerance = binding.tolerance;
  expected.name = binding.output;
  if (!binding.expect.empty()) {
    auto reference = data::read_npy(job.base / binding.expect);
    if (!reference) return std::move(reference).error().within("expect");
    expected.tensor = std::move(*reference);
  }
  const HostTensor* reference = expected.tensor.get();
  if (tensor == nullptr) {
    const bool like_reference = binding.shape.empty() && reference != nullptr;
    const DType dtype = binding.dtype == DType::invalid && reference != nullptr ? reference->dtype() : binding.dtype;
    auto made = HostTensor::create(dtype, like_reference ? reference->shape() : binding.shape);
    if (!made) return std::move(made).error();
    tensor = std::move(*made);
  }
  if (reference == nullptr || (tensor->dtype() == reference->dtype() && tensor->shape() == reference->shape())) {
    return {};
  }
  return invalid_argument("expect " + binding.expect + ": " + std::string(to_string(reference->dtype())) + " " +
                          to_string(reference->shape()) + ", expected " + std::string(to_string(tensor->dtype())) +
                          " " + to_string(tensor->shape()) + " as " +
                          (binding.input.empty() ? binding.output : binding.input));
}

Result<std::shared_ptr<HostTensor>> value_tensor(const KernelBindingConfig& binding) {
  auto tensor = HostTensor::create(binding.dtype, {1});
  if (!tensor) return tensor;
  if (binding.dtype == DType::f32) {
    (*tensor)->as<float>()[0] = static_cast<float>(binding.value);
  } else {
    (*tensor)->as<std::uint32_t>()[0] = static_cast<std::uint32_t>(binding.integer);  // i32 shares its bits
  }
  return tensor;
}

Status add_binding(const JobConfig& job, std::size_t index, UserKernelSpec& spec, RunRequest& request) {
  const KernelBindingConfig& binding = job.bindings[index];
  UserKernelSpec::Binding& added = spec.bindings.emplace_back();
  added.access = binding.access;
  added.kind = binding.kind;
  added.name = binding.name;
  added.number = binding.number;
  added.bytes = binding.local_bytes;
  if (binding.kind == BindingKind::local) return {};
  std::shared_ptr<HostTensor> tensor;
  if (binding.kind == BindingKind::value || !binding.input.empty()) {
    auto read = binding.kind == BindingKind::value ? value_tensor(binding) : data::read_npy(job.base / binding.input);
    if (!read) return std::move(read).error();
    tensor = std::move(*read);
  }
  if (binding.access != Access::read) {
    if (Status status = add_result(job, binding, tensor, request); !status.ok()) return status;
  }
  added.bytes = tensor->bytes().size();
  added.dtype = tensor->dtype();
  added.shape = tensor->shape();
  request.tensors.push_back({std::move(tensor), nullptr});
  return {};
}

// One tensor for all uniforms: 8 bytes a value (UserKernelSpec::Uniform).
Status add_uniforms(const JobConfig& job, UserKernelSpec& spec, RunRequest& request) {
  if (job.uniforms.empty()) return {};
  std::vector<std::byte> values;
  for (const UniformConfig& uniform : job.uniforms) {
    spec.uniforms.push_back(uniform.uniform);
    const auto numbers = std::as_bytes(std::span(uniform.numbers));
    const auto integers = std::as_bytes(std::span(uniform.integers));
    values.insert(values.end(), numbers.begin(), numbers.end());
    values.insert(values.end(), integers.begin(), integers.end());
  }
  auto tensor = HostTensor::create(DType::u8, {static_cast<std::int64_t>(values.size())});
  if (!tensor) return std::move(tensor).error();
  std::ranges::copy(values, (*tensor)->bytes().begin());
  request.tensors.push_back({std::move(*tensor), nullptr});
  return {};
}

Status load_kernel(const JobConfig& job, RunRequest& request) {
  const std::filesystem::path path = job.base / job.source;
  auto dialect = dialect_of(path);
  if (!dialect) return std::move(dialect).error();
  auto source = read_kernel_text({job.base, job.source, job.include}, *dialect);
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
  for (std::size_t i = 0; i < job.bindings.size(); ++i) {
    if (Status status = add_binding(job, i, spec, request); !status.ok()) {
      return status.within("bindings[" + std::to_string(i) + "]");
    }
  }
  if (Status status = add_uniforms(job, spec, request); !status.ok()) return status;
  request.spec = std::move(spec);
  const auto is_compared = [](const ExpectedOutput& expected) { return expected.tensor != nullptr; };
  if (std::ranges::none_of(request.expected, is_compared)) request.expected.clear();
  return {};
}

}  // namespace

OperandShapes shapes_of(const Conv2dSpec& spec) {
  return {{spec.n, spec.c, spec.h, spec.w},
          {spec.k, spec.c / spec.groups, spec.r, spec.s},
          {spec.k},
          {spec.n, spec.k, spec.out_h(), spec.out_w()}};
}

OperandShapes shapes_of(const GemmSpec& spec) {
  return {{spec.m, spec.k}, {spec.k, spec.n}, {spec.n}, {spec.m, spec.n}};
}

Status check_source(const JobConfig& job) {
  const auto dialect = dialect_of(job.base / job.source);
  if (!dialect) return dialect.error();
  const auto text = read_kernel_text({job.base, job.source, job.include}, *dialect);
  return text ? Status{} : text.error();
}

Result<RunRequest> make_request(const JobConfig& job, std::vector<std::string>* notes) {
  RunRequest request;
  request.name = job.name;
  request.device = job.device;
  request.verify = job.verify;
  request.tolerance = job.tolerance;
  Status status;
  if (job.op == "kernel") {
    status = load_kernel(job, request);
  } else {
    status = std::visit(
        [&](const auto& spec) {
          request.spec = spec;
          return load_operands(job, shapes_of(spec), request, notes);
        },
        job.spec);
  }
  if (!status.ok()) return status;
  return request;
}

Result<std::vector<AtomicFile>> prepare_outputs(const JobConfig& job, const RunRequest& request) {
  std::vector<AtomicFile> files;
  Status status;
  const auto prepare = [&](const std::filesystem::path& path, const HostTensor& result) {
    auto file = data::prepare_tensor(path, result);
    if (!file) return std::move(file).error();
    files.push_back(std::move(*file));
    return Status();
  };
  if (job.op != "kernel") {
    if (!job.output.empty()) status = prepare(job.output, *request.tensors.back().host);
  } else {
    std::size_t tensor = 0;
    for (const KernelBindingConfig& binding : job.bindings) {
      if (binding.kind == BindingKind::local) continue;
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

}  // namespace kiln::host

#include "verbs/job_request.hpp"

#include "data/npy.hpp"
#include "data/tensor_source.hpp"

#include <fstream>
#include <sstream>

namespace kiln::host {
namespace {

constexpr std::uintmax_t most_source_bytes = 16u << 20;

Result<TensorArgument> load_constant(const std::string& source, const std::filesystem::path& base, const Shape& shape,
                                     std::string_view role) {
  auto tensor = data::load_tensor(source, base, DType::f32, shape, role);
  if (!tensor) return std::move(tensor).error();
  return TensorArgument{nullptr, Constant::create(std::move(tensor).value())};
}

struct OperandShapes {
  Shape input, weights, bias, output;
};

OperandShapes shapes_of(const Conv2dSpec& spec) {
  return {{spec.n, spec.c, spec.h, spec.w},
          {spec.k, spec.c / spec.groups, spec.r, spec.s},
          {spec.k},
          {spec.n, spec.k, spec.out_h(), spec.out_w()}};
}

OperandShapes shapes_of(const GemmSpec& spec) {
  return {{spec.m, spec.k}, {spec.k, spec.n}, {spec.n}, {spec.m, spec.n}};
}

// conv2d and gemm: input, weights, [bias], output.
Status load_operands(const JobConfig& job, const OperandShapes& shapes, RunRequest& request) {
  auto input = data::load_tensor(job.input, job.base, DType::f32, shapes.input, "input");
  if (!input) return std::move(input).error();
  request.tensors.push_back({std::move(input).value(), nullptr});
  auto weights = load_constant(job.weights, job.base, shapes.weights, "weights");
  if (!weights) return std::move(weights).error();
  request.tensors.push_back(std::move(weights).value());
  if (!job.bias.empty()) {
    auto bias = load_constant(job.bias, job.base, shapes.bias, "bias");
    if (!bias) return std::move(bias).error();
    request.tensors.push_back(std::move(bias).value());
  }
  auto output = HostTensor::create(DType::f32, shapes.output);
  if (!output) return std::move(output).error();
  request.tensors.push_back({std::move(output).value(), nullptr});
  return {};
}

Result<std::string> read_source(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return io_error("kernel source " + path.string() + ": " + error.message());
  if (size > most_source_bytes) {
    return invalid_argument("kernel source " + path.string() + ": " + std::to_string(size) +
                            " bytes, expected at most " + std::to_string(most_source_bytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return io_error("kernel source " + path.string() + ": cannot be read");
  return text.str();
}

Result<Dialect> dialect_of(const std::filesystem::path& source) {
  const std::string extension = source.extension();
  if (extension == ".comp" || extension == ".glsl") return Dialect::glsl;
  if (extension == ".cl") return Dialect::opencl_c;
  return invalid_argument("kernel source " + source.string() + ": extension '" + extension +
                          "', expected .comp or .glsl (GLSL) or .cl (OpenCL C)");
}

Status load_kernel(const JobConfig& job, RunRequest& request) {
  const std::filesystem::path path = job.base / job.source;
  auto dialect = dialect_of(path);
  if (!dialect) return std::move(dialect).error();
  auto text = read_source(path);
  if (!text) return std::move(text).error();
  UserKernelSpec spec;
  spec.path = job.source;
  spec.text = std::move(text).value();
  spec.dialect = *dialect;
  if (!job.entry.empty()) spec.entry = job.entry;
  spec.constants = job.constants;
  spec.grid = job.grid;
  spec.grid_expressions = job.grid_expressions;
  spec.parameters = job.tune;
  for (const KernelBindingConfig& binding : job.bindings) {
    auto tensor = data::read_npy(job.base / binding.file);
    if (!tensor) return std::move(tensor).error();
    spec.bindings.push_back({binding.access, (*tensor)->bytes().size()});
    request.tensors.push_back({std::move(tensor).value(), nullptr});
  }
  request.spec = std::move(spec);
  if (job.expect.empty()) return {};
  auto expected = data::read_npy(job.base / job.expect);
  if (!expected) return std::move(expected).error();
  for (std::size_t i = 0; i < job.bindings.size(); ++i) {
    if (job.bindings[i].access != Access::read_write) continue;
    const HostTensor& actual = *request.tensors[i].host;
    if (actual.dtype() != (*expected)->dtype() || actual.shape() != (*expected)->shape()) {
      return invalid_argument("expect " + job.expect + ": " + std::string(to_string((*expected)->dtype())) + " " +
                              to_string((*expected)->shape()) + ", expected " + std::string(to_string(actual.dtype())) +
                              " " + to_string(actual.shape()) + " as " + job.bindings[i].file);
    }
    request.expected.push_back(std::move(expected).value());
    return {};  // the reference of the only inout: the configuration allows no second one beside `expect`
  }
  return invalid_argument("expect " + job.expect + ": the job has no inout binding to compare with it");
}

}  // namespace

Result<RunRequest> make_request(const JobConfig& job) {
  RunRequest request;
  request.name = job.name;
  request.device = job.device;
  request.verify = job.verify;
  Status status;
  if (job.op == "kernel") {
    status = load_kernel(job, request);
  } else {
    status = std::visit(
        [&](const auto& spec) {
          request.spec = spec;
          return load_operands(job, shapes_of(spec), request);
        },
        job.spec);
  }
  if (!status.ok()) return status;
  return request;
}

Status store_outputs(const JobConfig& job, const RunRequest& request) {
  if (job.op != "kernel") {
    return job.output.empty() ? ok_status() : data::store_tensor(job.output, *request.tensors.back().host);
  }
  for (std::size_t i = 0; i < job.bindings.size(); ++i) {
    if (job.bindings[i].access != Access::read_write) continue;
    if (Status status = data::store_tensor(job.base / job.bindings[i].file, *request.tensors[i].host); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace kiln::host

// The functions of kiln.h that make a job of one layer: conv2d and gemm on tensors of the application.
#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/operation.hpp>

#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

using namespace kiln;
using namespace kiln::c_interface;

namespace {

// The tensors of a layer in the order of its operands, with the names of the parameters that gave them.
struct LayerTensors {
  std::vector<std::string_view> names;
  std::vector<JobTensor> tensors;
};

// The first is the input, the last the output, and what is read between them is constant. A bias may be null: the layer
// has none.
Result<LayerTensors> layer_tensors(std::initializer_list<std::pair<const char*, const kiln_tensor*>> operands,
                                   const std::shared_ptr<BorrowedTensors>& borrowed) {
  LayerTensors gathered;
  for (const auto& each : operands) {
    const auto& [name, tensor] = each;
    if (tensor == nullptr && std::string_view(name) == "bias") continue;
    const bool is_output = &each == operands.end() - 1;
    const bool is_constant = !is_output && &each != operands.begin();
    auto made = tensor_of(name, tensor, is_output ? Access::write : Access::read,
                          is_constant ? Use::read_once : Use::each_run, borrowed);
    if (!made) return std::move(made).error();
    gathered.names.emplace_back(name);
    gathered.tensors.push_back(std::move(*made));
  }
  return gathered;
}

Status check_rank(const char* name, const JobTensor& tensor, std::size_t rank) {
  if (tensor.host->shape().size() == rank) return {};
  return invalid_argument(std::string(name) + ": shape " + to_string(tensor.host->shape()) + ", expected " +
                          std::to_string(rank) + " dimensions");
}

Status check_shape(std::string_view name, const JobTensor& tensor, const Shape& expected) {
  const DType dtype = tensor.host->dtype();
  if (dtype == DType::f32 && tensor.host->shape() == expected) return {};
  return invalid_argument(std::string(name) + ": " + std::string(numpy_name(dtype)) + " " +
                          to_string(tensor.host->shape()) + ", expected float32 " + to_string(expected) +
                          (dtype == DType::f32 ? "" : ". Convert the elements before the call"));
}

// Replaces what the job was with a layer on these tensors, whose shapes must be those that the layer declares.
Status become(kiln_job& job, const KernelSpec& spec, LayerTensors layer) {
  if (Status status = validate(spec); !status.ok()) return status;
  const std::vector<Operand> declared = operation_of(spec).operands(spec);
  for (std::size_t at = 0; at < declared.size(); ++at) {
    Status status = check_shape(layer.names[at], layer.tensors[at], declared[at].shape);
    if (!status.ok()) return status;
  }
  clear(job);
  job.tensors = std::move(layer.tensors);
  job.request.spec = spec;
  for (std::size_t at = 0; at < job.tensors.size(); ++at) {
    const bool constant = declared[at].role == TensorRole::constant;
    job.request.tensors.push_back(constant ? TensorArgument{nullptr, Constant::create(job.tensors[at].host)}
                                           : TensorArgument{job.tensors[at].host, nullptr});
  }
  return {};
}

}  // namespace

kiln_status* kiln_job_conv2d(kiln_job* job, const kiln_conv2d* conv, const kiln_tensor* input,
                             const kiln_tensor* weights, const kiln_tensor* bias, const kiln_tensor* output) {
  constexpr const char* function = "kiln_job_conv2d";
  return changed(function, job, [&](kiln_job& of) -> Status {
    kiln_conv2d terms;
    std::memset(&terms, 0, sizeof terms);
    if (conv != nullptr) {
      if (Status status = copy_struct(function, "conv", conv, &terms, sizeof terms); !status.ok()) return status;
    }
    auto gathered =
        layer_tensors({{"input", input}, {"weights", weights}, {"bias", bias}, {"output", output}}, of.borrowed);
    if (!gathered) return std::move(gathered).error();
    const std::vector<JobTensor>& tensors = gathered->tensors;
    if (Status status = check_rank("input", tensors[0], 4); !status.ok()) return status;
    if (Status status = check_rank("weights", tensors[1], 4); !status.ok()) return status;
    const auto or_one = [](std::int64_t value) { return value == 0 ? 1 : value; };
    const Shape &in = tensors[0].host->shape(), &by = tensors[1].host->shape();
    Conv2dSpec spec;
    spec.n = in[0], spec.c = in[1], spec.h = in[2], spec.w = in[3];
    spec.k = by[0], spec.r = by[2], spec.s = by[3];
    spec.stride_y = or_one(terms.stride_y), spec.stride_x = or_one(terms.stride_x);
    spec.pad_y = terms.pad_y, spec.pad_x = terms.pad_x;
    spec.dilation_y = or_one(terms.dilation_y), spec.dilation_x = or_one(terms.dilation_x);
    spec.groups = or_one(terms.groups);
    spec.bias = bias == nullptr ? Bias::none : Bias::per_channel;
    spec.activation = terms.relu == 0 ? Activation::none : Activation::relu;
    return become(of, spec, std::move(*gathered));
  });
}

kiln_status* kiln_job_gemm(kiln_job* job, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* bias,
                           uint32_t relu, const kiln_tensor* output) {
  constexpr const char* function = "kiln_job_gemm";
  return changed(function, job, [&](kiln_job& of) -> Status {
    auto gathered = layer_tensors({{"a", a}, {"b", b}, {"bias", bias}, {"output", output}}, of.borrowed);
    if (!gathered) return std::move(gathered).error();
    const std::vector<JobTensor>& tensors = gathered->tensors;
    if (Status status = check_rank("a", tensors[0], 2); !status.ok()) return status;
    if (Status status = check_rank("b", tensors[1], 2); !status.ok()) return status;
    GemmSpec spec;
    spec.m = tensors[0].host->shape()[0], spec.k = tensors[0].host->shape()[1], spec.n = tensors[1].host->shape()[1];
    spec.bias = bias == nullptr ? Bias::none : Bias::per_channel;
    spec.activation = relu == 0 ? Activation::none : Activation::relu;
    return become(of, spec, std::move(*gathered));
  });
}

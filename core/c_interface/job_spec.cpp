// The functions of kiln.h that say what a job computes.
//
// The functions of kiln.h that make a job of one layer: conv2d and gemm on tensors of the application.
#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/data.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/kernel_text.hpp>
#include <kiln/operation.hpp>

#include <cstring>
#include <filesystem>
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
  return invalid_argument(std::string(name) + ": shape " + to_string(tensor.host->shape()) + " has " +
                          std::to_string(tensor.host->shape().size()) + " dimensions, expected " +
                          std::to_string(rank));
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

// The functions of kiln.h that describe a job's own kernel: source, constants, buffers, uniforms, grid, parameters.

using namespace kiln;
using namespace kiln::c_interface;

namespace {

template <class Change>
kiln_status* changed_kernel(const char* function, kiln_job* job, const Change& change) {
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (!of.is_kernel) {
      return invalid_argument(std::string(function) + ": the job has no kernel. Call kiln_job_kernel() first");
    }
    return change(of);
  });
}

Status add_value(kiln_job& job, DType type, const void* value) {
  auto tensor = HostTensor::create(type, {1});
  if (!tensor) return std::move(tensor).error();
  std::memcpy((*tensor)->bytes().data(), value, size_of(type));
  UserKernelSpec::Binding binding{Access::read, size_of(type), BindingKind::value};
  binding.dtype = type;
  binding.shape = {1};
  job.kernel.bindings.push_back(std::move(binding));
  job.tensors.push_back({nullptr, Access::read, std::move(*tensor)});
  return {};
}

}  // namespace

kiln_status* kiln_job_kernel(kiln_job* job, const char* path, const char* text) {
  constexpr const char* function = "kiln_job_kernel";
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (path == nullptr) return null_argument(function, "path");
    const Result<Dialect> dialect = data::dialect_of(path);
    if (!dialect) return dialect.error();
    if (text != nullptr && *dialect == Dialect::code_object) {
      return invalid_argument("kernel source " + std::string(path) +
                              ": text is set, expected NULL: Kiln reads SPIR-V from the file");
    }
    UserKernelSpec spec;
    spec.path = path;
    spec.dialect = *dialect;
    if (text != nullptr) {
      spec.text = text;
    } else {
      const std::filesystem::path whole = std::filesystem::absolute(path);
      auto read = read_kernel_text({whole.parent_path(), whole.filename().string(), {}}, *dialect);
      if (!read) return std::move(read).error();
      spec.text = std::move(read->text);
      spec.includes = std::move(read->includes);
    }
    clear(of);
    of.request.spec = spec;
    of.kernel = std::move(spec);
    of.is_kernel = true;
    return {};
  });
}

kiln_status* kiln_job_entry(kiln_job* job, const char* entry) {
  constexpr const char* function = "kiln_job_entry";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (entry == nullptr) return null_argument(function, "entry");
    of.kernel.entry = entry;
    return {};
  });
}

kiln_status* kiln_job_constant(kiln_job* job, const char* name, const char* text) {
  constexpr const char* function = "kiln_job_constant";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (name == nullptr) return null_argument(function, "name");
    if (text == nullptr) return null_argument(function, "text");
    if (!is_define_name(name) || !is_define_text(text)) {
      return invalid_argument(std::string("constant '") + name + "' = '" + text +
                              "': expected a name of letters, digits and '_', and a text of one line without "
                              "backslashes");
    }
    for (Define& known : of.kernel.constants) {
      if (known.name != name) continue;
      known.text = text;
      return {};
    }
    of.kernel.constants.push_back({name, text});
    return {};
  });
}

kiln_status* kiln_job_buffer(kiln_job* job, const char* name, kiln_access access, const kiln_tensor* tensor) {
  constexpr const char* function = "kiln_job_buffer";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (access < KILN_READ || access > KILN_READ_WRITE) {
      return invalid_argument(std::string(function) + ": access " + std::to_string(static_cast<int>(access)) +
                              ", expected KILN_READ, KILN_WRITE or KILN_READ_WRITE");
    }
    const std::string what = "buffer " + (name == nullptr ? std::to_string(of.tensors.size()) : std::string(name));
    Result<JobTensor> made = tensor_of(what, tensor, static_cast<Access>(access), Use::each_run, of.borrowed);
    if (!made) return std::move(made).error();
    UserKernelSpec::Binding binding{static_cast<Access>(access), made->host->bytes().size()};
    binding.dtype = made->host->dtype();
    binding.shape = made->host->shape();
    if (name != nullptr) binding.name = name;
    of.kernel.bindings.push_back(std::move(binding));
    of.tensors.push_back(std::move(*made));
    return {};
  });
}

kiln_status* kiln_job_float(kiln_job* job, float value) {
  return changed_kernel("kiln_job_float", job, [&](kiln_job& of) { return add_value(of, DType::f32, &value); });
}

kiln_status* kiln_job_int(kiln_job* job, int32_t value) {
  return changed_kernel("kiln_job_int", job, [&](kiln_job& of) { return add_value(of, DType::i32, &value); });
}

kiln_status* kiln_job_local(kiln_job* job, uint64_t bytes) {
  return changed_kernel("kiln_job_local", job, [&](kiln_job& of) -> Status {
    of.kernel.bindings.push_back({Access::read_write, bytes, BindingKind::local});
    return {};
  });
}

kiln_status* kiln_job_uniform(kiln_job* job, const char* name, kiln_type type, uint32_t rank, const uint32_t* shape,
                              const void* values) {
  constexpr const char* function = "kiln_job_uniform";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (name == nullptr) return null_argument(function, "name");
    if (values == nullptr) return null_argument(function, "values");
    if (rank > most_rank || (rank != 0 && shape == nullptr)) {
      return invalid_argument(
          std::string("uniform ") + name + ": rank is " + std::to_string(rank) +
          (shape == nullptr ? ", but shape is NULL" : ", expected at most " + std::to_string(most_rank)));
    }
    if (type != KILN_F64 && type != KILN_I32) {
      return invalid_argument(std::string("uniform ") + name + ": type " + std::to_string(static_cast<int>(type)) +
                              ", expected KILN_F64 (double) or KILN_I32 (int64_t)");
    }
    using Type = UserKernelSpec::Uniform::Type;
    UserKernelSpec::Uniform uniform{name, type == KILN_F64 ? Type::number : Type::integer, {}};
    if (rank != 0) uniform.shape.assign(shape, shape + rank);
    const std::uint64_t count = values_in(uniform);
    if (count == 0 || count > 65536) {
      return invalid_argument(std::string("uniform ") + name + ": " + std::to_string(count) +
                              " values, expected 1 to 65536");
    }
    const auto* first = static_cast<const std::byte*>(values);
    std::vector<std::byte> copy(first, first + 8 * count);
    for (std::size_t at = 0; at < of.kernel.uniforms.size(); ++at) {
      if (of.kernel.uniforms[at].name != name) continue;
      of.kernel.uniforms[at] = std::move(uniform);
      of.uniforms[at] = std::move(copy);
      return {};
    }
    of.kernel.uniforms.push_back(std::move(uniform));
    of.uniforms.push_back(std::move(copy));
    return {};
  });
}

kiln_status* kiln_job_grid(kiln_job* job, uint32_t x, uint32_t y, uint32_t z) {
  return changed_kernel("kiln_job_grid", job, [&](kiln_job& of) -> Status {
    of.kernel.grid = {x, y, z};
    of.kernel.grid_expressions = {};
    return {};
  });
}

kiln_status* kiln_job_grid_text(kiln_job* job, const char* x, const char* y, const char* z) {
  constexpr const char* function = "kiln_job_grid_text";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (x == nullptr || y == nullptr || z == nullptr) return null_argument(function, "an axis");
    of.kernel.grid_expressions = {x, y, z};
    return {};
  });
}

kiln_status* kiln_job_workgroup(kiln_job* job, uint32_t x, uint32_t y, uint32_t z) {
  return changed_kernel("kiln_job_workgroup", job, [&](kiln_job& of) -> Status {
    of.kernel.workgroup = {x, y, z};
    return {};
  });
}

kiln_status* kiln_job_parameter(kiln_job* job, const char* name, const char* const* texts, size_t count) {
  constexpr const char* function = "kiln_job_parameter";
  return changed_kernel(function, job, [&](kiln_job& of) -> Status {
    if (name == nullptr) return null_argument(function, "name");
    if (texts == nullptr && count != 0) return null_argument(function, "texts");
    UserKernelSpec::Parameter parameter{name, {}};
    for (std::size_t at = 0; at < count; ++at) {
      if (texts[at] == nullptr) return null_argument(function, "a text");
      parameter.texts.emplace_back(texts[at]);
    }
    UserKernelSpec with = of.kernel;
    with.parameters.push_back(parameter);
    // The grid may use parameters that are added later: it is checked when the job runs.
    with.grid_expressions = {};
    if (Status status = check_parameters(with); !status.ok()) return status;
    of.kernel.parameters.push_back(std::move(parameter));
    return {};
  });
}

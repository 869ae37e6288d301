#include "c_interface/job_bench.hpp"
#include "c_interface/reports.hpp"
#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/data.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/kernel_text.hpp>
#include <kiln/run_request.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

namespace kiln::c_interface {
namespace {

constexpr std::uint32_t most_rank = 32;

template <class Change>
kiln_status* changed_kernel(const char* function, kiln_job* job, const Change& change) {
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (!of.is_kernel) return invalid_argument(std::string(function) + ": call kiln_job_kernel() first");
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

// Replaces what the job was with an operation on these tensors.
void become(kiln_job& job, KernelSpec spec, std::vector<JobTensor> tensors) {
  clear(job);
  job.tensors = std::move(tensors);
  job.request.spec = std::move(spec);
  const std::vector<TensorDecl> declared = tensors_of(job.request.spec);
  for (std::size_t at = 0; at < job.tensors.size(); ++at) {
    const bool constant = declared[at].role == TensorRole::constant;
    job.request.tensors.push_back(constant ? TensorArgument{nullptr, Constant::create(job.tensors[at].host)}
                                           : TensorArgument{job.tensors[at].host, nullptr});
  }
}

Status check_shape(const char* name, const JobTensor& tensor, const Shape& expected) {
  if (tensor.host->dtype() == DType::f32 && tensor.host->shape() == expected) return {};
  return invalid_argument(std::string(name) + ": " + std::string(to_string(tensor.host->dtype())) + " " +
                          to_string(tensor.host->shape()) + ", expected float32 " + to_string(expected));
}

Status check_rank(const char* name, const JobTensor& tensor, std::size_t rank) {
  if (tensor.host->shape().size() == rank) return {};
  return invalid_argument(std::string(name) + ": shape " + to_string(tensor.host->shape()) + ", expected " +
                          std::to_string(rank) + " dimensions");
}

}  // namespace

kiln_status* changed(const char* function, kiln_job* job, const std::function<Status(kiln_job&)>& change) {
  return guarded([&]() -> Status {
    if (job == nullptr) return null_argument(function, "job");
    const std::lock_guard lock(job->mutex);
    if (job->state == kiln_job::State::running) {
      return unavailable(std::string(function) + ": job '" + job->request.name + "' runs. Wait for it first");
    }
    Status status = change(*job);
    job->is_whole = false;
    return status.ok() ? status : status.within("job '" + job->request.name + "'");
  });
}

void clear(kiln_job& job) {
  job.is_kernel = false;
  job.kernel = {};
  job.uniforms.clear();
  job.described.reset();
  job.pipeline.reset();
  job.tensors.clear();
  job.request.spec = {};
  job.request.tensors.clear();
  job.request.expected.clear();
  job.request.tolerance.reset();
}

void BorrowedTensors::add() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void BorrowedTensors::released() {
  const std::lock_guard lock(mutex_);
  --count_;
  fewer_.notify_all();
}

void BorrowedTensors::wait_until_at_most(std::size_t count) {
  std::unique_lock lock(mutex_);
  fewer_.wait(lock, [&] { return count_ <= count; });
}

void JobTensor::to_host() const {
  if (copied != nullptr && access != Access::write) {
    std::memcpy(host->bytes().data(), copied, host->bytes().size());
  }
}

void JobTensor::from_host() const {
  if (copied != nullptr && access != Access::read) {
    std::memcpy(copied, host->bytes().data(), host->bytes().size());
  }
}

Result<JobTensor> tensor_of(const std::string& what, const kiln_tensor* tensor, Access access, Use use,
                            const std::shared_ptr<BorrowedTensors>& borrowed) {
  kiln_tensor copy;
  if (Status status = copy_struct(what.c_str(), "tensor", tensor, &copy, sizeof copy); !status.ok()) return status;
  if (copy.rank > most_rank || (copy.rank != 0 && copy.shape == nullptr)) {
    return invalid_argument(what + ": rank " + std::to_string(copy.rank) +
                            (copy.shape == nullptr ? " without a shape" : ", expected at most 32"));
  }
  if (copy.type < KILN_F32 || copy.type > KILN_BOOL) {
    return invalid_argument(what + ": type " + std::to_string(static_cast<int>(copy.type)) + ", expected a kiln_type");
  }
  const auto type = static_cast<DType>(copy.type);
  Shape shape(copy.shape, copy.shape + copy.rank);
  const bool aligned = copy.data != nullptr && reinterpret_cast<std::uintptr_t>(copy.data) % 64 == 0;
  if (aligned && use == Use::each_run) {
    borrowed->add();
    auto host = HostTensor::borrow(type, std::move(shape), static_cast<std::byte*>(copy.data),
                                   [borrowed] { borrowed->released(); });
    if (host) return JobTensor{nullptr, access, std::move(*host), true};
    borrowed->released();
    return std::move(host).error().within(what);
  }
  auto host = HostTensor::create(type, std::move(shape));
  if (!host) return std::move(host).error().within(what);
  if (copy.data == nullptr && !(*host)->bytes().empty()) return invalid_argument(what + ": data is NULL");
  JobTensor made{copy.data, access, std::move(*host)};
  made.to_host();
  if (use == Use::read_once) made.copied = nullptr;
  return made;
}

static_assert(static_cast<int>(DType::f32) == KILN_F32 && static_cast<int>(DType::boolean) == KILN_BOOL,
              "kiln_type has the values of DType");
static_assert(static_cast<int>(Access::read) == KILN_READ && static_cast<int>(Access::read_write) == KILN_READ_WRITE,
              "kiln_access has the values of Access");

}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

Status kiln_job::complete() {
  if (described) {
    if (is_whole) return {};
    Status status = described->complete(*this);
    is_whole = status.ok();
    return status.ok() ? status : status.within("job '" + request.name + "'");
  }
  if (!is_kernel) {
    return tensors.empty() ? invalid_argument("job '" + request.name +
                                              "': nothing to run. Call kiln_job_kernel(), _conv2d(), _gemm() or _toml() first")
                           : Status();
  }
  if (is_whole) return {};
  request.spec = kernel;
  request.tensors.clear();
  for (const JobTensor& tensor : tensors) request.tensors.push_back({tensor.host, nullptr});
  std::vector<std::byte> values;
  for (const auto& uniform : uniforms) values.insert(values.end(), uniform.begin(), uniform.end());
  if (!values.empty()) {
    auto tensor = HostTensor::create(DType::u8, {static_cast<std::int64_t>(values.size())});
    if (!tensor) return std::move(tensor).error();
    std::ranges::copy(values, (*tensor)->bytes().begin());
    request.tensors.push_back({std::move(*tensor), nullptr});
  }
  is_whole = true;
  return {};
}

RunReport kiln_job::run_once(RunRequest& with) {
  for (const JobTensor& tensor : tensors) tensor.to_host();
  if (pipeline) {
    pipeline->device = with.device;
    pipeline->repeat = with.repeat;
    pipeline->timeout = with.timeout;
    pipeline->stop = with.stop;
    pipeline->progress = with.progress;
    const PipelineCheck check = described->has_reference() ? PipelineCheck::final : PipelineCheck::steps;
    pipeline->check = with.verify ? check : PipelineCheck::none;
  }
  RunReport ran = pipeline ? owner.runtime->run(*pipeline) : owner.runtime->run(with);
  if (ran.status.ok()) {
    for (const JobTensor& tensor : tensors) tensor.from_host();
  }
  return ran;
}

kiln_status* kiln_job_create(kiln_runtime* runtime, const char* name, kiln_job** job) {
  constexpr const char* function = "kiln_job_create";
  return guarded([&]() -> Status {
    if (job == nullptr) return null_argument(function, "job");
    *job = nullptr;
    if (runtime == nullptr) return null_argument(function, "runtime");
    if (name == nullptr) return null_argument(function, "name");
    auto* made = new kiln_job(*runtime);
    made->request.name = name;
    made->request.stop = &made->stop;
    *job = made;
    return {};
  });
}

void kiln_job_free(kiln_job* job) {
  if (job == nullptr) return;
  job->stop = true;
  {
    std::unique_lock lock(job->mutex);
    job->done.wait(lock, [&] { return job->state != kiln_job::State::running; });
  }
  // After a timeout the device may still use the memory of the application.
  const std::shared_ptr<BorrowedTensors> borrowed = job->borrowed;
  delete job;
  borrowed->wait_for_all();
}

kiln_status* kiln_job_kernel(kiln_job* job, const char* path, const char* text) {
  constexpr const char* function = "kiln_job_kernel";
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (path == nullptr) return null_argument(function, "path");
    const Result<Dialect> dialect = data::dialect_of(path);
    if (!dialect) return dialect.error();
    if (text != nullptr && *dialect == Dialect::code_object) {
      return invalid_argument("kernel source " + std::string(path) + ": text of SPIR-V, expected NULL: a module is a file");
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
    become(of, spec, {});
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
                              "': expected a name of letters, digits and '_', and a text of one line");
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
      return invalid_argument(std::string("uniform ") + name + ": rank " + std::to_string(rank) + ", expected a shape");
    }
    if (type != KILN_F64 && type != KILN_I32) {
      return invalid_argument(std::string("uniform ") + name + ": expected KILN_F64 (double) or KILN_I32 (int64_t)");
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

kiln_status* kiln_job_conv2d(kiln_job* job, const kiln_conv2d* conv, const kiln_tensor* input,
                             const kiln_tensor* weights, const kiln_tensor* bias, const kiln_tensor* output) {
  constexpr const char* function = "kiln_job_conv2d";
  return changed(function, job, [&](kiln_job& of) -> Status {
    kiln_conv2d terms;
    std::memset(&terms, 0, sizeof terms);
    if (conv != nullptr) {
      if (Status status = copy_struct(function, "conv", conv, &terms, sizeof terms); !status.ok()) return status;
    }
    std::vector<JobTensor> tensors;
    for (const auto& [name, tensor, access] :
         {std::tuple("input", input, Access::read), std::tuple("weights", weights, Access::read),
          std::tuple("bias", bias, Access::read), std::tuple("output", output, Access::write)}) {
      if (tensor == nullptr && std::string_view(name) == "bias") continue;
      const bool constant = std::string_view(name) != "input" && access == Access::read;
      Result<JobTensor> made = tensor_of(name, tensor, access, constant ? Use::read_once : Use::each_run, of.borrowed);
      if (!made) return std::move(made).error();
      tensors.push_back(std::move(*made));
    }
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
    if (Status status = validate(KernelSpec(spec)); !status.ok()) return status;
    if (Status status = check_shape("input", tensors[0], in); !status.ok()) return status;
    if (Status status = check_shape("weights", tensors[1], {spec.k, spec.c / spec.groups, spec.r, spec.s});
        !status.ok()) {
      return status;
    }
    if (bias != nullptr) {
      if (Status status = check_shape("bias", tensors[2], {spec.k}); !status.ok()) return status;
    }
    if (Status status = check_shape("output", tensors.back(), {spec.n, spec.k, spec.out_h(), spec.out_w()});
        !status.ok()) {
      return status;
    }
    become(of, spec, std::move(tensors));
    return {};
  });
}

kiln_status* kiln_job_gemm(kiln_job* job, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* bias,
                           uint32_t relu, const kiln_tensor* output) {
  constexpr const char* function = "kiln_job_gemm";
  return changed(function, job, [&](kiln_job& of) -> Status {
    std::vector<JobTensor> tensors;
    for (const auto& [name, tensor, access] :
         {std::tuple("a", a, Access::read), std::tuple("b", b, Access::read), std::tuple("bias", bias, Access::read),
          std::tuple("output", output, Access::write)}) {
      if (tensor == nullptr && std::string_view(name) == "bias") continue;
      const bool constant = std::string_view(name) != "a" && access == Access::read;
      Result<JobTensor> made = tensor_of(name, tensor, access, constant ? Use::read_once : Use::each_run, of.borrowed);
      if (!made) return std::move(made).error();
      tensors.push_back(std::move(*made));
    }
    if (Status status = check_rank("a", tensors[0], 2); !status.ok()) return status;
    if (Status status = check_rank("b", tensors[1], 2); !status.ok()) return status;
    GemmSpec spec;
    spec.m = tensors[0].host->shape()[0], spec.k = tensors[0].host->shape()[1], spec.n = tensors[1].host->shape()[1];
    spec.bias = bias == nullptr ? Bias::none : Bias::per_channel;
    spec.activation = relu == 0 ? Activation::none : Activation::relu;
    if (Status status = validate(KernelSpec(spec)); !status.ok()) return status;
    if (Status status = check_shape("a", tensors[0], {spec.m, spec.k}); !status.ok()) return status;
    if (Status status = check_shape("b", tensors[1], {spec.k, spec.n}); !status.ok()) return status;
    if (bias != nullptr) {
      if (Status status = check_shape("bias", tensors[2], {spec.n}); !status.ok()) return status;
    }
    if (Status status = check_shape("output", tensors.back(), {spec.m, spec.n}); !status.ok()) return status;
    become(of, spec, std::move(tensors));
    return {};
  });
}

kiln_status* kiln_job_device(kiln_job* job, const char* device) {
  return changed("kiln_job_device", job, [&](kiln_job& of) -> Status {
    of.request.device = device == nullptr || std::string_view(device) == "auto" ? "" : device;
    return {};
  });
}

kiln_status* kiln_job_repeat(kiln_job* job, uint32_t runs) {
  return changed("kiln_job_repeat", job, [&](kiln_job& of) -> Status {
    if (runs == 0) return invalid_argument("kiln_job_repeat: 0 runs, expected at least 1");
    of.request.repeat = runs;
    return {};
  });
}

kiln_status* kiln_job_timeout(kiln_job* job, uint32_t milliseconds) {
  return changed("kiln_job_timeout", job, [&](kiln_job& of) -> Status {
    of.request.timeout.reset();
    if (milliseconds != 0) of.request.timeout = std::chrono::milliseconds(milliseconds);
    return {};
  });
}

kiln_status* kiln_job_progress(kiln_job* job, int (*progress)(void* user, uint32_t done, uint32_t of), void* user) {
  return changed("kiln_job_progress", job, [&](kiln_job& of) -> Status {
    of.request.progress = nullptr;
    if (progress != nullptr) {
      of.request.progress = [progress, user, &of](std::uint32_t done) {
        return progress(user, done, of.request.repeat) != 0;
      };
    }
    return {};
  });
}

kiln_status* kiln_job_verify(kiln_job* job, uint32_t verify) {
  return changed("kiln_job_verify", job, [&](kiln_job& of) -> Status {
    if (verify != 0 && of.is_kernel) {
      return unsupported("kiln_job_verify: a kernel of the application has no reference. Compare its output yourself");
    }
    of.request.verify = verify != 0;
    return {};
  });
}

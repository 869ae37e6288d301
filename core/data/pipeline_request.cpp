#include <kiln/config_text.hpp>
#include <kiln/data.hpp>
#include <kiln/operation.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace kiln::data {
namespace {

std::string text_of(DType dtype, const Shape& shape) { return std::string(numpy_name(dtype)) + " " + to_string(shape); }

class PipelineMaker {
 public:
  PipelineMaker(const PipelineConfig& config, Contents contents, std::vector<std::string>* notes, Memory* memory)
      : config_(config), whole_(config.job), contents_(contents), notes_(notes), memory_(memory) {}

  Result<PipelineRequest> make() {
    Pipeline& pipeline = request_.pipeline;
    pipeline.name = whole_.name;
    request_.device = whole_.device;
    request_.tolerance = whole_.tolerance;
    for (const KernelBindingConfig& tensor : whole_.bindings) {
      Status status = declare(tensor);
      if (!status.ok()) return status.within("tensor '" + tensor.name + "'");
    }
    if (Status status = add_steps(config_.steps, pipeline.steps); !status.ok()) return status;
    for (const PipelineTensor& tensor : pipeline.tensors) {
      if (!tensor.shape.empty()) continue;
      return invalid_argument("tensor '" + tensor.name +
                              "': shape is unknown. Add shape = [N, …], or a step that writes the tensor");
    }
    if (contents_ == Contents::load) {
      if (Status status = make_results(); !status.ok()) return status;
    }
    if (Status status = validate(pipeline); !status.ok()) return status;
    return std::move(request_);
  }

 private:
  // Without a shape: that of the step which writes it.
  Status declare(const KernelBindingConfig& tensor) {
    PipelineTensor made;
    made.name = tensor.name;
    made.access = tensor.access;
    made.dtype = tensor.dtype;
    made.shape = tensor.shape;
    if (!tensor.input.empty()) {
      const std::string_view role = tensor.access == Access::read ? "input" : "inout";
      auto form = form_of(tensor.input, whole_.base, request_of(whole_, tensor, role, memory_));
      if (!form) return std::move(form).error();
      made.dtype = form->dtype;
      made.shape = form->shape;
      if (contents_ == Contents::load) {
        auto loaded = load_binding(whole_, tensor, notes_, memory_);
        if (!loaded) return std::move(loaded).error();
        made.host = std::move(*loaded);
      }
    } else if (is_given(tensor.output)) {
      const auto given =
          load_tensor(tensor.output, whole_.base,
                      {.dtype = tensor.dtype, .shape = tensor.shape, .role = "output", .memory = memory_});
      if (!given) return given.error();
      made.dtype = (*given)->dtype();
      made.shape = (*given)->shape();
      if (contents_ == Contents::load) made.host = *given;
    }
    if (!tensor.expect.empty()) {
      auto wanted = request_of_expected(whole_, tensor, "expect", memory_);
      if (made.dtype != DType::invalid) wanted.dtype = made.dtype;
      if (lacks_form(tensor.expect)) wanted.shape = made.shape;
      const auto form = form_of(tensor.expect, whole_.base, wanted);
      if (!form) return form.error();
      if (made.shape.empty()) made.shape = form->shape;
      if (made.dtype == DType::invalid) made.dtype = form->dtype;
      if (made.shape != form->shape || made.dtype != form->dtype) {
        return invalid_argument("expect " + tensor.expect + ": found " + text_of(form->dtype, form->shape) +
                                ", expected " + text_of(made.dtype, made.shape));
      }
      if (contents_ == Contents::load) {
        auto loaded = load_tensor(tensor.expect, whole_.base, wanted, notes_);
        if (!loaded) return std::move(loaded).error();
        request_.expected.push_back({tensor.name, {std::move(*loaded), tensor.tolerance, tensor.output}});
      }
    }
    if (tensor.expect.empty() && tensor.tolerance) {
      request_.expected.push_back({tensor.name, {nullptr, tensor.tolerance, tensor.output}});
    }
    if (made.dtype == DType::invalid && !made.shape.empty()) made.dtype = DType::f32;
    tensor_at_.emplace(made.name, request_.pipeline.tensors.size());
    request_.pipeline.tensors.push_back(std::move(made));
    return {};
  }

  Status add_steps(const std::vector<PipelineStepConfig>& steps, std::vector<PipelineStep>& to) {
    for (const PipelineStepConfig& config : steps) {
      PipelineStep step;
      step.name = config.job.name;
      step.repeat = config.repeat;
      step.swap = config.swap;
      step.tolerance = config.job.tolerance;
      Status status = !config.steps.empty()       ? add_steps(config.steps, step.steps)
                      : config.job.op == "kernel" ? add_kernel(config.job, step)
                                                  : add_layer(config.job, step);
      if (!status.ok()) return config.steps.empty() ? status.within("step '" + step.name + "'") : status;
      to.push_back(std::move(step));
    }
    return {};
  }

  // Whether the result goes into a tensor of the application. While the pipeline is checked, it may be missing.
  bool is_given(const std::string& output) const {
    const auto name = memory_name(output);
    return name && (contents_ == Contents::load || memory_ == nullptr || memory_->tensors.contains(*name));
  }

  bool is_tensor(const std::string& name) const { return tensor_at_.contains(name); }

  // Errors that name no tensor of a step would be about a file that nobody meant.
  Status no_tensor(const std::string& key, const std::string& name) const {
    std::string known;
    for (const PipelineTensor& tensor : request_.pipeline.tensors) known += (known.empty() ? "" : ", ") + tensor.name;
    return not_found(key + ": found " + config::toml_text(name) +
                     ", expected a tensor that is declared or written by an earlier step" +
                     (known.empty() ? "" : ": " + known));
  }

  // A tensor that a step writes: declared with a form, without one, or not at all.
  Status write(const std::string& name, DType dtype, const Shape& shape) {
    const auto [at, is_new] = tensor_at_.try_emplace(name, request_.pipeline.tensors.size());
    if (is_new) {
      if (shape.empty()) return invalid_argument("output '" + name + "': shape is not set. Add shape = [N, …]");
      PipelineTensor made;
      made.name = name;
      request_.pipeline.tensors.push_back(std::move(made));
    }
    PipelineTensor& tensor = request_.pipeline.tensors[at->second];
    if (tensor.shape.empty()) {
      if (tensor.dtype != DType::invalid && tensor.dtype != dtype) {
        return invalid_argument("tensor '" + name + "' is " + std::string(numpy_name(tensor.dtype)) +
                                ", the step writes " + text_of(dtype, shape));
      }
      if (shape.empty())
        return invalid_argument("output '" + name + "': shape is not set. Add shape = [N, …] to the step or tensor");
      tensor.shape = shape;
      tensor.dtype = dtype;
    }
    if (shape.empty() || (tensor.shape == shape && tensor.dtype == dtype)) return {};
    return invalid_argument("tensor '" + name + "' is " + text_of(tensor.dtype, tensor.shape) + ", the step writes " +
                            text_of(dtype, shape));
  }

  Status add_layer(const JobConfig& job, PipelineStep& step) {
    step.spec = job.spec;
    const std::vector<Operand> operands = operation_of(job.spec).operands(job.spec);
    const std::vector<OperandSource> sources = sources_of(job);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto& [key, source] = sources[i];
      if (operands[i].role == TensorRole::constant) {
        if (Status status = add_constant(job, source, operands[i].shape, key, step); !status.ok()) return status;
        continue;
      }
      if (operands[i].role == TensorRole::input && !is_tensor(source)) return no_tensor(key, source);
      step.arguments.push_back({source, {}});
    }
    return write(job.output, DType::f32, operands.back().shape);
  }

  Status add_constant(const JobConfig& job, const std::string& source, const Shape& shape, const std::string& key,
                      PipelineStep& step) {
    if (is_tensor(source)) {
      return invalid_argument(key + ": found tensor '" + source + "', expected random:SEED, he:SEED, zeros: or a file");
    }
    const TensorRequest request{
        .dtype = DType::f32, .shape = shape, .role = key, .alpha = whole_.alpha, .memory = memory_};
    if (contents_ == Contents::check) {
      const auto form = form_of(source, job.base, request);
      step.arguments.emplace_back();
      return form ? Status{} : form.error();
    }
    auto loaded = load_constant(source, job.base, request, memory_, notes_);
    if (!loaded) return std::move(loaded).error();
    step.arguments.push_back({"", {nullptr, std::move(*loaded)}});
    return {};
  }

  Status add_kernel(const JobConfig& job, PipelineStep& step) {
    auto kernel = kernel_of(job);
    if (!kernel) return std::move(kernel).error();
    for (const KernelBindingConfig& binding : job.bindings) {
      UserKernelSpec::Binding& added = kernel->bindings.emplace_back(declared(binding));
      if (!has_tensor(binding.kind)) continue;
      Status status = add_binding(job, binding, added, step);
      if (!status.ok()) return status.within(binding.label);
    }
    auto uniforms = add_uniforms(job, *kernel);
    if (!uniforms) return std::move(uniforms).error();
    if (*uniforms != nullptr) step.arguments.push_back({"", {std::move(*uniforms), nullptr}});
    step.spec = std::move(*kernel);
    return {};
  }

  Status add_binding(const JobConfig& job, const KernelBindingConfig& binding, UserKernelSpec::Binding& added,
                     PipelineStep& step) {
    if (!binding.expect.empty() || binding.tolerance) {
      return invalid_argument("expect and tolerance: found in a step, expected in the tensor of the pipeline");
    }
    const bool writes = binding.access != Access::read;
    const bool own = !writes && (has_values(binding) || !is_tensor(binding.input));
    if (own) return add_own(job, binding, added, step);
    if (binding.access == Access::read_write && binding.output != binding.input) {
      return invalid_argument("found inout and output, expected only one of them in a step");
    }
    const std::string& name = writes ? binding.output : binding.input;
    if (binding.access == Access::write) {
      const TensorForm form = form_of_output(binding);
      if (Status status = write(name, form.dtype, form.shape); !status.ok()) return status;
    } else if (!is_tensor(name)) {
      return no_tensor("inout", name);
    }
    const PipelineTensor& tensor = request_.pipeline.tensors[tensor_at_.at(name)];
    if (tensor.shape.empty()) {
      return invalid_argument("tensor '" + name + "': shape is unknown. Add shape = [N, …] to the tensor");
    }
    const bool other_form = (binding.dtype != DType::invalid && binding.dtype != tensor.dtype) ||
                            (!binding.shape.empty() && binding.shape != tensor.shape);
    if (other_form) {
      return invalid_argument("tensor '" + name + "' is " + text_of(tensor.dtype, tensor.shape) + ", expected " +
                              text_of(binding.dtype == DType::invalid ? tensor.dtype : binding.dtype,
                                      binding.shape.empty() ? tensor.shape : binding.shape));
    }
    set_form(added, tensor.dtype, tensor.shape);
    const bool texture = added.kind == BindingKind::image || added.kind == BindingKind::sampler;
    added.picture = texture && is_picture(name, &KernelBindingConfig::input);
    added.shown = texture && is_picture(name, &KernelBindingConfig::output);
    step.arguments.push_back({name, {}});
    return {};
  }

  // Whether the tensor has the samples of a PNG, which is its input or output.
  bool is_picture(const std::string& tensor, std::string KernelBindingConfig::*file) const {
    return std::ranges::any_of(whole_.bindings, [&](const KernelBindingConfig& each) {
      const bool samples = each.dtype == DType::u8 || each.dtype == DType::u16;
      return each.name == tensor && samples && is_file(each.*file) && data::is_picture(each.*file);
    });
  }

  // What only this step reads: values, or a file.
  Status add_own(const JobConfig& job, const KernelBindingConfig& binding, UserKernelSpec::Binding& added,
                 PipelineStep& step) {
    const bool checks = contents_ == Contents::check && !has_values(binding);
    if (checks) {
      const auto form = form_of(binding.input, job.base, request_of(job, binding, "input", memory_));
      if (!form) {
        const Status none = no_tensor("input", binding.input);
        return is_file(binding.input) ? Status{none.code, none.message + " (" + form.error().message + ")"}
                                      : form.error();
      }
      set_form(added, form->dtype, form->shape);
      auto empty = HostTensor::create(form->dtype, form->shape);
      if (!empty) return std::move(empty).error();
      step.arguments.push_back({"", {std::move(*empty), nullptr}});
      return {};
    }
    auto loaded = load_binding(job, binding, notes_, memory_);
    if (!loaded) return std::move(loaded).error();
    set_form(added, (*loaded)->dtype(), (*loaded)->shape());
    step.arguments.push_back({"", {std::move(*loaded), nullptr}});
    return {};
  }

  static void set_form(UserKernelSpec::Binding& binding, DType dtype, const Shape& shape) {
    binding.dtype = dtype;
    binding.shape = shape;
    binding.bytes = size_of(dtype);
    for (const std::int64_t extent : shape) binding.bytes *= static_cast<std::uint64_t>(extent);
  }

  Status make_results() {
    for (PipelineTensor& tensor : request_.pipeline.tensors) {
      if (tensor.access != Access::write || tensor.host != nullptr) continue;
      auto made = HostTensor::create(tensor.dtype, tensor.shape);
      if (!made) return made.error().within("tensor '" + tensor.name + "'");
      tensor.host = std::move(*made);
    }
    return {};
  }

  const PipelineConfig& config_;
  const JobConfig& whole_;
  const Contents contents_;
  std::vector<std::string>* const notes_;
  Memory* const memory_;
  PipelineRequest request_;
  std::map<std::string, std::size_t, std::less<>> tensor_at_;
};

}  // namespace

Result<PipelineRequest> make_request(const PipelineConfig& config, Contents contents, std::vector<std::string>* notes,
                                     Memory* memory) {
  auto made = PipelineMaker(config, contents, notes, memory).make();
  const std::string who = "pipeline '" + config.job.name + "'";
  if (made || made.error().message.starts_with(who)) return made;
  return made.error().within(who);
}

Result<std::vector<AtomicFile>> prepare_outputs(const PipelineConfig& config, const PipelineRequest& request) {
  std::vector<AtomicFile> files;
  for (const KernelBindingConfig& tensor : config.job.bindings) {
    if (tensor.output.empty()) continue;
    const auto named = [&](const PipelineTensor& each) { return each.name == tensor.name; };
    const auto result = std::ranges::find_if(request.pipeline.tensors, named);
    auto file = prepare_tensor(config.job.base / tensor.output, *result->host);
    if (!file) return std::move(file).error();
    files.push_back(std::move(*file));
  }
  return files;
}

}  // namespace kiln::data

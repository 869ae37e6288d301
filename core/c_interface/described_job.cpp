#include "c_interface/described_job.hpp"

#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/data.hpp>
#include <kiln/operation.hpp>
#include <kiln_json.hpp>

#include <algorithm>
#include <utility>

namespace kiln::c_interface {
namespace {

bool has_kernel(const std::vector<PipelineStepConfig>& steps) {
  return std::ranges::any_of(steps, [](const PipelineStepConfig& step) {
    return step.steps.empty() ? step.job.op == "kernel" : has_kernel(step.steps);
  });
}

bool has_expected(const JobConfig& job) {
  return std::ranges::any_of(job.bindings, [](const KernelBindingConfig& binding) { return !binding.expect.empty(); });
}

// Settings in the text would be ignored.
Status check_alone(const Config& config) {
  for (const auto& [key, origin] : config.origins) {
    if (origin.kind == OriginKind::file) return invalid_argument(key + ": found in the job's text, expected in a file");
  }
  if (!config.plugin_places.empty()) {
    return invalid_argument("plugin." + config.plugin_places.begin()->first +
                            ": found in the job's text, expected in a file");
  }
  const std::size_t found = config.jobs.size() + config.pipelines.size();
  if (found == 1) return {};
  return invalid_argument("found " + std::to_string(found) +
                          " jobs and pipelines, expected one [[job]] or [[pipeline]]");
}

}  // namespace

Result<DescribedJob> DescribedJob::read(std::string_view text, const std::filesystem::path& folder) {
  ConfigSources sources;
  sources.environment.clear();
  const ConfigReading reading = read_config_text(text, (folder / "text").string(), sources);
  std::string problems;
  for (const ConfigProblem& problem : reading.problems) {
    problems += (problems.empty() ? "" : "\n") + std::to_string(problem.place.line) + ":" +
                std::to_string(problem.place.column) + ": " + problem.message;
  }
  if (!problems.empty()) return invalid_argument(std::move(problems));
  if (Status status = check_alone(reading.config); !status.ok()) return status;
  DescribedJob made(reading.config.jobs.empty() ? Written(reading.config.pipelines.front())
                                                : Written(reading.config.jobs.front()));
  if (Status status = made.find_tensors(); !status.ok()) return status;
  return made;
}

const JobConfig& DescribedJob::job() const noexcept {
  const auto* pipeline = std::get_if<PipelineConfig>(&written_);
  return pipeline != nullptr ? pipeline->job : *std::get_if<JobConfig>(&written_);
}

Status DescribedJob::add(const std::string& source, Access access, bool constant) {
  const auto name = data::memory_name(source);
  if (!name) return {};
  if (name->empty()) return invalid_argument("found \"memory:\", expected \"memory:NAME\"");
  const auto known = std::ranges::find(tensors_, *name, &DescribedTensor::name);
  if (known == tensors_.end()) {
    tensors_.push_back({std::string(*name), access, constant});
    return {};
  }
  if (known->access == Access::read && access == Access::read) {
    known->constant = known->constant && constant;
    return {};
  }
  return invalid_argument("memory:" + std::string(*name) +
                          " is written and used a second time, expected a different tensor");
}

Status DescribedJob::add_binding(const KernelBindingConfig& binding) {
  const auto result = [&]() -> Status {
    if (binding.output.empty() || data::memory_name(binding.output)) return {};
    return invalid_argument("found the file " + binding.output + ", expected \"memory:NAME\" for a result");
  }();
  if (!result.ok()) return result.within(binding.label);
  const bool in_place = binding.output == binding.input;
  if (!in_place && !binding.output.empty() && !binding.input.empty()) {
    return invalid_argument(binding.label + ": found both inout and output, expected only one");
  }
  Status status = binding.output.empty() ? add(binding.input, Access::read) : add(binding.output, binding.access);
  if (status.ok() && !binding.expect.empty()) status = add(binding.expect, Access::read);
  return status.ok() ? status : status.within(binding.label);
}

Status DescribedJob::add_steps(const std::vector<PipelineStepConfig>& steps) {
  for (const PipelineStepConfig& step : steps) {
    Status status = add_steps(step.steps);
    // Bindings name tensors of the pipeline, or what only this step reads.
    for (const KernelBindingConfig& binding : step.job.bindings) {
      if (status.ok()) status = add(binding.input, Access::read);
    }
    for (const std::string& source : {step.job.weights, step.job.bias}) {
      if (status.ok()) status = add(source, Access::read, true);
    }
    if (!status.ok()) return step.steps.empty() ? status.within("step '" + step.job.name + "'") : status;
  }
  return {};
}

Status DescribedJob::find_tensors() {
  const JobConfig& job = this->job();
  for (const KernelBindingConfig& binding : job.bindings) {
    if (Status status = add_binding(binding); !status.ok()) return status;
  }
  if (const auto* pipeline = std::get_if<PipelineConfig>(&written_)) {
    has_reference_ = has_expected(job) || !has_kernel(pipeline->steps);
    return add_steps(pipeline->steps);
  }
  has_reference_ = has_expected(job) || job.op != "kernel";
  if (job.op == "kernel") return {};
  if (!data::memory_name(job.output)) {
    return invalid_argument("output: found " + (job.output.empty() ? "none" : "the file " + job.output) +
                            ", expected \"memory:NAME\"");
  }
  Status status = add(job.input, Access::read);
  if (status.ok()) status = add(job.addend, Access::read);
  for (const std::string& source : {job.weights, job.bias}) {
    if (status.ok()) status = add(source, Access::read, true);
  }
  return status.ok() ? add(job.output, Access::write) : status;
}

void DescribedJob::give(const kiln_job& job) {
  memory_.tensors.clear();
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    if (job.tensors[at].host != nullptr) memory_.tensors.emplace(tensors_[at].name, job.tensors[at].host);
  }
}

Status DescribedJob::complete(kiln_job& job, std::vector<std::string>& notes) {
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    if (job.tensors[at].host != nullptr) continue;
    return invalid_argument("tensor '" + tensors_[at].name + "' is missing. Call kiln_job_tensor() first");
  }
  const auto* pipeline = std::get_if<PipelineConfig>(&written_);
  if (job.request.verify && pipeline == nullptr && !has_reference_) {
    return invalid_argument("verify: no result has `expect`, so there is nothing to compare with");
  }
  give(job);
  Status status;
  if (pipeline != nullptr) {
    auto made = data::make_request(*pipeline, data::Contents::load, &notes, &memory_);
    if (made) {
      job.pipeline = std::move(*made);
    } else {
      status = std::move(made).error();
    }
  } else {
    auto made = data::make_request(*std::get_if<JobConfig>(&written_), &notes, &memory_);
    if (made) {
      job.request.spec = std::move(made->spec);
      job.request.tensors = std::move(made->tensors);
      job.request.expected = std::move(made->expected);
      job.request.tolerance = made->tolerance;
    } else {
      status = std::move(made).error();
    }
  }
  memory_.tensors.clear();
  return status;
}

void DescribedJob::replaced(const std::string& name) {
  const std::string source = "memory:" + name + " ";
  std::erase_if(memory_.constants, [&](const auto& made) { return made.first.starts_with(source); });
}

Result<std::vector<data::TensorForm>> DescribedJob::forms(const kiln_job& job) {
  std::vector<data::TensorForm> forms;
  bool all_inputs = true;
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    const std::shared_ptr<HostTensor>& host = job.tensors[at].host;
    forms.push_back(host == nullptr ? data::TensorForm{} : data::TensorForm{host->dtype(), host->shape()});
    all_inputs = all_inputs && (host != nullptr || tensors_[at].access == Access::write);
  }
  const auto form_at = [&](const std::string& source) -> data::TensorForm& {
    const auto found = std::ranges::find(tensors_, data::memory_name(source), &DescribedTensor::name);
    return forms[static_cast<std::size_t>(found - tensors_.begin())];
  };
  if (const auto* pipeline = std::get_if<PipelineConfig>(&written_)) {
    if (!all_inputs) return forms;
    give(job);
    const auto checked = data::make_request(*pipeline, data::Contents::check, nullptr, &memory_);
    memory_.tensors.clear();
    if (!checked) return checked.error();
    for (const KernelBindingConfig& binding : pipeline->job.bindings) {
      const auto& made = checked->pipeline.tensors;
      const auto tensor = std::ranges::find(made, binding.name, &PipelineTensor::name);
      if (!binding.output.empty()) form_at(binding.output) = {tensor->dtype, tensor->shape};
    }
    return forms;
  }
  const JobConfig& config = *std::get_if<JobConfig>(&written_);
  if (config.op != "kernel") {
    form_at(config.output) = {DType::f32, operation_of(config.spec).operands(config.spec).back().shape};
  }
  for (const KernelBindingConfig& binding : config.bindings) {
    if (binding.output.empty() || !form_at(binding.output).shape.empty()) continue;
    form_at(binding.output) = data::form_of_output(binding);
  }
  return forms;
}

}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

namespace {

Status no_text(const char* function) {
  return invalid_argument(std::string(function) + ": the job has no text. Call kiln_job_toml() first");
}

}  // namespace

kiln_status* kiln_job_toml(kiln_job* job, const char* text, const char* folder) {
  constexpr const char* function = "kiln_job_toml";
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (text == nullptr) return null_argument(function, "text");
    if (folder != nullptr && *folder == '\0') {
      return invalid_argument(std::string(function) +
                              ": folder: found an empty name, expected a folder, or NULL for the working directory");
    }
    auto described = DescribedJob::read(text, std::filesystem::absolute(folder == nullptr ? "." : folder));
    if (!described) return std::move(described).error();
    clear(of);
    of.described = std::move(*described);
    of.tensors.resize(of.described->tensors().size());
    const JobConfig& written = of.described->job();
    of.request.device = written.device == "auto" ? "" : written.device;
    of.request.verify = written.verify;
    return {};
  });
}

kiln_status* kiln_job_tensor(kiln_job* job, const char* name, const kiln_tensor* tensor) {
  constexpr const char* function = "kiln_job_tensor";
  return changed(function, job, [&](kiln_job& of) -> Status {
    if (name == nullptr) return null_argument(function, "name");
    if (!of.described) return no_text(function);
    const auto known = of.described->tensors();
    const auto found = std::ranges::find(known, std::string_view(name), &DescribedTensor::name);
    if (found == known.end()) {
      std::string names;
      for (const DescribedTensor& each : known) names += (names.empty() ? "" : ", ") + each.name;
      return not_found(std::string("tensor '") + name + "': the text has no \"memory:" + name + "\"" +
                       (names.empty() ? " and no other \"memory:NAME\"" : ", expected one of " + names));
    }
    const Use use = found->constant ? Use::read_once : Use::each_run;
    auto made = tensor_of("tensor '" + found->name + "'", tensor, found->access, use, of.borrowed);
    if (!made) return std::move(made).error();
    of.described->replaced(found->name);
    of.request.tensors.clear();
    of.request.expected.clear();
    of.pipeline.reset();
    of.tensors[static_cast<std::size_t>(found - known.begin())] = std::move(*made);
    const auto in_place = std::ranges::count_if(of.tensors, &JobTensor::in_place);
    of.borrowed->wait_until_at_most(static_cast<std::size_t>(in_place));
    return {};
  });
}

kiln_status* kiln_job_tensors(kiln_job* job, char** json) {
  constexpr const char* function = "kiln_job_tensors";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_job(function, job); !status.ok()) return status;
    const std::lock_guard lock(job->mutex);
    if (!job->described) return no_text(function);
    const auto forms = job->described->forms(*job);
    if (!forms) return forms.error().within("job '" + job->request.name + "'");
    Json all{{"tensors", Json::array()}};
    for (std::size_t at = 0; at < forms->size(); ++at) {
      const DescribedTensor& tensor = job->described->tensors()[at];
      const data::TensorForm& form = (*forms)[at];
      const bool given = job->tensors[at].host != nullptr;
      const bool known = given || (form.dtype != DType::invalid && !form.shape.empty());
      const char* access = tensor.access == Access::read    ? "read"
                           : tensor.access == Access::write ? "write"
                                                            : "read_write";
      all["tensors"].push_back({{"name", tensor.name},
                                {"access", access},
                                {"dtype", known ? Json(numpy_name(form.dtype)) : Json(nullptr)},
                                {"shape", known ? Json(form.shape) : Json(nullptr)},
                                {"given", given}});
    }
    *json = copied_text(json_text(all));
    return {};
  });
}

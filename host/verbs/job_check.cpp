#include "verbs/job_check.hpp"

#include <kiln/config_text.hpp>
#include <kiln/data.hpp>
#include <kiln/operation.hpp>
#include <kiln/result_files.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kiln::host {
namespace {

namespace fs = std::filesystem;

using data::TensorForm;

std::string text_of(const TensorForm& form) {
  return std::string(numpy_name(form.dtype)) + " " + to_string(form.shape);
}

// What the configuration has wrong: the file is none, or its folder cannot be one. What the system refuses fails the
// job when it begins (check_writable()). folders: those that are known to exist.
Status check_place(const fs::path& path, std::set<std::string>& folders) {
  std::error_code error;
  const std::string who = "file " + path.string();
  const auto file = followed(path);
  if (!file) return file.error();
  if (Status status = check_replaceable(*file); !status.ok()) return status;
  fs::path folder = fs::absolute(*file, error).parent_path();
  if (folders.contains(folder.native())) return {};
  if (*file != path && !fs::is_directory(folder, error)) {
    return io_error(who + ": symbolic link to " + file->string() + ", folder " + folder.string() + " does not exist");
  }
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, error)) {
    return io_error(who + ": cannot create folder " + path.parent_path().string() + ": " + folder.string() +
                    " is not a folder");
  }
  folders.insert(folder.native());
  return {};
}

class JobChecker {
 public:
  void check(const JobConfig& job) {
    job_ = &job;
    pending_.clear();
    read_.clear();
    if (job.op == "kernel") {
      check_kernel();
    } else {
      check_operands();
    }
    for (auto& [file, form] : pending_) {
      unread_.insert_or_assign(file, job.name);
      written_.insert_or_assign(file, std::move(form));
    }
  }

  std::vector<ConfigProblem> problems;

 private:
  void problem(const std::string& key, const Status& status) {
    const ConfigPlace place = job_->place_of(key);
    // A file that many rows of a table name is missing once.
    const std::string where = place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
    if (!told_.insert(where + status.message).second) return;
    problems.push_back({place, "job " + config::toml_text(job_->name) + ": " + status.message});
  }

  // What a job before this one leaves in the file; null: none writes it. Empty: of a form that is not known here.
  const std::optional<TensorForm>* written_before(const fs::path& file) {
    if (written_.empty()) return nullptr;
    const auto at = written_.find(names_.of(file));
    return at == written_.end() ? nullptr : &at->second;
  }

  void check_operands() {
    const std::vector<Operand> operands = operation_of(job_->spec).operands(job_->spec);
    const std::vector<data::OperandSource> sources = data::sources_of(*job_);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].role != TensorRole::output) {
        check_operand(sources[i].key, sources[i].source, operands[i].shape);
      } else if (!sources[i].source.empty()) {
        check_output(sources[i].key, sources[i].source, TensorForm{DType::f32, operands[i].shape});
      }
    }
  }

  void check_operand(const std::string& key, const std::string& source, const Shape& shape) {
    const data::TensorRequest request{DType::f32, shape, key, job_->alpha};
    note_read(job_->base / source);
    if (const auto* form = written_before(job_->base / source)) {
      const bool comparable = form->has_value() && fs::path(source).extension() == ".npy";
      const TensorForm wanted{DType::f32, shape};
      if (comparable && **form != wanted) {
        problem(key, invalid_argument(key + ": file " + source + ": an earlier job writes " + text_of(**form) +
                                      ", expected " + text_of(wanted)));
      }
      return;
    }
    if (auto form = data::form_of(source, job_->base, request); !form) problem(key, form.error());
  }

  void check_output(const std::string& key, const fs::path& path, const std::optional<TensorForm>& form) {
    Status status = form ? data::check_storable(path, form->dtype, form->shape) : Status{};
    if (status.ok()) status = check_place(path, folders_);
    if (!status.ok()) problem(key, status.within(key));
    const fs::path file = names_.of(path);
    const auto same = [&](const auto& other) { return other.first == file; };
    const auto unread = unread_.find(file);
    if (std::ranges::any_of(pending_, same)) {
      problem(key, invalid_argument(key + ": file " + path.string() + " is also written by another result of the job"));
    } else if (reads_elsewhere(file, path)) {
      problem(key, invalid_argument(key + ": file " + path.string() +
                                    " is also an input of the job. Use inout, or another file"));
    } else if (unread != unread_.end() && !read_.contains(file)) {
      problem(key, invalid_argument(key + ": file " + path.string() + " is already written by job '" + unread->second +
                                    "', and no job in between reads the file"));
    }
    pending_.emplace_back(file, form);
  }

  void note_read(const fs::path& path) {
    const fs::path file = names_.of(path);
    read_.insert(file);
    unread_.erase(file);
  }

  // Whether a binding other than the one that writes `path` in place reads the file.
  bool reads_elsewhere(const fs::path& file, const fs::path& path) {
    return std::ranges::any_of(job_->bindings, [&](const KernelBindingConfig& binding) {
      const bool in_place = binding.output == binding.input && job_->base / binding.output == path;
      return !binding.input.empty() && !in_place && names_.of(job_->base / binding.input) == file;
    });
  }

  // The form of what a binding reads; nullopt: not known, or a problem was added.
  std::optional<TensorForm> file_form(const std::string& place, const std::string& source,
                                      const data::TensorRequest& request) {
    if (data::is_file(source)) {
      note_read(job_->base / source);
      if (const auto* form = written_before(job_->base / source)) return *form;
    }
    const auto form = data::form_of(source, job_->base, request);
    if (form) return *form;
    problem(place, form.error());
    return std::nullopt;
  }

  void check_kernel() {
    if (Status status = data::check_source(*job_); !status.ok()) problem("source", status.within("source"));
    for (std::size_t i = 0; i < job_->include.size(); ++i) {
      std::error_code error;
      const fs::path folder = job_->base / job_->include[i];
      if (fs::is_directory(folder, error)) continue;
      problem("include[" + std::to_string(i) + "]",
              not_found("include: folder " + folder.string() + " does not exist"));
    }
    for (std::size_t i = 0; i < job_->bindings.size(); ++i) {
      if (has_tensor(job_->bindings[i].kind)) check_binding(job_->bindings[i]);
    }
    const auto compared = [](const KernelBindingConfig& binding) { return !binding.expect.empty(); };
    if (job_->verify && std::ranges::none_of(job_->bindings, compared)) {
      problem("verify", invalid_argument("verify: no result has `expect`, so there is nothing to compare with"));
    }
  }

  void check_binding(const KernelBindingConfig& binding) {
    const std::string who = binding.label + ".";
    std::optional<TensorForm> form;
    if (!binding.input.empty()) {
      const std::string key = who + (binding.access == Access::read ? "input" : "inout");
      form = file_form(key, binding.input, data::request_of(*job_, binding, key));
      if (form && elements_of(form->shape) == 0) {
        problem(key, invalid_argument(key + ": file " + binding.input + " has 0 elements, expected at least 1"));
      }
    } else if (!binding.output.empty()) {
      const TensorForm output = data::form_of_output(binding);
      if (!output.shape.empty() && output.dtype != DType::invalid) form = output;
    }
    if (!binding.expect.empty()) {
      // The job's own `expect` stands for its only result.
      const bool by_job = job_->places != nullptr && !job_->places->contains(who + "expect");
      const std::string key = by_job ? "expect" : who + "expect";
      data::TensorRequest request = data::request_of_expected(*job_, binding, key);
      if (form) {
        request.dtype = form->dtype;
        if (data::lacks_form(binding.expect)) request.shape = form->shape;
      }
      const auto expected = file_form(key, binding.expect, request);
      if (form && expected && *form != *expected) {
        problem(key,
                invalid_argument(key + " " + binding.expect + ": " + text_of(*expected) + ", expected " +
                                 text_of(*form) + " as " + (binding.input.empty() ? binding.output : binding.input)));
      }
      if (!form) form = expected;
    }
    if (binding.output.empty()) return;
    const bool in_place = binding.output == binding.input;
    check_output(in_place ? who + "inout" : who + "output", job_->base / binding.output, form);
  }

  static std::int64_t elements_of(const Shape& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    return elements;
  }

  const JobConfig* job_ = nullptr;
  FileNames names_;
  std::set<std::string> folders_;  // that exist
  std::set<std::string> told_;
  std::map<fs::path, std::optional<TensorForm>> written_;  // by jobs before
  std::map<fs::path, std::string> unread_;                 // of them, with the job: none has read it since
  std::set<fs::path> read_;                                // by this job
  std::vector<std::pair<fs::path, std::optional<TensorForm>>> pending_;  // by this job
};

bool has_kernel(const PipelineStepConfig& step) {
  return step.steps.empty() ? step.job.op == "kernel" : std::ranges::any_of(step.steps, has_kernel);
}

}  // namespace

std::vector<ConfigProblem> check_jobs(const std::vector<JobConfig>& jobs) {
  JobChecker checker;
  for (const JobConfig& job : jobs) checker.check(job);
  return std::move(checker.problems);
}

std::vector<ConfigProblem> check_pipelines(const Config& config) {
  std::vector<ConfigProblem> problems;
  if (config.pipelines.empty()) return problems;
  FileNames names;
  std::map<fs::path, std::string> written;
  std::set<std::string> folders;
  for (const JobConfig& job : config.jobs) {
    for (const fs::path& output : data::outputs_of(job)) written.emplace(names.of(output), "job '" + job.name + "'");
  }
  for (const PipelineConfig& pipeline : config.pipelines) {
    const JobConfig& job = pipeline.job;
    const std::string who = "pipeline '" + job.name + "'";
    const auto request = data::make_request(pipeline, data::Contents::check);
    if (!request) problems.push_back({job.place, request.error().message});
    for (const KernelBindingConfig& tensor : job.bindings) {
      if (tensor.output.empty()) continue;
      const fs::path path = job.base / tensor.output;
      Status status = check_place(path, folders);
      for (std::size_t i = 0; request && status.ok() && i < request->pipeline.tensors.size(); ++i) {
        const PipelineTensor& made = request->pipeline.tensors[i];
        if (made.name == tensor.name) status = data::check_storable(path, made.dtype, made.shape);
      }
      const auto [first, is_new] = written.emplace(names.of(path), who);
      if (status.ok() && !is_new) {
        status = invalid_argument("file " + path.string() + " is written twice, first by " + first->second);
      }
      if (!status.ok())
        problems.push_back({job.place_of(tensor.label), who + ": " + tensor.label + ": " + status.message});
    }
    const auto compared = [](const KernelBindingConfig& tensor) { return !tensor.expect.empty(); };
    const bool any_kernel = request && std::ranges::any_of(pipeline.steps, has_kernel);
    if (job.verify && any_kernel && std::ranges::none_of(job.bindings, compared)) {
      problems.push_back({job.place_of("verify"),
                          who +
                              ": verify: no result has `expect`, so there is nothing to compare with. Add one, or use "
                              "--verify=steps"});
    }
  }
  return problems;
}

}  // namespace kiln::host

#include "runtime/pipeline_check.hpp"

#include "reference/operation_reference.hpp"
#include "runtime/verification.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace kiln {
namespace {

// Infinite ones must be equal; the others are judged by the largest of them.
double largest_finite(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace

Status PipelineChecker::check_request() const {
  for (const ExpectedTensor& expected : request_.expected) {
    const auto named = [&](const PipelineTensor& tensor) { return tensor.name == expected.tensor; };
    const auto found = std::ranges::find_if(pipeline_.tensors, named);
    if (found != pipeline_.tensors.end() && is_result(*found)) continue;
    return invalid_argument("expected: tensor '" + expected.tensor + "' is not a result of the pipeline");
  }
  for (std::size_t i = 0; i < pipeline_.tensors.size(); ++i) {
    const PipelineTensor& tensor = pipeline_.tensors[i];
    if (tensor.access == Access::invalid || tensor.host != nullptr) continue;
    return invalid_argument("tensor '" + tensor.name + "' has no host tensor to read or write");
  }
  const auto has_tensor = [](const ExpectedTensor& expected) { return expected.output.tensor != nullptr; };
  const bool has_expected = std::ranges::any_of(request_.expected, has_tensor);
  if (request_.check != PipelineCheck::final || has_expected || all_have_references()) return {};
  return invalid_argument("verify: the results of pipeline '" + pipeline_.name +
                          "' have no reference to compare with. Give `expect` for a result, or use --verify=steps");
}

bool PipelineChecker::all_have_references() const {
  return std::ranges::all_of(schedule_.steps,
                             [](const PipelineStep* step) { return operation_of(step->spec).is_layer; });
}

// One comparison of a result.
Status PipelineChecker::judge(const Result<reference::Comparison>& compared, const std::string& name,
                              const Shape& shape, RunReport& report) const {
  if (!compared) return compared.error().within("tensor '" + name + "'");
  Verdict verdict;
  add_comparison(verdict, *compared, shape, name);
  report.verified = verdict.within && report.verified.value_or(true);
  report.max_rel_error = std::max(report.max_rel_error, verdict.max_rel_error);
  report.error_bound = std::max(report.error_bound, verdict.error_bound);
  report.compared_elements += verdict.elements;
  report.wrong_elements += verdict.wrong;
  if (!report.worst || !verdict.within) report.worst = verdict.worst;
  return verdict.within ? Status{} : wrong_result(report.device.id + ": " + wrong_text(verdict));
}

Status PipelineChecker::compare(RunReport& report) {
  report.compared_elements = report.wrong_elements = 0;
  for (const PipelineTensor& tensor : pipeline_.tensors) {
    for (const ExpectedTensor& expected : request_.expected) {
      if (expected.tensor != tensor.name || expected.output.tensor == nullptr) continue;
      const auto tolerance = expected.output.tolerance ? expected.output.tolerance : request_.tolerance;
      const std::string name = expected.output.name.empty() ? tensor.name : expected.output.name;
      const auto compared = reference::compare_tensors(*tensor.host, *expected.output.tensor, tolerance);
      if (Status status = judge(compared, name, tensor.shape, report); !status.ok()) return status;
    }
  }
  return all_have_references() ? compare_with_chain(report) : Status{};
}

// What the application allows for a tensor without `expect`; nullopt: the bound of the chain.
std::optional<Tolerance> PipelineChecker::tolerance_of(const PipelineTensor& tensor) const {
  for (const ExpectedTensor& expected : request_.expected) {
    const bool own = expected.tensor == tensor.name && expected.output.tensor == nullptr;
    if (own && expected.output.tolerance) return expected.output.tolerance;
  }
  return request_.tolerance;
}

Status PipelineChecker::compare_with_chain(RunReport& report) {
  if (chain_.empty()) compute_chain();
  for (std::size_t i = 0; i < pipeline_.tensors.size(); ++i) {
    const PipelineTensor& tensor = pipeline_.tensors[i];
    if (!is_result(tensor)) continue;
    const std::vector<double>& want = chain_[schedule_.storage_of[i]];
    const double largest = largest_finite(want);
    auto expected = HostTensor::create(DType::f32, tensor.shape);
    if (!expected) return std::move(expected).error();
    std::ranges::transform(want, (*expected)->as<float>().begin(),
                           [](double value) { return static_cast<float>(value); });
    const double bound = chain_bounds_[schedule_.storage_of[i]];
    const std::optional<Tolerance> given = tolerance_of(tensor);
    if (!given && bound >= 1) {
      if (request_.check == PipelineCheck::steps) continue;  // compared with the results of the steps
      char found[32];
      std::snprintf(found, sizeof found, "%.2g", bound);
      return invalid_argument("verify: tensor '" + tensor.name + "': the rounding errors of the steps may add up to " +
                              found +
                              " times the largest element, expected a factor less than 1. Set a tolerance, "
                              "or use --verify=steps");
    }
    const Tolerance tolerance = given.value_or(Tolerance{largest * bound, 0});
    const auto compared = reference::compare_tensors(*tensor.host, **expected, tolerance);
    const double error_before = report.max_rel_error;
    const auto worst_before = std::exchange(report.worst, {});
    if (Status status = judge(compared, tensor.name, tensor.shape, report); !status.ok()) return status;
    const double error = largest == 0 ? 0 : std::abs(report.worst->found - report.worst->expected) / largest;
    if (worst_before && error_before >= error) report.worst = worst_before;
    report.max_rel_error = std::max(error_before, error);
    const double allowed = tolerance.relative + (largest == 0 ? 0 : tolerance.absolute / largest);
    report.error_bound = std::max(report.error_bound, allowed);
  }
  return {};
}

void PipelineChecker::compute_chain() {
  chain_.resize(pipeline_.tensors.size());
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    const PipelineTensor& tensor = pipeline_.tensors[i];
    const bool given = tensor.access == Access::read || tensor.access == Access::read_write;
    if (!given || tensor.dtype != DType::f32) continue;
    const auto values = std::as_const(*tensor.host).as<float>();
    chain_[i].assign(values.begin(), values.end());
  }
  for (const auto& [tensor, bytes] : results_) {  // what they held before the run
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      if (pipeline_.tensors[i].host != tensor || chain_[i].empty()) continue;
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      chain_[i].assign(values.begin(), values.end());
    }
  }
  chain_bounds_.resize(chain_.size());
  double bound = 0;  // of the steps so far
  for (const StepRun& run : schedule_.runs) {
    const PipelineStep& step = *schedule_.steps[run.step];
    reference::LayerInputs from;
    for (std::size_t i = 0; i + 1 < run.storages.size(); ++i) {
      if (run.storages[i] != StepRun::own_value) {
        from.inputs.emplace_back(chain_[run.storages[i]]);
      } else {
        from.constants.emplace_back(step.arguments[i].value.constant->tensor().as<float>());
      }
    }
    reference::Reference reference = reference::evaluate(step.spec, from);
    bound = reference::chain_error(step.spec, from, bound);
    chain_[run.storages.back()] = std::move(reference.value);
    chain_bounds_[run.storages.back()] = bound;
  }
}

Status PipelineChecker::check_steps(RuntimeState& state, const Device& device, std::span<const RunRequest> requests,
                                    const ReplayTerms& terms, RunReport& report) {
  std::vector<std::shared_ptr<HostTensor>> hosts;
  for (const PipelineTensor& tensor : pipeline_.tensors) {
    auto made = HostTensor::create(tensor.dtype, tensor.shape);
    if (!made) return std::move(made).error();
    if (tensor.access == Access::read) {
      std::memcpy((*made)->bytes().data(), tensor.host->bytes().data(), tensor.host->bytes().size());
    }
    for (const auto& [host, bytes] : results_) {
      if (host == tensor.host) std::memcpy((*made)->bytes().data(), bytes.data(), bytes.size());
    }
    hosts.push_back(std::move(*made));
  }
  for (const StepRun& run : schedule_.runs) {
    RunRequest job = requests[run.step];  // with the step's own values
    for (std::size_t i = 0; i < run.storages.size(); ++i) {
      if (run.storages[i] != StepRun::own_value) job.tensors[i] = {hosts[run.storages[i]], nullptr};
    }
    job.device = device.info().id;
    job.stop = terms.stop;
    job.timeout = terms.timeout;
    job.verify = operation_of(job.spec).is_layer;
    job.tolerance = schedule_.steps[run.step]->tolerance;
    const RunReport ran = state.run(job);
    StepReport& step = report.steps[run.step];
    if (ran.verified) step.verified = *ran.verified && step.verified.value_or(true);
    step.max_rel_error = std::max(step.max_rel_error, ran.max_rel_error);
    step.error_bound = std::max(step.error_bound, ran.error_bound);
    if (ran.verified == false) report.verified = false;
    if (!ran.status.ok()) return ran.status.within("step '" + step.name + "'");
  }
  for (std::size_t i = 0; i < pipeline_.tensors.size(); ++i) {
    const PipelineTensor& tensor = pipeline_.tensors[i];
    if (!is_result(tensor)) continue;
    const std::size_t storage = schedule_.storage_of[i];
    std::optional<Tolerance> tolerance = tolerance_of(tensor);
    // A chain's program and the jobs may add in other orders: both are within the bound of the chain.
    const double bound = chain_.empty() ? 1 : 2 * chain_bounds_[storage];
    if (!tolerance && bound < 1) tolerance = Tolerance{bound * largest_finite(chain_[storage]), 0};
    const auto compared = reference::compare_tensors(*tensor.host, *hosts[storage], tolerance);
    Status status = judge(compared, tensor.name, tensor.shape, report);
    if (!status.ok()) return status.within("the pipeline's result is not that of its steps run as jobs");
  }
  return {};
}

}  // namespace kiln

#include "c_interface/job_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "c_interface/reports.hpp"
#include "c_interface/runtime.hpp"
#include "c_interface/status.hpp"

#include <kiln/run_request.hpp>

namespace kiln::c_interface {
namespace {

constexpr std::size_t most_groups = 16;
constexpr Tolerance agreement{1e-5, 1e-4};

template <class T>
bool close(std::span<const std::byte> one, std::span<const std::byte> other) {
  for (std::size_t at = 0; at + sizeof(T) <= one.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, one.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return false;
    const auto difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
    if (difference > agreement.absolute + agreement.relative * std::abs(static_cast<double>(b))) return false;
  }
  return true;
}

}  // namespace

JobBench::JobBench(kiln_job& job, std::string device) : job_(job), device_(std::move(device)) {
  job_.fill_tensors();
  before_ = written();
}

JobBench::~JobBench() { restore(); }

void JobBench::restore() {
  std::size_t at = 0;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access != Access::read) std::ranges::copy(before_[at++], tensor.host->bytes().begin());
  }
}

Result<VariantSamples> JobBench::measure(std::string_view variant, std::uint32_t runs,
                                         std::chrono::nanoseconds limit) noexcept try {
  RunRequest request = job_.request;
  request.device = device_;
  request.variant = variant;
  request.repeat = 1;
  request.timeout = limit;
  request.progress = nullptr;
  VariantSamples samples;
  Status status = run(request, nullptr);  // may compile
  for (std::uint32_t at = 0; at < runs && status.ok(); ++at) status = run(request, &samples);
  if (!status.ok()) return status;
  samples.agreement = group_of(written());
  return samples;
} catch (...) {
  return caught();
}

Status JobBench::run(RunRequest& request, VariantSamples* samples) {
  restore();  // what is written in place would change with each run
  const RunReport report = job_.owner.runtime->run(request);
  if (!report.status.ok()) return report.status;
  if (samples == nullptr) return {};
  samples->wall_ns.push_back(report.median.wall_ns);
  samples->device_ns.push_back(report.median.device_ns);
  samples->source_digest = source_digest_of(report);
  return {};
}

JobBench::Contents JobBench::written() const {
  Contents contents;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access == Access::read) continue;
    const auto bytes = std::as_const(*tensor.host).bytes();
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  return contents;
}

bool JobBench::agree(const Contents& one, const Contents& other) const {
  std::size_t at = 0;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access == Access::read) continue;
    const auto &a = one[at], &b = other[at];
    ++at;
    switch (tensor.host->dtype()) {
      case DType::f32:
        if (!close<float>(a, b)) return false;
        break;
      case DType::f64:
        if (!close<double>(a, b)) return false;
        break;
      default:
        if (a != b) return false;
    }
  }
  return true;
}

std::uint32_t JobBench::group_of(Contents results) {
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    if (agree(results, groups_[at])) return static_cast<std::uint32_t>(at + 1);
  }
  if (groups_.size() == most_groups) return agrees_with_none;
  groups_.push_back(std::move(results));
  return static_cast<std::uint32_t>(groups_.size());
}

}  // namespace kiln::c_interface

// The functions of kiln.h that run a job, and what they report. job.cpp has those that describe it.

using namespace kiln;
using namespace kiln::c_interface;

namespace {

// Takes the job for one run. The error says why it cannot run.
Status begin(const char* function, kiln_job* job) {
  if (Status status = check_job(function, job); !status.ok()) return status;
  std::vector<std::string> notes;
  {
    const std::lock_guard lock(job->mutex);
    if (job->state == kiln_job::State::running) {
      return unavailable(std::string(function) + ": job '" + job->request.name +
                         "' is already running. Wait for it first");
    }
    if (Status status = job->complete(notes); !status.ok()) return status;
    job->stop = false;
    job->report.reset();
    job->state = kiln_job::State::running;
  }
  for (const std::string& note : notes) job->owner.log.log().write(LogLevel::info, "job", note);
  return {};
}

void end(kiln_job& job, RunReport report) {
  const std::lock_guard lock(job.mutex);
  job.report = std::move(report);
  job.state = kiln_job::State::finished;
  job.done.notify_all();
}

RunReport failed(Status status) {
  RunReport report;
  report.status = std::move(status);
  return report;
}

Status run_taken(kiln_job& job) {
  const JobScope scope(job);
  RunReport report;
  try {
    report = job.run_once(job.request);
  } catch (...) {
    report = failed(caught());
  }
  Status status = report.status;
  end(job, std::move(report));
  return status;
}

thread_local const JobScope* innermost = nullptr;

}  // namespace

namespace kiln::c_interface {

JobScope::JobScope(const kiln_job& job) noexcept : job_(job), outer_(std::exchange(innermost, this)) {}

JobScope::~JobScope() { innermost = outer_; }

template <class IsIt>
bool JobScope::any(const IsIt& is_it) noexcept {
  const JobScope* scope = innermost;
  while (scope != nullptr && !is_it(scope->job_)) scope = scope->outer_;
  return scope != nullptr;
}

bool JobScope::runs_here(const kiln_job& job) noexcept {
  return any([&](const kiln_job& one) { return &one == &job; });
}

bool JobScope::runs_here(const kiln_runtime& runtime) noexcept {
  return any([&](const kiln_job& one) { return &one.owner == &runtime; });
}

}  // namespace kiln::c_interface

kiln_status* kiln_job_run(kiln_job* job) {
  return guarded([&]() -> Status {
    if (Status status = begin("kiln_job_run", job); !status.ok()) return status;
    return run_taken(*job);
  });
}

kiln_status* kiln_job_start(kiln_job* job) {
  return guarded([&]() -> Status {
    if (Status status = begin("kiln_job_start", job); !status.ok()) return status;
    try {
      job->owner.workers.start([job] { static_cast<void>(run_taken(*job)); });
    } catch (...) {
      Status status = caught("kiln_job_start");
      end(*job, failed(status));
      return status;
    }
    return {};
  });
}

kiln_status* kiln_job_wait(kiln_job* job, uint32_t timeout_ms) {
  constexpr const char* function = "kiln_job_wait";
  return guarded([&]() -> Status {
    if (job == nullptr) return null_argument(function, "job");
    if (Status status = job->owner.process.check(function, "runtime"); !status.ok()) return status;
    if (job->state == kiln_job::State::running && timeout_ms != 0) {
      if (Status status = job->owner.log.check(function); !status.ok()) return status;
      if (JobScope::runs_here(*job)) {
        return unavailable(std::string(function) + ": called from a callback of job '" + job->request.name +
                           "': the job would wait for itself");
      }
    }
    std::unique_lock lock(job->mutex);
    if (job->state == kiln_job::State::idle) {
      return invalid_argument(std::string(function) + ": job '" + job->request.name + "' was not started");
    }
    const auto is_done = [&] { return job->state != kiln_job::State::running; };
    if (job->done.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_done)) return job->report->status;
    return timed_out(std::string(function) + ": job '" + job->request.name + "' is still running after " +
                     std::to_string(timeout_ms) + " ms");
  });
}

int kiln_job_ended(kiln_job* job) {
  if (job == nullptr || !job->owner.process.is_this()) return 0;
  return job->state == kiln_job::State::finished ? 1 : 0;
}

void kiln_job_cancel(kiln_job* job) {
  if (job != nullptr && job->owner.process.is_this()) job->stop = true;
}

kiln_status* kiln_job_get_report(kiln_job* job, kiln_report* report) {
  constexpr const char* function = "kiln_job_get_report";
  return guarded([&]() -> Status {
    if (Status status = check_job(function, job); !status.ok()) return status;
    if (report == nullptr) return null_argument(function, "report");
    if (Status status = check_size(function, "report", report->size, 2 * sizeof(size_t)); !status.ok()) return status;
    const std::lock_guard lock(job->mutex);
    if (!job->report || job->state == kiln_job::State::running) {
      return not_found(std::string(function) + ": job '" + job->request.name + "' has not finished a run");
    }
    const RunReport& ran = *job->report;
    kiln_report all;
    std::memset(&all, 0, sizeof all);
    const std::size_t given = report->size;
    all.size = given;
    all.device = job->told.insert(ran.device.id).first->c_str();
    all.variant = job->told.insert(ran.variant).first->c_str();
    all.tier = tier_of(ran.tier);
    all.runs = ran.runs;
    all.verified = !ran.verified ? 0 : *ran.verified ? 1 : 2;
    all.wall_ns = ran.median.wall_ns;
    all.queue_ns = ran.median.queue_ns;
    all.build_ns = ran.build_ns;
    all.upload_ns = ran.median.upload_ns;
    all.device_ns = ran.median.device_ns;
    all.readback_ns = ran.median.readback_ns;
    all.flops = ran.flops;
    all.max_rel_error = ran.max_rel_error;
    all.error_bound = ran.error_bound;
    for (const JobTensor& tensor : job->tensors) {
      if (tensor.copied != nullptr && tensor.host != nullptr) all.copied_bytes += tensor.host->bytes().size();
    }
    std::memset(static_cast<void*>(report), 0, given);
    std::memcpy(static_cast<void*>(report), &all, std::min(given, sizeof all));
    return {};
  });
}

kiln_status* kiln_job_report_json(kiln_job* job, char** json) {
  constexpr const char* function = "kiln_job_report_json";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_job(function, job); !status.ok()) return status;
    const std::lock_guard lock(job->mutex);
    if (!job->report || job->state == kiln_job::State::running) {
      return not_found(std::string(function) + ": job '" + job->request.name + "' has not finished a run");
    }
    *json = copied_text(report_json(*job->report));
    return {};
  });
}

kiln_status* kiln_job_tune(kiln_job* job, const char* device, uint32_t budget_ms,
                           int (*progress)(void* user, size_t done, size_t of, const char* best), void* user,
                           char** json) {
  constexpr const char* function = "kiln_job_tune";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (device == nullptr) return null_argument(function, "device");
    if (Status status = begin(function, job); !status.ok()) return status;
    const JobScope scope(*job);
    const auto tuned = [&]() -> Status {
      const auto* kernel = std::get_if<UserKernelSpec>(&job->request.spec);
      if (kernel == nullptr || kernel->parameters.empty()) {
        return unsupported("job '" + job->request.name + "': nothing to tune, expected a kernel with parameters");
      }
      JobBench bench(*job, device);
      TuneOptions options;
      options.name = job->request.name;
      options.by_agreement = true;
      options.stop = &job->stop;
      if (budget_ms != 0) options.budget = std::chrono::milliseconds(budget_ms);
      if (progress != nullptr) {
        options.progress = [&](const TuneProgress& at) {
          if (progress(user, at.measured, at.planned, at.best.c_str()) == 0) job->stop = true;
        };
      }
      const Result<TuneOutcome> outcome = job->owner.runtime->tune(job->request.spec, device, bench, options);
      if (!outcome && job->stop) return cancelled("job '" + job->request.name + "': " + outcome.error().message);
      if (!outcome) return outcome.error();
      *json = copied_text(tuning_text(job->request.name, device, *outcome));
      return {};
    };
    Status status;
    try {
      status = tuned();
    } catch (...) {
      status = caught(function);
    }
    end(*job, failed(status.ok() ? Status{StatusCode::not_found, "the job was tuned, but has not run"} : status));
    return status;
  });
}

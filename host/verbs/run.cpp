#include "interrupt.hpp"
#include "progress.hpp"
#include "run_report.hpp"
#include "run_watch.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/job_order.hpp"
#include "verbs/verbs.hpp"

#include <kiln/clock.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/data.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/result_files.hpp>
#include <kiln/stop_scope.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

namespace kiln::host {
namespace {

constexpr std::chrono::milliseconds patience_when_interrupted = longest_end / 2;

double ms_between(std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) / 1e6; }

// Opens the device of the first job while its inputs are read: loading a driver takes longer than reading them.
class DeviceOpener {
 public:
  DeviceOpener(Runtime& runtime, std::string device) {
    auto thread = start_thread([&runtime, id = std::move(device)] { runtime.open_ahead(id); });
    if (thread) thread_ = std::move(*thread);  // else its job opens it
  }
  ~DeviceOpener() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

std::string first_device(const Options& options, const Config& config) {
  if (!options.device.empty()) return options.device;
  const std::string first = !config.jobs.empty()        ? config.jobs.front().device
                            : !config.pipelines.empty() ? config.pipelines.front().job.device
                                                        : "";
  if (!first.empty()) return first;
  return config.device.prefer;
}

RunReport failed(const JobConfig& job, Status status) {
  RunReport report;
  report.name = job.name;
  report.op = job.op;
  report.status = std::move(status);
  return report;
}

// Verified, but not whole: which results were not compared.
void add_uncompared(const RunRequest& request, RunReport& report) {
  if (!report.verified) return;
  for (const ExpectedOutput& expected : request.expected) {
    if (expected.tensor == nullptr) {
      report.notes.push_back(expected.name + " was not compared, because it has no `expect`");
    }
  }
}

// A job that has run, and its results, complete and without names yet.
struct RanJob {
  JobOutcome outcome;
  std::vector<AtomicFile> files;
};

// What the system refuses to write is known before the work is done.
Status check_outputs(const JobConfig& job) {
  for (const std::filesystem::path& output : data::outputs_of(job)) {
    if (Status status = check_writable(output); !status.ok()) return status;
  }
  return {};
}

// What all jobs share. setup_ns: from the start of main to the first job.
struct JobTerms {
  const Options& options;
  Runtime& runtime;
  ResultCommits& commits;
  std::uint64_t setup_ns;
};

// may_run: waits until the job may run; false: it may not. ran: called when it has. A first result counts the setup and
// this job's own time only.
RanJob run_job(const JobConfig& job, const JobTerms& terms, const std::function<bool()>& may_run,
               const std::function<void()>& ran_once) try {
  const auto& [options, runtime, commits, setup_ns] = terms;
  const std::uint64_t begun = now_ns();
  std::uint64_t waited_ns = 0;
  std::vector<std::string> notes;
  auto request = data::make_request(job, &notes);
  if (!request) return {{failed(job, std::move(request).error()), 0, {}}, {}};
  if (Status status = check_outputs(job); !status.ok()) return {{failed(job, std::move(status)), 0, {}}, {}};
  if (!options.device.empty()) request->device = options.device;
  request->verify = request->verify || options.verify;
  request->repeat = options.repeat.value_or(1);
  request->stop = &interrupted();
  // Each job's thread waits for its own; the table is in the order of the file whatever ends first.
  if (options.jobs > 1) request->completion = Completion::unordered;
  request->may_run = [&] {
    const std::uint64_t from = now_ns();
    const bool may = may_run();
    waited_ns = now_ns() - from;
    return may;
  };
  RanJob ran{{runtime.run(*request), 0, {}}, {}};
  ran_once();
  JobOutcome& outcome = ran.outcome;
  outcome.report.notes.insert(outcome.report.notes.begin(), notes.begin(), notes.end());
  if (outcome.report.first_output_ns != 0) {
    outcome.first_result_ms =
        static_cast<double>(setup_ns) / 1e6 + ms_between(begun + waited_ns, outcome.report.first_output_ns);
  }
  add_uncompared(*request, outcome.report);
  const bool failed_verification = outcome.report.verified == false;
  if (!outcome.report.status.ok() && !(job.keep_failed && failed_verification)) return ran;
  auto files = data::prepare_outputs(job, *request);
  if (!files && files.error().code == StatusCode::io) {
    // Results that wait for their sync take descriptors and space.
    commits.flush();
    files = data::prepare_outputs(job, *request);
  }
  if (files) {
    ran.files = std::move(*files);
  } else {
    outcome.report.status = std::move(files).error();
  }
  return ran;
} catch (...) {
  return {{failed(job, caught()), 0, {}}, {}};
}

void add_stored(const JobConfig& job, const Status& status, JobOutcome& outcome) {
  if (!status.ok()) {
    outcome.report.status = status;
    return;
  }
  outcome.output = job.output;
  if (outcome.report.verified == false) outcome.report.notes.push_back("keep_failed: the wrong results were written");
}

// How many jobs of a file begin while others run: enough to read the next one and to load the programs of another.
constexpr std::size_t begun_at_one_time = 3;
constexpr std::uintmax_t most_bytes_beside_others = 64u << 20;  // of the files that a job reads

// Whether a job can begin while others run and disturb neither their times nor the choice of a device.
bool begins_beside_others(const JobConfig& job, const Options& options, const Config& config) {
  const std::string& device = !options.device.empty() ? options.device
                              : job.device.empty()    ? config.device.prefer
                                                      : job.device;
  if (job.op != "kernel" || options.repeat.value_or(1) != 1 || device == "auto") return false;
  std::uintmax_t bytes = 0;
  for (const KernelBindingConfig& binding : job.bindings) {
    for (const std::string* file : {&binding.input, &binding.expect}) {
      std::error_code error;
      const std::uintmax_t size = file->empty() ? 0 : std::filesystem::file_size(job.base / *file, error);
      if (!error) bytes += size;
    }
    std::uintmax_t elements = 1;
    for (const std::int64_t extent : binding.shape) elements *= static_cast<std::uintmax_t>(extent);
    if (!binding.shape.empty()) bytes += elements * size_of(binding.dtype);
  }
  return bytes <= most_bytes_beside_others;
}

JobOrder::Terms order_of(const std::vector<JobConfig>& jobs, const Options& options, const Config& config) {
  // Finding a file's one name costs calls of the system for every job.
  const bool any_output =
      std::ranges::any_of(jobs, [](const JobConfig& job) { return !data::outputs_of(job).empty(); });
  const bool several = jobs.size() > 1 && (options.jobs > 1 || any_output);
  JobOrder::Terms terms;
  terms.waits_for = several ? jobs_to_wait_for(jobs) : std::vector<std::vector<std::size_t>>(jobs.size());
  if (options.jobs > 1) return terms;
  for (const JobConfig& job : jobs) terms.alone.push_back(!begins_beside_others(job, options, config));
  return terms;
}

// So many at one time, as options say; answers those that were begun, in the order of the file.
// when_run: called once all have run, while results are still being stored.
std::vector<JobOutcome> run_jobs(const std::vector<JobConfig>& jobs, const Options& options, Session& session,
                                 JobOrder::Terms order_terms, std::uint64_t setup_ns,
                                 const std::function<void()>& when_run) {
  Runtime& runtime = session.runtime();
  std::optional<RunWatch> watch;
  if (options.watch && RunWatch::can_draw(options.progress)) {
    watch.emplace(runtime, session.console(), jobs.size(), options.repeat.value_or(1));
  }
  RunProgress progress(watch ? Progress::none : options.progress, runtime, jobs.size(), options.repeat.value_or(1));
  const std::vector<bool> alone = order_terms.alone;
  std::vector<std::optional<JobOutcome>> outcomes(jobs.size());
  std::optional<JobOrder> order;
  const auto ended = [&](std::size_t job) {
    progress.ended(outcomes[job]->report);
    if (watch) watch->ended(outcomes[job]->report);
    order->end(job);
  };
  ResultCommits commits(user_state_folder(), interrupted(), [&](std::size_t job, const Status& status) {
    add_stored(jobs[job], status, *outcomes[job]);
    ended(job);
  });
  order.emplace(std::move(order_terms), interrupted(), [&] { commits.flush(); });
  const JobTerms terms{options, runtime, commits, setup_ns};
  const auto announce = [&](std::size_t job) {
    const std::string text =
        "job " + std::to_string(job + 1) + " of " + std::to_string(jobs.size()) + ": " + jobs[job].name;
    progress.job(text);
    if (watch) watch->began(text);
  };
  const auto serve = [&] {
    while (const auto job = order->begin(announce)) {
      const bool is_alone = !alone.empty() && alone[*job];
      const auto may_run = [&] { return order->wait_to_run(*job); };
      RanJob ran = run_job(jobs[*job], terms, may_run, [&] {
        if (!is_alone) order->ran(*job);
      });
      outcomes[*job] = std::move(ran.outcome);
      const bool is_over = ran.files.empty();
      if (is_over) {
        if (outcomes[*job]->report.status.ok()) add_stored(jobs[*job], {}, *outcomes[*job]);
        ended(*job);
      } else {
        commits.add(*job, std::move(ran.files));
        order->ran(*job);
      }
    }
  };
  const bool any_beside = !std::ranges::all_of(alone, [](bool each) { return each; });
  const std::size_t wanted =
      std::min<std::size_t>(options.jobs == 1 && any_beside ? begun_at_one_time : options.jobs, jobs.size());
  std::vector<std::thread> others;
  others.reserve(wanted);
  while (others.size() + 1 < wanted) {
    auto other = start_thread([&serve] {
      prefer_huge_pages();
      serve();
    });
    if (!other) break;  // fewer jobs at one time
    others.push_back(std::move(*other));
  }
  serve();
  for (std::thread& other : others) other.join();
  commits.hurry();
  when_run();
  commits.flush();
  std::vector<JobOutcome> begun;
  for (std::optional<JobOutcome>& outcome : outcomes) {
    if (outcome) begun.push_back(std::move(*outcome));
  }
  return begun;
}

// Runs a pipeline and stores its results.
JobOutcome run_pipeline(const PipelineConfig& pipeline, const Options& options, Runtime& runtime,
                        std::uint64_t setup_ns) try {
  const JobConfig& job = pipeline.job;
  const std::uint64_t begun = now_ns();
  std::vector<std::string> notes;
  auto request = data::make_request(pipeline, data::Contents::load, &notes);
  if (!request) return {failed(job, std::move(request).error()), 0, {}};
  if (Status status = check_outputs(job); !status.ok()) return {failed(job, std::move(status)), 0, {}};
  if (!options.device.empty()) request->device = options.device;
  request->repeat = options.repeat.value_or(1);
  request->stop = &interrupted();
  request->measure_steps = true;
  if (job.verify || options.verify) request->check = PipelineCheck::final;
  if (options.verify_steps) request->check = PipelineCheck::steps;
  JobOutcome outcome{runtime.run(*request), 0, {}};
  RunReport& report = outcome.report;
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (report.first_output_ns != 0) {
    outcome.first_result_ms = static_cast<double>(setup_ns) / 1e6 + ms_between(begun, report.first_output_ns);
  }
  const bool failed_verification = report.verified == false;
  if (!report.status.ok() && !(job.keep_failed && failed_verification)) return outcome;
  auto files = data::prepare_outputs(pipeline, *request);
  if (!files) {
    report.status = std::move(files).error();
    return outcome;
  }
  if (files->empty()) return outcome;
  const StopScope scope(&interrupted());
  std::vector<std::vector<AtomicFile>> units;
  units.push_back(std::move(*files));
  add_stored(job, commit_files(user_state_folder(), units).front(), outcome);
  return outcome;
} catch (...) {
  return {failed(pipeline.job, caught()), 0, {}};
}

// A report that names no device tells that none was left; one that names the device that turned the job down tells that
// no other was allowed to serve.
bool no_device_served(const RunReport& report) {
  const StatusCode code = report.status.code;
  if (report.device.id.empty()) return code == StatusCode::unavailable || code == StatusCode::unsupported;
  return report.runs == 0 &&
         (code == StatusCode::unavailable || code == StatusCode::unsupported || code == StatusCode::device_lost);
}

int exit_status_of(const std::vector<JobOutcome>& jobs) {
  int status = exit_done;
  for (const JobOutcome& job : jobs) {
    if (job.report.status.ok()) continue;
    status = std::max<int>(status, no_device_served(job.report) ? exit_no_device : exit_job_failed);
  }
  return status;
}

// Who asked for JSON is answered, also where nothing could be run.
int end_without_jobs(const Session& session, const Options& options, int status) {
  if (!options.json) return status;
  RunOutcome outcome;
  outcome.plugins = session.plugins();
  outcome.problems = session.problems();
  return finish(run_json(outcome), options, status);
}

}  // namespace

int run(const Options& options) {
  Session session(options);
  std::optional<DeviceOpener> opener;
  const auto open_device = [&](Runtime& runtime) { opener.emplace(runtime, first_device(options, session.config())); };
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check, open_device)) {
    return end_without_jobs(session, options, *end);
  }
  const std::vector<JobConfig>& jobs = session.config().jobs;
  const std::vector<PipelineConfig>& pipelines = session.config().pipelines;
  if (jobs.empty() && pipelines.empty()) {
    const std::string file = options.sources.file.value_or("the configuration").string();
    return end_without_jobs(session, options, session.refuse("no [[job]] and no [[pipeline]]: nothing to run", file));
  }
  if (const Status output = check_output(options); !output.ok()) {
    Options told = options;
    told.output.reset();
    return end_without_jobs(session, told, session.refuse(output.message, "--output"));
  }
  install_interrupt_handlers();

  RunOutcome outcome;
  {
    JobOrder::Terms order = order_of(jobs, options, session.config());
    if (const auto end = session.check_devices()) return end_without_jobs(session, options, *end);
    outcome.setup_ns = now_ns() - options.started_ns;
    // Metadata that was held back from the hot path; a failure costs nobody a result and was logged by the cache.
    const auto persist = [&] {
      if (!interrupted() && session.config().cache.auto_save) (void)session.runtime().persist();
    };
    if (!jobs.empty()) outcome.jobs = run_jobs(jobs, options, session, std::move(order), outcome.setup_ns, persist);
    for (const PipelineConfig& pipeline : pipelines) {
      if (interrupted()) break;
      outcome.jobs.push_back(run_pipeline(pipeline, options, session.runtime(), outcome.setup_ns));
    }
    if (!pipelines.empty()) persist();
    outcome.total_ns = now_ns() - options.started_ns;
    opener.reset();
  }
  const Status traced = session.write_trace();
  if (!traced.ok()) complain(traced.message);
  outcome.cache = session.runtime().cache_stats();
  outcome.prepared = session.runtime().counters().prepared.load();
  outcome.warming = session.runtime().warming();
  outcome.devices = session.runtime().known_devices();
  outcome.plugins = session.plugins();
  outcome.interrupted = interrupted();
  if (outcome.interrupted) lift_interrupt_limit();
  const std::string text = options.json
                               ? run_json(outcome)
                               : run_table(outcome, colour_on_stdout() && !options.output ? Colour::yes : Colour::no);
  const bool written = write_result(text, options);
  int status = traced.ok() ? exit_status_of(outcome.jobs) : exit_job_failed;
  if (!written && status == exit_done) status = exit_job_failed;
  if (const auto failed =
          std::ranges::count_if(outcome.jobs, [](const JobOutcome& job) { return !job.report.status.ok(); });
      failed != 0 && options.output && written) {
    complain(std::to_string(failed) + " of " + counted(outcome.jobs.size(), "job") + " failed: see " +
             visible(options.output->string()));
  }
  if (!outcome.interrupted) return session.end(status);
  const auto finished =
      std::ranges::count_if(outcome.jobs, [](const JobOutcome& job) { return job.report.status.ok(); });
  complain("interrupted: " + std::to_string(outcome.jobs.size()) + " of " +
           std::to_string(jobs.size() + pipelines.size()) + " jobs were started, " + std::to_string(finished) +
           " finished");
  // Every file is whole or untouched, and what was counted and learned is left for the next process; a driver that
  // hangs is not waited for.
  session.close(patience_when_interrupted);
  end_by_signal();
}

}  // namespace kiln::host

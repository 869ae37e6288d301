#include "runtime/autotuner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kiln/clock.hpp>
#include <kiln/plugin_loader.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "config/show.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_line_bytes = std::size_t{1} << 20;

constexpr int outputs_of_child = 3;

}  // namespace

BenchProcess::BenchProcess(std::filesystem::path probe, BenchSetup setup, const std::atomic<bool>* interrupted)
    : probe_(std::move(probe)),
      setup_(std::move(setup)),
      interrupted_(interrupted),
      pauses_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!std::holds_alternative<std::string>(setup_.subject)) return;
  const UniqueFd made(memfd_create("kiln-outputs", MFD_CLOEXEC));
  // Above the descriptors that the child's standard streams take.
  if (made) outputs_ = UniqueFd(fcntl(made.get(), F_DUPFD_CLOEXEC, outputs_of_child + 1));
  if (outputs_) setup_.outputs = outputs_of_child;
}

std::unique_ptr<VariantBench> open_bench(std::filesystem::path probe, BenchSetup setup,
                                         const std::atomic<bool>* interrupted) {
  return std::make_unique<BenchProcess>(std::move(probe), std::move(setup), interrupted);
}

BenchProcess::~BenchProcess() { (void)stop(); }

Status BenchProcess::start() {
  heard_.clear();
  owed_ = 0;
  prepares_ = false;
  auto child = ChildProcess::start({probe_, {"measure"}, std::nullopt, outputs_.get()});
  if (!child) return std::move(child).error().within("bench");
  child_.emplace(std::move(*child));
  {
    const std::lock_guard lock(mutex_);
    pid_ = child_->pid();
    if (paused_) kill(-pid_, SIGSTOP);
  }
  return child_->send(to_line(setup_), Deadline::never()).within("bench");
}

void BenchProcess::pause() noexcept {
  {
    const std::lock_guard lock(mutex_);
    paused_ = true;
    if (pid_ > 0) kill(-pid_, SIGSTOP);
  }
  const std::uint64_t one = 1;
  // Full only where nobody listened to as many as it holds: the next to listen hears of it all the same.
  if (write(pauses_.get(), &one, sizeof one) < 0) return;
}

void BenchProcess::resume() noexcept {
  std::uint64_t pauses = 0;
  // Empty: there was no pause since the last time.
  if (read(pauses_.get(), &pauses, sizeof pauses) < 0) pauses = 0;
  const std::lock_guard lock(mutex_);
  paused_ = false;
  if (pid_ > 0) kill(-pid_, SIGCONT);
}

bool BenchProcess::paused() {
  const std::lock_guard lock(mutex_);
  return paused_;
}

Result<std::string> BenchProcess::hear(Deadline deadline) {
  for (;;) {
    if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    if (heard_.size() > most_line_bytes) return internal_error("bench: the answer of the child process is too long");
    if (paused()) return cancelled("bench: paused");
    if (interrupted_ != nullptr && interrupted_->load()) return cancelled("bench: interrupted");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    if (deadline.passed()) return timed_out("bench: the child process timed out");
    pollfd waited[] = {{child_->output(), POLLIN, 0}, {pauses_.get(), POLLIN, 0}};
    if (poll(waited, 2, static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, 1000))) <= 0) continue;
    if (waited[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = read(child_->output(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return device_lost("bench: the process ended");
    heard_.append(bytes, static_cast<std::size_t>(count));
  }
}

Result<std::string> BenchProcess::hear_answer(std::chrono::nanoseconds limit) {
  for (;;) {
    auto line = hear(Deadline::after(prepares_ ? std::max(limit, time_to_prepare) : limit));
    if (!line || (*line != bench_preparing && *line != bench_prepared)) return line;
    prepares_ = *line == bench_preparing;
  }
}

std::string BenchProcess::stop(std::chrono::nanoseconds grace) {
  bool stands = false;
  {
    const std::lock_guard lock(mutex_);
    pid_ = -1;
    stands = paused_;
  }
  if (!child_) return "not started";
  const std::string how = child_->stop(stands ? std::chrono::nanoseconds(0) : grace);
  child_.reset();
  return how;
}

Result<VariantSamples> BenchProcess::measure(std::string_view variant, std::uint32_t runs,
                                             std::chrono::nanoseconds limit) noexcept {
  if (pid_ < 0) {
    if (Status status = start(); !status.ok()) return status;
  }
  // What a pause broke off ends before anything else is asked, and is nobody's: part of its time the child stood still.
  Result<std::string> line = std::string();
  while (owed_ > 0 && line) {
    line = hear_answer(limit);
    if (line) --owed_;
  }
  if (line) {
    const Status said = child_->send(std::string(variant) + "\t" + std::to_string(runs) + "\n", Deadline::after(limit));
    if (said.ok()) ++owed_;
    line = said.ok() ? hear_answer(limit) : Result<std::string>(device_lost(said.message));
    if (line) --owed_;
  }
  if (line) return answer_of(*line);
  Status failure = std::move(line).error();
  if (failure.code == StatusCode::cancelled) return failure;
  const std::string how = stop(failure.code == StatusCode::device_lost ? time_to_crash : time_to_leave);
  if (prepares_) {  // no variant has run yet: none is to blame
    const bool hung = failure.code == StatusCode::timeout;
    return unavailable("bench: no reference was computed" + (hung ? " in time" : ": the process " + how));
  }
  if (failure.code == StatusCode::device_lost) failure.message = "bench: the process " + how;
  if (failure.code == StatusCode::timeout) {
    failure.message = "bench: hung for " +
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) + " ms";
  }
  return failure;
}

Autotuner::Autotuner(const Config& config, Log log, DeviceTable& devices, Planner& planner, Programs& programs)
    : config_(config), log_(log), devices_(devices), planner_(planner), programs_(programs) {}

Result<TuneOutcome> Autotuner::tune(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                                    const TuneOptions& options) {
  const StopScope stop(options.stop);
  const BackgroundTuning::Job job(background_.get());  // two that measure would disturb one another
  const CacheConfig& cache = config_.cache;
  const auto turn = take_asked_turn(cache.read_only ? std::filesystem::path() : cache.directory, options.stop, log_);
  if (!turn) return turn.error();
  TuneOptions how = options;
  if (!how.publish) {
    how.publish = [&](const std::string& variant) {
      return publish(spec, options.name, device, variant, building_threads());
    };
  }
  return measure(spec, device, bench, how);
}

Result<TuneOutcome> Autotuner::measure(const KernelSpec& spec, const std::string& id, VariantBench& bench,
                                       const TuneOptions& options) {
  if (Status status = validate(spec); !status.ok()) return status;
  auto device = devices_.open(id);
  if (!device) return std::move(device).error();
  if (Status status = planner_.check_reads((*device)->info(), spec); !status.ok()) return status;
  const auto [generator, dialect] = planner_.generator_for((*device)->info(), &spec);
  auto* const tunable = dynamic_cast<TunableGenerator*>(generator);
  if (tunable == nullptr) return unsupported(std::string(operation(spec)) + ": the generator has no variants to tune");
  return tunable->tune(spec, (*device)->info(), dialect, bench, options);
}

Status Autotuner::publish(const KernelSpec& spec, const std::string& name, const std::string& id,
                          const std::string& variant, unsigned threads) {
  auto device = devices_.open(id);
  if (!device) return std::move(device).error();
  RunRequest winner;
  winner.name = name;
  winner.spec = spec;
  return programs_.publish(winner, variant, **device, threads);
}

Status Autotuner::start_background(std::function<bool()> busy) {
  if (planner_.tuning() == nullptr) return unsupported("no loaded generator stores measurements");
  if (config_.cache.read_only || config_.cache.directory.empty()) {
    return unavailable("no writable cache folder is set");
  }
  if (config_.selector.exploration <= 0) return unavailable("selector.exploration is 0, expected more than 0");
  const std::filesystem::path probe = PluginLoader::default_probe();
  std::error_code error;
  if (!std::filesystem::exists(probe, error)) {
    return not_found("program " + (probe.empty() ? "kiln-probe" : probe.string()) + " does not exist");
  }

  BackgroundTuning::Means means;
  means.state = [this](const RanShape& shape) {
    auto device = devices_.open(shape.device);
    if (!device) return TuningState::invalid;
    TuningStore* const store = planner_.tuning_for((*device)->info());
    return store == nullptr ? TuningState::fixed : store->state(shape.spec, (*device)->info());
  };
  // The child has the configuration of this process, whatever it was made of.
  means.bench = [this, probe](const RanShape& shape) -> std::unique_ptr<PausableBench> {
    BenchSetup setup;
    setup.sources = config::sources_of(config_);
    setup.device = shape.device;
    if (const auto* conv = std::get_if<Conv2dSpec>(&shape.spec)) setup.subject = *conv;
    if (const auto* gemm = std::get_if<GemmSpec>(&shape.spec)) setup.subject = *gemm;
    return std::make_unique<BenchProcess>(probe, std::move(setup));
  };
  means.tune = [this](const RanShape& shape, VariantBench& bench, const TuneOptions& options) {
    TuneOptions how = options;
    how.publish = [&](const std::string& variant) {
      return background_->when_idle([&] { return publish(shape.spec, shape.name, shape.device, variant, 1); });
    };
    return measure(shape.spec, shape.device, bench, how);
  };
  means.busy = [this, busy = std::move(busy)] { return busy() || is_asked_turn_taken(config_.cache.directory); };
  means.turn_file = config_.cache.directory / "tuning.background.lock";
  TuningRules rules;
  rules.share = config_.selector.exploration;
  auto made = std::make_unique<BackgroundTuning>(std::move(means), std::move(rules), log_);
  if (!made->started().ok()) return made->started();
  background_ = std::move(made);
  return {};
}

}  // namespace kiln

#include "runtime/background_tuning.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "runtime/planner.hpp"
#include "runtime/warmup.hpp"

#include <fcntl.h>

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace kiln {

namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds longest_wait{10'000};  // between two looks, whatever is waited for

std::string in_words(const RanShape& shape, const TuneOutcome& outcome) {
  return canonical_text(shape.spec) + " on " + shape.device + ": tuned, " + outcome.variant + " takes " +
         std::to_string(outcome.wall_ns / 1000) + " us; " + std::to_string(outcome.candidates) + " variants measured";
}

}  // namespace

// Measures where nothing else runs, again where a job came meanwhile.
class BackgroundTuning::PacedBench final : public VariantBench {
 public:
  PacedBench(BackgroundTuning& owner, PausableBench& bench) : owner_(owner), bench_(bench) {}

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override {
    VariantSamples all;
    for (std::uint32_t at_once = runs;;) {
      const std::uint64_t asked = now_ns();
      if (!owner_.begin(&bench_)) return cancelled("tuning was stopped");
      const std::uint64_t begun = now_ns();
      waited_ns_ += begun - asked;
      auto samples = bench_.measure(variant, at_once, limit);
      const bool broken_off = owner_.end();
      if (owner_.stop_) return cancelled("tuning was stopped");
      if (broken_off) {
        waited_ns_ += now_ns() - begun;
        at_once = 1;  // the pauses between jobs are short: what was measured in one is not lost in the next
        continue;
      }
      if (!samples || at_once == runs || samples->wall_ns.empty()) return samples;
      all.wall_ns.insert(all.wall_ns.end(), samples->wall_ns.begin(), samples->wall_ns.end());
      all.device_ns.insert(all.device_ns.end(), samples->device_ns.begin(), samples->device_ns.end());
      if (all.wall_ns.size() < runs) continue;
      std::swap(all.wall_ns, samples->wall_ns);
      std::swap(all.device_ns, samples->device_ns);
      return samples;
    }
  }
  std::uint64_t waited_ns() const noexcept override { return waited_ns_; }

 private:
  BackgroundTuning& owner_;
  PausableBench& bench_;
  std::uint64_t waited_ns_ = 0;
};

BackgroundTuning::BackgroundTuning(Means means, TuningRules rules, Log log)
    : means_(std::move(means)),
      rules_(std::move(rules)),
      log_(log),
      born_(std::chrono::steady_clock::now()),
      reviewed_(born_),
      last_job_(born_) {
  auto thread = start_thread([this] { work(); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {
    started_ = std::move(thread).error();
  }
}

BackgroundTuning::~BackgroundTuning() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (bench_ != nullptr) bench_->pause();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTuning::ran(const std::string& device, const KernelSpec& spec, const std::string& name,
                           std::uint64_t wall_ns) {
  shapes_.ran(device, spec, name, wall_ns);
}

BackgroundTuningState BackgroundTuning::state() const {
  const std::size_t waiting = shapes_.waiting();
  const std::lock_guard lock(mutex_);
  BackgroundTuningState state = state_;
  state.asked = true;
  state.waiting = waiting;
  state.spent_ns = static_cast<std::uint64_t>(spent_.count());
  return state;
}

void BackgroundTuning::work() {
  try {
    while (!stop_) {
      if (shapes_.waiting() == 0) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, rules_.quiet, [&] { return stop_.load(); });
        const TimePoint now = std::chrono::steady_clock::now();
        if (now - reviewed_ < rules_.between) continue;
        reviewed_ = now;
        shapes_.wait_again();
        continue;
      }
      if (!begin(nullptr)) return;        // what was kept is read from a file
      const auto shape = shapes_.next();  // now: what ran while this waited for quiet counts too
      if (!shape) {
        (void)end();
        continue;
      }
      const bool mine = take_turn();
      const TuningState state = mine ? means_.state(*shape) : TuningState::invalid;
      (void)end();
      if (!mine) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, rules_.patience, [&] { return stop_.load(); });
      } else if (state == TuningState::untuned || state == TuningState::stale) {
        tune(*shape);
      } else if (state == TuningState::fixed) {
        shapes_.give_up(*shape);
      } else {
        shapes_.settle(*shape);  // tuned; or its device is away
      }
      turn_ = UniqueFd();
    }
  } catch (const std::exception&) {  // out of memory: tuning is what can be done without
  }
}

void BackgroundTuning::tune(const RanShape& shape) {
  const std::unique_ptr<PausableBench> bench = means_.bench(shape);
  PacedBench paced(*this, *bench);
  TuneOptions options;
  options.budget = rules_.budget;
  options.stop = &stop_;
  options.name = shape.name;
  const auto outcome = means_.tune(shape, paced, options);
  if (outcome) {
    shapes_.settle(shape);
    log_.write(LogLevel::info, "tuning", in_words(shape, *outcome));
    const std::lock_guard lock(mutex_);
    ++state_.tuned;
  } else if (!stop_) {
    shapes_.give_up(shape);
    log_.write(LogLevel::info, "tuning",
               canonical_text(shape.spec) + " on " + shape.device + " is not tuned: " + outcome.error().message);
    const std::lock_guard lock(mutex_);
    ++state_.failed;
  }
}

Status BackgroundTuning::when_idle(const std::function<Status()>& work) {
  if (!begin(nullptr)) return cancelled("tuning was stopped");
  Status status = work();
  (void)end();
  return status;
}

bool BackgroundTuning::take_turn() {
  if (means_.turn_file.empty()) return true;
  turn_ = UniqueFd(open(means_.turn_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (turn_ && try_lock(turn_.get()) == LockAnswer::taken) return true;
  turn_ = UniqueFd();
  return false;
}

bool BackgroundTuning::has_time(TimePoint now) {
  return rules_.share * std::chrono::duration<double>(now - born_) >= std::chrono::duration<double>(spent_);
}

bool BackgroundTuning::memory_is_short(TimePoint now) {
  if (looked_ == TimePoint() || now - looked_ >= rules_.look) {
    looked_ = now;
    memory_short_ = kiln::memory_is_short(read_memory(rules_.memory), memory_short_, rules_.pressure);
  }
  return memory_short_;
}

bool BackgroundTuning::begin(PausableBench* bench) {
  const TimePoint asked = std::chrono::steady_clock::now();
  bool rested = bench == nullptr;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const TimePoint now = std::chrono::steady_clock::now();
    const auto is_quiet = [&] { return !stop_ && jobs_ == 0 && now - last_job_ >= rules_.quiet; };
    if (is_quiet() && has_time(now)) {
      lock.unlock();
      const bool free = !means_.busy() && !memory_is_short(now);
      lock.lock();
      if (free && is_quiet()) {
        working_ = true;
        begun_ = now;
        broken_off_.reset();
        bench_ = bench;
        if (bench != nullptr) bench->resume();
        return true;
      }
    }
    if (!rested && now - asked >= rules_.patience) {
      rested = true;
      lock.unlock();
      bench->rest();
      lock.lock();
    }
    // Nobody tells of a job's end or of its share: a job shall not pay for waking this thread.
    const std::chrono::nanoseconds due =
        std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(spent_.count()) / rules_.share)) -
        (now - born_);
    const std::chrono::nanoseconds wait = std::clamp<std::chrono::nanoseconds>(due, rules_.look, longest_wait);
    changed_.wait_for(lock, rested ? wait : std::min<std::chrono::nanoseconds>(wait, rules_.look),
                      [&] { return stop_.load(); });
  }
  return false;
}

bool BackgroundTuning::end() {
  const std::lock_guard lock(mutex_);
  spent_ += broken_off_.value_or(std::chrono::steady_clock::now()) - begun_;
  working_ = false;
  bench_ = nullptr;
  return broken_off_.has_value();
}

BackgroundTuning::Job::Job(BackgroundTuning* tuning) : tuning_(tuning) {
  if (tuning_ == nullptr) return;
  const std::lock_guard lock(tuning_->mutex_);
  ++tuning_->jobs_;
  if (!tuning_->working_ || tuning_->broken_off_) return;
  tuning_->broken_off_ = std::chrono::steady_clock::now();
  if (tuning_->bench_ != nullptr) tuning_->bench_->pause();
}

BackgroundTuning::Job::~Job() {
  if (tuning_ == nullptr) return;
  const std::lock_guard lock(tuning_->mutex_);
  --tuning_->jobs_;
  tuning_->last_job_ = std::chrono::steady_clock::now();
}

namespace {

constexpr const char* lock_name = "tuning.lock";
constexpr std::chrono::milliseconds look{50};

}  // namespace

Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log) {
  if (folder.empty()) return UniqueFd();
  const auto opened = open_folder(folder, Create::yes);
  if (!opened) return UniqueFd();  // whoever keeps something there says why
  auto shared = open_shared_file(opened->get(), lock_name, (folder / lock_name).string(), Create::yes);
  if (!shared || !*shared) return UniqueFd();
  UniqueFd file = std::move(*shared);
  LockAnswer answer = try_lock(file.get());
  for (bool said = false; answer != LockAnswer::taken; answer = lock_until(file.get(), Deadline::after(look))) {
    if (answer == LockAnswer::failed) return UniqueFd();  // a filesystem without locks
    if (stop != nullptr && stop->load()) return cancelled("tuning was stopped while another process tuned");
    if (!said) {
      log.write(LogLevel::warning, "tuning", "waiting, because another process tunes for folder " + folder.string());
    }
    said = true;
  }
  return file;
}

bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept {
  const UniqueFd file(open((folder / lock_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && try_lock(file.get(), LockMode::shared) == LockAnswer::busy;
}

namespace {

constexpr std::size_t most_shapes = 4096;

}  // namespace

std::size_t ShapeTimes::Hash::operator()(const RanShape& shape) const noexcept {
  return std::hash<std::string>{}(shape.device) ^ static_cast<std::size_t>(spec_hash(shape.spec).value_or(0));
}

void ShapeTimes::ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t ns) {
  if (!spec_hash(spec)) return;
  RanShape shape{device, spec, name};
  const std::lock_guard lock(mutex_);
  auto at = shapes_.find(shape);
  if (at == shapes_.end()) {
    if (shapes_.size() >= most_shapes) return;
    at = shapes_.try_emplace(std::move(shape)).first;
  }
  at->second.ns += ns;
  at->second.ran_since = true;
}

std::optional<RanShape> ShapeTimes::next() const {
  const std::lock_guard lock(mutex_);
  const RanShape* most = nullptr;
  std::uint64_t most_ns = 0;
  for (const auto& [shape, times] : shapes_) {
    if (!times.waits || (most != nullptr && times.ns <= most_ns)) continue;
    most = &shape;
    most_ns = times.ns;
  }
  if (most == nullptr) return std::nullopt;
  return *most;
}

std::size_t ShapeTimes::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(shapes_.begin(), shapes_.end(), [](const auto& entry) { return entry.second.waits; }));
}

void ShapeTimes::settle(const RanShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto at = shapes_.find(shape);
  if (at != shapes_.end()) at->second.waits = at->second.ran_since = false;
}

void ShapeTimes::give_up(const RanShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto at = shapes_.find(shape);
  if (at == shapes_.end()) return;
  at->second.waits = false;
  at->second.given_up = true;
}

void ShapeTimes::wait_again() {
  const std::lock_guard lock(mutex_);
  for (auto& [shape, times] : shapes_) {
    times.waits = times.waits || (times.ran_since && !times.given_up);
  }
}

}  // namespace kiln

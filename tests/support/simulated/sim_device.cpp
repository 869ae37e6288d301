#include "support/simulated/sim_device.hpp"

#include "support/fixture_program.hpp"
#include "support/simulated/sim_buffer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace kiln::support {
namespace {

constexpr const char* binary_format = "simulated:1";
constexpr std::uint64_t never = UINT64_MAX;

std::chrono::steady_clock::time_point at(std::uint64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

std::uint64_t rounded(double ns) { return static_cast<std::uint64_t>(std::llround(std::max(ns, 0.0))); }

}  // namespace

class SimProgram final : public Program {
 public:
  SimProgram(std::unique_ptr<FixtureProgram> made, double flops) : program_(std::move(made)), flops_(flops) {}
  std::uint64_t charge() const noexcept override { return program_->charge(); }
  const FixtureProgram& program() const noexcept { return *program_; }
  double flops() const noexcept { return flops_; }
  bool first_use() const noexcept { return !used_.exchange(true); }

 private:
  std::unique_ptr<FixtureProgram> program_;
  double flops_;
  mutable std::atomic<bool> used_{false};
};

DeviceInfo sim_info(std::string id) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = DeviceKind::simulated;
  info.name = "simulated device " + info.id;
  info.driver = "simulation 1";
  info.usable = true;
  info.device_identity = {{"name", info.id}};
  info.driver_identity = {{"version", "1"}};
  info.dialects = {Dialect::library, Dialect::glsl};
  info.serializes = true;
  info.max_workgroup = {64, 1, 1};
  info.max_workgroup_lanes = 64;
  info.max_buffer_bytes = std::uint64_t{1} << 32;
  return info;
}

SimDevice::SimDevice(SimOptions options, std::shared_ptr<SimClock> clock)
    : Device(static_cast<const DeviceClock&>(*this)), options_(std::move(options)), clock_(std::move(clock)) {}

SimDevice::~SimDevice() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

Status SimDevice::lost() const { return device_lost(options_.info.id + ": lost, as the script says"); }

double SimDevice::noise() { return noise_factor(options_.model.noise, options_.model.seed, ++draws_); }

void SimDevice::spend(std::uint64_t ns) {
  if (clock_->pace() == Pace::real) {
    std::this_thread::sleep_until(at(clock_->now() + ns));
  } else {
    clock_->spend(ns);
  }
}

Status SimDevice::transfer(Engine engine, std::uint64_t bytes) {
  const StageCost& cost = engine == Engine::upload ? options_.model.upload : options_.model.readback;
  std::uint64_t ns = 0;
  std::uint64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return lost();
    ns = rounded(cost.of(static_cast<double>(bytes), 0) * noise());
    std::uint64_t& free = engine_free_ns_[static_cast<std::size_t>(engine)];
    end = (options_.together ? clock_->now() : std::max(clock_->now(), free)) + ns;
    free = std::max(free, end);
  }
  if (ns == 0) return {};
  if (clock_->pace() == Pace::real) {
    std::this_thread::sleep_until(at(end));
  } else {
    clock_->spend(ns);
  }
  return {};
}

Result<std::unique_ptr<Buffer>> SimDevice::create_buffer(const BufferDesc& desc) noexcept {
  const std::string& id = options_.info.id;
  if (!desc.host.empty()) return unsupported(id + ": host memory cannot be wrapped");
  if (desc.import_fd >= 0) return unsupported(id + ": memory cannot be imported by file descriptor");
  if (desc.part_of != nullptr) return unsupported(id + ": a buffer shares no other buffer's memory");
  if (desc.usage == BufferUsage::invalid) return invalid_argument(id + ": buffer usage is not set");
  if (desc.bytes == 0) return invalid_argument(id + ": buffer size is 0 bytes, expected at least 1 byte");
  if (desc.bytes > options_.info.max_buffer_bytes) {
    return invalid_argument(id + ": buffer size is " + std::to_string(desc.bytes) + " bytes, expected at most " +
                            std::to_string(options_.info.max_buffer_bytes));
  }
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return lost();
    const std::uint64_t most = options_.model.script.memory_bytes;
    if (most != 0 && held_ + desc.bytes > most) {
      return unavailable(id + ": out of memory: a buffer of " + std::to_string(desc.bytes) + " bytes, " +
                         std::to_string(most - held_) + " of " + std::to_string(most) + " are free");
    }
    held_ += desc.bytes;
  }
  return std::unique_ptr<Buffer>(std::make_unique<SimBuffer>(*this, desc));
}

Result<std::unique_ptr<Program>> SimDevice::build(const KernelSource& source) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return lost();
  }
  if (options_.counters != nullptr) {
    ++(options_.info.serializes ? options_.counters->builds : options_.counters->prepared);
    if (source.dialect == Dialect::library && options_.info.serializes) ++options_.counters->prepared;
  }
  if (source.dialect != Dialect::library && source.dialect != Dialect::glsl) {
    return unsupported(options_.info.id + ": dialect " + std::string(to_string(source.dialect)));
  }
  if (source.spec) {
    if (Status status = validate(*source.spec); !status.ok()) return status.within(options_.info.id);
  }
  auto made = FixtureProgram::compile(source, 1024, std::make_shared<std::atomic<std::int64_t>>(0));
  if (!made) return made.error().within(options_.info.id);
  spend(rounded(options_.model.build_ns));
  const double work = source.spec ? flops(*source.spec) : 0;
  return std::unique_ptr<Program>(std::make_unique<SimProgram>(std::move(made).value(), work));
}

Result<std::unique_ptr<Program>> SimDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return lost();
  }
  if (options_.counters != nullptr) ++options_.counters->loads;
  if (binary.format != binary_format) {
    return unsupported(options_.info.id + ": a binary of format '" + binary.format + "', expected '" + binary_format +
                       "'");
  }
  auto made = FixtureProgram::compile(source, 1024, std::make_shared<std::atomic<std::int64_t>>(0));
  if (!made) return made.error().within(options_.info.id);
  const std::string& image = (*made)->image();
  if (image.size() != binary.bytes.size() || std::memcmp(image.data(), binary.bytes.data(), image.size()) != 0) {
    return corrupt(options_.info.id + ": the binary is not that of its source");
  }
  const double work = source.spec ? flops(*source.spec) : 0;
  return std::unique_ptr<Program>(std::make_unique<SimProgram>(std::move(made).value(), work));
}

Result<ProgramBinary> SimDevice::serialize(const Program& program) noexcept {
  if (!options_.info.serializes) return unsupported(options_.info.id + ": programs cannot be stored");
  const std::string& image = static_cast<const SimProgram&>(program).program().image();
  const auto bytes = std::as_bytes(std::span(image));
  return ProgramBinary{binary_format, {bytes.begin(), bytes.end()}};
}

Result<std::uint64_t> SimDevice::submit(const Dispatch& dispatch) noexcept {
  const std::string& id = options_.info.id;
  if (dispatch.passes.empty()) return invalid_argument(id + ": a dispatch without passes");
  Work work;
  double cost = 0;
  for (const PassLaunch& pass : dispatch.passes) {
    if (pass.program == nullptr) return invalid_argument(id + ": a pass has no program");
    if (pass.grid == PassLaunch::nothing) continue;
    if (pass.indirect) return unsupported(id + ": a pass reads its grid from a buffer");
    const auto& program = static_cast<const SimProgram&>(*pass.program);
    Work::Launch launch{&program, {}};
    double bytes = 0;
    for (Buffer* buffer : pass.bindings) {
      if (buffer == nullptr) return invalid_argument(id + ": a binding is empty");
      auto& ours = static_cast<SimBuffer&>(*buffer);
      if (&ours.device() != this) return invalid_argument(id + ": a buffer belongs to another device");
      launch.bindings.push_back(ours.memory());
      bytes += static_cast<double>(ours.bytes());
    }
    if (Status status = program.program().check(launch.bindings); !status.ok()) return status.within(id);
    cost += options_.model.device.of(bytes, program.flops());
    if (program.first_use()) cost += options_.model.first_use_ns;
    work.launches.push_back(std::move(launch));
  }
  const std::lock_guard lock(mutex_);
  if (is_lost_) return lost();
  const SimScript& script = options_.model.script;
  work.value = ++last_;
  const bool slow =
      script.slow_from != 0 && last_ >= script.slow_from && (script.slow_until == 0 || last_ < script.slow_until);
  work.begin_ns = std::max(clock_->now(), device_free_ns_);
  const bool hangs = device_free_ns_ == never || (script.hang_at != 0 && last_ == script.hang_at);
  work.end_ns = hangs ? never : work.begin_ns + rounded(cost * noise() * (slow ? script.slow_factor : 1));
  device_free_ns_ = work.end_ns;
  queue_.push_back(std::move(work));
  return last_;
}

void SimDevice::run_due() {
  while (!queue_.empty() && !is_lost_ && queue_.front().end_ns != never && queue_.front().end_ns <= clock_->now()) {
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    const Status status = run(work);
    if (is_lost_) return;
    const FenceResult result{work.end_ns - work.begin_ns, work.begin_ns};
    done_.emplace(work.value, status.ok() ? Result<FenceResult>(result) : Result<FenceResult>(status));
  }
}

Status SimDevice::run(const Work& work) {
  const SimScript& script = options_.model.script;
  if (script.lose_at != 0 && work.value == script.lose_at) {
    is_lost_ = true;
    changed_.notify_all();
    return lost();
  }
  if (script.fail_at != 0 && work.value == script.fail_at) {
    return internal_error(options_.info.id + ": submission " + std::to_string(work.value) +
                          " fails, as the script says");
  }
  if (!options_.computes) return {};
  for (const Work::Launch& launch : work.launches) {
    if (Status status = launch.program->program().run(launch.bindings); !status.ok()) {
      return status.within(options_.info.id);
    }
  }
  if (script.wrong_at != 0 && work.value == script.wrong_at && !work.launches.empty()) {
    const auto& last = work.launches.back().bindings.back();
    if (!last.empty()) last[last.size() / 2] ^= std::byte{0x40};
  }
  return {};
}

Result<FenceResult> SimDevice::wait(std::uint64_t value, Deadline deadline) noexcept {
  std::unique_lock lock(mutex_);
  const std::string what = options_.info.id + ": timeline value " + std::to_string(value);
  for (;;) {
    run_due();
    if (value == 0 || value > last_) return not_found(what + " was never submitted");
    if (const auto done = done_.find(value); done != done_.end()) {
      Result<FenceResult> result = std::move(done->second);
      done_.erase(done);
      return result;
    }
    if (is_lost_) return lost();
    const auto under_way = std::find_if(queue_.begin(), queue_.end(), [&](const Work& w) { return w.value == value; });
    if (under_way == queue_.end()) return not_found(what + " was taken already");
    if (stopping_ || deadline.passed() || clock_->pace() == Pace::stepped) return timed_out(what + " has not finished");
    const std::uint64_t end = under_way->end_ns;
    if (end != never && clock_->pace() == Pace::virtual_time) {
      clock_->reach(end);
      continue;
    }
    const Clock::time_point limit = end == never ? deadline.at : std::min(deadline.at, at(end));
    if (limit == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, limit);
    }
  }
}

std::optional<std::uint64_t> SimDevice::next_end() const {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || queue_.front().end_ns == never) return std::nullopt;
  return queue_.front().end_ns;
}

std::uint64_t SimDevice::submissions() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::uint64_t SimDevice::bytes_held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace kiln::support

#include "support/fixture_device.hpp"

#include "support/fixture_buffer.hpp"

#include <cstring>

namespace kiln::support {
namespace {

constexpr const char* binary_format = "fixture:1";

void count(WorkCounters* counters, std::atomic<std::uint64_t> WorkCounters::*which) {
  if (counters != nullptr) ++(counters->*which);
}

// One number in the middle, by more than any rounding.
void spoil(std::span<std::byte> output) {
  const std::size_t floats = output.size() / sizeof(float);
  if (floats != 0) reinterpret_cast<float*>(output.data())[floats / 2] += 1;
}

}  // namespace

DeviceInfo fixture_info(std::string id) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = DeviceKind::software;
  info.name = "fixture device " + info.id;
  info.driver = "fixture driver 1";
  info.usable = true;
  info.device_identity = {{"name", "fixture"}};
  info.driver_identity = {{"version", "1"}};
  info.dialects = {Dialect::glsl, Dialect::library};
  info.serializes = true;
  info.wraps_host_memory = true;
  info.max_workgroup = {64, 1, 1};
  info.max_workgroup_lanes = 64;
  return info;
}

FixtureDevice::FixtureDevice(FixtureOptions options) : options_(std::move(options)) {
  if (options_.queue == FixtureQueue::own_thread) {
    thread_ = std::jthread([this] { serve(stop_.get_token()); });
  }
}

FixtureDevice::~FixtureDevice() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void FixtureDevice::lose() {
  const std::lock_guard lock(mutex_);
  options_.controls->lost = true;
  changed_.notify_all();
}

Status FixtureDevice::lost_status() const { return device_lost(options_.info.id + ": the fixture device was lost"); }

void FixtureDevice::pause(std::chrono::nanoseconds time) {
  if (time <= std::chrono::nanoseconds::zero()) return;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop_.get_token(), time, [] { return false; });
}

Result<std::unique_ptr<Buffer>> FixtureDevice::create_buffer(const BufferDesc& desc) noexcept {
  if (is_lost()) return lost_status();
  const bool shares = options_.info.shares_memory;
  if (desc.part_of != nullptr) return unsupported(options_.info.id + ": a buffer shares no other buffer's memory");
  if (desc.import_fd >= 0 && !shares) return unsupported(options_.info.id + ": imports no memory");
  if (!desc.host.empty() && !options_.info.wraps_host_memory) {
    return unsupported(options_.info.id + ": wraps no host memory");
  }
  if (options_.controls->fail_buffers) {
    return unavailable(options_.info.id + ": no memory for a buffer of " + std::to_string(desc.bytes) + " bytes");
  }
  const bool mapped = options_.mapping == FixtureMapping::mapped;
  const auto& live = options_.controls->live_buffers;
  if (!shares || !desc.host.empty()) return std::unique_ptr<Buffer>(new FixtureBuffer(desc, mapped, live));
  auto memory =
      desc.import_fd >= 0 ? FixtureMemory::import(desc.import_fd, desc.bytes) : FixtureMemory::create(desc.bytes);
  if (!memory) return memory.error().within(options_.info.id);
  return std::unique_ptr<Buffer>(new FixtureBuffer(std::move(memory).value(), mapped, live));
}

Result<std::unique_ptr<Program>> FixtureDevice::build(const KernelSource& source) noexcept {
  FixtureControls& controls = *options_.controls;
  ++controls.builds;
  if (options_.info.serializes) count(options_.counters, &WorkCounters::builds);
  if (!controls.build.pass(stop_.get_token())) return lost_status();
  pause(options_.build_time);
  if (is_lost()) return lost_status();
  if (options_.on_build) {
    if (Status status = options_.on_build(); !status.ok()) return status;
  }
  if (controls.lacks) return unsupported("the program needs what the device lacks");
  if (controls.fail_build) {
    return invalid_argument(options_.info.id + ": fixture compiler: 1:1: error: told to fail\n1 error generated");
  }
  auto program = FixtureProgram::compile(source, options_.program_charge, controls.live_programs);
  if (!program) return program.error().within(options_.info.id);
  return std::unique_ptr<Program>(std::move(program).value());
}

Result<std::unique_ptr<Program>> FixtureDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept {
  FixtureControls& controls = *options_.controls;
  ++controls.loads;
  count(options_.counters, &WorkCounters::loads);
  if (!controls.load.pass(stop_.get_token())) return lost_status();
  if (is_lost()) return lost_status();
  if (!options_.info.serializes) return unsupported(options_.info.id + ": loads no program binaries");
  if (binary.format != binary_format) {
    return unsupported(options_.info.id + ": binary of format '" + binary.format + "', expected '" + binary_format +
                       "'");
  }
  if (controls.refuse_load) return corrupt(options_.info.id + ": the fixture driver refuses the binary");
  auto program = FixtureProgram::compile(source, options_.program_charge, controls.live_programs);
  if (!program) return program.error().within(options_.info.id);
  const std::string& image = program.value()->image();
  if (binary.bytes.size() < image.size() || std::memcmp(binary.bytes.data(), image.data(), image.size()) != 0) {
    return corrupt(options_.info.id + ": binary of " + std::to_string(binary.bytes.size()) +
                   " bytes is not of the program '" + program.value()->function() + "'");
  }
  return std::unique_ptr<Program>(std::move(program).value());
}

Result<ProgramBinary> FixtureDevice::serialize(const Program& program) noexcept {
  ++options_.controls->serializes;
  if (is_lost()) return lost_status();
  if (!options_.info.serializes || options_.controls->refuse_serialize) {
    return unsupported(options_.info.id + ": keeps no program binaries");
  }
  const std::string& image = static_cast<const FixtureProgram&>(program).image();
  const auto bytes = std::as_bytes(std::span(image.data(), image.size()));
  ProgramBinary binary{binary_format, {bytes.begin(), bytes.end()}};
  if (binary.bytes.size() < options_.binary_bytes) binary.bytes.resize(options_.binary_bytes);
  return binary;
}

Result<std::uint64_t> FixtureDevice::submit(const Dispatch& dispatch) noexcept {
  Work work{0, {}};
  for (const PassLaunch& pass : dispatch.passes) {
    if (pass.grid == PassLaunch::nothing) continue;
    Launch launch{static_cast<const FixtureProgram*>(pass.program), {}};
    for (Buffer* buffer : pass.bindings) launch.bindings.push_back(static_cast<FixtureBuffer*>(buffer)->memory());
    work.launches.push_back(std::move(launch));
  }
  std::unique_lock lock(mutex_);
  if (is_lost()) return lost_status();
  ++options_.controls->submits;
  const std::uint64_t value = work.value = next_value_++;
  if (options_.queue == FixtureQueue::own_thread) {
    queue_.push_back(std::move(work));
    changed_.notify_all();
    return value;
  }
  changed_.wait(lock, [&] { return finished_ + 1 == value; });  // in order, also with several submitting threads
  lock.unlock();
  finish(value, run(work));
  return value;
}

Status FixtureDevice::run(const Work& work) {
  FixtureControls& controls = *options_.controls;
  if (!controls.run.pass(stop_.get_token())) return lost_status();
  pause(options_.run_time);
  if (controls.lose_at == work.value) {
    if (controls.comes_back) controls.lose_at = 0;
    (controls.comes_back ? gone_ : controls.lost) = true;
  }
  if (is_lost()) return lost_status();
  ++controls.runs;
  if (controls.fail_at == work.value) {
    return internal_error(options_.info.id + ": work " + std::to_string(work.value) + " was told to fail");
  }
  if (controls.idle_at == work.value) return {};
  for (const Launch& launch : work.launches) {
    if (Status status = launch.program->run(launch.bindings); !status.ok()) return status.within(options_.info.id);
  }
  if (controls.wrong_at == work.value && !work.launches.empty()) spoil(work.launches.back().bindings.back());
  return {};
}

void FixtureDevice::finish(std::uint64_t value, Status status) {
  const std::lock_guard lock(mutex_);
  done_[value] = std::move(status);
  finished_ = value;
  changed_.notify_all();
}

void FixtureDevice::serve(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    finish(work.value, run(work));
  }
}

Result<FenceResult> FixtureDevice::wait(std::uint64_t value, Deadline deadline) noexcept {
  std::unique_lock lock(mutex_);
  const std::string what = options_.info.id + ": timeline value " + std::to_string(value);
  if (value == 0 || value >= next_value_) return not_found(what + " was never submitted");
  const auto ended = [&] { return finished_ >= value || is_lost(); };
  if (deadline.at == Clock::time_point::max()) {
    changed_.wait(lock, ended);
  } else if (!changed_.wait_until(lock, deadline.at, ended)) {
    return timed_out(what + " has not finished");
  }
  const auto found = done_.find(value);
  if (found == done_.end()) return finished_ >= value ? not_found(what + " was taken already") : lost_status();
  const Status status = std::move(found->second);
  done_.erase(found);
  if (!status.ok()) return status;
  return FenceResult{static_cast<std::uint64_t>(options_.run_time.count())};
}

}  // namespace kiln::support

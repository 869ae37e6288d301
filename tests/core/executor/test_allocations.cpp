// No allocation in a steady stream of jobs, counted rather than claimed.
#include "core/executor/jobs.hpp"

#include "support/allocation_count.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

using namespace kiln;
using namespace kiln::test;

namespace {

// Does nothing, allocates nothing but the buffers that it is asked for, and takes the next job only when let.
class IdleDevice final : private DeviceClock, public Device {
 public:
  explicit IdleDevice(Memory memory) : Device(static_cast<const DeviceClock&>(*this)), memory_(memory) {
    info_.id = "idle:0";
    info_.wraps_host_memory = memory == Memory::wrapped;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource&) noexcept override { return unsupported("build"); }
  Result<std::unique_ptr<Program>> load(const KernelSource&, const ProgramBinary&) noexcept override {
    return unsupported("load");
  }
  Result<ProgramBinary> serialize(const Program&) noexcept override { return unsupported("serialize"); }
  Result<std::uint64_t> submit(const Dispatch&) noexcept override {
    std::unique_lock lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return ++last_;
  }
  Result<FenceResult> wait(std::uint64_t, Deadline) noexcept override { return FenceResult{1'000, 0}; }
  // Of its own: on a busy machine a copy may last so long that the executor starts a thread for the next.
  std::uint64_t clock_ns() const noexcept override { return clock_.fetch_add(1); }

  // From now on submit() does not return; answers once the submit thread stands there.
  template <class Submit>
  void hold(Submit submit) {
    std::unique_lock lock(mutex_);
    open_ = entered_ = false;
    lock.unlock();
    submit();
    lock.lock();
    changed_.wait(lock, [&] { return entered_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::uint64_t buffers_made() const { return buffers_made_; }

 private:
  const Memory memory_;
  DeviceInfo info_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  bool entered_ = false;
  std::uint64_t last_ = 0;
  std::atomic<std::uint64_t> buffers_made_{0};
  mutable std::atomic<std::uint64_t> clock_{1};
};

constexpr std::size_t floats = 64;

class IdleBuffer final : public Buffer {
 public:
  explicit IdleBuffer(Memory memory) : memory_(memory) {}
  std::uint64_t bytes() const noexcept override { return sizeof own_; }
  Status write(std::uint64_t, std::span<const std::byte>) noexcept override { return {}; }
  Status read(std::uint64_t, std::span<std::byte>) noexcept override { return {}; }
  std::span<std::byte> mapped() noexcept override {
    return memory_ == Memory::mapped ? std::span(own_) : std::span<std::byte>();
  }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("export"); }

 private:
  const Memory memory_;
  std::array<std::byte, floats * sizeof(float)> own_{};
};

Result<std::unique_ptr<Buffer>> IdleDevice::create_buffer(const BufferDesc&) noexcept {
  ++buffers_made_;
  return std::unique_ptr<Buffer>(std::make_unique<IdleBuffer>(memory_));
}

constexpr std::uint32_t slots = 8;
constexpr std::size_t steady_jobs = 1000;

}  // namespace

TEST_CASE("executor: a thousand steady jobs allocate nothing but a device's wrappers",
          "[executor][allocations][unsanitized]") {
  if (!support::counts_allocations) {
    WARN("skipped: a sanitizer has an operator new of its own");
    return;
  }
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<IdleDevice>(memory);
  const auto executor = ring(slots);
  std::vector<Submission> jobs;  // each in flight owns its output
  for (std::uint32_t i = 0; i < slots; ++i) jobs.push_back(add_one(device, std::vector<float>(floats)).submission);
  std::vector<Submission> made;
  for (std::size_t i = 0; i < steady_jobs; ++i) made.push_back(jobs[i % slots]);

  // Before: it turns out that jobs are small, every slot is used once, and as many as there are share a submission.
  REQUIRE(executor->wait(executor->submit(jobs[0]).value(), Deadline::never()));
  std::vector<Fence> fences;
  device->hold([&] { fences.push_back(executor->submit(jobs[0]).value()); });
  for (std::uint32_t i = 1; i < slots; ++i) fences.push_back(executor->submit(jobs[i]).value());
  device->release();
  for (const Fence fence : fences) REQUIRE(executor->wait(fence, Deadline::never()));

  const std::uint64_t buffers = device->buffers_made();
  const std::uint64_t before = support::allocation_count();
  std::size_t failed = 0;  // Catch2's own words would be counted
  for (std::size_t i = 0; i < steady_jobs + slots; ++i) {
    if (i >= slots && !executor->wait(fences[i % slots], Deadline::never())) ++failed;
    if (i < steady_jobs) fences[i % slots] = executor->submit(std::move(made[i])).value();
  }
  const std::uint64_t allocated = support::allocation_count() - before;
  CHECK(failed == 0);
  CHECK(device->buffers_made() - buffers == (memory == Memory::wrapped ? 2 * steady_jobs : 0));
  CHECK(allocated == device->buffers_made() - buffers);
}

TEST_CASE("executor: a thousand replays allocate nothing", "[executor][allocations][unsanitized]") {
  if (!support::counts_allocations) {
    WARN("skipped: a sanitizer has an operator new of its own");
    return;
  }
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  const auto device = std::make_shared<IdleDevice>(memory);
  const auto executor = ring(slots);
  const auto recording = executor->record({add_one(device, std::vector<float>(floats)).submission}).value();
  const auto replay = [&] {
    return executor->wait(executor->replay(recording, Deadline::never()).value(), Deadline::never()).has_value();
  };
  std::size_t failed = replay() ? 0 : 1;
  const std::uint64_t before = support::allocation_count();
  for (std::size_t i = 0; i < steady_jobs; ++i) failed += replay() ? 0 : 1;
  const std::uint64_t allocated = support::allocation_count() - before;
  CHECK(failed == 0);
  // The recording's name, "recording of 1", is short enough for a string's own room.
  CHECK(allocated == 0);
}

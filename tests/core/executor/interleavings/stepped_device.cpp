#include "core/executor/interleavings/stepped_device.hpp"

#include <algorithm>
#include <chrono>

namespace kiln::test {
namespace {

Status gone() { return device_lost("lost by the test"); }

class PlainBuffer final : public Buffer {
 public:
  explicit PlainBuffer(std::uint64_t bytes) : own_(bytes, std::byte{0x7f}) {}
  std::uint64_t bytes() const noexcept override { return own_.size(); }
  Status write(std::uint64_t, std::span<const std::byte> from) noexcept override {
    std::copy(from.begin(), from.end(), own_.begin());
    return {};
  }
  Status read(std::uint64_t, std::span<std::byte> to) noexcept override {
    std::copy_n(own_.begin(), to.size(), to.begin());
    return {};
  }
  std::span<std::byte> mapped() noexcept override { return {}; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("export"); }
  std::span<float> floats() { return {reinterpret_cast<float*>(own_.data()), own_.size() / sizeof(float)}; }

 private:
  std::vector<std::byte> own_;
};

}  // namespace

Result<std::unique_ptr<Buffer>> SteppedDevice::create_buffer(const BufferDesc& desc) noexcept {
  if (lost_) return gone();
  if (desc.bytes == refused_floats * sizeof(float)) return unavailable("no memory for it");
  return std::unique_ptr<Buffer>(std::make_unique<PlainBuffer>(desc.bytes));
}

Result<std::uint64_t> SteppedDevice::submit(const Dispatch& dispatch) noexcept {
  if (lost_) return gone();
  auto& work = queue_.emplace_back();
  for (const PassLaunch& pass : dispatch.passes) {
    work.emplace_back(static_cast<const SyntheticProgram*>(pass.program),
                      std::vector<Buffer*>(pass.bindings.begin(), pass.bindings.end()));
  }
  return ++submitted_;
}

void SteppedDevice::work() {
  for (const auto& [program, buffers] : queue_[worked_]) {
    Memories memories;
    for (Buffer* buffer : buffers) memories.push_back(static_cast<PlainBuffer*>(buffer)->floats());
    program->run(memories);
  }
  ++worked_;
}

Result<FenceResult> SteppedDevice::wait(std::uint64_t value, Deadline deadline) noexcept {
  if (!deadline.passed() && deadline.at < Clock::now() + std::chrono::minutes(30)) ++timed_waits_;
  if (value == 0 || value > submitted_) return lost_ ? gone() : not_found("never submitted");
  if (patience && !deadline.passed()) patience([&] { return lost_ || worked_ >= value; });
  if (lost_) return gone();
  if (value > worked_) return timed_out("still running");
  if (!taken_.insert(value).second) return not_found("taken already");
  return FenceResult{each_ns_, 0};
}

}  // namespace kiln::test

#include "core/executor/synthetic_device.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kiln::test {
namespace {

constexpr std::chrono::seconds patience{20};  // of a test that has gone wrong

}  // namespace

class SyntheticBuffer final : public Buffer {
 public:
  SyntheticBuffer(SyntheticDevice& device, const BufferDesc& desc)
      : device_(device), usage_(desc.usage), own_(desc.host.empty() && desc.part_of == nullptr ? desc.bytes : 0) {
    memory_ = desc.host.empty() ? std::span(own_) : desc.host;
    if (desc.part_of != nullptr) memory_ = static_cast<SyntheticBuffer*>(desc.part_of)->memory_.first(desc.bytes);
    // Whoever reads what nobody wrote shall see it.
    std::fill(own_.begin(), own_.end(), std::byte{0x7f});
    device_.count_buffer(usage_, +1);
  }
  ~SyntheticBuffer() override { device_.count_buffer(usage_, -1); }

  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override {
    if (offset + from.size() > memory_.size()) return invalid_argument("write leaves the buffer");
    std::memcpy(memory_.data() + offset, from.data(), from.size());
    device_.ticks_ += device_.write_ns;
    return {};
  }
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override {
    if (offset + to.size() > memory_.size()) return invalid_argument("read leaves the buffer");
    device_.await_reads(to.size());
    std::memcpy(to.data(), memory_.data() + offset, to.size());
    device_.ticks_ += device_.read_ns;
    return {};
  }
  std::span<std::byte> mapped() noexcept override {
    return device_.memory_ == Memory::plain ? std::span<std::byte>() : memory_;
  }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("synthetic buffer: export"); }

  std::span<float> floats() noexcept {
    return {reinterpret_cast<float*>(memory_.data()), memory_.size() / sizeof(float)};
  }

 private:
  SyntheticDevice& device_;
  BufferUsage usage_;
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
};

SyntheticDevice::SyntheticDevice(Memory memory, std::string id)
    : Device(static_cast<const DeviceClock&>(*this)), memory_(memory) {
  info_.id = std::move(id);
  info_.kind = DeviceKind::simulated;
  info_.usable = true;
  info_.wraps_host_memory = memory == Memory::wrapped;
  worker_ = std::thread([this] { serve(); });
}

SyntheticDevice::~SyntheticDevice() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void SyntheticDevice::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!lost_ && !queue_.empty() && allowance_ > 0); });
    if (stopping_) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    if (allowance_ != UINT64_MAX) --allowance_;
    lock.unlock();
    for (const auto& [program, buffers] : work.passes) {
      Memories memories;
      for (Buffer* buffer : buffers) memories.push_back(static_cast<SyntheticBuffer*>(buffer)->floats());
      program->run(memories);
    }
    lock.lock();
    done_.insert(work.value);
    worked_ = work.value;
    changed_.notify_all();
  }
}

Result<std::unique_ptr<Buffer>> SyntheticDevice::create_buffer(const BufferDesc& desc) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return device_lost("lost by the test");
    if (no_buffers_ && buffers_left_ == 0) return *no_buffers_;
    if (no_buffers_) --buffers_left_;
    if (desc.part_of != nullptr) parts_.emplace_back(desc.part_of->bytes(), desc.bytes);
  }
  if (!desc.host.empty() && memory_ != Memory::wrapped) return unsupported("host memory is not wrapped");
  if (desc.part_of != nullptr && !info_.shares_buffers) return unsupported("buffers are not shared");
  return std::unique_ptr<Buffer>(std::make_unique<SyntheticBuffer>(*this, desc));
}

Result<std::unique_ptr<Program>> SyntheticDevice::build(const KernelSource&) noexcept { return unsupported("build"); }
Result<std::unique_ptr<Program>> SyntheticDevice::load(const KernelSource&, const ProgramBinary&) noexcept {
  return unsupported("load");
}
Result<ProgramBinary> SyntheticDevice::serialize(const Program&) noexcept { return unsupported("serialize"); }

Result<std::uint64_t> SyntheticDevice::submit(const Dispatch& dispatch) noexcept {
  const std::lock_guard lock(mutex_);
  submitter_ = std::this_thread::get_id();
  ticks_ += submit_ns;
  waits_.clear();
  for (const PassLaunch& pass : dispatch.passes) waits_.push_back(pass.waits);
  if (lost_) return device_lost("lost by the test");
  if (const auto at = refused_.find(last_ + 1); at != refused_.end()) {
    const Status status = at->second;
    refused_.erase(at);
    return status;
  }
  Work work{++last_, {}};
  for (const PassLaunch& pass : dispatch.passes) {
    work.passes.emplace_back(static_cast<const SyntheticProgram*>(pass.program),
                             std::vector<Buffer*>(pass.bindings.begin(), pass.bindings.end()));
  }
  queue_.push_back(std::move(work));
  most_in_device_ = std::max(most_in_device_, ++in_device_);
  changed_.notify_all();
  return last_;
}

Result<FenceResult> SyntheticDevice::wait(std::uint64_t value, Deadline deadline) noexcept {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return lost_ || done_.contains(value); };
  if (deadline.at == Deadline::never().at) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_until(lock, deadline.at, over)) {
    return timed_out("still running");
  }
  if (lost_) return device_lost("lost by the test");
  done_.erase(value);
  --in_device_;
  const std::uint64_t took_ns = wait_ns;
  const std::uint64_t since = ticks_.fetch_add(took_ns);
  if (const auto at = failing_.find(value); at != failing_.end()) return at->second;
  return FenceResult{tells_time ? 1000 + value : 0, took_ns == 0 ? 0 : since + took_ns / 2};
}

void SyntheticDevice::hold() {
  const std::lock_guard lock(mutex_);
  allowance_ = 0;
}

void SyntheticDevice::allow(std::uint64_t dispatches) {
  const std::lock_guard lock(mutex_);
  allowance_ += dispatches;
  changed_.notify_all();
}

void SyntheticDevice::release() {
  const std::lock_guard lock(mutex_);
  allowance_ = UINT64_MAX;
  changed_.notify_all();
}

void SyntheticDevice::hold_reads(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  held_from_ = bytes;
  changed_.notify_all();
}

void SyntheticDevice::await_reads(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  ++held_reads_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return bytes < held_from_; });
  --held_reads_;
}

void SyntheticDevice::await_held_read() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return held_reads_ > 0; })) {
    throw std::runtime_error("nothing was read back");
  }
}

void SyntheticDevice::fail(std::uint64_t value, Status status) {
  const std::lock_guard lock(mutex_);
  failing_[value] = std::move(status);
}

void SyntheticDevice::refuse(std::uint64_t value, Status status) {
  const std::lock_guard lock(mutex_);
  refused_[value] = std::move(status);
}

void SyntheticDevice::refuse_buffers(std::optional<Status> status, std::size_t after) {
  const std::lock_guard lock(mutex_);
  no_buffers_ = std::move(status);
  buffers_left_ = after;
}

void SyntheticDevice::lose() {
  const std::lock_guard lock(mutex_);
  lost_ = true;
  changed_.notify_all();
}

void SyntheticDevice::await_submitted(std::uint64_t value) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return last_ >= value; })) {
    throw std::runtime_error("the dispatch was not submitted");
  }
}

void SyntheticDevice::await_buffers(BufferUsage usage, std::size_t alive) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return alive_[usage] == alive; })) {
    throw std::runtime_error("the buffers did not come or go");
  }
}

void SyntheticDevice::await_idle() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return worked_ == last_; })) {
    throw std::runtime_error("the device did not finish");
  }
}

std::vector<bool> SyntheticDevice::last_waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

std::thread::id SyntheticDevice::last_submitter() const {
  const std::lock_guard lock(mutex_);
  return submitter_;
}

std::uint64_t SyntheticDevice::submitted() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::size_t SyntheticDevice::most_in_device() const {
  const std::lock_guard lock(mutex_);
  return most_in_device_;
}

std::size_t SyntheticDevice::buffers_alive(BufferUsage usage) const {
  const std::lock_guard lock(mutex_);
  const auto at = alive_.find(usage);
  return at == alive_.end() ? 0 : at->second;
}

std::size_t SyntheticDevice::buffers_made(BufferUsage usage) const {
  const std::lock_guard lock(mutex_);
  const auto at = made_.find(usage);
  return at == made_.end() ? 0 : at->second;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> SyntheticDevice::parts_made() const {
  const std::lock_guard lock(mutex_);
  return parts_;
}

void SyntheticDevice::count_buffer(BufferUsage usage, int change) {
  const std::lock_guard lock(mutex_);
  alive_[usage] += static_cast<std::size_t>(change);
  if (change > 0) ++made_[usage];
  changed_.notify_all();
}

}  // namespace kiln::test

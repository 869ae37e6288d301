#include "device/fake_winsys.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4::fake {
namespace {

constexpr std::uint64_t page = 4096;

class FakeBuffer final : public BufferObject {
 public:
  FakeBuffer(std::shared_ptr<Gpu> gpu, std::uint32_t handle, const BufferRequest& request)
      : gpu_(std::move(gpu)),
        handle_(handle),
        access_(request.access),
        memory_(gpu_->memory.at(handle)),
        visible_(request.placement.host != HostMapping::none) {}
  ~FakeBuffer() override {
    const std::lock_guard lock(gpu_->mutex);
    gpu_->memory.erase(handle_);
    gpu_->buffers.erase(handle_);
  }
  std::uint64_t address() const noexcept override { return memory_.address; }
  std::uint64_t bytes() const noexcept override { return memory_.words.size() * 8; }
  std::uint32_t handle() const noexcept override { return handle_; }
  GpuAccess access() const noexcept override { return access_; }
  std::span<std::byte> mapped() noexcept override {
    if (!visible_) return {};
    return std::as_writable_bytes(std::span(memory_.words));
  }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("fake: no descriptors"); }

 private:
  std::shared_ptr<Gpu> gpu_;
  std::uint32_t handle_;
  GpuAccess access_;
  Gpu::Memory& memory_;
  bool visible_;
};

class FakeTimeline final : public Timeline {
 public:
  explicit FakeTimeline(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  std::uint32_t handle() const noexcept override { return 7; }
  Status wait(std::uint64_t point, Deadline deadline) noexcept override {
    std::unique_lock lock(gpu_->mutex);
    const auto done = [&] { return gpu_->passed >= point; };
    if (done()) return {};
    if (deadline.left() == std::chrono::nanoseconds::max()) {
      gpu_->changed.wait(lock, done);
    } else if (!gpu_->changed.wait_until(lock, deadline.at, done)) {
      return timed_out("fake: point " + std::to_string(point));
    }
    return {};
  }
  Result<std::uint64_t> passed() noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    return gpu_->passed;
  }
  Status signal(std::uint64_t) noexcept override { return unsupported("fake: no signals"); }
  Result<UniqueFd> export_sync_file(std::uint64_t) noexcept override { return unsupported("fake: no descriptors"); }
  Status import_sync_file(std::uint64_t, int) noexcept override { return {}; }

 private:
  std::shared_ptr<Gpu> gpu_;
};

class FakeContext final : public Context {
 public:
  FakeContext(std::shared_ptr<Gpu> gpu, std::uint32_t id) : gpu_(std::move(gpu)), id_(id) {}
  Result<std::uint64_t> submit(const CommandSubmission& submission) noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    if (!gpu_->submit_errors.empty()) {
      const int error = gpu_->submit_errors.front();
      gpu_->submit_errors.erase(gpu_->submit_errors.begin());
      if (error != 0) return outcome_of(error, "fake: submit").how;
    }
    if (gpu_->states[id_].reset) return status_of(-ECANCELED, "fake: submit");
    ++gpu_->submissions;
    gpu_->lists.emplace_back(submission.buffers.begin(), submission.buffers.end());
    gpu_->waits.emplace_back();
    for (const SyncPoint& each : submission.waits) gpu_->waits.back().push_back(each.point);
    gpu_->waiting.push_back(
        {submission.signals.front().point, {submission.commands.begin(), submission.commands.end()}, id_, ++number_});
    if (!gpu_->held) {
      const Gpu::Job job = gpu_->waiting.back();
      gpu_->waiting.pop_back();
      gpu_->run(job);
    }
    return number_;
  }
  Outcome outcome(std::uint64_t submission, std::uint32_t, Deadline) noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    const auto at = gpu_->outcomes.find({id_, submission});
    return at == gpu_->outcomes.end() ? Outcome{timed_out("fake: it runs")} : at->second;
  }
  Result<ResetState> reset_state() noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    return gpu_->states[id_];
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  std::uint32_t id_;
  std::uint64_t number_ = 0;
};

class FakeWinsys final : public Winsys {
 public:
  FakeWinsys(std::shared_ptr<Gpu> gpu, NodeFacts facts) : gpu_(std::move(gpu)), facts_(std::move(facts)) {}
  const NodeFacts& facts() const noexcept override { return facts_; }
  Result<std::unique_ptr<BufferObject>> create_buffer(const BufferRequest& request) noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    if (gpu_->allocation_error) return *gpu_->allocation_error;
    if (gpu_->buffers.size() >= gpu_->most_buffers) return unavailable("fake: memory is short");
    const std::uint32_t handle = gpu_->next_handle++;
    Gpu::Memory& memory = gpu_->memory[handle];
    const std::uint64_t bytes = (request.bytes + page - 1) / page * page;
    memory.words.resize(bytes / 8);
    memory.address = gpu_->next_address;
    gpu_->next_address += bytes + page;  // nothing is mapped between two buffers
    gpu_->buffers[handle] = request.access;
    return std::unique_ptr<BufferObject>(std::make_unique<FakeBuffer>(gpu_, handle, request));
  }
  Result<std::unique_ptr<BufferObject>> import_buffer(int, GpuAccess) noexcept override {
    return unsupported("fake: no descriptors");
  }
  Result<std::unique_ptr<Context>> create_context(Priority) noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    return std::unique_ptr<Context>(std::make_unique<FakeContext>(gpu_, ++gpu_->contexts));
  }
  Result<std::unique_ptr<Timeline>> create_timeline() noexcept override {
    return std::unique_ptr<Timeline>(std::make_unique<FakeTimeline>(gpu_));
  }
  Result<std::uint64_t> counter() noexcept override {
    const std::lock_guard lock(gpu_->mutex);
    return gpu_->clock;
  }
  Result<std::uint32_t> vram_losses() noexcept override { return 0u; }

 private:
  std::shared_ptr<Gpu> gpu_;
  NodeFacts facts_;
};

}  // namespace

std::byte* Gpu::at(std::uint64_t address, std::uint64_t bytes) {
  for (auto& [handle, each] : memory) {
    const std::uint64_t size = each.words.size() * 8;
    if (address >= each.address && address - each.address <= size && bytes <= size - (address - each.address)) {
      return reinterpret_cast<std::byte*>(each.words.data()) + (address - each.address);
    }
  }
  throw std::runtime_error("fake: nothing is mapped at " + std::to_string(address));
}

bool Gpu::follow(std::uint64_t address, std::uint32_t bytes) {
  const auto* dwords = reinterpret_cast<const std::uint32_t*>(at(address, bytes));
  const std::uint32_t count = bytes / 4;
  for (std::uint32_t i = 0; i < count;) {
    const std::uint32_t header = dwords[i];
    if (header == 0xffff1000) {
      ++i;
      continue;
    }
    const std::uint32_t opcode = header >> 8 & 0xff, body = (header >> 16 & 0x3fff) + 1;
    const std::uint32_t* const d = dwords + i + 1;
    const std::uint64_t where = d[2] | std::uint64_t{body > 3 ? d[3] : 0} << 32;
    switch (opcode) {
      case 0x15:  // DISPATCH_DIRECT
        if (hang_at != dispatches++) break;
        if (hang_error != -ENODATA) return false;
        killed = true;
        clock += 1'000'000;
        break;
      case 0x46:  // EVENT_WRITE
        ++barriers;
        break;
      case 0x49:  // RELEASE_MEM of the clock
        clock += 100;
        *reinterpret_cast<std::uint64_t*>(at(where, 8)) = clock;
        break;
      case 0x76:  // SET_SH_REG of USER_DATA
        if (d[0] == 0x240) arguments.push_back(d[1] | std::uint64_t{d[2]} << 32);
        break;
      case 0x3f:  // INDIRECT_BUFFER that chains
        return follow(d[0] | std::uint64_t{d[1]} << 32, (d[2] & 0xfffff) * 4);
      default:
        break;
    }
    i += 1 + body;
  }
  return true;
}

void Gpu::run(const Job& job) {
  Outcome outcome;
  const bool lost = states[job.context].reset && !runs_again;
  bool ended = false;
  if (!lost) {
    ended = true;
    for (const CommandRange& range : job.commands) ended = ended && follow(range.address, range.bytes);
  }
  if (!ended || std::exchange(killed, false)) {
    outcome = outcome_of(lost ? -ECANCELED : hang_error, "fake: the job");
    if (!lost) {
      states[job.context] = {true, lose_vram, !innocent, false, fault};
      hang_at.reset();
    }
  }
  outcomes[{job.context, job.number}] = outcome;
  passed = std::max(passed, job.point);
  changed.notify_all();
}

void Gpu::run_held() {
  const std::lock_guard lock(mutex);
  held = false;
  for (const Job& job : std::exchange(waiting, {})) run(job);
}

NodeFacts navi31_facts() {
  NodeFacts facts;
  facts.path = "/dev/dri/renderD128";
  facts.marketing_name = "AMD Radeon RX 7900 XTX";
  facts.family = 145;
  facts.external_revision = 1;
  facts.library = "fake";
  facts.shader_engines = 6;
  facts.arrays_per_engine = 2;
  facts.compute_units = 96;
  facts.engine_khz = 2'371'000;
  facts.counter_khz = 100'000;
  facts.memory = {24ull << 30, 24ull << 30, 16ull << 30, 20ull << 30, 12ull << 30};
  facts.compute = {0xf, 32, 32};
  return facts;
}

std::unique_ptr<Winsys> make_winsys(std::shared_ptr<Gpu> gpu, NodeFacts facts) {
  return std::make_unique<FakeWinsys>(std::move(gpu), std::move(facts));
}

}  // namespace kiln::amdgpu_pm4::fake

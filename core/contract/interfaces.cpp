// The out-of-line destructors of the interfaces: one vtable and one typeinfo each, here, for every plugin; and what an
// implementation answers that leaves an optional method out; and the checks that devices share.
#include <kiln/device.hpp>
#include <kiln/device_checks.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/executor.hpp>
#include <kiln/fence_exchange.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/offline_tools.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning_exchange.hpp>

#include <unistd.h>

namespace kiln {

Buffer::~Buffer() = default;
Program::~Program() = default;
const ProgramInterface* Program::interface(const KernelSource&) const noexcept { return nullptr; }
Device::~Device() = default;
FenceExchange::~FenceExchange() = default;
Driver::~Driver() = default;
DriverNotes::~DriverNotes() = default;
ProgramCache::~ProgramCache() = default;
Executor::~Executor() = default;
DeviceSelector::~DeviceSelector() = default;
KernelGenerator::~KernelGenerator() = default;
TunableGenerator::~TunableGenerator() = default;
WarmableCache::~WarmableCache() = default;
DeviceClock::~DeviceClock() = default;
AheadCompiler::~AheadCompiler() = default;
Result<std::unique_ptr<Device>> AheadCompiler::open(const std::string& target) noexcept {
  return unsupported("target '" + target + "': this plugin builds programs only on a device");
}
StreamPrinter::~StreamPrinter() = default;
VariantBench::~VariantBench() = default;
TuningStore::~TuningStore() = default;
TuningExchange::~TuningExchange() = default;
Recording::~Recording() = default;
TraceSink::~TraceSink() = default;

void TraceSink::add_event(const TraceEvent&) noexcept {}
void TraceSink::add_link(const TraceLink&) noexcept {}

void ProgramCache::trim_memory() noexcept {}

bool ProgramCache::holds(const ProgramKey& key, const Device& device) noexcept {
  const Guard guard = enter();
  return find(key.digest, device, guard) != nullptr;
}

Status Executor::cancel(Fence) noexcept { return unsupported("this executor cannot cancel a job"); }
Result<std::size_t> Executor::wait_any(std::span<const Fence>, Deadline) noexcept {
  return unsupported("this executor cannot wait for any of several fences");
}
Result<std::shared_ptr<Recording>> Executor::record(std::vector<Submission>) noexcept {
  return unsupported("this executor cannot record submissions");
}
Result<Fence> Executor::replay(const std::shared_ptr<Recording>&, Deadline) noexcept {
  return unsupported("this executor cannot replay a recording");
}

Result<KernelPlan> KernelGenerator::generate_variant(const KernelSpec&, const DeviceInfo&, Dialect,
                                                     std::string_view variant) noexcept {
  return not_found("variant '" + std::string(variant) + "': this generator has no variants");
}

std::vector<KernelPlan> KernelGenerator::generic_plans(const KernelSpec&, const DeviceInfo&, Dialect) { return {}; }

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Status check_buffer(const DeviceInfo& info, const BufferDesc& desc) {
  if (!desc.host.empty() && !info.wraps_host_memory) {
    return unsupported(info.id + ": host memory cannot be wrapped as a buffer");
  }
  if (desc.import_fd >= 0 && !info.shares_memory) {
    return unsupported(info.id + ": memory cannot be imported by file descriptor");
  }
  if (desc.part_of != nullptr && !info.shares_buffers) {
    return unsupported(info.id + ": a buffer cannot be a part of another buffer");
  }
  if (desc.usage == BufferUsage::invalid) return invalid_argument(info.id + ": buffer usage is not set");
  if (desc.bytes == 0) return invalid_argument(info.id + ": buffer size is 0 bytes, expected at least 1 byte");
  if (info.max_buffer_bytes != 0 && desc.bytes > info.max_buffer_bytes) {
    return invalid_argument(info.id + ": buffer size is " + std::to_string(desc.bytes) + " bytes, expected at most " +
                            std::to_string(info.max_buffer_bytes));
  }
  return {};
}

namespace {

Status check_indirect(const DeviceInfo& info, std::size_t pass, const PassLaunch& launch) {
  const std::string who = info.id + ": pass " + std::to_string(pass) + ": ";
  if (!info.indirect_grids) return unsupported(who + "reads the grid from a buffer, which the device does not support");
  const auto [binding, offset] = *launch.indirect;
  constexpr std::uint64_t bytes = 3 * sizeof(std::uint32_t);
  if (binding >= launch.bindings.size() || launch.bindings[binding] == nullptr) {
    return invalid_argument(who + "reads the grid from binding " + std::to_string(binding) +
                            ", which has no buffer (found " + std::to_string(launch.bindings.size()) + " bindings)");
  }
  const std::uint64_t size = launch.bindings[binding]->bytes();
  if (offset % sizeof(std::uint32_t) == 0 && offset <= size && bytes <= size - offset) return {};
  return invalid_argument(who + "reads the grid at byte " + std::to_string(offset) + " of " + std::to_string(size) +
                          ", expected a multiple of 4 and at least 12 bytes to the end of the buffer");
}

}  // namespace

Status check_counts(std::size_t pass, const std::array<std::uint32_t, 3>& counts,
                    const std::array<std::uint32_t, 3>& most) {
  for (std::size_t axis = 0; axis < counts.size(); ++axis) {
    if (counts[axis] <= most[axis]) continue;
    return invalid_argument("pass " + std::to_string(pass) + ": reads grid " + "xyz"[axis] +
                            " = " + std::to_string(counts[axis]) + ", expected 0 to " + std::to_string(most[axis]));
  }
  return {};
}

Status check_grid(const DeviceInfo& info, std::size_t pass, const PassLaunch& launch) {
  if (launch.indirect) return check_indirect(info, pass, launch);
  for (std::size_t axis = 0; axis < launch.grid.size(); ++axis) {
    if (launch.grid[axis] >= 1 && launch.grid[axis] <= info.max_grid[axis]) continue;
    return invalid_argument(info.id + ": pass " + std::to_string(pass) + ": grid " + "xyz"[axis] + " = " +
                            std::to_string(launch.grid[axis]) + ", expected 1 to " +
                            std::to_string(info.max_grid[axis]));
  }
  return {};
}

}  // namespace kiln

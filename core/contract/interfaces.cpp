// The out-of-line destructors of the interfaces: one vtable and one typeinfo each, here, for every plugin; and what an
// implementation answers that leaves an optional method out.
#include <kiln/device.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/offline_tools.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/trace.hpp>

#include <unistd.h>

namespace kiln {

Buffer::~Buffer() = default;
Program::~Program() = default;
const ProgramInterface* Program::interface(const KernelSource&) const noexcept { return nullptr; }
Device::~Device() = default;
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
  return unsupported("target '" + target + "': its programs are built on a device only");
}
StreamPrinter::~StreamPrinter() = default;
VariantBench::~VariantBench() = default;
TuningStore::~TuningStore() = default;
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
  return unsupported("this executor records nothing");
}
Result<Fence> Executor::replay(const std::shared_ptr<Recording>&, Deadline) noexcept {
  return unsupported("this executor replays nothing");
}

Result<KernelPlan> KernelGenerator::generate_variant(const KernelSpec&, const DeviceInfo&, Dialect,
                                                     std::string_view variant) noexcept {
  return not_found("variant '" + std::string(variant) + "': this generator writes no variants");
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

}  // namespace kiln

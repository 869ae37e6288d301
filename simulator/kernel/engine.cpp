#include "simulator/kernel/engine.hpp"

#include "simulator/memory/job_memory.hpp"

namespace kiln::simulator::kernel {
namespace {

CommandProcessorSettings settings_for(const Target& target, const ComputeLimits& limits) {
  CommandProcessorSettings settings;
  settings.generation = target.generation;
  settings.counter_hz = std::uint64_t{target.figures.base.gpu_counter_freq} * 1000;
  settings.wait_limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(limits.watchdog).count()) / 6;
  return settings;
}

ComputeLimits on_target(const Target& target, ComputeLimits limits) {
  limits.compute_units = target.figures.base.cu_active_number;
  return limits;
}

}  // namespace

ProcessorEngine::ProcessorEngine(const Target& target, const ComputeLimits& limits)
    : compute_(on_target(target, limits)), processor_(settings_for(target, limits), compute_) {}

std::optional<Fault> ProcessorEngine::run(const EngineJob& job) {
  l2_.purge();
  JobMemory memory(job.space, job.listed, l2_);
  if (job.invalidate_first) {
    memory.invalidate_l2();
    compute_.forget_code();
  }
  auto fault = processor_.run({job.ring, job.buffers, &memory});
  // The kernel's own fence at the end of a job writes the cache back; a reset leaves nothing in it.
  if (fault) {
    memory.invalidate_l2();
  } else {
    memory.write_back_l2();
  }
  return fault;
}

void ProcessorEngine::stop(const char* reason) noexcept { processor_.stop(reason); }

}  // namespace kiln::simulator::kernel

#include "recording_engine.hpp"

namespace kiln::simulator {

class ComputeEngine::Impl {
 public:
  ComputeCounters counters;
};

EngineRecord& engine_record() {
  static EngineRecord record;
  return record;
}

ComputeEngine::ComputeEngine(const ComputeLimits&) : impl_(std::make_unique<Impl>()) { engine_record() = {}; }
ComputeEngine::~ComputeEngine() = default;

std::optional<Fault> ComputeEngine::run_dispatch(const DispatchState& state, DeviceMemory&) {
  engine_record().dispatches.push_back(state);
  impl_->counters.invocations += engine_record().invocations;
  return engine_record().answer;
}

void ComputeEngine::forget_code() { ++engine_record().forgotten; }
void ComputeEngine::stop(const char* reason) noexcept { engine_record().stopped = reason == nullptr ? "" : reason; }
const ComputeCounters& ComputeEngine::counters() const noexcept { return impl_->counters; }

}  // namespace kiln::simulator

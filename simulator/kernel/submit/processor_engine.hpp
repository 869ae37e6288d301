// ProcessorEngine: jobs run on the simulated command processor and its compute engine, through one L2 cache.
//
// Thread-safety: as Engine. Ownership: owns processor, engine and cache.
#pragma once

#include "simulator/kernel/device/target.hpp"
#include "simulator/kernel/submit/engine.hpp"
#include "simulator/memory/l2_cache.hpp"

namespace kiln::simulator::kernel {

class ProcessorEngine final : public Engine {
 public:
  ProcessorEngine(const Target& target, const ComputeLimits& limits);

  std::optional<Fault> run(const EngineJob& job) override;
  void stop(const char* reason) noexcept override;

 private:
  L2Cache l2_;
  ComputeEngine compute_;
  CommandProcessor processor_;
};

}  // namespace kiln::simulator::kernel

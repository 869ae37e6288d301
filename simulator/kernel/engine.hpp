// Engine: what a submitted job runs on, and ProcessorEngine, the one that simulates the command processor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "simulator/command_processor/command_processor.hpp"
#include "simulator/fault.hpp"
#include "simulator/kernel/target.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/job_memory.hpp"

namespace kiln::simulator::kernel {

// Engine: what a submitted job runs on. The kernel's part of the simulator hands it the indirect buffers with the
// memory that the job may see, and learns whether it ended well.
//
// Thread-safety: run from one thread at a time; stop from any. Ownership: borrows what it is given for the call.

struct EngineJob {
  Ring ring = Ring::invalid;
  std::span<const IndirectBuffer> buffers;
  std::shared_ptr<const AddressSpace> space;  // as it was at submission
  std::span<const std::uint64_t> listed;      // ids of the buffers in its list
  bool invalidate_first = false;              // caches, before the first packet
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  // Ends with everything that the job wrote visible to the host.
  virtual std::optional<Fault> run(const EngineJob& job) = 0;
  // What runs ends soon with a fault; later jobs too, until it is called with null.
  virtual void stop(const char* reason) noexcept = 0;
};

// ProcessorEngine: jobs run on the simulated command processor and its compute engine, through one L2 cache.
//
// Thread-safety: as Engine. Ownership: owns processor, engine and cache.

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

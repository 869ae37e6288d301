// CommandProcessor: reads the packets of a job's indirect buffers, keeps the registers of its ring, and hands
// dispatches to the compute engine.
//
// Thread-safety: one job at a time per CommandProcessor; its thread is the caller's. Ownership: borrows the engine for
// its life and the job's memory for the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "simulator/compute/engine.hpp"
#include "simulator/fault.hpp"
#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

enum class Ring : std::uint8_t { invalid = 0, graphics, compute };

struct IndirectBuffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct Job {
  Ring ring = Ring::invalid;
  std::span<const IndirectBuffer> buffers;  // in order
  DeviceMemory* memory = nullptr;
};

struct CommandProcessorSettings {
  Generation generation = Generation::invalid;
  std::uint64_t counter_hz = 100'000'000;        // GPU clock counter, of RELEASE_MEM and COPY_DATA
  std::uint64_t wait_limit_ns = 10'000'000'000;  // a WAIT_REG_MEM that is not satisfied by then is a watchdog fault
  std::uint32_t indirect_buffer_limit = 65'536;  // a job that enters more, as a chain in a ring does, is one that hangs
  std::function<std::uint64_t()> clock_ns;       // steady; null: the host's
};

struct PacketCounters {
  std::uint64_t packets = 0;
  std::uint64_t dispatches = 0;
};

class CommandProcessor {
 public:
  CommandProcessor(CommandProcessorSettings settings, ComputeEngine& engine);
  CommandProcessor(const CommandProcessor&) = delete;
  CommandProcessor& operator=(const CommandProcessor&) = delete;
  ~CommandProcessor();

  // Registers start at their reset values for each job: a submission may count on nothing that another one left.
  std::optional<Fault> run(const Job& job);
  // From any thread: waits and dispatches end soon; see ComputeEngine::stop.
  void stop(const char* reason) noexcept;
  const PacketCounters& counters() const noexcept;  // while no job runs

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::simulator

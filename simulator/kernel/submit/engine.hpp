// Engine: what a submitted job runs on. The kernel's part of the simulator hands it the indirect buffers with the
// memory that the job may see, and learns whether it ended well.
//
// Thread-safety: run from one thread at a time; stop from any. Ownership: borrows what it is given for the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "simulator/base/fault.hpp"
#include "simulator/command_processor/command_processor.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator::kernel {

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

}  // namespace kiln::simulator::kernel

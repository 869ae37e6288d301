// One dispatch as the command processor hands it to the compute engine: the COMPUTE registers as they stand, decoded no
// further, and the number of groups.
//
// Thread-safety: run_dispatch from one thread at a time per ComputeEngine; it spreads workgroups over threads of its
// own. Ownership: borrows the memory for the call.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "simulator/fault.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/wave/op.hpp"

namespace kiln::simulator {

struct DispatchState {  // names and fields as in the register map; raw register values
  Generation generation = Generation::invalid;
  std::uint64_t program = 0;  // byte address: PGM_HI:PGM_LO << 8
  std::uint32_t rsrc1 = 0;
  std::uint32_t rsrc2 = 0;
  std::uint32_t rsrc3 = 0;
  std::uint32_t resource_limits = 0;
  std::uint32_t tmpring_size = 0;
  std::uint64_t scratch_base = 0;   // byte address; gfx11 only
  std::uint64_t border_colors = 0;  // byte address of the samplers' table
  std::array<std::uint32_t, 16> user_data{};
  std::array<std::uint32_t, 3> num_thread{};  // [15:0] full, [31:16] partial
  std::array<std::uint32_t, 3> start{};
  std::array<std::uint32_t, 8> cu_mask{};  // STATIC_THREAD_MGMT_SE0..7; gfx10.3: 0..3
  std::array<std::uint32_t, 3> groups{};   // as in the packet: ends, or threads with USE_THREAD_DIMENSIONS
  std::uint32_t initiator = 0;
  // Nothing has waited for the dispatch before it, which may still run on a card. The hazard checks take the two as one.
  bool overlaps = false;
};

struct ComputeLimits {
  std::uint64_t instructions_per_wave = 1'000'000'000;  // watchdog
  std::chrono::milliseconds watchdog{60'000};           // for a dispatch of which no workgroup ends meanwhile
  unsigned threads = 0;                                 // 0: one a core
  VectorChoice vectors = VectorChoice::best;
  unsigned compute_units = 96;  // with a wave's and a group's needs: how many groups are resident at once
  // Workgroups and waves run in an order drawn from this number, on one thread: the same number, the same order.
  // Without it they start in order and take turns where one does not end soon.
  std::optional<std::uint64_t> schedule_seed = std::nullopt;
  // Missing waits, races, stale caches, code for another wave size and stores of what nothing has written are faults of
  // kind hazard. On one thread.
  bool check_hazards = true;
};

struct ComputeCounters {
  std::uint64_t groups = 0;
  std::uint64_t waves = 0;
  std::uint64_t instructions = 0;  // wave instructions
  std::uint64_t invocations = 0;   // threads
};

class ComputeEngine {
 public:
  explicit ComputeEngine(const ComputeLimits& limits);
  ComputeEngine(const ComputeEngine&) = delete;
  ComputeEngine& operator=(const ComputeEngine&) = delete;
  ~ComputeEngine();

  // Runs every workgroup to its end, or to the first fault; then no wave runs any more. Workgroups that are resident
  // together make progress together, so that they may wait for one another.
  std::optional<Fault> run_dispatch(const DispatchState& state, DeviceMemory& memory);
  // The next dispatch decodes anew: code may have changed (GLI invalidated).
  void forget_code();
  // From any thread, at any time: the running dispatch ends soon with FaultKind::planted and `reason`; later ones too,
  // until it is called with null. What a reset needs.
  void stop(const char* reason) noexcept;
  const ComputeCounters& counters() const noexcept;  // while no dispatch runs

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::simulator

// Launch: a dispatch taken apart and checked: how many groups of how many threads, what each wave starts with, and how
// much of every resource it has. What hardware would hang on is a bad_state, what exceeds it an overrun.
//
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "simulator/compute/engine.hpp"
#include "simulator/fault.hpp"
#include "simulator/isa/opcode.hpp"

namespace kiln::simulator {

struct Launch {
  Generation generation = Generation::invalid;
  WaveSize wave = WaveSize::invalid;
  std::uint64_t program = 0;
  std::array<std::uint32_t, 3> start{};         // first group
  std::array<std::uint32_t, 3> count{};         // groups
  std::array<std::uint32_t, 3> threads{};       // of a whole group
  std::array<std::uint32_t, 3> last_threads{};  // of the last group in each direction
  std::uint32_t vgprs = 0;
  std::uint32_t shared_vgprs = 0;  // behind them, common to both halves of a wave of 64
  std::uint32_t mode = 0;          // MODE at entry
  std::uint32_t lds_bytes = 0;
  std::uint32_t lds_allocation = 0;
  std::array<std::uint32_t, 16> user_data{};
  std::uint32_t user_sgprs = 0;
  std::array<bool, 3> group_id{};  // which of them go to SGPRs
  bool group_info = false;
  std::uint32_t thread_ids = 1;  // gfx10.3: how many VGPRs hold them
  bool scratch = false;
  std::uint64_t scratch_base = 0;
  std::uint64_t border_colors = 0;
  std::uint32_t scratch_wave_bytes = 0;
  std::uint32_t scratch_slots = 0;  // waves that have scratch at once

  std::uint64_t groups() const noexcept { return static_cast<std::uint64_t>(count[0]) * count[1] * count[2]; }
  std::uint32_t lanes() const noexcept { return static_cast<std::uint32_t>(wave); }
  std::uint32_t waves_per_group() const noexcept {  // of a whole one
    return (threads[0] * threads[1] * threads[2] + lanes() - 1) / lanes();
  }
};

// How many of its groups a device of that many compute units holds at once: by wave slots, VGPRs, LDS and scratch. At
// least one.
std::uint64_t resident_groups(const Launch& launch, unsigned compute_units) noexcept;

std::optional<Fault> plan_launch(const DispatchState& state, Launch& out);

}  // namespace kiln::simulator

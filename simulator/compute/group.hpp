// Workgroups of a dispatch: how they are launched, and how they run.
//
// Launch: a dispatch taken apart and checked: how many groups of how many threads, what each wave starts with, and how
// much of every resource it has. What hardware would hang on is a bad_state, what exceeds it an overrun.
//
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "simulator/compute/engine.hpp"
#include "simulator/fault.hpp"
#include "simulator/isa/opcode.hpp"
#include "simulator/wave/check/wave_check.hpp"
#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/program.hpp"

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
  std::uint32_t thread_ids = 1;  // how many of a thread's three: a VGPR each, on gfx11 a field each of the first
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

// GroupRunner: one workgroup at a time, its waves in turns, a slice of instructions after the other, so that a thread
// may run several workgroups that wait for one another.
//
// Thread-safety: one thread at a time. Ownership: owns the registers and the LDS that its waves use; borrows the rest
// from start() until the group ends.

struct GroupContext {  // what the groups that one thread runs of a dispatch have in common
  const Launch* launch = nullptr;
  Program* program = nullptr;
  MemoryPort* port = nullptr;
  const std::atomic<const char*>* stop = nullptr;
  std::uint64_t instruction_limit = 0;  // of a wave
  std::mt19937_64* random = nullptr;    // draws the order and the length of turns; null: in order
  ComputeCounters* counters = nullptr;
  Races* races = nullptr;   // null: hazards are not looked for
  std::uint64_t clock = 0;  // see Wave
};

class GroupRunner {
 public:
  // Seats the group's waves. `index`: of the group, X fastest. `slot`: no other group that runs has it; it numbers the
  // waves' scratch.
  void start(const GroupContext& context, std::uint64_t index, unsigned slot);

  // Runs for about as many instructions, or to the group's end. A fault also where `stop` was raised.
  static constexpr std::uint64_t slice = 50'000;
  std::optional<Fault> run_slice(std::uint64_t instructions = slice);
  bool ended() const noexcept { return running_ == 0; }
  std::uint64_t place() const noexcept;  // program counter of a wave that has not ended, for messages

 private:
  enum class State : std::uint8_t { invalid = 0, ready, waiting, ended };
  struct Seat {
    Wave wave;
    CodePage* page = nullptr;
    State state = State::invalid;
  };
  struct Shape {  // of one group
    std::array<std::uint32_t, 3> id{};
    std::array<std::uint32_t, 3> threads{};
    std::uint32_t total = 0;
    std::uint32_t waves = 0;
  };

  Shape shape_of(std::uint64_t index) const;
  void make_room(unsigned waves);
  void seat_wave(const Shape& shape, unsigned number, unsigned slot);
  void seat_threads(const Shape& shape, unsigned number, Wave& wave) const;
  std::optional<Fault> take_turn(Seat& seat, std::uint64_t length);
  void leave_barrier();

  struct Free {
    void operator()(std::uint32_t* words) const noexcept;
  };

  GroupContext context_;
  const Launch* launch_ = nullptr;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<unsigned> order_;  // of the seats that are taken
  unsigned running_ = 0;         // waves that have not ended
  std::unique_ptr<std::uint32_t, Free> registers_;
  std::size_t register_words_ = 0;
  std::size_t wave_words_ = 0;
  std::vector<std::byte> lds_;
  GroupCheck check_;
};

}  // namespace kiln::simulator

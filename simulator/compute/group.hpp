// GroupRunner: one workgroup at a time, its waves in turns, a slice of instructions after the other, so that a thread
// may run several workgroups that wait for one another.
//
// Thread-safety: one thread at a time. Ownership: owns the registers and the LDS that its waves use; borrows the rest
// from start() until the group ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "simulator/compute/launch.hpp"
#include "simulator/wave/check/wave_check.hpp"
#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/program.hpp"

namespace kiln::simulator {

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

// GroupRunner: runs workgroups one after another, the waves of each in turns, on one thread.
//
// Thread-safety: one thread at a time. Ownership: owns the registers and the LDS that its waves use; borrows the rest
// from begin() until the dispatch ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/compute/launch.hpp"
#include "simulator/wave/interpreter.hpp"
#include "simulator/wave/memory_port.hpp"

namespace kiln::simulator {

class GroupRunner {
 public:
  // `slot`: numbers the runners of a dispatch, for their waves' scratch.
  void begin(const Launch& launch, Program& program, DeviceMemory& memory, unsigned slot,
             std::uint64_t instruction_limit, const std::atomic<const char*>& stop);

  // `index`: of the group, X fastest. A fault also where `stop` was raised.
  std::optional<Fault> run(std::uint64_t index);

  // Since begin().
  const ComputeCounters& counters() const noexcept { return counters_; }

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
  void seat_wave(const Shape& shape, unsigned number);
  void seat_threads(const Shape& shape, unsigned number, Wave& wave) const;
  std::optional<Fault> run_seated(unsigned waves);
  std::optional<Fault> take_turn(Seat& seat);

  struct Free {
    void operator()(std::uint32_t* words) const noexcept;
  };

  const Launch* launch_ = nullptr;
  Program* program_ = nullptr;
  const std::atomic<const char*>* stop_ = nullptr;
  unsigned slot_ = 0;
  std::uint64_t limit_ = 0;
  MemoryPort port_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::unique_ptr<std::uint32_t, Free> registers_;
  std::size_t register_words_ = 0;
  std::size_t wave_words_ = 0;
  std::vector<std::byte> lds_;
  ComputeCounters counters_;
};

}  // namespace kiln::simulator

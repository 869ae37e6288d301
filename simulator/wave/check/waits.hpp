// Waits: which registers still wait for memory, by the counters that s_waitcnt waits for.
//
// The simulator finishes a load at once, so a missing wait changes no result. This class models when a card may finish
// it. Loads, LDS operations and stores each finish in order, so a wait for a count of N finishes all but the newest N.
// A flat access is counted with LDS and with memory, and takes its turn in both. Scalar loads finish in any order: only
// a wait for 0 finishes them.
//
// Thread-safety: one thread, as its wave. Ownership: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/wave/check/effects.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

class Waits {
 public:
  void start(std::uint32_t vgprs);

  // True: all that an instruction reads and writes has arrived. False: hazard() knows.
  bool arrived(const Effects& effects) const { return !effects.touched.meets(late_); }
  // Why `at` must not run yet; nothing where all that it reads and writes has arrived.
  std::optional<std::string> hazard(const Wave& wave, const DecodedAt& at, const Effects& effects);
  // `at` runs, as the operation that has the number `time`: a wait ends, or an operation begins.
  void run(const Wave& wave, const DecodedAt& at, const Effects& effects, std::uint32_t time);

  // Everything that this wave did to LDS (to memory) up to and with this number has ended. `now`: the newest number.
  std::uint32_t local_done(std::uint32_t now) const { return done({Queue::local}, now); }
  std::uint32_t memory_done(std::uint32_t now) const { return done({Queue::loads, Queue::stores}, now); }

 private:
  enum class Queue : std::uint8_t { loads = 0, stores, local, scalar, count };
  // The time of a flat access in the queue of what it does not reach: it is only counted there.
  static constexpr std::uint32_t only_counted = ~0U;
  struct Operations {
    std::uint32_t begun = 0, ended = 0;
    std::vector<std::uint32_t> times;  // of those that have not ended: a ring of 2^n, by number

    std::uint32_t open() const { return begun - ended; }
    std::uint32_t oldest() const {
      std::uint32_t number = ended + 1;
      while (number != begun && at(number) == only_counted) ++number;
      return at(number);
    }
    std::uint32_t at(std::uint32_t number) const { return times[number & (times.size() - 1)]; }
  };
  struct Late {                // what will still be written to a register
    std::uint32_t number = 0;  // within its queue; 0: nothing
    Queue queue = Queue::loads;
    Opcode opcode = Opcode::invalid;
    std::uint64_t lanes = 0;
    std::uint64_t address = 0;  // of the instruction
  };
  static constexpr unsigned late_a_register = 2;  // divergent code may load two parts of one register

  static bool in_order(Queue queue) { return queue != Queue::scalar; }
  Operations& of(Queue queue) { return operations_[static_cast<std::size_t>(queue)]; }
  const Operations& of(Queue queue) const { return operations_[static_cast<std::size_t>(queue)]; }
  std::uint32_t done(std::initializer_list<Queue> queues, std::uint32_t now) const;
  void wait(std::initializer_list<Queue> queues, std::uint32_t count);
  void wait_by(const Wave& wave, const Instruction& in);
  std::uint32_t begin(Queue queue, std::uint32_t time);
  Queue queue_of(const Wave& wave, const Instruction& in, const Effects& effects) const;
  bool pending(const Late& late) const { return late.number > of(late.queue).ended; }
  std::string describe(const Wave& wave, const Registers& registers, unsigned index, const Late& late,
                       const char* use) const;
  template <class Body>
  bool each_late(const Registers& registers, const Body& body);

  std::array<Operations, static_cast<std::size_t>(Queue::count)> operations_;
  RegisterSet late_;  // may have something pending; the others' entries below are void
  std::vector<std::array<Late, late_a_register>> vector_;
  std::array<std::array<Late, late_a_register>, scalar_index::count> scalar_;
};

}  // namespace kiln::simulator

// WaveCheck: watches one wave for hazards that a card may show and the simulator's order of things would hide:
// registers that are read before their load was waited for, races, stale caches, code for another wave size, and stores
// of what nothing has written.
//
// A check is asked before each instruction. Waves without one run at full speed.
//
// Thread-safety: one thread for all groups of a dispatch. Ownership: GroupCheck owns the checks of its waves and
// borrows the dispatch's Races.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/wave/check/effects.hpp"
#include "simulator/wave/check/races.hpp"
#include "simulator/wave/check/undefined.hpp"
#include "simulator/wave/check/waits.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

class WaveCheck {
 public:
  void start(Races& races, GroupOrder& group, unsigned number, std::uint32_t vgprs, std::uint64_t program);

  // The wave's registers are as it starts with them: the first `scalars` and `vectors` of them, and EXEC, are defined.
  void define(const Wave& wave, unsigned scalars, unsigned vectors, std::vector<std::uint8_t>& lds);

  // False: the instruction must not run, and the wave's fault says why. `ops`: what carries it out.
  bool before(Wave& wave, const DecodedAt& at, const Effects& effects, std::span<const Op> ops) {
    const bool right = effects.plain && !exec_low_alone_ && waits_.arrived(effects) && undefined_.defined(effects);
    return right || before_others(wave, at, effects, ops);
  }

  void end() { ended_ = true; }
  // For the group's barrier: until when this wave's operations have ended.
  std::uint32_t done(Space space) const;
  WaveOrder& order() { return order_; }

 private:
  bool before_others(Wave& wave, const DecodedAt& at, const Effects& effects, std::span<const Op> ops);
  std::optional<std::string> wave_size(const Wave& wave, const Instruction& in, const Effects& effects);
  std::optional<std::string> memory(Wave& wave, const DecodedAt& at, const Effects& effects, const Op& op);
  std::optional<std::string> lanes(Wave& wave, const Instruction& in, const Effects& effects, const Op& op,
                                   AccessOf access, unsigned bytes);
  std::optional<std::string> lds(Wave& wave, const DecodedAt& decoded, const Effects& effects, const Op& op,
                                 AccessOf access, unsigned bytes);
  std::optional<std::string> scalar_memory(Wave& wave, const Instruction& in, const Op& op, AccessOf access);
  void empty_caches(const Instruction& in);

  Races* races_ = nullptr;
  WaveOrder order_;
  Waits waits_;
  Undefined undefined_;
  std::uint64_t program_ = 0;
  bool ended_ = false;
  bool exec_low_alone_ = false;  // the last write of EXEC was of its low half
  bool vcc_low_alone_ = false;
};

class GroupCheck {
 public:
  // Of `waves` waves. `index`: of the group in its dispatch.
  void start(Races& races, std::uint64_t index, unsigned waves, unsigned waves_per_group, std::uint32_t lds_bytes,
             std::uint32_t vgprs, std::uint64_t program);
  WaveCheck& wave(unsigned number) { return *waves_[number]; }
  void define(const Wave& wave, unsigned number, unsigned scalars, unsigned vectors) {
    waves_[number]->define(wave, scalars, vectors, lds_);
  }
  // Every wave that has not ended has reached a barrier.
  void barrier();

 private:
  GroupOrder order_;
  std::vector<std::uint8_t> lds_;  // what of each byte is undefined
  std::vector<std::unique_ptr<WaveCheck>> waves_;
  unsigned count_ = 0;
};

}  // namespace kiln::simulator

// A ComputeEngine that runs nothing: it records what it was handed, and what it answers is set by the test.
//
// Thread-safety: one test at a time. Ownership: the record is the one of the engine made last.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/compute/engine.hpp"

namespace kiln::simulator {

struct EngineRecord {
  std::vector<DispatchState> dispatches;
  std::optional<Fault> answer;
  std::uint64_t invocations = 0;  // that each dispatch counts
  unsigned forgotten = 0;
  std::string stopped;
};

EngineRecord& engine_record();

}  // namespace kiln::simulator

// Whether what a renderer answered is right, and whether two of them say the same; every disagreement as one text that
// names shader, buffer, element, both values and what stood in the inputs there.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "witnesses/expectations/expectation.hpp"
#include "witnesses/witness_run.hpp"

namespace kiln::witness {

enum class Arithmetic : std::uint8_t { invalid = 0, device, software };

// Cases that failed to run, or whose answers are not those of the rules. Absent ones are no disagreement.
std::vector<std::string> against_rules(const std::vector<ShaderCase>& cases, const Rules& rules, const WitnessRun& run,
                                       Arithmetic arithmetic);

// Cases both ran, where `run` does not agree with `reference`, a software renderer; where the rules have several right
// answers for an element, any of them will do.
std::vector<std::string> against_renderer(const std::vector<ShaderCase>& cases, const Rules& rules,
                                          const WitnessRun& run, const WitnessRun& reference);

std::size_t count_of(const WitnessRun& run, Outcome outcome);

}  // namespace kiln::witness

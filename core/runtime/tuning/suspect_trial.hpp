// suspect_trial: a LoadTrial that gives suspects to their driver in kiln-probe, with this process's configuration.
//
// Thread-safety: the answered function from any thread; suspects are tried one after another. Ownership: it owns its
// child process, and ends it after the last trial that waits.
#pragma once

#include "runtime/tuning/bench_process.hpp"

#include <kiln/config.hpp>
#include <kiln/program_cache.hpp>

#include <string>

namespace kiln {

// Empty where there is no kiln-probe.
LoadTrial suspect_trial(const Config& config);

// What became of a trial whose child answered so, or ended so ("ended by SIGSEGV"; empty: it lives).
TrialOutcome outcome_of(const Result<VariantSamples>& answer, const std::string& end);

}  // namespace kiln

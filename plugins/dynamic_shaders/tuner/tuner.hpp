// tune(): finds the fastest of a list of candidates by running as few of them as it can.
//
// Candidates come in the order in which the cost model expects them to serve. Each runs once; one that takes more than
// twice the best so far is left there, the others run some more. Search ends at the first of: a quarter of the space,
// most of the time, a candidate that the model puts at twice the best. Up to sixteen of the nearest to the best and the
// incumbent then meet in rounds, in an order that rotates, so that a disturbance meets all of them; after three rounds
// (sooner as many as the time leaves room for) the four fastest and the incumbent go on. The incumbent is replaced only
// by a variant that was faster in the same rounds by more than the noise of both (choice_of_rounds()). A variant whose
// output is wrong in any run is out. Thread-safety: one thread a bench. Ownership: everything is the caller's.
#pragma once

#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

#include <functional>
#include <string>
#include <vector>

#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

struct TuneTask {
  std::vector<Candidate> candidates;  // best expected first
  bool ranked = true;                 // false: none is expected to be better than another; all are met in the time
  std::string incumbent;              // what serves now
  bool won = false;                   // the incumbent is the stored winner
  std::string baseline;               // measured beside the winner, never left out
  std::vector<TuningRecord> known;    // of these candidates, as their sources are today
  TuningRecord form;                  // device and spec of the records to make
  // Called with records as soon as there are some: a killed run goes on where it was. A rejected one need not say its
  // sources' digest.
  std::function<void(std::vector<TuningRecord>)> keep;
  TraceSink* trace = nullptr;  // told every measurement and every decision; null: nobody is
};

// Of a failed measurement: the bench's own failures say nothing of the variant.
bool tells_of_variant(StatusCode code) noexcept;

// unavailable: stopped, or no candidate could be measured, or the stored winner could not be measured for a reason that
// is not its own, or without a reference no largest group of variants agrees. The message has the reasons.
Result<TuneOutcome> tune(const TuneTask& task, VariantBench& bench, const TuneOptions& options);

}  // namespace kiln::dynamic_shaders

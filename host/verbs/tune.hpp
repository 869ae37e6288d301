// Winners that are measured again: those of this machine (`kiln tune audit`), and those of other machines before they
// are used (`kiln tune pull`).
//
// Thread-safety: main thread only. Ownership: the caller owns the results.
#pragma once

#include "progress.hpp"
#include "session.hpp"

#include <kiln/tuning.hpp>

#include <kiln_json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::host {

struct Audited {
  std::string device, spec, words;
  Status status;  // of the measurement
  TuneOutcome outcome;

  bool holds() const { return status.ok() && outcome.stale.empty(); }
};

enum class WinnersOf { invalid = 0, this_machine, other_machines };

// Measures a sample of the winners of a device, --sample at most, another one each time. User kernels are among them if
// the configuration has their jobs. Adds the results to `audited`; returns how many winners there are.
// REQUIRES: session.open_runtime() succeeded.
std::size_t audit(Session& session, const DeviceInfo& device, WinnersOf of, ProgressLine& line,
                  std::vector<Audited>& audited);

Json audited_json(const std::vector<Audited>& audited);
// One line each, without a sum.
std::string audited_text(const std::vector<Audited>& audited);

}  // namespace kiln::host

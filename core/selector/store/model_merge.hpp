// Merging models: what this process learned since it last looked, into what the file holds by now.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "selector/model/performance_model.hpp"

#include <map>

namespace kiln::selector {

// stored: what the file holds. base: what this process held when it last merged. mine: what it holds now. An arm that
// only one side learned about is taken from that side; where both did, means count by the runs that each side added. An
// arm of the base that the file no longer holds was reset: only what was learned since comes back.
std::map<ArmKey, Arm> merged(const std::map<ArmKey, Arm>& stored, const std::map<ArmKey, Arm>& base,
                             const std::map<ArmKey, Arm>& mine);

}  // namespace kiln::selector

// choose(): which variant of a spec serves on a device.
//
// The winner that tuning found for the shape; else that of the nearest shape, where the cost model sees nothing against
// it; else the model's own choice. What was measured counts while the sources are those that were measured: a winner of
// other sources serves no more than any other variant, and what was rejected (it computed wrongly, hung or crashed) is
// passed over until its sources change.
// Thread-safety: as the database's. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string_view>
#include <utility>
#include <vector>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

struct Choice {
  KernelPlan plan;
  std::string_view by;                                       // what spoke for it, in words; lives for ever
  std::vector<std::pair<std::string_view, double>> figures;  // likewise, by their names
};

inline constexpr std::string_view by_tuning = "tuned";  // Choice::by of a stored winner

// unsupported, invalid_argument: not even the plainest variant can be made, and why. REQUIRES: validate(spec).ok().
Result<Choice> choose(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, TuningDatabase& database);

// Whether the record tells of the variant as it is written today.
bool is_of_today(const TuningRecord& record, const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);

}  // namespace kiln::dynamic_shaders

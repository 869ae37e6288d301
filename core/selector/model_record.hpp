// ModelRecord: one line of the model's file: a checksum, a space, a JSON object. Each line stands for itself, so that a
// damaged one costs nothing but itself.
//
// Thread-safety: pure. Ownership: values.
//
// Format, schema 2. First line: "kiln selector model 2". Then lines of "<16 hexadecimal digits: XXH3 of the rest>
// JSON":
//   an arm: {"operation", "device", "driver", "shape": text, "runs", "weight", "mean", "variance", "widening",
//   "alarms":
//     of the natural logarithm of nanoseconds, "transfer", "first": [count, mean, variance], "log_flops", "log_bytes",
//     "looks", "used"}
//   what was not learned from: {"unfit": {"reason": count}}
#pragma once

#include "selector/performance_model.hpp"

#include <kiln/selector_admin.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kiln::selector {

inline constexpr std::string_view model_header = "kiln selector model 2";

using UnfitCounts = std::map<std::string, std::uint64_t>;  // by reason
using KeyedArm = std::pair<ArmKey, Arm>;

std::string line_of(const ArmKey& key, const Arm& arm);  // without the newline
std::string line_of(const UnfitCounts& counts);

// What a line holds, or which validator refused it. `line`: its number, from 1.
std::variant<KeyedArm, UnfitCounts, RejectedRecord> record_of(std::string_view text, std::size_t line);

}  // namespace kiln::selector

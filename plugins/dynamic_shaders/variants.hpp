// The variants of every family: from an id to its plan, and what tells a variant's sources of today from those of
// another day.
//
// Thread-safety: pure functions. Ownership: plans are values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

inline constexpr std::string_view any_shape = "@any";  // behind the id of a variant whose programs serve any shape

// not_found: there is no such variant. unsupported: it does not fit the spec or the device. invalid_argument: the spec
// holds nothing, or a user's kernel is none.
Result<KernelPlan> plan_of(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, std::string_view variant);

// The variant of a spec that leaves no choice: a user's kernel without parameters, or a layer that is written in one
// way. Empty: there is a choice.
std::string_view only_variant(const KernelSpec& spec) noexcept;

// Identifies the sources of all passes as the device compiles them; passes that prepare constants come first. A stored
// measurement whose digest differs was of other sources and does not count.
std::string source_digest(const KernelPlan& plan, const DeviceInfo& device);

// How alike two convolutions or two products are, for a shape of which nothing was measured: the winner of a shape near
// it may serve.
//
// Thread-safety: pure functions. Ownership: values.

// The convolution whose canonical_text this is; absent: it is none.
std::optional<Conv2dSpec> conv_of(std::string_view canonical_text);

// Likewise the product of matrices.
std::optional<GemmSpec> gemm_of(std::string_view canonical_text);

// Sum of the doublings between their channels and filters of a group, groups, output rows and columns, and batch;
// absent: kernel, stride, dilation, grouping or accuracy differ, so that nothing follows from one for the other.
std::optional<double> distance(const Conv2dSpec& a, const Conv2dSpec& b);

// Likewise of two products of matrices: the doublings between their three extents.
std::optional<double> distance(const GemmSpec& a, const GemmSpec& b);

// choose(): which variant of a spec serves on a device.
//
// The winner that tuning found for the shape; else that of the nearest shape, where the cost model sees nothing against
// it; else the model's own choice. What was measured counts while the sources are those that were measured: a winner of
// other sources serves no more than any other variant, and what was rejected (it computed wrongly, hung or crashed) is
// passed over until its sources change.
// Thread-safety: as the database's. Ownership: values.

struct Choice {
  KernelPlan plan;
  std::string_view by;                                       // what spoke for it, in words; lives for ever
  std::vector<std::pair<std::string_view, double>> figures;  // likewise, by their names
};

inline constexpr std::string_view by_tuning = "tuned";  // Choice::by of a stored winner

// unsupported, invalid_argument: not even the plainest variant can be made, and why. REQUIRES: validate(spec).ok().
Result<Choice> choose(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, TuningDatabase& database);

// Whether the record was measured with the source that the variant has today.
bool is_of_today(const TuningRecord& record, const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);

}  // namespace kiln::dynamic_shaders

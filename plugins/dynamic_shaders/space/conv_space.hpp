// The space of conv2d's variants: every point by its id, in the order in which the cost model expects them to serve,
// without compiling any.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/space/candidate.hpp"

namespace kiln::dynamic_shaders {

// Searched are the points that the model expects to be the best, at most so many of those that fit: among them the best
// few of every family, since the model may be wrong about a family as a whole.
inline constexpr std::size_t most_candidates = 256;
inline constexpr std::size_t least_of_family = 4;

// Best first; direct/plain is always the last. Each point's plan can be made, compiles and can be launched: what the
// device or its driver cannot do is not among them. Where the spec's own tensors do not fit the device, there is
// direct/plain alone, whose plan says so.
std::vector<Candidate> conv_space(const Conv2dSpec& spec, const DeviceInfo& device);

// What the model expects a run of a variant to cost; absent: there is no such variant, or it does not fit.
std::optional<double> predicted_run(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view variant);

// The variant for a shape of which nothing was measured (candidate.hpp); direct/plain where none is ahead of it.
std::string default_variant(const Conv2dSpec& spec, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders

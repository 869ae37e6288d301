// The spaces of variants, and their choice where nothing was measured.
//
// Candidate: a point of a space of variants, and the terms on which one serves where nothing was measured.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

namespace kiln::dynamic_shaders {

struct Candidate {
  std::string variant;
  double predicted = 0;  // cycles of a run, comparable within one space
  double build = 0;      // cycles
};

// Where nothing was measured that variant serves whose first so many runs, building included, are expected to be done
// soonest. A program is built once and kept, so a process that ends early still leaves it to the next; fewer runs kept
// the plain kernel on small layers, where it takes five to eight times as long as what a thousand runs pay for.
inline constexpr double paying_runs = 1000;

// The space of conv2d's variants: every point by its id, in the order in which the cost model expects them to serve,
// without compiling any.
//
// Thread-safety: pure functions. Ownership: values.

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

// The variant for a shape of which nothing was measured (Candidate); direct/plain where none is ahead of it.
std::string default_variant(const Conv2dSpec& spec, const DeviceInfo& device);

// The space of gemm's variants.
//
// Thread-safety: pure functions. Ownership: values.

// Best first; gemm/plain is always the last.
std::vector<Candidate> gemm_space(const GemmSpec& spec, const DeviceInfo& device);

// What the model expects a run of a variant to cost; absent: there is no such variant, or it does not fit.
std::optional<double> predicted_run(const GemmSpec& spec, const DeviceInfo& device, std::string_view variant);

// The variant for a product of which nothing was measured, by the same terms as conv2d's.
std::string default_variant(const GemmSpec& spec, const DeviceInfo& device);

// Which variants serve a first call by programs for any shape, while those for its own are built.
//
// Parameters do not follow the shape, so that few programs serve all: for convolutions one of each kernel's extents,
// stride and dilation. The better variant stands first; the last fits wherever anything does.
// Thread-safety: a pure function. Ownership: values.

// Ids for one shape. Empty for a user's own kernel.
std::vector<std::string> stand_in_variants(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);

}  // namespace kiln::dynamic_shaders

// The space of gemm's variants, as conv_space.hpp is of conv2d's.
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

// Best first; gemm/plain is always the last.
std::vector<Candidate> gemm_space(const GemmSpec& spec, const DeviceInfo& device);

// What the model expects a run of a variant to cost; absent: there is no such variant, or it does not fit.
std::optional<double> predicted_run(const GemmSpec& spec, const DeviceInfo& device, std::string_view variant);

// The variant for a product of which nothing was measured, by the same terms as conv2d's.
std::string default_variant(const GemmSpec& spec, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders

// Which variants serve a first call by programs for any shape, while those for its own are built.
//
// Parameters do not follow the shape, so that few programs serve all: for convolutions one of each kernel's extents,
// stride and dilation. The better variant stands first; the last fits wherever anything does.
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::dynamic_shaders {

// Ids for one shape. Empty for a user's own kernel.
std::vector<std::string> stand_in_variants(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);

}  // namespace kiln::dynamic_shaders

// The parts of the loader of faulty_loader.cpp that follow a FaultyState.
//
// Thread-safety: none. Ownership: functions.
#pragma once

#include "vulkan/faulty_state.hpp"

namespace kiln::vulkan {

FaultyState& faulty_state();

// Returns the replacement of the Vulkan function `name`, or `real` if it has none. If `real` is null, returns null.
PFN_vkVoidFunction failing_call(const char* name, PFN_vkVoidFunction real);
PFN_vkVoidFunction pretended_call(const char* name, PFN_vkVoidFunction real);

}  // namespace kiln::vulkan

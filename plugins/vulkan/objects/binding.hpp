// What the launches of a dispatch bind, as descriptors.
//
// Thread-safety: bind() from any thread. Ownership: borrows programs and buffers, which outlive the submission.
#pragma once

#include <kiln/device.hpp>

#include "objects/launch_plan.hpp"
#include "objects/queue.hpp"

namespace kiln::vulkan {

// invalid_argument or unsupported names the pass and the resource. REQUIRES: `plan` is plan_launches(dispatch, gpu).
Result<Submission> bind(const Dispatch& dispatch, LaunchPlan plan, const DeviceInfo& info, const Gpu& gpu);

}  // namespace kiln::vulkan

// A plan of every family of kernels, in either dialect: for tests that judge the text of all of them, or run it.
//
// Thread-safety: on a test's own thread: asserts with Catch2 that there is such a plan. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::dynamic_shaders {

struct FamilySample {
  KernelSpec spec;
  std::string variant;
};

// Three shapes of each family, the same variant's one behind the other: at most 8 channels and planes of 6 x 8, through
// no view, so that they suit every device and an interpreter is soon done.
inline constexpr std::size_t shapes_of_variant = 3;
std::vector<FamilySample> small_samples();
// Layers of networks, through views where the dialect has those.
std::vector<FamilySample> layer_samples();

KernelPlan plan_of_sample(const FamilySample& sample, const DeviceInfo& device, Dialect dialect);

// Of both lists, and what stands in for first calls, on a device with views and shared memory.
std::vector<KernelPlan> plans_of_families(Dialect dialect);

// What is prepared once, and then each run's passes.
std::vector<Pass> passes_of(const std::vector<KernelPlan>& plans);

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::uint64_t most_indexed = (std::uint64_t{1} << 31) - 1;  // elements that an int reaches

}  // namespace

Status check_limits(const std::vector<TensorDecl>& tensors, const DeviceInfo& device) {
  if (tensors.size() > device.max_bindings) {
    return unsupported("device " + device.id + ": " + std::to_string(tensors.size()) + " bindings, expected at most " +
                       std::to_string(device.max_bindings));
  }
  for (const TensorDecl& tensor : tensors) {
    if (device.max_buffer_bytes != 0 && tensor.bytes > device.max_buffer_bytes) {
      return unsupported("device " + device.id + ": tensor " + tensor.name + " has " + std::to_string(tensor.bytes) +
                         " bytes, expected at most " + std::to_string(device.max_buffer_bytes));
    }
    if (tensor.bytes / sizeof(float) > most_indexed) {
      return unsupported("tensor " + tensor.name + ": " + std::to_string(tensor.bytes / sizeof(float)) +
                         " elements, expected at most " + std::to_string(most_indexed));
    }
  }
  return {};
}

Status check_bindings(const KernelPlan& plan, const DeviceInfo& device) {
  for (const std::vector<Pass>* passes : {&plan.prepare, &plan.passes}) {
    for (const Pass& pass : *passes) {
      if (pass.bindings.size() <= device.max_bindings) continue;
      return unsupported("plan " + plan.variant + ": a pass has " + std::to_string(pass.bindings.size()) +
                         " bindings, device " + device.id + " takes at most " + std::to_string(device.max_bindings));
    }
  }
  return {};
}

std::int64_t passes_for(std::int64_t terms, std::int64_t iterations) noexcept {
  const std::int64_t terms_per_pass = most_iterations / iterations;
  return terms_per_pass == 0 ? 0 : (terms + terms_per_pass - 1) / terms_per_pass;
}

}  // namespace kiln::dynamic_shaders

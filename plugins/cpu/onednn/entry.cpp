// The module's one exported function: cpu.so finds it by name.
#include "onednn/device.hpp"
#include "onednn/failure.hpp"

extern "C" __attribute__((visibility("default"))) kiln::Device* kiln_onednn_create_device(
    const kiln::cpu::OpenRequest& request, kiln::Status& failure) {
  try {
    return std::make_unique<kiln::cpu::CpuDevice>(request).release();
  } catch (...) {
    failure = kiln::cpu::current_failure("oneDNN's engine");
    return nullptr;
  }
}

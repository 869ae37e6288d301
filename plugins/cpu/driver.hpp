// CpuDriver: the one device "cpu": this process's cores, through oneDNN.
//
// Thread-safety: every method from any thread. Ownership: outlives its devices, as the contract asks; it keeps no
// reference to them. enumerate() reads two small files; only open() loads libkiln_onednn.so and with it oneDNN and
// OpenMP.
#pragma once

#include <kiln/device.hpp>

#include <vector>

namespace kiln::cpu {

class CpuDriver final : public Driver {
 public:
  explicit CpuDriver(const DriverContext& context) : context_(context) {}

  static std::vector<ConfigKey> config_keys();

  std::vector<DeviceInfo> enumerate() override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  DriverContext context_;
};

}  // namespace kiln::cpu

// SimDriver: the driver "simulated" of devices on one clock, told by a [plugin.simulated] section or by a test what
// they cost and what shall go wrong.
//
// Thread-safety and ownership: as Driver.
#pragma once

#include "support/simulated/sim_device.hpp"

#include <vector>

namespace kiln::support {

std::vector<ConfigKey> sim_config_keys();

class SimDriver final : public Driver {
 public:
  SimDriver(std::vector<SimOptions> devices, Pace pace);
  // By the settings: ids are "simulated:0" to "simulated:N-1"; keys left out have their defaults.
  static Result<std::unique_ptr<Driver>> create(const DriverContext& context);

  const std::shared_ptr<SimClock>& clock() const noexcept { return clock_; }
  std::vector<DeviceInfo> enumerate() noexcept override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  std::vector<SimOptions> devices_;
  std::shared_ptr<SimClock> clock_;
};

}  // namespace kiln::support

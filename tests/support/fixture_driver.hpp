// FixtureDriver: the driver of fixture devices, and the settings by which a [plugin.fixture] section tells them what to
// do.
//
// Thread-safety and ownership: as Driver.
#pragma once

#include <kiln/device.hpp>

#include "support/fixture_device.hpp"

#include <vector>

namespace kiln::support {

// devices, build_ms, run_ms, fail_build, refuse_load, serializes, roof_mflops, fail_at, wrong_at, idle_at, lose_at,
// hang, opencl_c, driver_cache.
std::vector<ConfigKey> fixture_config_keys();

class FixtureDriver final : public Driver {
 public:
  explicit FixtureDriver(std::vector<FixtureOptions> devices);
  // By the settings: device ids are "fixture:0" to "fixture:N-1". Keys left out have their defaults.
  explicit FixtureDriver(const DriverContext& context);

  std::vector<DeviceInfo> enumerate() noexcept override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  std::vector<FixtureOptions> devices_;
};

}  // namespace kiln::support

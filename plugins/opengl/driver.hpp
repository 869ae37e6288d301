// GlDriver: every device that EGL lists on this machine: "opengl:0", "opengl:1", …; hardware, then simulated, then
// software.
//
// Thread-safety: every method from any thread. Ownership: libEGL is opened at the first call, not when the plugin is
// loaded. A device that was never opened is listed with what EGL says of it alone: its limits and its identity are
// known once it has been opened.
#pragma once

#include "device.hpp"

#include <kiln/device.hpp>

#include <mutex>

namespace kiln::opengl {

class GlDriver final : public Driver {
 public:
  GlDriver(Settings settings, DriverContext context);

  std::vector<DeviceInfo> enumerate() override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  struct Entry {
    EglDevice device;
    DeviceInfo info;  // complete once its device was opened
  };

  void list();  // fills entries_ once; there is at least one entry afterwards

  const Settings settings_;
  const DriverContext context_;
  std::mutex mutex_;
  std::shared_ptr<const EglApi> api_;  // null: could not be opened; entries_ has one entry that says why
  std::vector<Entry> entries_;
};

}  // namespace kiln::opengl

// DeviceTable: the drivers and the devices they have, enumerated and opened on demand, and those set aside with the
// reason: for a second at first, twice as long each time, at most five minutes; then they are opened again. Where two
// drivers list one id the first has it, and the other's device is unusable, with both plugins named.
//
// Thread-safety: every method from any thread; opening two different devices does not wait for one another's driver.
// Ownership: owns drivers and (shared with running jobs) devices.
#pragma once

#include "runtime/build_protocol.hpp"
#include "runtime/drivers/note_store.hpp"

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/registry.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// SetAside: devices that are left alone for a while because they were lost or keep failing: back-off by doubling.
//
// Thread-safety: none; the device table locks. Ownership: values.

class SetAside {
 public:
  static constexpr std::chrono::seconds first_pause{1};
  static constexpr std::chrono::minutes longest_pause{5};
  static constexpr std::uint32_t most_failures = 3;  // in a row

  // For how long.
  std::chrono::nanoseconds put(std::string_view id, std::string why, Clock::time_point now);
  // Why, with the time that is left; nullopt: it may serve.
  std::optional<std::string> why_not(std::string_view id, Clock::time_point now) const;
  // Ends the pause early, where there is nothing else to choose; the next pause is longer all the same.
  void try_again(std::string_view id, Clock::time_point now);
  // Whether so many jobs failed in a row that it should be put aside.
  bool failed(std::string_view id);
  // A device that serves for longer than it was last set aside starts again from the first pause.
  void served(std::string_view id, Clock::time_point now);

 private:
  struct Entry {
    std::uint32_t failures = 0;  // in a row
    std::chrono::nanoseconds pause{0};
    Clock::time_point until{};
    std::string why;
  };

  std::map<std::string, Entry, std::less<>> entries_;
};

std::string pause_text(std::chrono::nanoseconds pause);  // "1.0 s"

class DeviceTable {
 public:
  DeviceTable(const Config& config, const Registry& registry, Log log, WorkCounters& counters);

  // Devices of the driver that an id belongs to ("opengl:0" → driver "opengl"), or of all drivers where none has that
  // name.
  std::vector<DeviceInfo> enumerate_for(std::string_view id);
  // How another process opens the device of that id; nullopt: no file brings its driver.
  std::optional<BuildSetup> build_setup(const std::string& id) const;
  std::vector<DeviceInfo> enumerate_all();
  std::vector<DeviceInfo> known() const;
  // not_found: no driver lists the id, with all devices and the nearest id. A device that is listed and cannot be used
  // has a name; so has every device of a driver that could not start.
  Status check_name(std::string_view id);

  // The device, opened at the first call. While a device is set aside it answers why.
  Result<std::shared_ptr<Device>> open(std::string_view id);
  bool is_open(std::string_view id) const;
  // Who brought a device that was met; empty: it was not.
  std::string plugin_of(std::string_view id) const;
  // Answers for how long, in words. One that was lost takes the same hardware under other names with it, and is opened
  // anew when its time is over. `used`: the opened device that failed; where it has been replaced since, the device
  // that is open now is not set aside for it, and the answer is empty. nullptr: none was opened, and none is closed.
  std::string set_aside(std::string_view id, const Status& why, const Device* used);
  bool is_set_aside(std::string_view id) const;
  // A pause is for choosing among devices. Where no other can serve, the device is tried again before it is over.
  // Answers whether it may serve now; false: it cannot be used, or its hardware was lost under another name.
  bool try_again(std::string_view id);
  // A job that went wrong there, or well: a device that fails again and again is set aside.
  void failed(std::string_view id, const Status& why, const Device* used);
  void served(std::string_view id);

 private:
  struct OneDriver {
    std::string plugin;
    DriverFactory make;
    mutable std::mutex mutex;  // guards the fields below, and serialises enumerate() and open() of this driver
    bool asked = false;
    std::unique_ptr<NoteStore> notes;
    std::unique_ptr<Driver> driver;
    std::vector<DeviceInfo> devices;
    std::map<std::string, std::shared_ptr<Device>, std::less<>> open;
    std::vector<std::shared_ptr<Device>> lost;
  };

  struct Known {
    DeviceInfo info;
    OneDriver* driver;
  };

  std::vector<DeviceInfo> enumerate(const std::string& name, OneDriver& driver);
  void meet(OneDriver& driver);  // REQUIRES: driver.mutex
  Result<OneDriver*> owner_of(std::string_view id);
  OneDriver* driver_named(std::string_view id);
  DeviceInfo as_it_is(const DeviceInfo& known) const;         // REQUIRES: known_mutex_
  static void close(OneDriver& driver, std::string_view id);  // REQUIRES: driver.mutex

  const Config& config_;
  const Registry& registry_;
  Log log_;
  WorkCounters& counters_;
  std::map<std::string, OneDriver, std::less<>> drivers_;  // fixed after construction
  mutable std::mutex known_mutex_;
  std::map<std::string, Known, std::less<>> known_;  // by id
  std::vector<DeviceInfo> refused_;                  // listed under an id that another driver has
  SetAside aside_;
  std::set<std::string, std::less<>> gone_with_another_;  // set aside as the hardware of one that was lost
};

}  // namespace kiln

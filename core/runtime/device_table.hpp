// The devices of a runtime, and what their drivers noted.
//
// NoteStore: the notes of one driver, each a file below `notes` in the cache folder, authenticated like a program.
//
// Thread-safety: every method from any thread. Ownership: a value of the device table. The folder and the key are
// opened at first use; without them nothing is found and nothing is kept.
#pragma once

#include "cache/entry_format.hpp"
#include "runtime/child_protocols.hpp"

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/driver_notes.hpp>
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

class NoteStore final : public DriverNotes {
 public:
  NoteStore(const CacheConfig& config, std::string driver);

  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override;
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override;

 private:
  struct Place {
    UniqueFd folder;
    EntryKey key;
  };

  Place* open();  // nullptr: there is no folder or no key
  std::string material_of(std::string_view name) const;

  const CacheConfig config_;
  const std::string driver_;
  std::mutex mutex_;
  bool tried_ = false;
  std::optional<Place> place_;
};

// DeviceTable: enumerates drivers, opens devices on demand, and sets failed devices aside for a limited time.
//
// The first pause is one second; each further one is twice as long, up to five minutes. If two drivers list the same
// id, the first has it. The other device is unusable; the reason names both plugins.
// Thread-safety: every method from any thread; opening one device does not wait for the driver of another. Ownership:
// owns drivers; shares devices with running jobs.

// The devices that are set aside, with exponential back-off. Thread-safety: none; DeviceTable locks.
class SetAside {
 public:
  static constexpr std::chrono::seconds first_pause{1};
  static constexpr std::chrono::minutes longest_pause{5};
  static constexpr std::uint32_t most_failures = 3;  // in a row

  // Returns the length of the pause.
  std::chrono::nanoseconds put(std::string_view id, std::string why, Clock::time_point now);
  // Returns the reason and the time left; nullopt: the device may be used.
  std::optional<std::string> why_not(std::string_view id, Clock::time_point now) const;
  // Ends the pause early. The next pause is still longer.
  void try_again(std::string_view id, Clock::time_point now);
  // Records a failed job. Returns whether there were enough consecutive failures to set the device aside.
  bool failed(std::string_view id);
  // Records a successful job. Once the device works for longer than its last pause, back-off starts again at the first
  // pause.
  void served(std::string_view id, Clock::time_point now);

 private:
  struct Entry {
    std::uint32_t failures = 0;  // consecutive
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

  // Returns the devices of the driver of an id ("opengl:0": driver "opengl"), or of all drivers if none has that name.
  std::vector<DeviceInfo> enumerate_for(std::string_view id);
  // Returns what another process needs to open the device; nullopt: no plugin file has its driver.
  std::optional<BuildSetup> build_setup(const std::string& id) const;
  std::vector<DeviceInfo> enumerate_all();
  // Opens every usable device, so that its info is complete, and returns all devices of all drivers.
  std::vector<DeviceInfo> open_all();
  std::vector<DeviceInfo> known() const;
  // not_found: no driver lists the id; the error lists all devices and the closest id. ok also for an unusable device,
  // and for any device of a driver that could not start.
  Status check_name(std::string_view id);

  // Opens the device at the first call. Fails with the reason while the device is set aside.
  Result<std::shared_ptr<Device>> open(std::string_view id);
  bool is_open(std::string_view id) const;
  // Plugin of an enumerated device; empty if it was not enumerated.
  std::string plugin_of(std::string_view id) const;
  // Sets the device aside and returns the duration as text. After a device loss, the same hardware under other ids is
  // set aside too, and the device is reopened after the pause. `used` is the opened device that failed. If it was
  // replaced since, nothing happens and the result is empty. nullptr: no device was open.
  std::string set_aside(std::string_view id, const Status& why, const Device* used);
  bool is_set_aside(std::string_view id) const;
  // Ends a pause because no other device can run the job. false: the device is not usable, or its hardware was lost
  // under another id.
  bool try_again(std::string_view id);
  // Record the result of a job. Repeated failures set the device aside.
  void failed(std::string_view id, const Status& why, const Device* used);
  void served(std::string_view id);

 private:
  struct OneDriver {
    std::string plugin;
    DriverFactory make;
    mutable std::mutex mutex;  // guards the members below; serializes enumerate() and open() of this driver
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

  struct LostHardware {
    std::string id, why;  // of the device under which it was lost last
  };

  std::vector<DeviceInfo> enumerate(const std::string& name, OneDriver& driver);
  void meet(OneDriver& driver);  // REQUIRES: driver.mutex
  // Sets aside a device whose hardware was lost under another id. REQUIRES: known_mutex_
  void lose_with(const LostHardware& lost, const std::string& id, Clock::time_point now);
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
  std::vector<DeviceInfo> refused_;                  // listed with an id that another driver has
  SetAside aside_;
  std::set<std::string, std::less<>> gone_with_another_;            // set aside because the same hardware was lost
  std::map<std::string, LostHardware, std::less<>> lost_hardware_;  // by physical_id; also for drivers enumerated later
};

}  // namespace kiln

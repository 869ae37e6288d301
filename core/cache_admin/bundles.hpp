// Importer: stores authenticated programs of another machine in a cache folder, signed with this user's key.
//
// REQUIRES: the caller has authenticated each program.
// Thread-safety: one thread at a time. Ownership: owns its descriptors; borrows the configuration.
#pragma once

#include "base/os/private_folder.hpp"
#include "cache/device_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/device.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// The device and driver fields of a key, as key_of() encodes them; and those of a device. Equal: the program is for it.
std::string identity_in(std::string_view material);
std::string identity_of(const DeviceInfo& device);

class Importer {
 public:
  explicit Importer(const CacheConfig& cache) : cache_(cache) {}

  // Opens the folder and reads or creates the key.
  Status open();
  // `entry.stored` is the inflated payload. Sound entries stay, and quarantined programs are skipped.
  // REQUIRES: open() succeeded; the key's material has the identity of the device.
  Status place(const Digest& key, EntryView entry, std::string_view meta, const DeviceInfo& device);
  // Whether a sound entry is stored.
  bool has(const Digest& key, const DeviceInfo& device);

  BundleImport& outcome() noexcept { return outcome_; }

 private:
  DeviceFolder& folder_of(const DeviceInfo& device);

  const CacheConfig& cache_;
  BundleImport outcome_;
  UniqueFd root_;
  std::unique_ptr<EntryKey> key_;
  std::unique_ptr<DiskBound> bound_;
  std::map<std::string, std::unique_ptr<DeviceFolder>> folders_;
};

}  // namespace kiln

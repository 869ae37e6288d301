// open_program_cache: opens core's program cache without a Runtime, for applications with their own devices.
//
// The cache opens its folder at the first request. If the folder is not usable, the cache works in memory only and logs
// this once.
// Thread-safety: any thread. Threads: the cache starts threads only for `stores` and in get_or_build_all(). Ownership: the
// caller owns the cache and destroys it before its devices; the log sink must outlive the cache.
//
//   auto cache = kiln::open_program_cache();
//   if (!cache) return cache.error();
//   auto acquired = (*cache)->get_or_build(key, source, device);
#pragma once

#include <kiln/cache_sharing.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/program_cache.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace [[gnu::visibility("default")]] kiln {

// Longest waits for a build of another thread or process. After `thread`, the request fails with timeout. After `process`,
// this process builds the program.
struct CacheWaits {
  std::chrono::nanoseconds thread = std::chrono::seconds(30);
  std::chrono::nanoseconds process = std::chrono::seconds(5);
};

// A cache that can remove programs. Query a ProgramCache for it:
//
//   if (auto* removable = dynamic_cast<kiln::RemovableCache*>(cache.get())) removable->forget(device);
//
// Thread-safety and ownership: as ProgramCache.
class RemovableCache {
 public:
  virtual ~RemovableCache() = default;

  // Removes the program from memory and disk. Handles to the program stay valid. An absent program is not an error. Does not
  // change layers and remotes. unavailable: the folder is read only.
  virtual Status remove(const ProgramKey& key, const Device& device) noexcept = 0;
  // Removes the programs of the device from memory. A program with a handle or guard is destroyed after the last release.
  virtual void forget(const Device& device) noexcept = 0;
};

// Opens a cache. An empty directory means memory only. stores: the factories for remotes other than folders. With stores,
// the cache starts threads at the first miss, so that a slow remote delays no build. It then writes programs to remotes
// after ProgramCache::record(). Null: the cache requests programs from remotes on the caller's thread for a limited time,
// and writes nothing to remotes. unsupported: unknown name, policy or compression.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const CacheConfig& config, Log log = {},
                                                         const CacheWaits& waits = {},
                                                         const RemoteStores* stores = nullptr);

// Reads the [cache] section from the sources, with the user's folder and key file as defaults. invalid_argument: the
// error lists every configuration problem, one per line.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const ConfigSources& sources = {}, Log log = {});

// Opens the notes of a driver in the folder `notes` of the cache. They are authenticated like programs. Without a folder or
// a key, the result stores and finds nothing.
std::unique_ptr<DriverNotes> open_driver_notes(const CacheConfig& config, std::string driver);

}  // namespace kiln

// open_program_cache: opens core's program cache without a Runtime, for applications with their own devices.
//
// The folder is opened at the first request. If it is not usable, the cache works in memory only and logs this once.
// Thread-safety: any thread. Threads: see `stores`; otherwise it starts none except those requested from
// get_or_build_all(). Ownership: the caller
// owns the cache and destroys it before its devices; the log sink must outlive it.
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

// Longest waits for a program that is already being built. A thread that gives up gets `timeout`; a process that gives
// up builds for itself.
struct CacheWaits {
  std::chrono::nanoseconds thread = std::chrono::seconds(30);
  std::chrono::nanoseconds process = std::chrono::seconds(5);
};

// A cache whose programs can be removed. Query a ProgramCache for it:
//
//   if (auto* removable = dynamic_cast<kiln::RemovableCache*>(cache.get())) removable->forget(device);
//
// Thread-safety and ownership: as ProgramCache.
class RemovableCache {
 public:
  virtual ~RemovableCache() = default;

  // Removes the program from memory and disk; handles to it stay valid. A program that is not there is no error.
  // unavailable: the folder is read only. Layers and remotes keep theirs.
  virtual Status remove(const ProgramKey& key, const Device& device) noexcept = 0;
  // Removes the programs of the device from memory. Those that a handle or guard holds are destroyed when it is released.
  virtual void forget(const Device& device) noexcept = 0;
};

// unsupported: unknown name, policy or compression. An empty directory means memory only. stores: for the remotes of the
// configuration, besides folders. The cache then starts threads when a program is first missing, so that a slow remote
// delays no build, and writes programs back after ProgramCache::record(). Null: remotes are asked on the caller's thread
// for a bounded time, and nothing is written to them.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const CacheConfig& config, Log log = {},
                                                         const CacheWaits& waits = {},
                                                         const RemoteStores* stores = nullptr);

// Reads the [cache] section from the sources, with the user's folder and key file as defaults. invalid_argument: the
// error lists every configuration problem, one per line.
Result<std::unique_ptr<ProgramCache>> open_program_cache(const ConfigSources& sources = {}, Log log = {});

// Opens the notes of a driver in the folder `notes` of the cache, authenticated like programs. Without a folder or a
// key it stores and finds nothing.
std::unique_ptr<DriverNotes> open_driver_notes(const CacheConfig& config, std::string driver);

}  // namespace kiln

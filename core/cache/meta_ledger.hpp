// MetaLedger: buffers updates of the .meta files of stored programs in memory until flush().
//
// Thread-safety: every method from any thread. Ownership: borrows the folders. Bounded: it tracks at most 65,536
// programs and ignores others.
#pragma once

#include "cache/device_folder.hpp"
#include "cache/entry_meta.hpp"

#include <kiln/program.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace kiln {

// Returns the content of the .meta file, or an empty value if it is missing or not readable.
EntryMeta stored_meta(DeviceFolder& folder, const Digest& digest);

class MetaLedger {
 public:
  MetaLedger();

  // Starts tracking a program that was stored in the folder or found there. build_ns 0: already recorded.
  void note(const ProgramKey& key, DeviceFolder& folder, std::uint64_t build_ns);
  // The methods below ignore programs that note() did not register.
  void moved(const Digest& digest, DeviceFolder& to);
  void used(const Digest& digest, std::uint64_t times);
  // Records the time of the first request in this process; later calls have no effect.
  void asked_for(const Digest& digest);
  void loaded(const Digest& digest, std::uint64_t took_ns);  // from disk
  void dispatched_first(const Digest& digest, std::uint64_t took_ns);
  void rate(const Digest& digest, double gflops);

  // Writes the buffered changes of one program or of all, merged with the files. Returns the bytes written. Errors are
  // ignored because no program depends on these files.
  std::uint64_t flush(const Digest& digest);
  std::uint64_t flush();

 private:
  struct Line {
    DeviceFolder* folder = nullptr;
    EntryMeta news;  // times_used and runs: changes since the last flush
    bool changed = false;
    bool asked_for = false;
    bool run_counted = false;  // this process is counted in runs
  };

  Line* line(const Digest& digest);
  // Removes and returns the changes; nullopt if there are none. REQUIRES: the lock is held.
  static std::optional<Line> take(Line& line);
  static std::uint64_t write(const Digest& digest, const Line& news);

  const std::uint64_t opened_ns_;
  std::mutex mutex_;
  std::unordered_map<Digest, Line, DigestHash> lines_;
};

}  // namespace kiln

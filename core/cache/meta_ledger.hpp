// MetaLedger: what is to be written into the .meta files of stored programs, gathered in memory until somebody flushes
// it.
//
// Thread-safety: every method from any thread. Ownership: borrows the folders. Bounded: beyond 65,536 programs new ones
// are not noted.
#pragma once

#include "cache/device_folder.hpp"
#include "cache/entry_meta.hpp"

#include <kiln/program.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace kiln {

// What the file says; empty where there is none that can be read.
EntryMeta stored_meta(DeviceFolder& folder, const Digest& digest);

class MetaLedger {
 public:
  MetaLedger();

  // A program became known here: it was stored in the folder, or found there. build_ns 0: recorded already.
  void note(const ProgramKey& key, DeviceFolder& folder, std::uint64_t build_ns);
  // What follows is for programs that were noted; others are passed over.
  void moved(const Digest& digest, DeviceFolder& to);
  void used(const Digest& digest, std::uint64_t times);
  // Somebody waits for it, in this process for the first time or again: the first is remembered.
  void asked_for(const Digest& digest);
  void loaded(const Digest& digest, std::uint64_t took_ns);  // from disk
  void dispatched_first(const Digest& digest, std::uint64_t took_ns);
  void rate(const Digest& digest, double gflops);

  // Merges what is new, of one program or of all, into the files; answers the bytes written. Losing a file loses no
  // program, so failures are passed over.
  std::uint64_t flush(const Digest& digest);
  std::uint64_t flush();

 private:
  struct Line {
    DeviceFolder* folder = nullptr;
    EntryMeta news;  // times_used and runs count those since the last flush
    bool changed = false;
    bool asked_for = false;
    bool run_counted = false;  // this process is one of its runs
  };

  Line* line(const Digest& digest);
  // What is new, taken out of the line; nullopt where nothing is. REQUIRES: the lock is held.
  static std::optional<Line> take(Line& line);
  static std::uint64_t write(const Digest& digest, const Line& news);

  const std::uint64_t opened_ns_;
  std::mutex mutex_;
  std::unordered_map<Digest, Line, DigestHash> lines_;
};

}  // namespace kiln

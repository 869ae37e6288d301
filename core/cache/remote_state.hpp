// What the cache folder keeps of a remote: totals and the state of its breaker.
//
// Remote totals: what all processes of this user got from one remote and wrote to it, in remote/NAME.totals of the
// cache.
//
// Text, one line "name number" each; unknown lines are ignored, and damaged text counts nothing.
// Thread-safety: functions from any thread; a file lock serializes the updates of processes. Ownership: values.
// An update that cannot get the lock within 20 ms is dropped without an error.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/cache_sharing.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln {

std::string encode_remote_totals(const RemoteTotals& totals);
RemoteTotals decode_remote_totals(std::string_view text);

// The beginning of the names of the remote's files in remote/ of a cache folder.
std::string remote_file_stem(const std::string& url);

// Adds to the file below the cache folder `directory`, which exists. Does nothing if there is nothing to add.
void add_remote_totals(const std::filesystem::path& directory, const std::string& url, const RemoteTotals& more);
RemoteTotals read_remote_totals(const std::filesystem::path& directory, const std::string& url);

// RemoteBreaker: stops the requests to a remote that failed, for all processes that share a cache folder.
//
// The state is in the file remote/<16 digits>.state of the cache folder: five numbers of 20 digits, with blanks and a
// newline. A missing or damaged file means that nothing is known. Without a cache folder the state is this process's.
// Thread-safety: every method from any thread. Ownership: owns its descriptor.

struct RemoteState {
  std::int64_t closed_until_ms = 0;  // since 1970: no job sends a request before; 0: none failed
  std::uint64_t failures = 0;        // in a row
  std::uint64_t round_trip_us = 0;   // typical request; 0: unknown
  std::uint64_t slow_us = 0;         // 95th percentile of the answers to a request for a program; 0: unknown
  std::int64_t late_until_ms = 0;    // another request is late: do not wait for more of them
};

class RemoteBreaker {
 public:
  // Opens nothing yet. An empty directory: the state of this process alone.
  RemoteBreaker(std::filesystem::path directory, bool writes, const std::string& url);

  // Whether a job may send a request now. False also while a probe is due: a probe is no part of a job.
  bool allows_jobs();
  // Whether the last request failed. Unlike allows_jobs(), false while a late answer is outstanding.
  bool has_failed();
  // Whether the pause has ended and this caller shall probe the server, outside of jobs. One caller of all processes
  // gets true; the pause goes on for a second meanwhile.
  bool is_probe_due();
  // The server answered, with an object or without.
  void succeeded();
  // The pause is 10 s, doubled by each failure in a row up to a minute, or as long as the server demanded.
  void failed(std::chrono::seconds retry_after = {});
  void probe_failed(std::chrono::seconds retry_after = {});
  // An answer is late, and perhaps lost: no job waits for another one before this time has passed.
  void late(std::chrono::milliseconds at_most);
  void answered_late();
  void measured(std::uint64_t round_trip_us, std::uint64_t slow_us);

  RemoteState state();

 private:
  void fail(std::chrono::seconds retry_after);  // REQUIRES: mutex_ is held
  void read();                                  // REQUIRES: mutex_ is held; at most every 20 ms
  void write();                                 // REQUIRES: mutex_ is held

  const std::filesystem::path directory_;
  const bool writes_;
  const std::string name_;
  std::mutex mutex_;
  UniqueFd file_;
  std::uint64_t read_at_ns_ = 0;  // 0: never
  bool is_private_ = false;       // a change could not be written: the file says less than state_
  RemoteState state_;
};

std::string encode_remote_state(const RemoteState& state);
RemoteState decode_remote_state(std::string_view text);  // damaged: all zero

}  // namespace kiln

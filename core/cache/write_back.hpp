// WriteBack: programs of this process that wait to be written to the remotes.
//
// Thread-safety: every method from any thread; serve() on one thread at a time. Ownership: owns the waiting programs.
#pragma once

#include "cache/held_leases.hpp"
#include "cache/remote_endpoint.hpp"

#include <kiln/config.hpp>
#include <kiln/digest.hpp>
#include <kiln/log.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class WriteBack {
 public:
  using Endpoints = std::vector<std::shared_ptr<RemoteEndpoint>>;
  struct Item {
    std::string folder, meta;
    Digest key;
    std::uint64_t build_ns = 0;
    std::vector<std::byte> entry;
  };

  // false: more than 8 MiB would wait.
  bool add(Item item);
  // true: nobody serves the queue, and the caller starts a task that calls serve(), or calls not_served().
  bool begin();
  void not_served();
  // Writes the queued programs until none is left, and releases their leases.
  void serve(const Endpoints& endpoints, const CacheConfig& config, HeldLeases& leases, SharedCounters& counters,
             Log log, const std::atomic<bool>& stop);
  // Waits for what is being written, and drops the rest. Returns how many were dropped.
  std::size_t finish(std::chrono::milliseconds patience);

 private:
  std::optional<Item> next();

  std::mutex mutex_;
  std::condition_variable served_;
  std::deque<Item> items_;  // guarded by mutex_, also the next two
  std::uint64_t bytes_ = 0;
  bool is_served_ = false;
};

}  // namespace kiln

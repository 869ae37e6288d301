// What the cache does behind its callers: threads, leases that are kept alive, and writing to remotes.
//
// BackgroundWork: a few threads that run queued tasks, started when they are needed.
//
// Thread-safety: every method from any thread. Ownership: owns the queue together with its threads. A thread that
// blocks in the operating system, for example on a dead network file system, is left behind at the end; so a task must
// share ownership of all that it uses.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/digest.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/remote_endpoint.hpp"

namespace kiln {

class BackgroundWork {
 public:
  explicit BackgroundWork(std::size_t most_threads);
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;
  // As finish() without time.
  ~BackgroundWork();

  // False: no thread could be started, and the task was not queued.
  bool add(std::function<void()> task);
  // True when finish() wants the tasks to end. Outlives this object as long as a task holds it.
  std::shared_ptr<const std::atomic<bool>> stop() const noexcept { return stop_; }
  // Waits for the queued tasks until the deadline, then stops the running ones and drops the others. Waits a second
  // for the threads.
  void finish(Deadline deadline) noexcept;

 private:
  struct Shared;

  std::shared_ptr<std::atomic<bool>> stop_;
  std::shared_ptr<Shared> shared_;
};

// HeldLeases: the leases of remotes that this process holds while it builds programs.
//
// Thread-safety: every method from any thread. Ownership: shares the endpoints.

class HeldLeases {
 public:
  struct Held {
    std::shared_ptr<RemoteEndpoint> endpoint;
    std::string name, token;
    std::chrono::milliseconds life{};
    Clock::time_point renewed, ends;  // ends: released then, whatever happened
  };

  // true: no task renews the leases yet, and the caller starts one that calls keep().
  bool add(const Digest& program, Held lease);
  void end_at(const Digest& program, Clock::time_point ends);
  std::optional<Held> take(const Digest& program);
  std::map<Digest, Held> take_all();
  // A failure costs the waiters the rest of its life.
  static Status release(const Held& lease);
  void release(const Digest& program);
  // Renews the leases at a third of their life, until none is left.
  void keep(const std::atomic<bool>& stop);

 private:
  std::mutex mutex_;
  std::map<Digest, Held> held_;  // guarded by mutex_, also the next
  bool is_kept_ = false;
};

// WriteBack: programs of this process that wait to be written to the remotes.
//
// Thread-safety: every method from any thread; serve() on one thread at a time. Ownership: owns the waiting programs.

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
  // Waits half of the time for what is queued, drops the rest, and waits as long until what was written is listed.
  // Returns how many were dropped.
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

// HeldLeases: the leases of remotes that this process holds while it builds programs.
//
// Thread-safety: every method from any thread. Ownership: shares the endpoints.
#pragma once

#include "cache/remote_endpoint.hpp"

#include <kiln/clock.hpp>
#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

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

}  // namespace kiln

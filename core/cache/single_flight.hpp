// Programs in the making and of late: bounded maps, and one builder for a key.
//
// Bounded maps for programs: RecentPlaces for any value, FailedBuilds for compiler errors. Both evict the oldest
// element.
//
// Thread-safety: every method from any thread. Ownership: values; devices by address, not owned.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kiln {

// Identifies a program on one device. Two devices with the same identity are different places.
struct ProgramPlace {
  Digest digest;
  const Device* device = nullptr;
  bool operator==(const ProgramPlace&) const = default;
};

struct ProgramPlaceHash {
  std::size_t operator()(const ProgramPlace& place) const noexcept {
    return DigestHash{}(place.digest) ^ std::hash<const Device*>{}(place.device);
  }
};

// A bounded map from places to values.
template <class Value>
class RecentPlaces {
 public:
  explicit RecentPlaces(std::size_t most) : most_(most) {}

  std::optional<Value> find(const ProgramPlace& place) const {
    const std::lock_guard lock(mutex_);
    const auto at = values_.find(place);
    return at == values_.end() ? std::nullopt : std::optional<Value>(at->second);
  }

  // Does nothing if the place already has a value.
  void remember(const ProgramPlace& place, const Value& value) {
    if (most_ == 0) return;
    const std::lock_guard lock(mutex_);
    if (values_.contains(place)) return;
    if (order_.size() == most_) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(place);
    values_.emplace(place, value);
  }

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<ProgramPlace, Value, ProgramPlaceHash> values_;
  std::deque<ProgramPlace> order_;  // the keys of values_, oldest first
};

// Compiler errors of this process, so that the same source is not compiled again.
//
// It stores only permanent failures: errors of the source (invalid_argument) and missing device features (unsupported).
class FailedBuilds {
 public:
  explicit FailedBuilds(std::size_t most = 256) : failures_(most) {}

  std::optional<Status> find(const ProgramPlace& place) const { return failures_.find(place); }
  void remember(const ProgramPlace& place, const Status& failure);

 private:
  RecentPlaces<Status> failures_;
};

// SingleFlight: runs one call for each key at a time; concurrent callers with the same key share its result.
//
// Thread-safety: run() from any thread; different keys run in parallel. Ownership: each caller gets a copy of the
// result. A failure reaches the callers that waited, but no later caller.

template <class Key, class Value, class Hash>
class SingleFlight {
 public:
  // Calls `work` (returns Result<Value>), or waits for the running call of another thread. Exceptions become a Status.
  // If the other call has not finished at the deadline, returns `late()`; that call continues for later callers.
  template <class Work, class Late>
  Result<Value> run(const Key& key, Deadline deadline, Work&& work, Late&& late) {
    auto call = std::make_shared<Call>();
    {
      std::unique_lock lock(mutex_);
      const auto [at, first] = calls_.try_emplace(key, call);
      if (!first) {
        call = at->second;
        ++call->waiting;
        const bool done = call->done.wait_until(lock, deadline.at, [&] { return call->result.has_value(); });
        --call->waiting;
        if (done) return *call->result;
      } else {
        lock.unlock();
        return finish(key, *call, guarded(work));
      }
    }
    return late();
  }

  // Number of callers now waiting for the result of the key.
  std::size_t waiting(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = calls_.find(key);
    return at == calls_.end() ? 0 : at->second->waiting;
  }

 private:
  struct Call {  // guarded by mutex_
    std::condition_variable done;
    std::optional<Result<Value>> result;
    std::size_t waiting = 0;
  };

  Result<Value> finish(const Key& key, Call& call, Result<Value> result) {
    const std::lock_guard lock(mutex_);
    calls_.erase(key);
    call.result.emplace(std::move(result));
    call.done.notify_all();
    return *call.result;
  }

  template <class Work>
  static Result<Value> guarded(Work& work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return unavailable("out of memory");
    } catch (const std::exception& error) {
      return internal_error(error.what());
    } catch (...) {
      return internal_error("an exception of unknown type was thrown");
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Call>, Hash> calls_;
};

}  // namespace kiln

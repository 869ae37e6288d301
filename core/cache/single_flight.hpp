// SingleFlight: runs one call for each key at a time; concurrent callers with the same key share its result.
//
// Thread-safety: run() from any thread; different keys run in parallel. Ownership: each caller gets a copy of the
// result. A failure reaches the callers that waited, but no later caller.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kiln {

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
      return internal_error("something that is no std::exception was thrown");
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Call>, Hash> calls_;
};

}  // namespace kiln

// SingleFlight: of all that ask for one key at one time, one does the work and the others get its answer, if they wait
// so long.
//
// Thread-safety: run() from any thread; different keys run in parallel. Ownership: the answer is copied to each caller
// and forgotten with the last, so a failure reaches everyone who waited and nobody who comes later.
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
  struct Landing {
    Result<Value> result;
    bool own = false;  // this caller did the work
  };

  // `work` answers a Result<Value>. What it throws becomes a failed Status, for those who wait too. nullopt where
  // somebody else does the work and is not done with it at the deadline; who comes later gets that answer all the same.
  template <class Work>
  std::optional<Landing> run(const Key& key, Deadline deadline, Work&& work) {
    auto flight = std::make_shared<Flight>();
    {
      std::unique_lock lock(mutex_);
      const auto [at, first] = flights_.try_emplace(key, flight);
      if (!first) {
        flight = at->second;
        ++flight->waiting;
        const bool landed = flight->landed.wait_until(lock, deadline.at, [&] { return flight->result.has_value(); });
        --flight->waiting;
        if (!landed) return std::nullopt;
        return Landing{*flight->result, false};
      }
    }
    return fly(key, *flight, work);
  }

  // nullopt, at once, where somebody does the work already.
  template <class Work>
  std::optional<Landing> try_run(const Key& key, Work&& work) {
    auto flight = std::make_shared<Flight>();
    {
      const std::lock_guard lock(mutex_);
      if (!flights_.try_emplace(key, flight).second) return std::nullopt;
    }
    return fly(key, *flight, work);
  }

  // Callers that wait for the answer to the key at this moment.
  std::size_t waiting(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = flights_.find(key);
    return at == flights_.end() ? 0 : at->second->waiting;
  }

 private:
  struct Flight {  // guarded by mutex_
    std::condition_variable landed;
    std::optional<Result<Value>> result;
    std::size_t waiting = 0;
  };

  template <class Work>
  Landing fly(const Key& key, Flight& flight, Work& work) {
    Result<Value> result = guarded(work);
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
    flight.result.emplace(std::move(result));
    flight.landed.notify_all();
    return {*flight.result, true};
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
  std::unordered_map<Key, std::shared_ptr<Flight>, Hash> flights_;
};

}  // namespace kiln

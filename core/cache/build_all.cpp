#include "cache/build_all.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace kiln {
namespace {

// What is left to do, shared by the threads of one call.
class Remaining {
 public:
  explicit Remaining(std::size_t requests) {
    for (std::size_t request = 0; request < requests; ++request) first_.push_back(request);
  }

  // In the order asked for, each once.
  std::optional<std::size_t> next() { return take(first_); }
  // What was passed over, oldest first.
  std::optional<std::size_t> next_passed_over() { return take(passed_over_); }
  void pass_over(std::size_t request) {
    const std::lock_guard lock(mutex_);
    passed_over_.push_back(request);
  }
  std::size_t passed_over() const {
    const std::lock_guard lock(mutex_);
    return passed_over_.size();
  }

 private:
  std::optional<std::size_t> take(std::deque<std::size_t>& from) {
    const std::lock_guard lock(mutex_);
    if (from.empty()) return std::nullopt;
    const std::size_t request = from.front();
    from.pop_front();
    return request;
  }

  mutable std::mutex mutex_;
  std::deque<std::size_t> first_, passed_over_;
};

class Batch {
 public:
  Batch(TieredCache& cache, std::span<const ProgramRequest> requests)
      : cache_(cache), requests_(requests), remaining_(requests.size()), answers_(requests.size()) {}

  void work() {
    while (const auto request = remaining_.next()) {
      if (!try_to_answer(*request)) remaining_.pass_over(*request);
    }
    while (const auto request = remaining_.next_passed_over()) {
      if (try_to_answer(*request)) continue;
      // Only where none of the others is free: whoever waits cannot build.
      if (others_answered()) {
        remaining_.pass_over(*request);
      } else {
        const auto& [key, source, device] = requests_[*request];
        answers_[*request].emplace(cache_.get_or_build(*key, *source, *device));
      }
    }
  }

  std::vector<Result<Acquired>> answers() && {
    std::vector<Result<Acquired>> all;
    all.reserve(answers_.size());
    for (auto& answer : answers_) {
      all.push_back(answer ? std::move(*answer) : Result<Acquired>(internal_error("a program was passed over")));
    }
    return all;
  }

 private:
  bool try_to_answer(std::size_t request) {
    const auto& [key, source, device] = requests_[request];
    Result<std::optional<Acquired>> acquired = cache_.try_get_or_build(*key, *source, *device);
    if (acquired && !acquired->has_value()) return false;
    answers_[request].emplace(acquired ? Result<Acquired>(std::move(**acquired)) : std::move(acquired).error());
    return true;
  }

  // One round over what was passed over.
  bool others_answered() {
    bool any = false;
    for (std::size_t left = remaining_.passed_over(); left != 0; --left) {
      const auto request = remaining_.next_passed_over();
      if (!request) break;
      if (try_to_answer(*request)) {
        any = true;
      } else {
        remaining_.pass_over(*request);
      }
    }
    return any;
  }

  TieredCache& cache_;
  const std::span<const ProgramRequest> requests_;
  Remaining remaining_;
  std::vector<std::optional<Result<Acquired>>> answers_;  // each written by the thread that took the request
};

}  // namespace

std::vector<Result<Acquired>> build_all(TieredCache& cache, std::span<const ProgramRequest> requests,
                                        unsigned threads) {
  Batch batch(cache, requests);
  std::vector<std::thread> others;
  const auto useful = std::min<std::size_t>(threads, requests.size());
  try {
    for (std::size_t thread = 1; thread < useful; ++thread) others.emplace_back([&batch] { batch.work(); });
  } catch (const std::system_error&) {
    // No more threads are to be had: those there are do the work.
  }
  batch.work();
  for (std::thread& other : others) other.join();
  return std::move(batch).answers();
}

}  // namespace kiln

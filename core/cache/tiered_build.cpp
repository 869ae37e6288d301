// How the tiered cache builds: one program, here or in another process, and many at once.
#include "cache/tiered_cache.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace kiln {

Result<TieredCache::Built> TieredCache::build(const Request& request) {
  const std::uint64_t start = now_ns();
  TracedWork building(trace_, TraceArea::build, "build");
  building.figure("program", request.key.label);
  building.figure("device", request.device.info().id);
  Result<Built> built = build_anywhere(request);
  if (!built) building.figure("failed", to_string(built.error().code));
  building.end();
  if (!built) {
    counters_.failed_builds.fetch_add(1, std::memory_order_relaxed);
    failed_builds_.remember({request.key.digest, &request.device}, built.error());
    if (shared_ != nullptr) shared_->build_failed(request.key);
    return built;
  }
  built->took_ns = now_ns() - start;
  const bool serializes = request.device.info().serializes;
  (serializes ? counters_.builds : counters_.prepared).fetch_add(1, std::memory_order_relaxed);
  return built;
}

Status TieredCache::publish(const Request& request, Built& built) {
  if (!request.device.info().serializes) return {};
  if (!built.binary) {
    auto binary = binary_of(request, built);
    if (!binary) return std::move(binary).error();
    built.binary = std::move(*binary);
  }
  if (!built.binary) return {};
  disk_.store(request.key, request.device, *built.binary, built.took_ns);
  if (shared_ != nullptr) shared_->built(request.key, built.took_ns);
  return {};
}

Result<TieredCache::Built> TieredCache::build_anywhere(const Request& request) {
  if (build_apart_ && request.device.info().serializes) {
    if (auto binary = build_apart_(request.key, request.source, request.device)) {
      if (!*binary) return std::move(*binary).error();
      place_driver_files(**binary);
      auto program = request.device.load(request.source, **binary);
      if (program) return Built{std::move(*program), std::move(**binary), {}, 0};
      log_.write(LogLevel::info, "cache",
                 "program '" + request.key.label +
                     "': cannot be loaded from the child process and is built again: " + program.error().message);
    }
  }
  const bool keeps_files = driver_folder_ != nullptr && request.device.info().driver_cache == "adopted";
  auto before = keeps_files ? driver_folder_->files() : std::set<std::string>();
  auto program = request.device.build(request.source);
  if (!program) return std::move(program).error();
  return Built{std::move(*program), std::nullopt, std::move(before), 0};
}

Result<std::optional<ProgramBinary>> TieredCache::binary_of(const Request& request, const Built& built) {
  TracedWork serializing(trace_, TraceArea::build, "serialize");
  auto binary = request.device.serialize(*built.program);
  serializing.end();
  if (!binary) {
    log_.write(LogLevel::warning, "cache",
               "program '" + request.key.label + "' is not stored: " + binary.error().message);
    return std::optional<ProgramBinary>();
  }
  if (driver_folder_ == nullptr || request.device.info().driver_cache != "adopted") return std::optional(*binary);
  const Status dispatched = dispatch_nothing(request.device, *built.program, dispatch_patience_);
  if (!dispatched.ok()) return dispatched.within("program '" + request.key.label + "': its first dispatch");
  if (Status status = driver_folder_->collect(built.before, *binary); !status.ok()) {
    log_.write(LogLevel::info, "cache", "program '" + request.key.label + "' has no driver files: " + status.message);
  }
  return std::optional(std::move(*binary));
}

bool TieredCache::place_driver_files(const ProgramBinary& binary) {
  if (driver_folder_ == nullptr || binary.driver_files.empty()) return false;
  if (binary.driver_setting != driver_folder_->setting()) return false;
  const Status placed = driver_folder_->place(binary);
  if (placed.ok()) return true;
  log_.write(LogLevel::info, "cache",
             "driver files are not used, and the driver generates the machine code again: " + placed.message);
  return false;
}

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
  Batch(TieredCache& cache, std::span<const ProgramRequest> requests, const WarmableCache::OnAnswer& on_answer)
      : cache_(cache), requests_(requests), on_answer_(on_answer), remaining_(requests.size()) {}

  // Out of memory, or thrown by who is told: nothing more is begun.
  void work() noexcept try { do_all(); } catch (...) {
    stopped_ = true;
  }

 private:
  void do_all() {
    while (const auto request = next(&Remaining::next)) {
      if (!try_to_answer(*request)) remaining_.pass_over(*request);
    }
    while (const auto request = next(&Remaining::next_passed_over)) {
      if (try_to_answer(*request)) continue;
      // Only where none of the others is free: whoever waits cannot build.
      if (others_answered()) {
        remaining_.pass_over(*request);
      } else if (!stopped_) {
        answer(*request, cache_.get_or_build(requests_[*request]));
      }
    }
  }

  // nullopt: nothing is left, or nothing more is to be begun.
  std::optional<std::size_t> next(std::optional<std::size_t> (Remaining::*from)()) {
    return stopped_ ? std::nullopt : (remaining_.*from)();
  }

  bool try_to_answer(std::size_t request) {
    Result<std::optional<Acquired>> acquired = cache_.try_get_or_build(requests_[request]);
    if (acquired && !acquired->has_value()) return false;
    answer(request, acquired ? Result<Acquired>(std::move(**acquired)) : std::move(acquired).error());
    return true;
  }

  void answer(std::size_t request, Result<Acquired> acquired) {
    const std::lock_guard lock(answering_);
    // What was begun before somebody said that it is enough is told all the same.
    if (!on_answer_(request, std::move(acquired))) stopped_ = true;
  }

  // One round over what was passed over.
  bool others_answered() {
    bool any = false;
    for (std::size_t left = remaining_.passed_over(); left != 0; --left) {
      const auto request = next(&Remaining::next_passed_over);
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
  const WarmableCache::OnAnswer& on_answer_;
  Remaining remaining_;
  std::mutex answering_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

void build_all(TieredCache& cache, std::span<const ProgramRequest> requests, unsigned threads,
               const WarmableCache::OnAnswer& on_answer) {
  Batch batch(cache, requests, on_answer);
  const auto useful = std::min<std::size_t>(threads, requests.size());
  std::vector<std::thread> others;
  others.reserve(useful);  // a thread that cannot be kept could not be joined either
  while (others.size() + 1 < useful) {
    auto other = start_thread([&batch, stop = current_stop()] {
      const StopScope scope(stop);
      batch.work();
    });
    if (!other) break;  // those there are do the work
    others.push_back(std::move(*other));
  }
  batch.work();
  for (std::thread& other : others) other.join();
}

std::vector<Result<Acquired>> build_all(TieredCache& cache, std::span<const ProgramRequest> requests,
                                        unsigned threads) {
  std::vector<Result<Acquired>> answers(requests.size(),
                                        Result<Acquired>(internal_error("a program was not processed")));
  build_all(cache, requests, threads, [&](std::size_t place, Result<Acquired> answer) {
    answers[place] = std::move(answer);
    return true;
  });
  return answers;
}

}  // namespace kiln

#include "cache/remote_tier.hpp"

#include "base/os/process_limits.hpp"
#include "cache/cache_root.hpp"
#include "cache/manifest.hpp"
#include "cache/signing_keys.hpp"

#include <kiln/clock.hpp>
#include <kiln/stop_scope.hpp>

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t most_threads = 4;
constexpr std::uint64_t most_arrived_bytes = 256ull << 20;
constexpr milliseconds exit_patience{200};
// Of a batch: how long nothing may arrive before the builds start. Longer than for one program, because it replaces
// many builds; shorter than what a failed server may cost.
constexpr milliseconds batch_patience{65};
// For one request about a lease; a server that takes longer has failed. One that has answered before may take longer:
// clients that start together have busy processors. With the wait for a first answer this stays below what a failed
// server may cost.
constexpr milliseconds lease_patience{40};
constexpr milliseconds shortest_lease{1000}, longest_lease{30'000};
// How long another machine's build is waited for where nothing tells how long builds take: longer than most, since
// machines that start together would all build their first programs. The first wait in vain leads to a build, which
// tells.
constexpr milliseconds unknown_build_patience{10'000};
constexpr milliseconds dispatch_patience{5000};  // for the first dispatch of a program that this process leased

nanoseconds ns(std::uint64_t count) { return nanoseconds(static_cast<std::int64_t>(count)); }

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) number = now_ns();
  return number;
}

std::string new_token() {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(random_number()),
                static_cast<unsigned long long>(random_number()) ^ static_cast<unsigned long long>(getpid()));
  return text;
}

}  // namespace

std::chrono::microseconds lease_pause(unsigned round, std::uint8_t random) noexcept {
  const std::chrono::microseconds least = milliseconds(std::min(5 * (round + 1), 25u));
  return least + least * random / 255;
}

std::chrono::milliseconds batch_time(std::size_t programs) noexcept {
  return request_patience * static_cast<int>(1 + std::min<std::size_t>(programs / 16, 40));
}

struct RemoteTier::Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, late = false;
  std::uint64_t progress = 0;  // of a batch
  std::optional<SharedProgram> program;
  Endpoints endpoints;
};

struct RemoteTier::Arrived {
  std::mutex mutex;
  std::map<Digest, SharedProgram> programs;
  std::uint64_t bytes = 0;

  static std::uint64_t bytes_of(const SharedProgram& program) {
    std::uint64_t bytes = program.binary.bytes.size() + program.material.size();
    for (const DriverFile& file : program.binary.driver_files) bytes += file.bytes.size();
    return bytes;
  }
  void add(SharedProgram program) {
    const std::uint64_t more = bytes_of(program);
    const std::lock_guard lock(mutex);
    if (bytes + more > most_arrived_bytes) return;
    const Digest key = program.key;
    if (programs.emplace(key, std::move(program)).second) bytes += more;
  }
  std::optional<SharedProgram> take(const Digest& key) {
    const std::lock_guard lock(mutex);
    const auto at = programs.find(key);
    if (at == programs.end()) return std::nullopt;
    bytes -= bytes_of(at->second);
    std::optional<SharedProgram> taken(std::move(at->second));
    programs.erase(at);
    return taken;
  }
  bool has(const Digest& key) {
    const std::lock_guard lock(mutex);
    return programs.contains(key);
  }
};

std::unique_ptr<RemoteTier> RemoteTier::create(const CacheContext& context) {
  if (context.config.layers.empty() && context.config.remotes.empty()) return nullptr;
  // As for the disk: a process with borrowed rights trusts no folder that its environment names.
  if (has_borrowed_rights()) return nullptr;
  return std::make_unique<RemoteTier>(context);
}

RemoteTier::RemoteTier(const CacheContext& context)
    : log_(context.log),
      config_(context.config),
      own_threads_(context.own_threads == OwnThreads::yes),
      counters_(std::make_shared<SharedCounters>()),
      trusted_(std::make_shared<CurrentKeys>(context.config.trust_folders)),
      layers_(context.log, context.config, trusted_),
      arrived_(std::make_shared<Arrived>()),
      leases_(std::make_shared<HeldLeases>()),
      writes_(std::make_shared<WriteBack>()),
      work_(most_threads) {
  for (const std::string& problem : trusted_->get()->problems) log_.write(LogLevel::warning, "cache", problem);
  RemoteEndpoint::Stores stores = context.remote_stores;
  stores.emplace("file", open_file_store);
  for (const RemoteConfig& remote : config_.remotes) {
    auto endpoint = std::make_shared<RemoteEndpoint>(log_, remote, config_, trusted_, stores);
    for (const std::string& problem : endpoint->problems()) {
      log_.write(LogLevel::warning, "cache", "remote " + remote.url + ": " + problem);
    }
    if (endpoint->reads() || endpoint->writes()) endpoints_.push_back(std::move(endpoint));
  }
}

RemoteTier::~RemoteTier() { finish(); }

void RemoteTier::finish() noexcept try {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    for (const auto& answer : unanswered_) {
      const std::lock_guard of_answer(answer->mutex);
      // Short processes would otherwise wait for a dead server one after the other, and none would learn of it.
      if (!answer->done) {
        for (const auto& endpoint : answer->endpoints) endpoint->breaker().failed();
      }
    }
  }
  const std::size_t dropped = writes_->finish(exit_patience);
  if (dropped != 0) counters_->change([&](SharedCounts& counts) { counts.dropped += dropped; });
  for (const auto& [digest, lease] : leases_->take_all()) {
    if (lease.endpoint->breaker().has_failed() || !HeldLeases::release(lease).ok()) break;  // they end by themselves
  }
  work_.finish(Deadline::after(nanoseconds(0)));
  for (const auto& endpoint : endpoints_) endpoint->save();
} catch (const std::exception&) {  // out of memory: what is lost are counts
}

RemoteLimits RemoteTier::limits_for(nanoseconds time) const {
  return {.deadline = Deadline::after(time), .stop = work_.stop().get()};
}

RemoteTier::Endpoints RemoteTier::askable() {
  Endpoints endpoints;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->reads()) continue;
    if (endpoint->breaker().allows_jobs()) {
      endpoints.push_back(endpoint);
    } else if (own_threads_ && endpoint->breaker().is_probe_due()) {
      work_.add([endpoint, stop = work_.stop()] {
        static_cast<void>(endpoint->probe({.deadline = Deadline::after(std::chrono::seconds(1)), .stop = stop.get()}));
      });
    } else if (!own_threads_ && endpoint->breaker().is_probe_due()) {
      endpoints.push_back(endpoint);  // nothing else could find out that the server is back
    }
  }
  return endpoints;
}

void RemoteTier::refresh_index(const std::shared_ptr<RemoteEndpoint>& endpoint, const std::string& folder) {
  if (!endpoint->wants_index(folder)) return;
  if (!own_threads_) {
    static_cast<void>(endpoint->refresh_index(folder, limits_for(ns(endpoint->patience_ns(unknown_build_ns)))));
    return;
  }
  work_.add([endpoint, folder, stop = work_.stop()] {
    static_cast<void>(endpoint->store());
    static_cast<void>(
        endpoint->refresh_index(folder, {.deadline = Deadline::after(request_patience), .stop = stop.get()}));
  });
}

std::optional<SharedProgram> RemoteTier::from_layers(const ProgramKey& key, const Device& device) {
  if (!layers_.exist()) return std::nullopt;
  return layers_.find({device_folder_name(device.info()), key.digest, key.material}, *counters_);
}

bool RemoteTier::holds(const ProgramKey& key, const Device& device) {
  const AskedProgram asked{device_folder_name(device.info()), key.digest, {}};
  if (layers_.exist() && layers_.holds(asked)) return true;
  if (arrived_->has(key.digest)) return true;
  for (const auto& endpoint : endpoints_) {
    std::uint64_t build_ns = 0;
    if (endpoint->reads() && endpoint->breaker().allows_jobs() &&
        endpoint->look_up(asked.folder, asked.key, build_ns) == RemoteEndpoint::Known::present) {
      return true;
    }
  }
  return false;
}

bool RemoteTier::is_accepted(const BundlePublicKey& signer) const {
  const std::time_t now_s = std::time(nullptr);
  const auto is_valid = [&](const TrustedKey& key) {
    return key.key == signer && !key.revoked && (!key.until_s || now_s < *key.until_s);
  };
  return std::ranges::any_of(endpoints_,
                             [&](const auto& endpoint) { return std::ranges::any_of(endpoint->accepted(), is_valid); });
}

std::optional<SharedProgram> RemoteTier::from_remotes(const ProgramKey& key, const Device& device) {
  if (endpoints_.empty()) return std::nullopt;
  if (auto program = arrived_->take(key.digest)) {
    if (is_accepted(program->signer)) return program;
    counters_->change([](SharedCounts& counts) { ++counts.revoked; });
    return std::nullopt;
  }
  Endpoints chosen;
  const Endpoints candidates = askable();
  if (candidates.empty()) {
    counters_->change([](SharedCounts& counts) { ++counts.closed; });
    return std::nullopt;
  }
  static_cast<void>(ed25519());  // loads a library, which is no part of a server's time
  AskedProgram asked{device_folder_name(device.info()), key.digest, key.material};
  std::uint64_t expected_ns = unknown_build_ns;
  bool skipped = false;
  for (const auto& endpoint : candidates) {
    refresh_index(endpoint, asked.folder);
    std::uint64_t build_ns = unknown_build_ns;
    if (endpoint->look_up(asked.folder, asked.key, build_ns) == RemoteEndpoint::Known::absent) continue;
    if (build_ns < 3 * endpoint->round_trip_ns()) {
      skipped = true;
      continue;
    }
    expected_ns = build_ns;
    chosen.push_back(endpoint);
  }
  if (chosen.empty()) {
    counters_->change([&](SharedCounts& counts) { ++(skipped ? counts.skipped : counts.absent); });
    return std::nullopt;
  }
  return wait_for(std::move(chosen), std::move(asked), expected_ns);
}

// From the first remote that has it. Counts a program that none of them has.
std::optional<SharedProgram> RemoteTier::fetch_from(const Endpoints& endpoints, const AskedProgram& asked,
                                                    nanoseconds request, const std::atomic<bool>* stop,
                                                    SharedCounters& counters) {
  bool is_absent = true;
  for (const auto& endpoint : endpoints) {
    static_cast<void>(endpoint->store());  // loads a library: no part of the server's time
    auto fetched = endpoint->fetch(asked, {.deadline = Deadline::after(request), .stop = stop}, counters);
    if (fetched.program) return std::move(fetched.program);
    is_absent = is_absent && fetched.is_absent;
  }
  if (is_absent) counters.change([](SharedCounts& counts) { ++counts.absent; });
  return std::nullopt;
}

std::optional<SharedProgram> RemoteTier::wait_for(Endpoints chosen, AskedProgram asked, std::uint64_t expected_ns) {
  std::uint64_t patience_ns = 0;
  for (const auto& endpoint : chosen) patience_ns = std::max(patience_ns, endpoint->patience_ns(expected_ns));
  if (!own_threads_) {
    return fetch_from(chosen, asked, ns(patience_ns), work_.stop().get(), *counters_);
  }
  // The job does not wait so long, and on a busy machine a good server needs it at times.
  const nanoseconds request = std::max<nanoseconds>(request_patience, ns(patience_ns));
  const auto answer = std::make_shared<Answer>();
  answer->endpoints = chosen;
  const bool queued = work_.add([answer, asked = std::move(asked), request, counters = counters_, stop = work_.stop()] {
    auto program = fetch_from(answer->endpoints, asked, request, stop.get(), *counters);
    const std::lock_guard lock(answer->mutex);
    answer->program = std::move(program);
    answer->done = true;
    if (answer->late) {
      for (const auto& endpoint : answer->endpoints) endpoint->breaker().answered_late();
    }
    answer->changed.notify_all();
  });
  if (!queued) return std::nullopt;
  std::unique_lock lock(answer->mutex);
  if (answer->changed.wait_for(lock, ns(patience_ns), [&] { return answer->done; })) return std::move(answer->program);
  answer->late = true;
  // Under the lock: an answer that arrives now is told to the breaker after this.
  for (const auto& endpoint : answer->endpoints) {
    endpoint->breaker().late(std::chrono::duration_cast<milliseconds>(request) + milliseconds(50));
  }
  lock.unlock();
  counters_->change([](SharedCounts& counts) { ++counts.late; });
  const std::lock_guard own(mutex_);
  std::erase_if(unanswered_, [](const std::shared_ptr<Answer>& one) {
    const std::lock_guard of_answer(one->mutex);
    return one->done;
  });
  unanswered_.push_back(answer);
  return std::nullopt;
}

void RemoteTier::prefetch(std::span<const ProgramKey* const> keys, const Device& device) {
  if (endpoints_.empty() || keys.empty() || !own_threads_) return;
  const std::string folder = device_folder_name(device.info());
  for (const auto& endpoint : askable()) {
    std::vector<AskedProgram> asked;
    for (const ProgramKey* key : keys) {
      if (!arrived_->has(key->digest)) asked.push_back({folder, key->digest, key->material});
    }
    if (asked.empty()) return;
    const milliseconds whole = batch_time(asked.size());
    const nanoseconds patience = std::max<nanoseconds>(batch_patience, ns(endpoint->slow_answer_ns()));
    const auto answer = std::make_shared<Answer>();
    answer->endpoints = {endpoint};
    const auto progress = [answer] {
      const std::lock_guard lock(answer->mutex);
      ++answer->progress;
      answer->changed.notify_all();
    };
    const bool queued = work_.add(
        [=, counters = counters_, arrived = arrived_, stop = work_.stop(), asked = std::move(asked)]() mutable {
          const RemoteLimits limits{.deadline = Deadline::after(whole), .stop = stop.get()};
          static_cast<void>(endpoint->store());  // loads a library: no part of the wait for the server
          progress();
          const bool answers = !endpoint->wants_index(folder) || endpoint->refresh_index(folder, limits).ok();
          progress();
          if (answers) {
            const std::uint64_t round_trip_ns = endpoint->round_trip_ns() / std::max<std::size_t>(asked.size(), 1);
            std::erase_if(asked, [&](const AskedProgram& one) {
              std::uint64_t build_ns = unknown_build_ns;
              return endpoint->look_up(folder, one.key, build_ns) == RemoteEndpoint::Known::absent ||
                     build_ns < 3 * round_trip_ns;
            });
            if (!asked.empty()) {
              static_cast<void>(endpoint->fetch_many(asked, limits, *counters, [&](std::size_t, SharedProgram program) {
                arrived->add(std::move(program));
                progress();
              }));
            }
          }
          const std::lock_guard lock(answer->mutex);
          answer->done = true;
          if (answer->late) endpoint->breaker().answered_late();
          answer->changed.notify_all();
        });
    if (!queued) return;
    std::unique_lock lock(answer->mutex);
    while (!answer->done) {
      const std::uint64_t seen = answer->progress;
      if (answer->changed.wait_for(lock, patience, [&] { return answer->done || answer->progress != seen; })) continue;
      answer->late = true;
      endpoint->breaker().late(whole);
      lock.unlock();
      counters_->change([](SharedCounts& counts) { ++counts.late; });
      const std::lock_guard own(mutex_);
      unanswered_.push_back(answer);
      break;
    }
  }
}

std::shared_ptr<RemoteEndpoint> RemoteTier::lease_holder() {
  if (!own_threads_) return nullptr;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->writes() || !endpoint->reads()) continue;
    // Asked also while a late answer is outstanding: without a lease, every machine of a busy group would build. Once
    // only where the server has answered nothing: it may be one that never does.
    RemoteBreaker& breaker = endpoint->breaker();
    const bool asks = breaker.allows_jobs() ||
                      (!breaker.has_failed() && (endpoint->has_answered() || !asked_before_answer_.exchange(true)));
    if (asks && endpoint->leases() != nullptr) return endpoint;
  }
  return nullptr;
}

std::uint64_t RemoteTier::usual_build_ns() {
  const std::lock_guard lock(mutex_);
  return builds_ == 0 ? 0 : built_ns_ / builds_;
}

RemoteTier::LeaseResult RemoteTier::acquire_lease(const ProgramKey& key, const Device& device, bool waits) {
  if (endpoints_.empty()) return {};
  const auto unleased = [&]() -> LeaseResult {
    counters_->change([](SharedCounts& counts) { ++counts.unleased_builds; });
    return {};
  };
  const auto endpoint = lease_holder();
  if (endpoint == nullptr) return unleased();
  RemoteLeases& leases = *endpoint->leases();
  const AskedProgram asked{device_folder_name(device.info()), key.digest, key.material};
  std::uint64_t expected_ns = usual_build_ns();
  static_cast<void>(endpoint->look_up(asked.folder, asked.key, expected_ns));
  const bool is_known = expected_ns != 0;
  if (!is_known) expected_ns = unknown_build_ns;
  // A lease costs two round trips: one to take it, one to look whether the program was written meanwhile.
  if (expected_ns < 3 * endpoint->round_trip_ns()) return unleased();
  const nanoseconds expected = ns(std::min<std::uint64_t>(expected_ns, nanoseconds(longest_lease).count()));
  const auto life = std::clamp(std::chrono::duration_cast<milliseconds>(3 * expected), shortest_lease, longest_lease);
  const std::string name = asked.name() + ".lease", token = new_token();
  const auto limits = [&] {
    return limits_for(endpoint->has_answered() ? nanoseconds(request_patience) : nanoseconds(lease_patience));
  };
  // A server that failed is not waited for; its breaker keeps the next requests away. Where the first answer is late,
  // the end of that request tells.
  const auto failed = [&](const Status& status) {
    const bool is_only_late = status.code == StatusCode::timeout && !endpoint->has_answered();
    if (status.code != StatusCode::cancelled && !is_only_late) endpoint->breaker().failed();
    return unleased();
  };
  const Deadline deadline = Deadline::after(is_known ? life : unknown_build_patience);
  bool waited = false;
  for (unsigned round = 0;; ++round) {
    const auto acquired = leases.acquire(name, token, life, limits());
    if (!acquired) return failed(acquired.error());
    // Another machine may have written it since it was looked for.
    if (*acquired || round != 0) {
      auto program = endpoint->fetch(asked, limits(), *counters_).program;
      if (program) {
        if (*acquired) static_cast<void>(leases.release(name, token, limits()));
        return {LeaseAnswer::found, std::move(program)};
      }
    }
    if (*acquired) break;
    if (!waits) return {LeaseAnswer::busy, std::nullopt};
    if (!std::exchange(waited, true)) counters_->change([](SharedCounts& counts) { ++counts.lease_waits; });
    const std::atomic<bool>* stop = current_stop();
    if (deadline.passed() || (stop != nullptr && *stop) || endpoint->breaker().has_failed()) {
      counters_->change([](SharedCounts& counts) { ++counts.lease_timeouts; });
      return unleased();
    }
    std::this_thread::sleep_for(lease_pause(round, static_cast<std::uint8_t>(random_number())));
  }
  if (waited) counters_->change([](SharedCounts& counts) { ++counts.lease_takeovers; });
  const auto now = Clock::now();
  if (leases_->add(key.digest, {endpoint, name, token, life, now, now + std::chrono::minutes(2)})) {
    work_.add([held = leases_, stop = work_.stop()] { held->keep(*stop); });
  }
  return {};
}

void RemoteTier::build_failed(const ProgramKey& key) {
  if (const auto lease = leases_->take(key.digest)) {
    work_.add([lease = *lease] { static_cast<void>(HeldLeases::release(lease)); });
  }
}

void RemoteTier::built(const ProgramKey& key, std::uint64_t build_ns) {
  if (std::ranges::none_of(endpoints_, [](const auto& endpoint) { return endpoint->writes(); })) return;
  leases_->end_at(key.digest, Clock::now() + dispatch_patience);
  const std::lock_guard lock(mutex_);
  built_[key.digest] = build_ns;
  ++builds_;
  built_ns_ += build_ns;
}

void RemoteTier::dispatched(const ProgramKey& key, const Device& device) {
  std::uint64_t build_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto at = built_.find(key.digest);
    if (at == built_.end()) return;
    build_ns = at->second;
    built_.erase(at);
  }
  const auto dropped = [&] { counters_->change([](SharedCounts& counts) { ++counts.dropped; }); };
  if (!own_threads_) return dropped();
  const Result<CacheRoot> root = CacheRoot::open(config_);
  if (!root || !root->exists()) return dropped();
  const std::string folder = device_folder_name(device.info());
  FileContents file = root->read_program(Area::stored, folder, key.digest);
  if (file.state != FileState::read) return dropped();
  std::string meta = root->read_meta(Area::stored, folder, key.digest);
  if (!writes_->add({folder, std::move(meta), key.digest, build_ns, std::move(file.bytes)})) return dropped();
  if (!writes_->begin()) return;
  const bool queued = work_.add(
      [writes = writes_, endpoints = endpoints_, config = config_, leases = leases_, counters = counters_, log = log_,
       stop = work_.stop()] { writes->serve(endpoints, config, *leases, *counters, log, *stop); });
  if (!queued) writes_->not_served();
}

}  // namespace kiln

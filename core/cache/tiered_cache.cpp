#include "cache/tiered_cache.hpp"

#include "base/os/private_folder.hpp"

#include <kiln/clock.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

// A first dispatch that takes less, or less than this part of the build, compiles nothing that is worth storing.
// Looking for what it compiled reads /proc for each thread of the process.
constexpr std::uint64_t compiled_ns = 5'000'000;
constexpr std::uint64_t part_of_build = 20;
constexpr std::size_t digits_logged = 12;  // of a key: as many as `kiln cache list` shows

Status not_made_in_time(const ProgramKey& key, std::chrono::nanoseconds patience) {
  const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  return timed_out("program '" + key.label + "' (" + key.digest.hex() + "): timed out after " +
                   std::to_string(waited_ms) + " ms: another thread is still building the program");
}

}  // namespace

Result<std::unique_ptr<TieredCache>> TieredCache::create(const CacheContext& context, ProcessSharing sharing,
                                                         MemorySources memory) {
  const CacheConfig& config = context.config;
  const std::uint64_t least_weight = config.max_programs == 0 ? 0 : config.max_memory / config.max_programs;
  auto policy = make_eviction_policy(config.policy, least_weight);
  if (!policy) return std::move(policy).error().within("cache 'tiered'");
  if (std::ranges::find(eviction_policy_names, config.policy) == std::end(eviction_policy_names)) {
    context.log.write(LogLevel::warning, "cache", "policy '" + config.policy + "' no longer exists: 'cost' is used");
  }
  if (config.compression != "zstd" && config.compression != "none") {
    return unsupported("cache 'tiered': compression '" + config.compression + "', expected 'zstd' or 'none'");
  }
  if (Status status = check_key_file_place(config); !status.ok()) return status.within("cache 'tiered'");
  return std::make_unique<TieredCache>(context, std::move(*policy), std::move(sharing), std::move(memory));
}

TieredCache::TieredCache(const CacheContext& context, std::unique_ptr<EvictionPolicy> policy, ProcessSharing sharing,
                         MemorySources memory)
    : log_(context.log),
      trace_(context.trace),
      flight_patience_(sharing.flight_patience),
      dispatch_patience_(sharing.dispatch_patience),
      configured_{context.config.max_programs, context.config.max_memory},
      pressure_(std::move(memory)),
      memory_(configured_, std::move(policy), context.own_threads),
      build_apart_(context.build_apart),
      driver_folder_(DriverScratch::of_process()),
      disk_(context.log, context.config, counters_, std::move(sharing), context.trace, context.try_in_child),
      shared_(RemoteTier::create(context)) {}

TieredCache::~TieredCache() {
  try {
    if (shared_ != nullptr) shared_->finish();
    disk_.used(memory_.take_uses());
    disk_.leave_history(counts());
  } catch (const std::bad_alloc&) {  // what was counted is lost
  }
}

Result<Acquired> TieredCache::get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept {
  return get_or_build({&key, &source, &device});
}

Result<Acquired> TieredCache::get_or_build(const ProgramRequest& request) noexcept {
  // The hot path: nothing but the memory tier and the handle.
  if (auto held = memory_.get(request.key->digest, *request.device)) {
    return Acquired{ProgramHandle(std::move(held)), Tier::memory};
  }
  try {
    auto obtained = acquire({*request.key, *request.source, *request.device, request.ahead}, IfBusy::wait);
    if (!obtained) return std::move(obtained).error();
    return Acquired{std::move(obtained->program), tier_of(obtained->origin), obtained->took_ns};
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

Result<std::optional<Acquired>> TieredCache::try_get_or_build(const ProgramRequest& request) noexcept {
  if (auto held = memory_.get(request.key->digest, *request.device)) {
    return std::optional(Acquired{ProgramHandle(std::move(held)), Tier::memory});
  }
  try {
    auto obtained = acquire({*request.key, *request.source, *request.device, request.ahead}, IfBusy::leave);
    if (!obtained) return std::move(obtained).error();
    if (!obtained->found()) return std::optional<Acquired>();
    return std::optional(Acquired{std::move(obtained->program), tier_of(obtained->origin), obtained->took_ns});
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

void TieredCache::get_or_build_all(std::span<const ProgramRequest> requests, unsigned threads,
                                   const OnAnswer& on_answer) noexcept try {
  prefetch(requests);
  build_all(*this, requests, threads, on_answer);
} catch (const std::bad_alloc&) {
  log_.write(LogLevel::warning, "cache", "out of memory: not all requested programs were loaded");
}

Tier TieredCache::tier_of(Origin origin) noexcept {
  switch (origin) {
    case Origin::disk:
      return Tier::disk;
    case Origin::layer:
      return Tier::layer;
    case Origin::remote:
      return Tier::remote;
    case Origin::build:
      return Tier::built;
    case Origin::library:
      return Tier::library;
    default:
      return Tier::memory;
  }
}

Result<TieredCache::Obtained> TieredCache::acquire(const Request& request, IfBusy if_busy) {
  const bool waits = if_busy == IfBusy::wait;
  const std::string traced_key = trace_ == nullptr ? std::string() : request.key.digest.hex().substr(0, digits_logged);
  TracedWork lookup(trace_, TraceArea::cache, "lookup");
  lookup.figure("program", request.key.label);
  lookup.figure("key", traced_key);
  lookup.figure("device", request.device.info().id);
  const std::uint64_t start = now_ns();
  const Deadline deadline = Deadline::after(waits ? flight_patience_ : std::chrono::nanoseconds(0));
  bool own = false, late = false;
  const auto work = [&] {
    own = true;
    return obtain(request, if_busy);
  };
  const auto too_late = [&]() -> Result<Obtained> {
    late = true;
    if (!waits) return Obtained{Origin::busy, {}};
    return not_made_in_time(request.key, flight_patience_);
  };
  const ProgramPlace place{request.key.digest, &request.device};
  Result<Obtained> obtained = flights_.run(place, deadline, work, too_late);
  // Another thread, which would not wait, left it to another process.
  while (waits && obtained && !obtained->found()) obtained = flights_.run(place, deadline, work, too_late);
  if (!own && (waits || !late)) counters_.waits.fetch_add(1);
  if (!obtained) {
    counters_.misses.fetch_add(1);
    if (late) {
      counters_.timed_out.fetch_add(1);
      return obtained;
    }
    lookup.figure("answer", "failed");
    log_outcome(request, "failed", start);
    return obtained;
  }
  if (!obtained->found()) return obtained;
  if (!request.ahead) disk_.asked_for(request.key.digest);
  if (!own) {
    obtained->origin = Origin::other_thread;
    obtained->took_ns = 0;
  }
  lookup.figure("answer", own ? to_string(tier_of(obtained->origin)) : "made by another thread");
  count_outcome(request, *obtained, start);
  return obtained;
}

void TieredCache::count_outcome(const Request& request, const Obtained& obtained, std::uint64_t start_ns) {
  switch (obtained.origin) {
    case Origin::memory:
      return;  // the tier has counted it
    case Origin::other_thread:
      counters_.hit(counters_.shared_flights, obtained.recorded_build_ns, now_ns() - start_ns);
      return log_outcome(request, "waited for another thread", start_ns);
    case Origin::disk:
      counters_.hit(counters_.disk_hits, obtained.recorded_build_ns, now_ns() - start_ns);
      break;
    case Origin::layer:
    case Origin::remote:
      shared_->hit(obtained.origin == Origin::layer);
      counters_.saved(obtained.recorded_build_ns, now_ns() - start_ns);
      break;
    default:
      counters_.misses.fetch_add(1);
  }
  log_outcome(request, to_string(tier_of(obtained.origin)), start_ns);
}

void TieredCache::log_outcome(const Request& request, std::string_view what, std::uint64_t since_ns) const {
  if (!log_.wants(LogLevel::debug)) return;
  char ms[32];
  std::snprintf(ms, sizeof ms, "%.3f ms", static_cast<double>(now_ns() - since_ns) / 1e6);
  log_.write(LogLevel::debug, "cache",
             std::string(what) + ": program '" + request.key.label + "' (" +
                 request.key.digest.hex().substr(0, digits_logged) + ") on " + request.device.info().id + ", " + ms);
}

Result<TieredCache::Obtained> TieredCache::obtain(const Request& request, IfBusy if_busy) {
  if (auto held = from_memory(request); held.found()) return held;
  Lookup lookup;
  if (auto stored = from_disk(request, lookup); !stored || stored->found()) return stored;
  if (auto shared = from_shared(request, lookup); !shared || shared->found()) return shared;
  if (auto failure = earlier_failure(request)) return *failure;
  const BuildLease lease = acquire_lease(request, lookup, if_busy);
  if (lease.state == LeaseState::busy) return Obtained{Origin::busy, {}};
  if (lease.state == LeaseState::published) {
    if (auto stored = from_disk(request, lookup); !stored || stored->found()) return stored;
  }
  auto shared = from_lease_of_machines(request, lookup, if_busy);
  if (!shared || shared->found() || shared->origin == Origin::busy) return shared;
  count_miss(request, lookup);
  auto built = build(request);
  if (!built) return std::move(built).error();
  if (Status status = publish(request, *built); !status.ok()) return status;
  const Origin origin = request.device.info().serializes ? Origin::build : Origin::library;
  return retain(request, origin, std::move(built->program), built->took_ns, built->took_ns);
}

TieredCache::Obtained TieredCache::from_memory(const Request& request) {
  auto held = memory_.get_with_cost(request.key.digest, request.device);
  if (!held) return {};
  return {Origin::memory, ProgramHandle(std::move(held->program)), 0, held->build_ns};
}

std::optional<Status> TieredCache::earlier_failure(const Request& request) {
  auto failure = failed_builds_.find({request.key.digest, &request.device});
  if (failure) counters_.negative_hits.fetch_add(1, std::memory_order_relaxed);
  return failure;
}

BuildLease TieredCache::acquire_lease(const Request& request, const Lookup& lookup, IfBusy if_busy) {
  if (!request.device.info().serializes) return {};
  return disk_.acquire_lease(request.key, request.device, lookup, if_busy);
}

void TieredCache::count_miss(const Request& request, const Lookup& lookup) {
  if (lookup.rejected || disk_.count_known_miss(request.key, request.device)) return;
  const bool had = once_held_.find({request.key.digest, &request.device}).has_value();
  (had ? counters_.evicted : counters_.absent).fetch_add(1, std::memory_order_relaxed);
}

Result<TieredCache::Obtained> TieredCache::from_disk(const Request& request, Lookup& lookup) {
  if (!request.device.info().serializes) return Obtained{};
  const std::uint64_t start = now_ns();
  lookup = disk_.find(request.key, request.device);
  if (!lookup.stored) return Obtained{};
  return load(request, *lookup.stored, Origin::disk, start, lookup);
}

Result<TieredCache::Obtained> TieredCache::load(const Request& request, const StoredProgram& stored, Origin origin,
                                                std::uint64_t start, Lookup& lookup) {
  const LoadGuard guard = disk_.loading(request.key, request.device);
  TracedWork loading(trace_, TraceArea::cache, "load");
  loading.figure("bytes", stored.binary.bytes.size());
  const bool has_driver_files = place_driver_files(stored.binary);
  Result<std::unique_ptr<Program>> program = request.device.load(request.source, stored.binary);
  if (program && has_driver_files) {
    // The driver reads its files at the first dispatch: while the guard says whose they are.
    const Status dispatched = dispatch_nothing(request.device, **program, dispatch_patience_);
    if (dispatched.code == StatusCode::device_lost || dispatched.code == StatusCode::timeout) {
      disk_.refuse(request.key, request.device, dispatched);
      if (origin != Origin::disk) {  // it would be taken again and hang again
        disk_.keep_out_shared(request.key, request.device);
        hung_.remember({request.key.digest, &request.device}, {});
      }
      return device_lost("program '" + request.key.label + "': first dispatch failed: " + dispatched.message +
                         ". The program was removed from the cache, and the next use builds it again");
    }
  }
  if (!program) loading.figure("refused", to_string(program.error().code));
  loading.end();
  if (program) {
    const std::uint64_t took_ns = now_ns() - start;
    disk_.loaded(request.key.digest, took_ns);
    return retain(request, origin, std::move(*program), took_ns, stored.build_ns);
  }
  const StatusCode code = program.error().code;
  lookup.rejected = true;
  // Any other code, such as a lost device, says nothing about the entry; the build reports it again.
  if (code == StatusCode::corrupt || code == StatusCode::unsupported) {
    disk_.refuse(request.key, request.device, program.error());
  }
  return Obtained{};
}

bool TieredCache::takes_shared(const ProgramKey& key, const Device& device) {
  // A program that is suspect or quarantined here is not taken from elsewhere either: its bytes may be the same.
  return shared_ != nullptr && device.info().serializes && !hung_.find({key.digest, &device}) &&
         !disk_.is_set_aside(key, device);
}

Result<TieredCache::Obtained> TieredCache::from_shared(const Request& request, Lookup& lookup) {
  if (!takes_shared(request.key, request.device)) return Obtained{};
  const std::uint64_t start = now_ns();
  if (auto found = shared_->from_layers(request.key, request.device)) {
    auto loaded = load(request, {std::move(found->binary), found->build_ns}, Origin::layer, start, lookup);
    if (!loaded || loaded->found()) return loaded;
    shared_->refused();
  }
  if (const auto found = shared_->from_remotes(request.key, request.device))
    return from_remote(request, *found, lookup);
  return Obtained{};
}

Result<TieredCache::Obtained> TieredCache::from_remote(const Request& request, const SharedProgram& shared,
                                                       Lookup& lookup) {
  const std::uint64_t start = now_ns();
  // Signed with this user's key from now on. Another process may have stored the program meanwhile; its file stays.
  if (!disk_.holds(request.key, request.device)) {
    disk_.store(request.key, request.device, shared.binary, shared.build_ns, DiskTier::MetaTime::at_close);
  }
  auto loaded = load(request, {shared.binary, shared.build_ns}, Origin::remote, start, lookup);
  if (loaded && !loaded->found()) shared_->refused();
  return loaded;
}

Result<TieredCache::Obtained> TieredCache::from_lease_of_machines(const Request& request, Lookup& lookup,
                                                                  IfBusy if_busy) {
  if (!takes_shared(request.key, request.device)) return Obtained{};
  const auto lease = shared_->acquire_lease(request.key, request.device, if_busy == IfBusy::wait);
  if (lease.answer == RemoteTier::LeaseAnswer::busy) return Obtained{Origin::busy, {}};
  if (lease.program) return from_remote(request, *lease.program, lookup);
  return Obtained{};
}

void TieredCache::prefetch(std::span<const ProgramRequest> requests) {
  if (shared_ == nullptr) return;
  std::map<Device*, std::vector<const ProgramKey*>> missing;
  for (const ProgramRequest& request : requests) {
    if (holds_here(*request.key, *request.device) || !takes_shared(*request.key, *request.device)) continue;
    missing[request.device].push_back(request.key);
  }
  for (const auto& [device, keys] : missing) shared_->prefetch(keys, *device);
}

TieredCache::Obtained TieredCache::retain(const Request& request, Origin origin, std::unique_ptr<Program> program,
                                          std::uint64_t took_ns, std::uint64_t build_ns) {
  std::shared_ptr<const Program> shared = std::move(program);
  once_held_.remember({request.key.digest, &request.device}, {});
  adapt_to_pressure();
  if (!memory_.insert(request.key.digest, request.device, {shared, build_ns, took_ns, request.ahead}) &&
      !request.ahead) {
    disk_.used({{request.key.digest, 1}});  // its user holds it alone
  }
  return {origin, ProgramHandle(std::move(shared)), took_ns, build_ns};
}

void TieredCache::trim_memory() noexcept try {
  adapt_to_pressure();
} catch (const std::bad_alloc&) {  // the next call tries again
}

void TieredCache::adapt_to_pressure() {
  const std::uint64_t now = now_ns();
  if (!pressure_.is_due(now)) return;
  memory_.set_bounds({configured_.programs, pressure_.bound(configured_.bytes, memory_.figures().bytes, now)});
}

const Program* TieredCache::find(const Digest& digest, const Device& device, const Guard& guard) noexcept {
  return memory_.find(digest, device, guard);
}

bool TieredCache::holds_here(const ProgramKey& key, const Device& device) {
  return ProgramCache::holds(key, device) || (device.info().serializes && disk_.holds(key, device));
}

bool TieredCache::holds(const ProgramKey& key, const Device& device) noexcept {
  try {
    return holds_here(key, device) || (shared_ != nullptr && device.info().serializes && shared_->holds(key, device));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::vector<KeptProgram> TieredCache::kept(const Device& device, std::size_t most) noexcept {
  try {
    return disk_.kept(device, most);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void TieredCache::record(const ProgramKey& key, const Device& device, const Measurement& measurement,
                         double gflops) noexcept {
  disk_.record(key.digest, measurement, gflops);
  if (!measurement.first_run) return memory_.dispatched_later(key.digest, dispatch_ns(measurement));
  const std::uint64_t built_ns = memory_.dispatched_first(key.digest, dispatch_ns(measurement));
  try {
    if (dispatch_ns(measurement) >= std::max(compiled_ns, built_ns / part_of_build))
      store_late_driver_files(key, device);
    if (shared_ != nullptr) shared_->dispatched(key, device);
  } catch (const std::bad_alloc&) {  // the next process compiles again
  }
}

void TieredCache::store_late_driver_files(const ProgramKey& key, const Device& device) {
  if (driver_folder_ == nullptr || device.info().driver_cache != "adopted" || !disk_.publishes()) return;
  ProgramBinary late;
  Status status = driver_folder_->collect_new(late);
  if (status.ok() && late.driver_files.empty()) return;
  if (status.ok()) {
    Lookup found = disk_.find(key, device);
    if (!found.stored) return;
    const std::size_t files = late.driver_files.size();
    status = add_driver_files(std::move(late), found.stored->binary);
    if (status.ok()) {
      disk_.store(key, device, found.stored->binary, found.stored->build_ns);
      return log_.write(LogLevel::info, "cache",
                        "program '" + key.label + "': the driver compiled at its first dispatch; driver files added: " +
                            std::to_string(files));
    }
  }
  log_.write(LogLevel::info, "cache",
             "program '" + key.label + "': driver files of the first dispatch are not stored: " + status.message);
}

Result<std::uint64_t> TieredCache::persist() noexcept {
  try {
    disk_.used(memory_.take_uses());
    return disk_.persist();
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

Status TieredCache::remove(const ProgramKey& key, const Device& device) noexcept {
  try {
    memory_.remove(key.digest, device);
    return disk_.remove(key, device);
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

void TieredCache::forget(const Device& device) noexcept {
  try {
    memory_.remove_all(device);
  } catch (const std::bad_alloc&) {  // the programs stay until they are evicted
  }
}

CacheStats TieredCache::stats() const noexcept {
  CacheStats stats = counts();
  try {
    stats.bytes_on_disk = disk_.bytes();
  } catch (const std::bad_alloc&) {  // not counted
  }
  return stats;
}

CacheStats TieredCache::counts() const noexcept {
  const MemoryFigures memory = memory_.figures();
  CacheStats stats;
  stats.memory_hits = memory.hits + counters_.shared_flights.load();
  stats.disk_hits = counters_.disk_hits.load();
  stats.misses = counters_.misses.load();
  stats.builds = counters_.builds.load();
  stats.failed_builds = counters_.failed_builds.load();
  stats.prepared = counters_.prepared.load();
  stats.waits = counters_.waits.load();
  stats.evictions = memory.evictions;
  stats.rejected = counters_.rejected();
  stats.programs_in_memory = memory.programs;
  stats.bytes_in_memory = memory.bytes;
  stats.saved_ms = (static_cast<double>(memory.saved_ns) + static_cast<double>(counters_.saved_ns.load())) / 1e6;
  stats.lease_waits = counters_.lease_waits.load();
  stats.lease_wait_ns = counters_.lease_wait_ns.load();
  stats.lease_takeovers = counters_.lease_takeovers.load();
  stats.lease_timeouts = counters_.lease_timeouts.load();
  stats.disk_evictions = counters_.disk_evictions.load();
  stats.negative_hits = counters_.negative_hits.load();
  stats.absent = counters_.absent.load();
  stats.evicted = counters_.evicted.load();
  stats.timed_out = counters_.timed_out.load();
  if (shared_ != nullptr) stats.shared = shared_->counts();
  return stats;
}

Status register_tiered_cache(Registry& registry) {
  return registry.add_cache("core", "tiered", [](const CacheContext& context) -> Result<std::unique_ptr<ProgramCache>> {
    auto cache = TieredCache::create(context);
    if (!cache) return std::move(cache).error();
    return std::unique_ptr<ProgramCache>(std::move(*cache));
  });
}

}  // namespace kiln

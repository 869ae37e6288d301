#include "cache/tiered_cache.hpp"

#include <kiln/clock.hpp>

#include <functional>
#include <new>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

constexpr std::string_view component = "cache";
constexpr double ns_per_ms = 1e6;

Status not_among(std::string_view key, const std::string& asked, std::string_view there_is) {
  return unsupported("cache 'tiered': " + std::string(key) + " '" + asked + "': there is " + std::string(there_is));
}

}  // namespace

Result<std::unique_ptr<ProgramCache>> TieredCache::create(const CacheContext& context) {
  const CacheConfig& config = context.config;
  if (config.policy != "lru") return not_among("policy", config.policy, "'lru'");
  if (config.compression != "zstd" && config.compression != "none") {
    return not_among("compression", config.compression, "'zstd', 'none'");
  }
  return std::unique_ptr<ProgramCache>(std::make_unique<TieredCache>(context));
}

TieredCache::TieredCache(const CacheContext& context)
    : log_(context.log),
      memory_({context.config.max_programs, context.config.max_memory}),
      disk_(context.log, context.config, counters_) {}

TieredCache::~TieredCache() {
  disk_.used(memory_.take_uses());
  disk_.leave_history(counts());
}

Result<Acquired> TieredCache::get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept {
  try {
    return acquire({key, source, device});
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

Result<Acquired> TieredCache::acquire(const Request& request) {
  const std::uint64_t start = now_ns();
  if (auto held = from_memory(request)) {
    counters_.hit(counters_.memory_hits, held->recorded_build_ns, now_ns() - start);
    return std::move(held->acquired);
  }
  auto landing = flights_.run({request.key.digest, &request.device}, [&]() -> Result<Flown> {
    if (auto held = from_memory(request)) return std::move(*held);  // landed since it was missed
    if (auto stored = from_disk(request)) return std::move(*stored);
    return build(request);
  });
  if (!landing.own) counters_.waits.fetch_add(1);
  if (!landing.result) {
    counters_.misses.fetch_add(1);
    return landing.result.error();
  }
  Flown& flown = *landing.result;
  if (!landing.own) flown.acquired = {std::move(flown.acquired.program), Tier::memory, 0};  // made by another's call
  switch (flown.acquired.tier) {
    case Tier::memory:
      counters_.hit(counters_.memory_hits, flown.recorded_build_ns, now_ns() - start);
      break;
    case Tier::disk:
      counters_.hit(counters_.disk_hits, flown.recorded_build_ns, now_ns() - start);
      break;
    default:
      counters_.misses.fetch_add(1);
  }
  return std::move(flown.acquired);
}

std::optional<TieredCache::Flown> TieredCache::from_memory(const Request& request) {
  auto held = memory_.get(request.key.digest, request.device);
  if (!held) return std::nullopt;
  return Flown{{ProgramHandle(std::move(held->program)), Tier::memory, 0}, held->build_ns};
}

std::optional<TieredCache::Flown> TieredCache::from_disk(const Request& request) {
  if (!request.device.info().serializes) return std::nullopt;
  const std::uint64_t start = now_ns();
  const auto stored = disk_.find(request.key, request.device);
  if (!stored) return std::nullopt;
  Result<std::unique_ptr<Program>> program = request.device.load(request.source, stored->binary);
  if (program) return keep(request, std::move(*program), Tier::disk, stored->build_ns, now_ns() - start);
  const StatusCode code = program.error().code;
  // Anything else says nothing about the entry: a lost device answers the build in the same words.
  if (code == StatusCode::corrupt || code == StatusCode::unsupported) {
    disk_.refuse(request.key, request.device, program.error());
  }
  return std::nullopt;
}

Result<TieredCache::Flown> TieredCache::build(const Request& request) {
  (request.device.info().serializes ? counters_.builds : counters_.prepared).fetch_add(1);
  const std::uint64_t start = now_ns();
  Result<std::unique_ptr<Program>> program = request.device.build(request.source);
  if (!program) return program.error();
  const std::uint64_t build_ns = now_ns() - start;
  if (!request.device.info().serializes) return keep(request, std::move(*program), Tier::library, build_ns, build_ns);
  if (const Result<ProgramBinary> binary = request.device.serialize(**program)) {
    disk_.store(request.key, request.device, *binary, build_ns);
  } else {
    log_.write(LogLevel::warning, component,
               "program '" + request.key.label + "' is not stored: " + binary.error().message);
  }
  return keep(request, std::move(*program), Tier::built, build_ns, build_ns);
}

TieredCache::Flown TieredCache::keep(const Request& request, std::unique_ptr<Program> program, Tier tier,
                                     std::uint64_t build_ns, std::uint64_t took_ns) {
  std::shared_ptr<const Program> shared = std::move(program);
  if (!memory_.insert(request.key.digest, request.device, {shared, build_ns})) {
    disk_.used({{request.key.digest, 1}});  // its user keeps it alone
  }
  return {{ProgramHandle(std::move(shared)), tier, took_ns}, build_ns};
}

const Program* TieredCache::find(const Digest& digest, const Guard& guard) noexcept {
  const GuardedProgram found = memory_.find(digest, guard);
  // A probe costs less than the clock that would time it.
  if (found.program != nullptr) counters_.hit(counters_.memory_hits, found.build_ns, 0);
  return found.program;
}

void TieredCache::record(const ProgramKey& key, const Measurement& measurement, double gflops) noexcept {
  disk_.record(key.digest, measurement, gflops);
}

Result<std::uint64_t> TieredCache::persist() noexcept {
  try {
    disk_.used(memory_.take_uses());
    return disk_.persist();
  } catch (const std::bad_alloc&) {
    return unavailable("out of memory");
  }
}

CacheStats TieredCache::stats() const noexcept {
  CacheStats stats = counts();
  stats.bytes_on_disk = disk_.bytes();
  return stats;
}

CacheStats TieredCache::counts() const noexcept {
  const MemoryFigures memory = memory_.figures();
  CacheStats stats;
  stats.memory_hits = counters_.memory_hits.load();
  stats.disk_hits = counters_.disk_hits.load();
  stats.misses = counters_.misses.load();
  stats.builds = counters_.builds.load();
  stats.prepared = counters_.prepared.load();
  stats.waits = counters_.waits.load();
  stats.evictions = memory.evictions;
  stats.rejected = counters_.rejected();
  stats.programs_in_memory = memory.programs;
  stats.bytes_in_memory = memory.bytes;
  stats.saved_ms = static_cast<double>(counters_.saved_ns.load()) / ns_per_ms;
  return stats;
}

std::size_t TieredCache::PlaceHash::operator()(const Place& place) const noexcept {
  return DigestHash{}(place.digest) ^ std::hash<const Device*>{}(place.device);
}

Status register_tiered_cache(Registry& registry) { return registry.add_cache("core", "tiered", &TieredCache::create); }

}  // namespace kiln

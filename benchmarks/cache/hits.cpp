// What a memory hit costs, in nanoseconds of wall time for each lookup over all threads, beside the locked caches that
// a user would write: as many programs as a cache holds by default, or as many as are asked for, keys drawn by Zipf's
// law, on 1 to 32 threads.
//
//   cache_hits [PROGRAMS] [--figures FILE] [--benchmark_filter=…] [--benchmark_repetitions=5]
//
// find: under one Guard for 256 lookups · find_guarded: a Guard for each · handle: get_or_build into a ProgramHandle ·
// job: the same as find, from a conv2d spec by way of the plan memo · peer_onednn: oneDNN's own cache of primitives,
// from a convolution's description to the primitive. Every lookup's answer is compared; oneDNN's must be a primitive of
// the implementation that was made first.
#include "cache/tiered_cache.hpp"
#include "runtime/planner.hpp"

#include "core/cache/synthetic_device.hpp"
#include "figures.hpp"
#include "google_figures.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#if __has_include(<tbb/concurrent_hash_map.h>)
#include <tbb/concurrent_hash_map.h>
#define KILN_HAS_TBB 1
#endif

namespace {

using namespace kiln;

std::size_t programs = CacheConfig{}.max_programs;  // set by main() before anything reads it
constexpr std::size_t draws = 1 << 14;

KernelSpec spec_of(std::size_t number) {
  Conv2dSpec spec;
  spec.c = static_cast<std::int64_t>(number) + 1;
  spec.h = spec.w = 28;
  spec.k = 64;
  spec.r = spec.s = 3;
  return spec;
}

// Which program each lookup asks for: Zipf's law with exponent 1.
const std::vector<std::uint16_t>& order_of(int thread) {
  static const auto orders = [] {
    std::vector<double> weights;
    for (std::size_t i = 1; i <= programs; ++i) weights.push_back(1.0 / static_cast<double>(i));
    std::vector<std::vector<std::uint16_t>> all(32);
    for (std::size_t t = 0; t < all.size(); ++t) {
      std::mt19937_64 random(t + 1);
      std::discrete_distribution<std::uint16_t> zipf(weights.begin(), weights.end());
      for (std::size_t i = 0; i < draws; ++i) all[t].push_back(zipf(random));
    }
    return all;
  }();
  return orders[static_cast<std::size_t>(thread) % orders.size()];
}

// The cache under test, filled; made once, before any thread measures.
struct Filled {
  test::SyntheticDevice device;
  std::unique_ptr<ProgramCache> cache;
  PlanMemo memo;
  std::vector<ProgramKey> keys;
  std::vector<KernelSource> sources;
  std::vector<KernelSpec> specs;  // as a request holds them
  std::vector<const Program*> expected;

  Filled() {
    CacheContext context;
    context.config.max_programs = 2 * programs;
    context.config.max_memory = 1u << 30;
    cache = std::move(TieredCache::create(context).value());
    for (std::size_t i = 0; i < programs; ++i) {
      KernelSource source;
      source.dialect = Dialect::glsl;
      source.text = "program " + std::to_string(i);
      source.entry = "main";
      keys.push_back(key_of(source, device.info(), "bench"));
      specs.push_back(spec_of(i));
      memo.insert(
          specs.back(), device, 0,
          std::make_shared<const KeyedPlan>(KeyedPlan{std::make_shared<const KernelPlan>(), {}, {keys.back()}}));
      expected.push_back(cache->get_or_build(keys.back(), source, device)->program.get());
      sources.push_back(std::move(source));
    }
  }
};

Filled& filled() {
  static Filled all;
  return all;
}

void count(benchmark::State& state, bool right) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(draws));
  if (!right) state.SkipWithError("a lookup was answered with another program");
}

// Runs `lookup(number) -> const Program*` over this thread's draws.
template <class Lookup>
void each_draw(benchmark::State& state, const Lookup& lookup) {
  const Filled& all = filled();
  const auto& order = order_of(state.thread_index());
  bool right = true;
  for ([[maybe_unused]] auto turn : state) {
    for (const std::uint16_t number : order) right &= lookup(number) == all.expected[number];
  }
  count(state, right);
}

// The same with a Guard for 256 lookups.
template <class Lookup>
void each_draw_guarded(benchmark::State& state, const Lookup& lookup) {
  Filled& all = filled();
  const auto& order = order_of(state.thread_index());
  bool right = true;
  for ([[maybe_unused]] auto turn : state) {
    for (std::size_t at = 0; at < draws; at += 256) {
      const Guard guard = all.cache->enter();
      for (std::size_t i = at; i < at + 256; ++i) right &= lookup(order[i], guard) == all.expected[order[i]];
    }
  }
  count(state, right);
}

void find(benchmark::State& state) {
  Filled& all = filled();
  each_draw_guarded(state, [&](std::uint16_t number, const Guard& guard) {
    return all.cache->find(all.keys[number].digest, all.device, guard);
  });
}

void find_guarded(benchmark::State& state) {
  Filled& all = filled();
  each_draw(state, [&](std::uint16_t number) {
    const Guard guard = all.cache->enter();
    return all.cache->find(all.keys[number].digest, all.device, guard);
  });
}

void handle(benchmark::State& state) {
  Filled& all = filled();
  each_draw(state, [&](std::uint16_t number) {
    const auto acquired = all.cache->get_or_build(all.keys[number], all.sources[number], all.device);
    return acquired->program.get();
  });
}

void job(benchmark::State& state) {
  Filled& all = filled();
  each_draw_guarded(state, [&](std::uint16_t number, const Guard& guard) {
    const KeyedPlan* const keyed = all.memo.find(all.specs[number], all.device, 0);
    return all.cache->find(keyed->passes.front().digest, all.device, guard);
  });
}

// The peers: what a user would write around the same programs, keyed by the same digests, answering shared pointers'
// targets under their locks.
class LockedLru {
 public:
  void put(const Digest& key, const Program* program) {
    order_.push_front({key, program});
    table_[key] = order_.begin();
  }
  const Program* get(const Digest& key) {
    const std::lock_guard lock(mutex_);
    const auto at = table_.find(key);
    if (at == table_.end()) return nullptr;
    order_.splice(order_.begin(), order_, at->second);
    return at->second->second;
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<Digest, const Program*>> order_;
  std::unordered_map<Digest, std::list<std::pair<Digest, const Program*>>::iterator, DigestHash> table_;
};

class ShardedClock {
 public:
  void put(const Digest& key, const Program* program) { shard_of(key).table[key] = {program, false}; }
  const Program* get(const Digest& key) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.table.find(key);
    if (at == shard.table.end()) return nullptr;
    at->second.used = true;
    return at->second.program;
  }

 private:
  struct Held {
    const Program* program;
    bool used;
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<Digest, Held, DigestHash> table;
  };
  Shard& shard_of(const Digest& key) { return shards_[(DigestHash{}(key) >> 32) % 16]; }
  std::array<Shard, 16> shards_;
};

class SharedMutexMap {
 public:
  void put(const Digest& key, const Program* program) { table_[key] = program; }
  const Program* get(const Digest& key) {
    const std::shared_lock lock(mutex_);
    const auto at = table_.find(key);
    return at == table_.end() ? nullptr : at->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<Digest, const Program*, DigestHash> table_;
};

#ifdef KILN_HAS_TBB
class TbbMap {
 public:
  void put(const Digest& key, const Program* program) { table_.insert({key, program}); }
  const Program* get(const Digest& key) {
    Table::const_accessor at;
    return table_.find(at, key) ? at->second : nullptr;
  }

 private:
  struct Compare {
    static std::size_t hash(const Digest& key) { return DigestHash{}(key); }
    static bool equal(const Digest& a, const Digest& b) { return a == b; }
  };
  using Table = tbb::concurrent_hash_map<Digest, const Program*, Compare>;
  Table table_;
};
#endif

template <class Cache>
void peer(benchmark::State& state) {
  static Cache& cache = [&]() -> Cache& {
    static Cache made;
    for (std::size_t i = 0; i < programs; ++i) made.put(filled().keys[i].digest, filled().expected[i]);
    return made;
  }();
  each_draw(state, [&](std::uint16_t number) { return cache.get(filled().keys[number].digest); });
}

// What `job` does, by a library that keeps its own compiled convolutions: described, looked up, made into a handle.
class OnednnPrimitives {
 public:
  OnednnPrimitives() {
    dnnl::set_primitive_cache_capacity(static_cast<int>(2 * programs));
    for (std::size_t i = 0; i < programs; ++i) first_.push_back(described(i).impl_info_str());
    for (std::size_t i = 0; i < programs; ++i) (void)dnnl::convolution_forward(described(i));
  }
  bool get(std::size_t number) const {
    const auto description = described(number);
    const dnnl::convolution_forward primitive(description);
    return primitive.get() != nullptr && first_[number] == description.impl_info_str();
  }

 private:
  dnnl::convolution_forward::primitive_desc described(std::size_t number) const {
    using Tag = dnnl::memory::format_tag;
    constexpr auto f32 = dnnl::memory::data_type::f32;
    const Conv2dSpec spec = std::get<Conv2dSpec>(spec_of(number));
    return {{dnnl::prop_kind::forward_inference,
             dnnl::algorithm::convolution_direct,
             {{spec.n, spec.c, spec.h, spec.w}, f32, Tag::any},
             {{spec.k, spec.c, spec.r, spec.s}, f32, Tag::any},
             {{spec.n, spec.k, spec.out_h(), spec.out_w()}, f32, Tag::any},
             {spec.stride_y, spec.stride_x},
             {spec.pad_y, spec.pad_x},
             {spec.pad_y, spec.pad_x}},
            engine_};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::vector<std::string> first_;
};

void peer_onednn(benchmark::State& state) {
  static const OnednnPrimitives primitives;
  each_draw(state, [&](std::uint16_t number) { return primitives.get(number) ? filled().expected[number] : nullptr; });
}

void threads(benchmark::internal::Benchmark* bench) {
  for (const int count : {1, 2, 8, 32}) bench->Threads(count);
  bench->UseRealTime();
}

BENCHMARK(find)->Apply(threads);
BENCHMARK(find_guarded)->Apply(threads);
BENCHMARK(handle)->Apply(threads);
BENCHMARK(job)->Apply(threads);
BENCHMARK_TEMPLATE(peer, LockedLru)->Apply(threads);
BENCHMARK_TEMPLATE(peer, ShardedClock)->Apply(threads);
BENCHMARK_TEMPLATE(peer, SharedMutexMap)->Apply(threads);
BENCHMARK(peer_onednn)->Apply(threads);
#ifdef KILN_HAS_TBB
BENCHMARK_TEMPLATE(peer, TbbMap)->Apply(threads);
#endif

struct Compared {
  const char* ours;
  const char* id;
  const char* name;
  const char* theirs;  // nullptr: nobody
  const char* peer;
  std::optional<bench::Target> target;  // on one thread
};

// What each benchmark is told as. The targets are those of a cache of the default size.
std::vector<Compared> compared() {
  using Of = bench::Target::Of;
  return {
      {"find", "cache.hit.find/mutex_lru", "memory hit, a Guard for 256", "peer<LockedLru>", "mutex and list", {}},
      {"find", "cache.hit.find/sharded_clock", "memory hit, a Guard for 256", "peer<ShardedClock>",
       "16 shards, mutex, clock bit", bench::Target{Of::ratio, 3}},
      {"find",
       "cache.hit.find/shared_mutex",
       "memory hit, a Guard for 256",
       "peer<SharedMutexMap>",
       "shared_mutex",
       {}},
#ifdef KILN_HAS_TBB
      {"find", "cache.hit.find/tbb", "memory hit, a Guard for 256", "peer<TbbMap>", "oneTBB's concurrent_hash_map", {}},
#endif
      {"find", "cache.hit.find", "memory hit, a Guard for 256", nullptr, "", bench::Target{Of::kiln, 7}},
      {"find_guarded", "cache.hit.guard", "memory hit, a Guard for each", nullptr, "", {}},
      {"handle", "cache.hit.handle", "memory hit, a handle that pins", nullptr, "", bench::Target{Of::kiln, 25}},
      {"job",
       "cache.hit.job/onednn",
       "memory hit, from a convolution's description",
       "peer_onednn",
       "oneDNN's cache of primitives",
       {}},
  };
}

void tell(const bench::GoogleFigures& ran, bench::FigureFile& file) {
  const auto nanoseconds = [&](const std::string& benchmark, int count) {
    std::vector<double> each;
    const auto* rates = ran.samples(benchmark + "@" + std::to_string(count), "items_per_second");
    for (const double rate : rates != nullptr ? *rates : std::vector<double>()) each.push_back(1e9 / rate);
    return each;
  };
  for (const int count : {1, 2, 8, 32}) {
    for (const Compared& each : compared()) {
      bench::Figure figure;
      figure.id = each.id;
      figure.name = each.name;
      figure.unit = "ns";
      figure.kiln = nanoseconds(each.ours, count);
      if (each.theirs != nullptr) figure.peer = bench::Peer{each.peer, nanoseconds(each.theirs, count)};
      if (figure.kiln.empty() || (figure.peer && figure.peer->samples.empty())) continue;  // filtered out
      if (count == 1) figure.target = each.target;
      figure.verified = true;  // in the loops: another answer ends the benchmark
      figure.group = std::to_string(count) + (count == 1 ? " thread" : " threads");
      file.add(std::move(figure));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (argc == 2 && std::strtoul(argv[1], nullptr, 10) > 0 && std::strtoul(argv[1], nullptr, 10) <= 65535) {
    programs = std::strtoul(argv[1], nullptr, 10);
    --argc;
  }
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  filled();
  bench::GoogleFigures ran;
  benchmark::RunSpecifiedBenchmarks(&ran);
  if (ran.failed()) return 1;
  tell(ran, file);
  const dnnl_version_t* onednn = dnnl::version();
  file.version("onednn", std::to_string(onednn->major) + "." + std::to_string(onednn->minor) + "." +
                             std::to_string(onednn->patch));
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cache_hits: %s\n", error.what());
  return 1;
}

// What the cache does, counted rather than timed: builds, allocations, system calls. The same on every machine, so that
// a change shows.
//
// usage: cache_counts [--figures FILE]
// Device and programs are made up (core/cache/synthetic_device.hpp). Every program that is answered is compared with
// its source. Allocations and system calls are those of the calling thread's path: of the second and later hits, when
// what is made once is made.
#include "cache/tiered_cache.hpp"
#include "figures.hpp"
#include "places.hpp"

#include "core/cache/synthetic_device.hpp"
#include "support/allocation_count.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr int programs = 100;
constexpr int looks = 5;

template <class Value>
Value need(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

// One process's view of a folder: device, cache, and what it asks for.
class Process {
 public:
  Process(const fs::path& folder, bool read_only) {
    CacheContext context;
    context.config.directory = folder / "cache";
    context.config.key_file = folder / "key";
    context.config.max_programs = 2 * programs;
    context.config.read_only = read_only;
    cache_ = need(TieredCache::create(context));
    for (int i = 0; i < programs; ++i) {
      KernelSource source;
      source.dialect = Dialect::glsl;
      source.text = "program " + std::to_string(i) + std::string(8000, ' ');
      keys_.push_back(key_of(source, device.info(), "counts"));
      sources_.push_back(std::move(source));
    }
  }

  // Acquires it, and compares what was answered and by whom.
  void take(std::size_t number, Tier tier) {
    const auto acquired = need(cache_->get_or_build(keys_[number], sources_[number], device));
    if (acquired.tier != tier) throw std::runtime_error("answered by " + std::string(to_string(acquired.tier)));
    compare(number, acquired.program.get());
  }
  void find(std::size_t number) {
    const Guard guard = cache_->enter();
    compare(number, cache_->find(keys_[number].digest, device, guard));
  }
  void take_all(Tier tier) {
    for (std::size_t i = 0; i < keys_.size(); ++i) take(i, tier);
  }

  test::SyntheticDevice device;

 private:
  void compare(std::size_t number, const Program* program) {
    if (program == nullptr) throw std::runtime_error("a hit answered nothing");
    if (static_cast<const test::SyntheticProgram&>(*program).text() != sources_[number].text) {
      throw std::runtime_error("a hit answered another program");
    }
  }
  std::unique_ptr<TieredCache> cache_;
  std::vector<ProgramKey> keys_;
  std::vector<KernelSource> sources_;
};

bench::Figure figure(const std::string& id, const std::string& name, const char* unit, std::vector<double> counts) {
  bench::Figure made;
  made.id = "cache." + id;
  made.name = name;
  made.unit = unit;
  made.kiln = std::move(counts);
  made.verified = true;
  made.stable = true;
  return made;
}

void count_builds(const fs::path& folder, bench::FigureFile& file) {
  Process first(folder, false);
  first.take_all(Tier::built);
  first.take_all(Tier::memory);
  file.add(figure("builds.first", "builds of 100 programs, asked for twice", "builds", {double(first.device.builds)}));
  Process second(folder, false);
  second.take_all(Tier::disk);
  second.take_all(Tier::memory);
  file.add(
      figure("builds.second", "likewise, a later cache on the same folder", "builds", {double(second.device.builds)}));
  file.add(figure("loads.second", "programs that it loads", "loads", {double(second.device.loads)}));
}

template <class Work>
std::vector<double> allocations_of(const Work& work) {
  std::vector<double> counts;
  for (int i = 0; i < looks; ++i) {
    const std::uint64_t before = support::allocation_count();
    work();
    counts.push_back(static_cast<double>(support::allocation_count() - before));
  }
  return counts;
}

void count_allocations(const fs::path& folder, bench::FigureFile& file) {
  if (!support::counts_allocations) return;
  Process process(folder, true);
  process.take_all(Tier::disk);
  process.find(7);
  file.add(figure("allocations.find", "allocations of a memory hit under a Guard", "allocations",
                  allocations_of([&] { process.find(7); })));
  file.add(figure("allocations.handle", "allocations of a memory hit into a handle", "allocations",
                  allocations_of([&] { process.take(7, Tier::memory); })));
}

void count_calls(const fs::path& folder, bench::FigureFile& file) {
  std::string why;
  const auto counts = bench::count_system_calls(
      [&](const bench::SystemCallSpan& span) {
        Process process(folder, true);
        process.take(0, Tier::disk);
        process.find(0);
        const auto count = [&](const auto& work) {
          span.begin();
          work();
          span.end();
        };
        for (int i = 0; i < looks; ++i) count([&] { process.find(0); });
        for (int i = 0; i < looks; ++i) count([&] { process.take(0, Tier::memory); });
        for (std::size_t i = 0; i < looks; ++i) count([&] { process.take(10 + i, Tier::disk); });
      },
      why);
  if (!counts) {
    file.skip(why);
    return;
  }
  if (counts->size() != 3 * looks) throw std::runtime_error("spans: " + std::to_string(counts->size()));
  const auto part = [&](int which) {
    const auto from = counts->begin() + which * looks;
    return std::vector<double>(from, from + looks);
  };
  file.add(figure("calls.find", "system calls of a memory hit under a Guard", "calls", part(0)));
  file.add(figure("calls.handle", "system calls of a memory hit into a handle", "calls", part(1)));
  file.add(figure("calls.disk", "system calls of a disk hit, read_only", "calls", part(2)));
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  if (argc > 1) throw std::runtime_error(std::string(argv[1]) + ": expected --figures FILE or nothing");
  const bench::TemporaryFolder folder("kiln-counts");
  count_builds(folder.path(), file);
  count_calls(folder.path(), file);
  count_allocations(folder.path(), file);
  file.print();
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cache_counts: %s\n", error.what());
  return 1;
}

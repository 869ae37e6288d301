// expected_stalls: which of the programs on disk a run that takes some in ahead should take in first.
#include "cache/manifest.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace kiln::test {
namespace {

EntryMeta loaded(double load_ms, double warm_dispatch_ms, std::uint64_t runs = 1, double first_use_ms = 0) {
  EntryMeta meta;
  meta.build_ms = 20 * load_ms;
  meta.first_dispatch_ms = 20 * warm_dispatch_ms;
  meta.load_ms = load_ms;
  meta.warm_dispatch_ms = warm_dispatch_ms;
  meta.runs = runs;
  meta.first_use_ms = first_use_ms;
  return meta;
}

// A service whose runs were recorded: some programs it needs as it starts, some later, some once in its life.
struct Service {
  struct OfProgram {
    double stall_ms;
    double chance;        // that a run uses it
    double first_use_ms;  // into a run, about
  };
  std::vector<OfProgram> programs;
  std::vector<EntryMeta> metas;
  std::mt19937_64 random;

  explicit Service(std::uint64_t seed) : random(seed) {
    std::lognormal_distribution<double> stall(0, 0.8);
    std::uniform_real_distribution<double> later(3000, 60000);
    for (int i = 0; i < 40; ++i) programs.push_back({stall(random), 0.95, 50.0 * i});
    for (int i = 0; i < 80; ++i) programs.push_back({stall(random), 0.6, later(random)});
    for (int i = 0; i < 120; ++i) programs.push_back({stall(random), 0.05, later(random)});
    metas.resize(programs.size());
    for (int run = 0; run < 20; ++run) record();
  }

  bool uses(std::size_t program) { return std::bernoulli_distribution(programs[program].chance)(random); }
  double when_ms(std::size_t program) {
    return programs[program].first_use_ms * std::uniform_real_distribution<double>(0.8, 1.0)(random);
  }

  void record() {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (!uses(i)) continue;
      EntryMeta& meta = metas[i];
      const double noise = std::uniform_real_distribution<double>(0.7, 1.4)(random);
      meta.build_ms = 15 * programs[i].stall_ms;
      meta.first_dispatch_ms = 10 * programs[i].stall_ms;
      if (meta.runs != 0) {  // it was built in its first run, and loaded since
        meta.load_ms = 0.4 * programs[i].stall_ms * noise;
        meta.warm_dispatch_ms = 0.6 * programs[i].stall_ms;
      }
      meta.times_used += 1 + random() % 50;
      meta.first_use_ms = meta.runs == 0 ? when_ms(i) : 0.75 * meta.first_use_ms + 0.25 * when_ms(i);
      ++meta.runs;
    }
  }

  // Of what one more run waits for programs in its first two seconds, the share that is spared by taking programs in
  // ahead, in the order of `worth`, for a quarter of the work that all of them are.
  double spared(const std::vector<double>& worth) {
    std::vector<std::size_t> order(programs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return worth[i]; });
    double all = 0;
    for (const OfProgram& program : programs) all += program.stall_ms;
    std::vector<bool> taken(programs.size());
    double work = 0;
    for (const std::size_t i : order) {
      if (metas[i].runs == 0) continue;  // it is not there
      if ((work += programs[i].stall_ms) > all / 4) break;
      taken[i] = true;
    }
    double stalls = 0, removed = 0;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (!uses(i) || when_ms(i) > 2000) continue;
      stalls += programs[i].stall_ms;
      if (taken[i]) removed += programs[i].stall_ms;
    }
    return removed / stalls;
  }
};

TEST_CASE(
    "cache::expected_stall: as long as loading and a warm first dispatch take, in the runs that use it, if soon") {
  const std::vector<EntryMeta> programs = {loaded(2, 3, 10), loaded(2, 3, 5), loaded(2, 3, 10, 2000)};
  const std::vector<double> stalls = expected_stalls(programs);
  CHECK(stalls[0] == Approx(5));
  CHECK(stalls[1] == Approx(2.5));
  CHECK(stalls[2] == Approx(2.5));
  EntryMeta quick = loaded(0.5, 0.5);
  quick.build_ms = 1000;
  CHECK(expected_stalls(std::vector{loaded(2, 3), quick})[1] == Approx(1));
}

TEST_CASE("cache::expected_stall: what was never loaded is expected to be as much dearer to make as the others are") {
  EntryMeta new_one;
  new_one.build_ms = 60;
  new_one.first_dispatch_ms = 40;
  new_one.runs = 1;
  CHECK(expected_stalls(std::vector{loaded(2, 3), new_one})[1] == Approx(5));
  CHECK(expected_stalls(std::vector{loaded(0.01, 0.01), new_one})[1] == Approx(5));
  CHECK(expected_stalls(std::vector{new_one, loaded(2, 3)})[0] == Approx(5));
  CHECK(expected_stalls(std::vector{new_one})[0] == Approx(100));          // nothing says how much
  CHECK(expected_stalls(std::vector{EntryMeta{}, loaded(1, 1)})[0] == 0);  // its .meta was lost
  CHECK(expected_stalls({}).empty());
}

TEST_CASE("cache::expected_stall: nine tenths of the first two seconds' stalls go for a quarter of the work") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Service service(seed);
    std::vector<double> by_making;
    for (const EntryMeta& meta : service.metas) {
      by_making.push_back((meta.build_ms + meta.first_dispatch_ms) * static_cast<double>(meta.times_used));
    }
    INFO("seed " << seed);
    CHECK(service.spared(expected_stalls(service.metas)) >= 0.9);
    CHECK(service.spared(by_making) < 0.9);  // which does not know when: the test can fail
  }
}

}  // namespace
}  // namespace kiln::test

// build_all: every request answered, in its place, and the work shared among threads and among processes.
#include "cache/tiered_cache.hpp"
#include "core/cache/process/builds_at_once.hpp"
#include "core/cache/process/shared.hpp"
#include "core/cache/rendezvous.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace kiln::test {
namespace {

// Requests for `count` programs, with what they borrow.
struct Wanted {
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  std::vector<ProgramRequest> requests;

  Wanted(int count, SyntheticDevice& device) {
    for (int i = 0; i < count; ++i) {
      sources.push_back(source_of("program " + std::to_string(i)));
      keys.push_back(key_of(sources.back(), device.info(), "label"));
    }
    for (std::size_t i = 0; i < keys.size(); ++i) requests.push_back({&keys[i], &sources[i], &device});
  }
};

// Empty where each answer is the program that was asked for.
std::string fault_of(const std::vector<Result<Acquired>>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) return answers[i].error().text();
    if (text_of(*answers[i]) != "program " + std::to_string(i)) return "answer " + std::to_string(i) + " is another's";
  }
  return {};
}

TEST_CASE("cache::build_all: built in the order asked for, answered in it, failures in their places") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  std::vector<std::string> order;
  device.on_build = [&](const KernelSource& source) {
    order.push_back(source.text);
    device.fail_builds = source.text == "program 1";
  };
  const Wanted wanted(3, device);
  const auto answers = build_all(*cache, wanted.requests);
  CHECK(order == std::vector<std::string>{"program 0", "program 1", "program 2"});
  REQUIRE(answers.size() == 3);
  CHECK(text_of(*answers[0]) == "program 0");
  CHECK_FALSE(answers[1]);
  CHECK(text_of(*answers[2]) == "program 2");
  CHECK(build_all(*cache, {}).empty());
}

TEST_CASE("cache::build_all: its threads build at one time, each program once, also where one is asked for twice") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  Rendezvous all(3);
  std::atomic<int> met{0};
  device.on_build = [&](const KernelSource&) {
    if (device.builds <= 3) met += all.meet() ? 1 : 0;
  };
  const Wanted wanted(40, device);
  std::vector<ProgramRequest> twice = wanted.requests;
  twice.insert(twice.end(), wanted.requests.begin(), wanted.requests.end());
  const auto answers = build_all(*cache, twice, 3);
  CHECK(met == 3);
  CHECK(device.builds == 40);
  REQUIRE(answers.size() == 80);
  CHECK(fault_of({answers.begin(), answers.begin() + 40}) == "");
  CHECK(fault_of({answers.begin() + 40, answers.end()}) == "");
}

TEST_CASE("cache::build_all: nothing more is begun when whoever is told says so, or throws") {
  const bool throws = GENERATE(false, true);
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  const Wanted wanted(4, device);
  std::vector<std::size_t> told;
  build_all(*cache, wanted.requests, 1, [&](std::size_t request, const Result<Acquired>& answer) {
    CHECK(answer);
    told.push_back(request);
    if (throws && told.size() == 2) throw std::runtime_error("enough");
    return told.size() != 2;
  });
  CHECK(told == std::vector<std::size_t>{0, 1});
  CHECK(device.builds == 2);
}

TEST_CASE("cache::build_all: what another thread builds is passed over until nothing else is free") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  const Wanted wanted(3, device);
  const auto becomes = [](const std::atomic<bool>& flag) {
    for (int i = 0; i < 4000 && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return flag.load();
  };
  std::atomic<bool> zero_begun{false}, one_begun{false}, one_told{false}, two_told{false}, one_built{false};
  std::atomic<int> in_time{0};
  // The first is built until the second is told, and the second until the third is.
  device.on_build = [&](const KernelSource& source) {
    if (source.text == "program 0") zero_begun = true, in_time += becomes(one_told) ? 1 : 0;
    if (source.text == "program 1") one_begun = true, in_time += becomes(two_told) ? 1 : 0;
  };
  std::thread zero([&] { static_cast<void>(cache->get_or_build(wanted.requests[0])); });
  std::thread one([&] {
    static_cast<void>(cache->get_or_build(wanted.requests[1]));
    one_built = true;
  });
  CHECK(becomes(zero_begun));
  CHECK(becomes(one_begun));
  std::vector<std::size_t> told;
  build_all(*cache, wanted.requests, 1, [&](std::size_t request, const Result<Acquired>& answer) {
    CHECK(answer);
    told.push_back(request);
    if (request == 1) one_told = true;
    if (request == 2) two_told = true, in_time += becomes(one_built) ? 1 : 0;
    return true;
  });
  one_told = two_told = true;
  zero.join();
  one.join();
  CHECK(told == std::vector<std::size_t>{2, 1, 0});
  CHECK(in_time == 3);
  CHECK(device.builds == 3);
}

TEST_CASE("cache::build_all: two processes that start on nothing build at one time") {
  Workplace place;
  Shared<BuildsAtOnce> both;
  const auto build = [&]() -> std::string {
    SyntheticDevice device;
    device.on_build = [&](const KernelSource&) { both->build(std::chrono::milliseconds(5)); };
    const auto cache = place.open();
    const Wanted wanted(40, device);
    return fault_of(build_all(*cache, wanted.requests));
  };
  Child first(build);
  Child second(build);
  CHECK(first.wait().said == "");
  CHECK(second.wait().said == "");
  CHECK(both->builds == 40);
  CHECK(both->most == 2);
}

TEST_CASE("cache::build_all: eight processes, 100 programs: each is built once") {
  Workplace place;
  Shared<std::atomic<int>> builds;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(std::make_unique<Child>([&, i]() -> std::string {
      SyntheticDevice device;
      device.on_build = [&](const KernelSource&) {
        ++*builds;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      };
      const auto opened = place.open({std::chrono::hours(1)});
      TieredCache& cache = *opened;
      const Wanted wanted(100, device);
      std::string fault = fault_of(build_all(cache, wanted.requests, i % 2 == 0 ? 1 : 2));
      if (fault.empty() && cache.stats().lease_timeouts != 0) fault = "did not wait";
      return fault;
    }));
  }
  for (auto& child : children) CHECK(child->wait().said == "");
  CHECK(*builds == 100);
  SyntheticDevice device;
  const auto cache = place.open();
  const Wanted wanted(100, device);
  CHECK(fault_of(build_all(*cache, wanted.requests)) == "");
  CHECK(device.builds == 0);
  CHECK(place.log.warnings().empty());
}

}  // namespace
}  // namespace kiln::test

#include "reference/summation.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

using kiln::reference::parallel_for;

TEST_CASE("parallel_for: every task once, whatever the number of threads", "[reference]") {
  for (const unsigned threads : {0u, 1u, 2u, 7u}) {
    std::vector<std::atomic<int>> runs(1000);
    parallel_for(1000, threads, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const auto& run : runs) REQUIRE(run == 1);
  }
  parallel_for(0, 4, [](std::int64_t) { FAIL("there is no task"); });
}

TEST_CASE("parallel_for: a task's exception comes out, after the others have stopped", "[reference]") {
  std::atomic<int> running{0};
  const auto task = [&](std::int64_t i) {
    ++running;
    struct Leave {
      std::atomic<int>& count;
      ~Leave() { --count; }
    } leave{running};
    if (i == 50) throw std::runtime_error("task 50");
  };
  CHECK_THROWS_WITH(parallel_for(100, 3, task), "task 50");
  CHECK(running == 0);
}

#include "onednn/layouts/choice.hpp"

#include <catch2/catch.hpp>

namespace kiln::cpu {
namespace {

constexpr std::chrono::nanoseconds budget{60'000};

// Candidates with a usual time and another one at their first run.
class Race {
 public:
  struct Runner {
    std::uint64_t first_ns = 0, usual_ns = 0;
    int runs = 0;
  };
  explicit Race(std::vector<Runner> runners) : runners_(std::move(runners)) {}
  Choice choose() {
    return choose_fastest(runners_.size(), budget, [this](std::size_t i) {
      const std::uint64_t took = runners_[i].runs++ == 0 ? runners_[i].first_ns : runners_[i].usual_ns;
      spent_ns_ += took;
      return took;
    });
  }
  int runs(std::size_t i) const { return runners_[i].runs; }
  std::uint64_t spent_ns() const { return spent_ns_; }

 private:
  std::vector<Runner> runners_;
  std::uint64_t spent_ns_ = 0;
};

}  // namespace

TEST_CASE("choice: the fastest by its usual time, also where its first run was slow") {
  Race race({{2900, 100}, {300, 200}, {300, 300}});
  CHECK(race.choose().fastest == 0);
  Race later({{100, 100}, {2900, 50}});
  CHECK(later.choose().fastest == 1);
}

TEST_CASE("choice: the first wins a tie") {
  CHECK(Race({{102, 102}, {100, 100}}).choose().fastest == 0);
  CHECK(Race({{110, 110}, {100, 100}}).choose().fastest == 1);
}

TEST_CASE("choice: who is far behind leaves, and the budget ends the race") {
  Race race({{100, 100}, {1000, 1000}});
  CHECK(race.choose().fastest == 0);
  CHECK(race.runs(1) == 2);
  CHECK(race.spent_ns() < 60'000);
  Race even({{3000, 3000}, {2999, 2999}, {2998, 2998}});
  even.choose();
  CHECK(even.spent_ns() >= 60'000);
  CHECK(even.spent_ns() < 70'000);
}

TEST_CASE("choice: a long first run is not repeated at once, and who never ran cannot win") {
  Race race({{50'000, 50'000}, {50'000, 50'000}, {50'000, 50'000}, {1, 1}});
  const Choice choice = race.choose();
  CHECK(race.runs(0) == 1);
  CHECK(race.runs(3) == 0);
  CHECK(choice.typical_ns[3] == Choice::not_timed);
  CHECK(choice.fastest != 3);
}

}  // namespace kiln::cpu

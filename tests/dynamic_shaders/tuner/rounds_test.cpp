#include "dynamic_shaders/tuner/rounds.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

struct Field {
  std::deque<Entrant> entrants;
  std::vector<Entrant*> meeting;

  Entrant& add(const std::string& variant, std::vector<std::uint64_t> rounds_ns) {
    Entrant& entrant = entrants.emplace_back();
    entrant.record.variant = variant;
    entrant.rounds_ns = std::move(rounds_ns);
    meeting.push_back(&entrant);
    return entrant;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entrant* entrant : meeting) names.push_back(entrant->record.variant);
    return names;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("rounds: what a round is like has no say in the order") {
  Field field;  // `a` is 2 % faster in each round, and the rounds differ by four times as much and more
  field.add("b", {100, 300, 110, 250, 90, 102});
  field.add("a", {98, 294, 108, 245, 88, 100});
  rank(field.meeting);
  CHECK(field.names() == Names{"a", "b"});
}

TEST_CASE("rounds: who left has no say in the order of those that stayed") {
  // Beside slow ones x and y look fast, beside each other not: a median over both scales would fall between the slowest
  // of the first and the fastest of the last rounds.
  Field field;
  field.add("x", {900, 900, 900, 1000, 1000, 1000});
  field.add("y", {890, 905, 905, 990, 1005, 1005});
  field.add("slow", {1000, 1000, 1000});
  field.add("slower", {1100, 1100, 1100});
  std::vector<Entrant*> all = field.meeting;
  rank(field.meeting);
  CHECK(field.meeting.size() == 4);
  CHECK(field.names().back() == "slower");
  leave(field.meeting, 2, "none");
  rank(field.meeting);
  CHECK(field.names() == Names{"x", "y"});
}

TEST_CASE("rounds: who failed is left out, the incumbent never for being slow") {
  Field field;
  field.add("a", {10, 10});
  field.add("failed", {1}).runs = false;
  field.add("never met", {});
  field.add("b", {11, 11});
  field.add("old", {30, 30});
  rank(field.meeting);
  CHECK(field.names() == Names{"a", "b", "old"});
  leave(field.meeting, 1, "old");
  CHECK(field.names() == Names{"a", "old"});
  std::vector<Entrant*> nobody;
  rank(nobody);
  CHECK(nobody.empty());
}

TEST_CASE("rounds: a round that was broken off counts for nobody") {
  Field field;
  field.add("a", {10, 10, 90});
  field.add("b", {11, 11});
  rank(field.meeting);
  CHECK(field.names() == Names{"a", "b"});
}

TEST_CASE("rounds: the incumbent goes only for a gain beyond the noise of both") {
  const std::vector<std::uint64_t> steady = {100, 101, 100, 102, 100, 101, 100, 100};
  const auto choice_with = [&](double gain, double noise, double contention, bool won) {
    Field field;
    std::vector<std::uint64_t> old;
    for (std::size_t i = 0; i < steady.size(); ++i) {
      const double factor = gain * (i % 2 == 0 ? 1 : 1 + noise);
      old.push_back(static_cast<std::uint64_t>(static_cast<double>(steady[i]) * factor));
    }
    for (Entrant* entrant : {&field.add("old", old), &field.add("new", steady)}) {
      entrant->record.wall_ns = entrant->rounds_ns;
      entrant->contention.assign(steady.size(), contention);
    }
    rank(field.meeting);
    const RoundsChoice choice = choice_of_rounds(field.meeting, "old", won);
    return std::pair(choice.best->record.variant, choice.decision);
  };
  using Choice = std::pair<std::string, TuneDecision>;
  CHECK(choice_with(1.10, 0, 0, true) == Choice("new", TuneDecision::faster));
  CHECK(choice_with(1.10, 0.1, 0, true) == Choice("new", TuneDecision::faster));
  CHECK(choice_with(1.01, 0, 0, true) == Choice("old", TuneDecision::kept));  // less than 2 %
  CHECK(choice_with(0.90, 0, 0, true) == Choice("old", TuneDecision::kept));
  CHECK(choice_with(0.97, 0.12, 0, true) == Choice("old", TuneDecision::kept));  // slower in every other round
  CHECK(choice_with(1.10, 0, 0.3, true) == Choice("old", TuneDecision::busy));
  CHECK(choice_with(1.10, 0, 0.3, false) == Choice("old", TuneDecision::busy));
  CHECK(choice_with(1.10, 0.8, 0, true) == Choice("old", TuneDecision::busy));  // the ratios spread
  CHECK(choice_with(3.00, 0, 0.3, true) == Choice("old", TuneDecision::busy));
  CHECK(choice_with(3.00, 0, 0.3, false) == Choice("new", TuneDecision::faster));
}

TEST_CASE("rounds: the spread of samples is their middle half, from four samples on") {
  using Samples = std::vector<std::uint64_t>;
  CHECK(spread_of(Samples{10, 20, 30}) == 0);
  CHECK(spread_of(Samples{40, 10, 30, 20}) == 0.4);  // (30 - 20) / 25
  CHECK(spread_of(Samples{0, 0, 0, 0}) == 0);
}

TEST_CASE("rounds: a machine is busy from 20 % of waiting on, or from a quarter of spread between rounds") {
  const auto choice_with = [](std::vector<std::uint64_t> old_ns, double contention, bool alone) {
    Field field;
    field.add("old", std::move(old_ns));
    if (!alone) field.add("new", std::vector<std::uint64_t>(8, 128));
    for (Entrant* entrant : field.meeting) {
      entrant->record.wall_ns = entrant->rounds_ns;
      entrant->contention.assign(8, contention);
    }
    rank(field.meeting);
    RoundsChoice choice = choice_of_rounds(field.meeting, "old", true);
    choice.best = nullptr;  // it ends with the field
    return choice;
  };
  const std::vector<std::uint64_t> steady(8, 128);
  for (const bool alone : {false, true}) {
    CAPTURE(alone);
    CHECK(choice_with(steady, 0.2, alone).busy);
    CHECK(choice_with(steady, 0.2, alone).contention == 0.2);
    CHECK_FALSE(choice_with(steady, 0.19, alone).busy);
    CHECK(choice_with(steady, 0.19, alone).contention == 0.19);
  }
  // The middle half of the rounds, as shares of the other's 128: from 7/8 to 9/8 at the most.
  const RoundsChoice wide = choice_with({112, 112, 112, 128, 128, 144, 144, 144}, 0, false);
  CHECK(wide.spread == 0.25);
  CHECK(wide.busy);
  CHECK(wide.decision == TuneDecision::busy);
  const RoundsChoice narrow = choice_with({112, 112, 112, 128, 128, 143, 144, 144}, 0, false);
  CHECK(narrow.spread < 0.25);
  CHECK_FALSE(narrow.busy);
  CHECK(narrow.decision == TuneDecision::kept);
}

}  // namespace kiln::dynamic_shaders

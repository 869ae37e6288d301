#include "dynamic_shaders/tuner/rounds.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
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

}  // namespace kiln::dynamic_shaders

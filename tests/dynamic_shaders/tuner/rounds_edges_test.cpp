// Votes on what is right, and the figures of rounds at their bounds: what just suffices for a change, and what does
// not.
#include "dynamic_shaders/tuner/rounds.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

using Times = std::vector<std::uint64_t>;

// So many variants "v0", "v1", ..., each in a group by its number.
template <class GroupOf>
std::vector<Vote> votes_of(std::size_t count, const GroupOf& group_of) {
  std::vector<Vote> votes;
  for (std::size_t i = 0; i < count; ++i) votes.push_back({"v" + std::to_string(i), group_of(i)});
  return votes;
}

std::string refused_vote(const std::vector<Vote>& votes) {
  const auto agreement = agreement_of(votes);
  REQUIRE_FALSE(agreement.has_value());
  CHECK(agreement.error().code == StatusCode::unavailable);
  return agreement.error().message;
}

Entrant entrant_of(const std::string& variant, Times rounds_ns, Times wall_ns, std::vector<double> contention = {}) {
  Entrant entrant;
  entrant.record.variant = variant;
  entrant.record.wall_ns = std::move(wall_ns);
  entrant.rounds_ns = std::move(rounds_ns);
  entrant.contention = std::move(contention);
  return entrant;
}

// Who is chosen of "old" and "new", whose rounds take these times, and why.
std::string chosen_of(const Times& old_ns, const Times& new_ns, bool won = true, double contention = 0) {
  Entrant old = entrant_of("old", old_ns, old_ns, {contention});
  Entrant other = entrant_of("new", new_ns, new_ns, {contention});
  const RoundsChoice choice = choice_of_rounds({&other, &old}, "old", won);
  CHECK(choice.busy == (contention >= 0.2));
  return choice.best->record.variant + " " + std::string(to_string(choice.decision));
}

}  // namespace

TEST_CASE("rounds: the group with more variants than every other is right, and each of the others is told") {
  const auto alone = agreement_of(std::vector<Vote>{{"a", 4}});
  REQUIRE(alone.has_value());
  CHECK(alone->group == 4);
  CHECK(alone->outvoted.empty());
  const auto agreement = agreement_of(std::vector<Vote>{{"a", 1}, {"b", 2}, {"c", 2}, {"d", agrees_with_none}});
  REQUIRE(agreement.has_value());
  CHECK(agreement->group == 2);
  REQUIRE(agreement->outvoted.size() == 2);
  CHECK(agreement->outvoted[0].variant == "a");
  CHECK(agreement->outvoted[0].why == "2 of 4 variants agree with one another and differ from a; set expect to decide");
  CHECK(agreement->outvoted[1].variant == "d");
  CHECK(agreement->outvoted[1].why == "2 of 4 variants agree with one another and differ from d; set expect to decide");
}

TEST_CASE("rounds: where no group is the largest, the largest are told with their variants") {
  const std::string begin = "the outputs of the variants differ, and no group is the largest: ";
  const std::string end = ". No winner is stored; set expect to decide";
  CHECK(refused_vote({{"a", 1}, {"b", 2}}) == begin + "1 of 2 variants (a); 1 of 2 variants (b)" + end);
  CHECK(refused_vote({{"a", 1}, {"b", 2}, {"c", 1}, {"d", 2}, {"e", 3}}) ==
        begin + "2 of 5 variants (a, c); 2 of 5 variants (b, d)" + end);
  CHECK(refused_vote({{"a", 1}, {"b", agrees_with_none}, {"c", agrees_with_none}}) ==
        begin + "2 of 3 variants (b, c)" + end);
}

TEST_CASE("rounds: at most eight variants of a group are named, and eight groups") {
  const std::string eight = "(v0, v1, v2, v3, v4, v5, v6, v7";
  const auto of_none = [](std::size_t) { return agrees_with_none; };
  CHECK_THAT(refused_vote(votes_of(8, of_none)), Catch::Contains("8 of 8 variants " + eight + "). No winner"));
  CHECK_THAT(refused_vote(votes_of(9, of_none)),
             Catch::Contains("9 of 9 variants " + eight + " and 1 more). No winner"));
  CHECK_THAT(refused_vote(votes_of(11, of_none)), Catch::Contains(eight + " and 3 more). No winner"));
  const auto apart = [](std::size_t i) { return static_cast<std::uint32_t>(i + 1); };
  CHECK_THAT(refused_vote(votes_of(8, apart)), Catch::Contains("; 1 of 8 variants (v7). No winner"));
  CHECK_THAT(refused_vote(votes_of(9, apart)), Catch::Contains("; 1 of 9 variants (v7); and 1 more groups. No winner"));
  CHECK_THAT(refused_vote(votes_of(11, apart)), Catch::Contains("(v7); and 3 more groups. No winner"));
}

TEST_CASE("rounds: a gain counts above 2 % at the median, and in each round") {
  const auto gain = [](std::uint64_t old_ns) { return chosen_of(Times(8, old_ns), Times(8, 1000)); };
  CHECK(gain(1020) == "old kept");
  CHECK(gain(1021) == "new faster");
  CHECK(gain(1000) == "old kept");
  Times old_ns(8, 1100);
  old_ns[3] = 1001;
  CHECK(chosen_of(old_ns, Times(8, 1000)) == "new faster");
  old_ns[3] = 1000;  // as fast in one round of eight
  CHECK(chosen_of(old_ns, Times(8, 1000)) == "old kept");
}

TEST_CASE("rounds: on a busy machine only an untuned incumbent goes, for a gain above a half in each round") {
  const auto gain = [](std::uint64_t old_ns, bool won) {
    return chosen_of(Times(8, old_ns), Times(8, 1000), won, 0.2);
  };
  CHECK(gain(1500, false) == "old busy");
  CHECK(gain(1501, false) == "new faster");
  CHECK(gain(1501, true) == "old busy");
  CHECK(gain(9000, true) == "old busy");
  CHECK(gain(900, false) == "old busy");
}

TEST_CASE("rounds: the best run must be faster too, whichever round it was in") {
  Entrant old = entrant_of("old", Times(8, 1100), {1100, 990, 1200});
  Entrant other = entrant_of("new", Times(8, 1000), {1000, 990, 1010});
  CHECK(choice_of_rounds({&other, &old}, "old", true).decision == TuneDecision::kept);
  other.record.wall_ns.back() = 989;
  CHECK(choice_of_rounds({&other, &old}, "old", true).decision == TuneDecision::faster);
  old.record.wall_ns.front() = 989;
  CHECK(choice_of_rounds({&other, &old}, "old", true).decision == TuneDecision::kept);
}

TEST_CASE("rounds: the first of the others is compared, over the rounds that both have") {
  Entrant first = entrant_of("first", {1000, 1000, 1000, 9000}, {1000}),
          second = entrant_of("second", {10, 10, 10}, {10});
  Entrant old = entrant_of("old", {1100, 1100, 1100}, {1100});
  const RoundsChoice choice = choice_of_rounds({&first, &second, &old}, "old", true);
  CHECK(choice.best == &first);
  CHECK(choice.decision == TuneDecision::faster);
  CHECK(choice.contention == 0);
  CHECK(choice.spread == 0);
}

TEST_CASE("rounds: without an incumbent that ran the first serves, and an incumbent that is alone stays") {
  Entrant first = entrant_of("first", {1000}, {1000}, {0.5}), second = entrant_of("second", {900}, {900}, {0.5});
  const RoundsChoice none = choice_of_rounds({&first, &second}, "old", true);
  CHECK(none.best == &first);
  CHECK(none.decision == TuneDecision::faster);
  CHECK(none.busy);
  CHECK(none.contention == 0.5);
  const RoundsChoice alone = choice_of_rounds({&first}, "first", true);
  CHECK(alone.best == &first);
  CHECK(alone.decision == TuneDecision::kept);
}

TEST_CASE("rounds: contention is the middle of all rounds of all, the upper one of two") {
  Entrant old = entrant_of("old", {1000}, {1000}, {0.01, 0.02}), other = entrant_of("new", {1000}, {1000}, {0.03, 0.9});
  CHECK(choice_of_rounds({&old, &other}, "old", true).contention == 0.03);
  Entrant third = entrant_of("third", {1000}, {1000}, {0.04});
  CHECK(choice_of_rounds({&old, &other, &third}, "old", true).contention == 0.03);
  third.contention = {0.8, 0.8};
  CHECK(choice_of_rounds({&old, &other, &third}, "old", true).contention == 0.8);
}

TEST_CASE("rounds: of equals the one that stood first stays first") {
  Entrant b = entrant_of("b", {100, 100}, {}), a = entrant_of("a", {100, 100}, {}), c = entrant_of("c", {99, 99}, {});
  std::vector<Entrant*> meeting = {&b, &a, &c};
  rank(meeting);
  CHECK(meeting == std::vector<Entrant*>{&c, &b, &a});
  Entrant fast_once = entrant_of("d", {100, 300, 300}, {}), fast_twice = entrant_of("e", {200, 100, 100}, {});
  std::vector<Entrant*> others = {&fast_once, &fast_twice};
  rank(others);
  CHECK(others == std::vector<Entrant*>{&fast_twice, &fast_once});
  leave(meeting, 3, "none");
  CHECK(meeting.size() == 3);
  leave(meeting, 2, "none");
  CHECK(meeting == std::vector<Entrant*>{&c, &b});
  leave(meeting, 0, "b");
  CHECK(meeting == std::vector<Entrant*>{&b});
}

TEST_CASE("samples: the interval of each small count is that of the sign test") {
  // Critical values of the two-sided sign test at 5 %: 0 up to eight samples, and of more as here. One more is the
  // lower.
  const std::uint64_t lowers[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8};
  for (std::uint64_t count = 1; count <= 25; ++count) {
    CAPTURE(count);
    Times samples(count);
    std::iota(samples.begin(), samples.end(), std::uint64_t{1});
    const Interval interval = interval_of(samples);
    CHECK(interval.lower == lowers[count - 1]);
    CHECK(interval.upper == count + 1 - lowers[count - 1]);
  }
}

TEST_CASE("samples: the median of an even count lies between the two in the middle, however large they are") {
  CHECK(interval_of(Times{20, 10}).median == 15);
  CHECK(interval_of(Times{4, 1, 2, 9}).median == 3);
  CHECK(interval_of(Times{1, 2}).median == 1);
  CHECK(interval_of(Times{18446744073709551615u, 18446744073709551611u}).median == 18446744073709551613u);
  CHECK(interval_of(Times{7}).median == 7);
}

TEST_CASE("samples: ratios are counted in millionths, and rounded down") {
  CHECK(ratios_of(Times{3, 1, 7, 5}, Times{2, 3, 7, 1}) == Times{1500000, 333333, 1000000, 5000000});
  CHECK(ratios_of(Times{}, Times{}).empty());
}

TEST_CASE("samples: the spread leaves out a quarter at either end") {
  CHECK(spread_of(Times{10, 20, 30, 40}) == 0.4);
  CHECK(spread_of(Times{10, 20, 30, 40, 900}) == Approx(20.0 / 30));
  CHECK(spread_of(Times{1, 2, 30, 40, 50, 60, 900, 950}) == Approx(30.0 / 45));  // two of eight
  CHECK(spread_of(Times{1, 20, 30, 40, 50, 60, 900}) == Approx(40.0 / 40));      // one of seven
  CHECK(spread_of(Times{1, 2, 300}) == 0);
  CHECK(spread_of(Times{5}) == 0);
  CHECK(spread_of(Times{0, 0, 0, 0, 9}) == 0);  // a median of nothing
}

}  // namespace kiln::dynamic_shaders

// The order of jobs in a ring: the lanes that a seat passes, who goes along, who overtakes, and whom a change wakes.
#include "executor/ring.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

using kiln::executor::Claim;
using kiln::executor::Lane;
using kiln::executor::most_in_flight;
using kiln::executor::Ring;
using kiln::executor::Seat;
using kiln::executor::SeatQueue;
using kiln::executor::Wake;

namespace {

// Which lanes and whether a submitter are woken: "upload dispatch submitter".
std::string words_of(const Wake& wake) {
  constexpr std::pair<Lane, const char*> lanes[] = {
      {Lane::upload, "upload "}, {Lane::dispatch, "dispatch "}, {Lane::retire, "retire "}, {Lane::beside, "beside "}};
  std::string words;
  for (const auto& [lane, name] : lanes) words += wake.lane(lane) ? name : "";
  words += wake.submitter ? "submitter " : "";
  if (!words.empty()) words.pop_back();
  return words;
}

std::vector<std::uint64_t> values_in(const SeatQueue& seats) {
  std::vector<std::uint64_t> found;
  for (std::size_t i = 0; i < seats.size(); ++i) found.push_back(seats[i]->value);
  return found;
}

using SeatValues = std::vector<std::uint64_t>;

// A ring whose seats have the values 1, 2 and so on, in the order in which they are taken.
class JobsInRing {
 public:
  explicit JobsInRing(std::size_t seats) : ring_(pointers(seats)) {}

  Ring* operator->() { return &ring_; }

  // Takes a seat and enters it.
  Seat& enter(const Seat& job = {}) {
    Seat* const seat = ring_.take_free();
    REQUIRE(seat != nullptr);
    *seat = job;
    seat->value = ++last_;
    woken = words_of(ring_.enter(*seat));
    return *seat;
  }
  // Claims for a lane and passes on; answers the values claimed.
  SeatValues pass(Lane lane) {
    Claim claim = ring_.claim(lane);
    const SeatValues found = values_in(claim.seats);
    woken = words_of(ring_.pass_on(claim, finished));
    return found;
  }
  void pass_all(Lane lane, int times) {
    for (int i = 0; i < times; ++i) pass(lane);
  }

  std::string woken;
  SeatQueue finished;

 private:
  std::vector<Seat*> pointers(std::size_t count) {
    std::vector<Seat*> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(&seats_[i]);
    return all;
  }

  std::array<Seat, most_in_flight> seats_;
  Ring ring_;
  std::uint64_t last_ = 0;
};

Seat small_seat() {
  Seat seat;
  seat.small = true;
  return seat;
}

Seat unordered_seat() {
  Seat seat;
  seat.ordered = false;
  return seat;
}

}  // namespace

TEST_CASE("ring: a queue of seats is a queue, wherever in its memory it begins", "[executor][ring]") {
  std::array<Seat, most_in_flight> seats;
  std::mt19937 random(7);
  SeatQueue queue;
  std::deque<Seat*> expected;
  std::vector<Seat*> free;
  for (Seat& seat : seats) free.push_back(&seat);
  for (int step = 0; step < 4000; ++step) {
    const std::uint32_t what = random() % 4;
    if (what < 2 && !free.empty()) {
      Seat* const seat = free.back();
      free.pop_back();
      what == 0 ? queue.push_back(seat) : queue.push_front(seat);
      what == 0 ? expected.push_back(seat) : expected.push_front(seat);
    } else if (!expected.empty()) {
      const std::size_t at = what == 2 ? 0 : random() % expected.size();
      free.push_back(expected[at]);
      if (what == 2) {
        if (queue.pop_front() != expected[0]) FAIL("step " << step << ": another seat was in front");
      } else {
        queue.remove(at);
      }
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    bool same = queue.size() == expected.size() && queue.empty() == expected.empty() &&
                (expected.empty() || queue.front() == expected[0]);
    for (std::size_t i = 0; same && i < expected.size(); ++i) same = queue[i] == expected[i];
    if (!same) FAIL("step " << step << ": the queue differs");
  }
}

TEST_CASE("ring: a queue of seats inserts in the order of fences", "[executor][ring]") {
  std::array<std::uint64_t, 5> order{1, 2, 3, 4, 5};
  do {
    for (const std::size_t head : {std::size_t{0}, std::size_t{13}}) {
      std::array<Seat, 5> seats;
      SeatQueue queue;
      Seat other;
      for (std::size_t i = 0; i < head; ++i) queue.push_back(&other), queue.pop_front();
      for (std::size_t i = 0; i < order.size(); ++i) {
        seats[i].value = order[i];
        queue.insert(&seats[i]);
      }
      if (values_in(queue) != SeatValues{1, 2, 3, 4, 5}) FAIL("begins at " << head << ", first inserted " << order[0]);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("ring: a seat passes the lanes in order, each lane works on one job, and a free seat is as new",
          "[executor][ring]") {
  JobsInRing jobs(2);
  CHECK(jobs->depth() == 2);
  CHECK(jobs->taken() == 0);
  CHECK_FALSE(jobs->claim(Lane::upload));
  Seat& first = jobs.enter();
  CHECK(jobs.woken == "upload submitter");
  CHECK(jobs->taken() == 1);
  jobs.enter();
  CHECK(jobs.woken == "upload");
  CHECK(jobs->take_free() == nullptr);

  REQUIRE(jobs->next(Lane::upload) == &first);
  Claim upload = jobs->claim(Lane::upload);
  CHECK(upload.lane == Lane::upload);
  CHECK(values_in(upload.seats) == SeatValues{1});
  CHECK_FALSE(jobs->ready(Lane::upload));
  CHECK(jobs->next(Lane::upload) == nullptr);
  CHECK_FALSE(jobs->claim(Lane::upload));
  CHECK(words_of(jobs->pass_on(upload, jobs.finished)) == "upload dispatch");
  CHECK_FALSE(upload);
  CHECK(jobs->next(Lane::dispatch) == &first);
  CHECK(jobs.pass(Lane::dispatch) == SeatValues{1});
  CHECK(jobs.woken == "upload retire");
  CHECK(jobs.finished.empty());
  CHECK(jobs.pass(Lane::retire) == SeatValues{1});
  CHECK(jobs.woken == "upload");
  CHECK(values_in(jobs.finished) == SeatValues{1});

  CHECK(jobs->taken() == 2);
  first.batch = 5, first.over = true, first.ordered = false, first.small = true, first.readback_apart = true;
  CHECK(words_of(jobs->release(*jobs.finished.pop_front())) == "upload submitter");
  CHECK(jobs->taken() == 1);
  REQUIRE(jobs->take_free() == &first);  // the one that was used last
  CHECK(first.value == 0);
  CHECK(first.batch == 0);
  CHECK_FALSE((first.over || first.cancelled || first.small || first.readback_apart));
  CHECK(first.ordered);
}

TEST_CASE("ring: the depth limits the seats in use, and those in use stay", "[executor][ring]") {
  JobsInRing jobs(3);
  CHECK(words_of(jobs->set_depth(1)) == "submitter");
  CHECK(jobs->depth() == 1);
  jobs.enter();
  CHECK(jobs->take_free() == nullptr);
  CHECK(words_of(jobs->set_depth(2)) == "upload submitter");
  jobs.enter();
  CHECK(words_of(jobs->set_depth(1)) == "upload");
  CHECK(jobs->taken() == 2);
  CHECK(jobs->take_free() == nullptr);
  CHECK(words_of(jobs->set_depth(3)) == "upload submitter");
  CHECK(jobs->take_free() != nullptr);
}

TEST_CASE("ring: small neighbours that are alike share a lane", "[executor][ring]") {
  Seat large, over = small_seat(), apart = small_seat();
  over.over = true;
  apart.ordered = false;
  struct Case {
    const char* what;
    std::vector<Seat> jobs;
    SeatValues first, second;
  };
  const Case cases[] = {{"all are small", {small_seat(), small_seat(), small_seat()}, {1, 2, 3}, {}},
                        {"the first is large", {large, small_seat(), small_seat()}, {1}, {2, 3}},
                        {"a large one between", {small_seat(), large, small_seat()}, {1}, {2}},
                        {"the first is over", {over, small_seat()}, {1}, {2}},
                        {"the second is over", {small_seat(), over, small_seat()}, {1}, {2}},
                        {"the second is unordered", {small_seat(), apart}, {1}, {2}},
                        {"both are unordered", {apart, apart}, {1, 2}, {}},
                        {"none is small", {large, large}, {1}, {2}}};
  for (const Case& each : cases) {
    CAPTURE(each.what);
    for (const Lane lane : {Lane::upload, Lane::dispatch}) {
      CAPTURE(static_cast<int>(lane));
      JobsInRing jobs(4);
      std::vector<Seat*> entered;
      for (const Seat& job : each.jobs) {
        const bool is_over = job.over;
        Seat before = job;
        before.over = false;  // it fails in the lane
        if (lane == Lane::dispatch) before.small = false;
        Seat& seat = jobs.enter(before);
        if (lane == Lane::dispatch) jobs.pass(Lane::upload);
        seat.small = job.small;
        seat.over = is_over;
      }
      CHECK(jobs.pass(lane) == each.first);
      CHECK(jobs.pass(lane) == each.second);
    }
  }
}

TEST_CASE("ring: the seats of one submission come back together", "[executor][ring]") {
  const std::pair<std::vector<std::uint64_t>, std::vector<SeatValues>> cases[] = {
      {{1, 1, 1}, {{1, 2, 3}}},
      {{1, 1, 3}, {{1, 2}, {3}}},
      {{0, 0}, {{1}, {2}}},  // of no batch
      {{1, 0, 1}, {{1}, {2}, {3}}},
  };
  for (const auto& [batches, claims] : cases) {
    JobsInRing jobs(4);
    for (const std::uint64_t batch : batches) {
      Seat& seat = jobs.enter();
      jobs.pass(Lane::upload);
      jobs.pass(Lane::dispatch);
      seat.batch = batch;
    }
    for (const SeatValues& claim : claims) CHECK(jobs.pass(Lane::retire) == claim);
    CHECK_FALSE(jobs->ready(Lane::retire));
    CHECK(jobs.finished.size() == batches.size());
  }
}

TEST_CASE("ring: what ends early leaves at once if it is cancelled or unordered, and else in its turn",
          "[executor][ring]") {
  for (const Lane lane : {Lane::upload, Lane::dispatch}) {
    for (const bool ordered : {true, false}) {
      for (const bool over : {true, false}) {
        for (const bool cancelled : {true, false}) {
          CAPTURE(static_cast<int>(lane), ordered, over, cancelled);
          JobsInRing jobs(2);
          Seat& seat = jobs.enter();
          if (lane == Lane::dispatch) jobs.pass(Lane::upload);
          seat.ordered = ordered, seat.over = over, seat.cancelled = cancelled;
          jobs.pass(lane);
          CHECK(seat.over == (over || cancelled));
          const bool leaves = cancelled || (over && !ordered);
          CHECK(values_in(jobs.finished) == (leaves ? SeatValues{1} : SeatValues{}));
          CHECK(jobs->ready(lane == Lane::upload ? Lane::dispatch : Lane::retire) == !leaves);
        }
      }
    }
  }
}

TEST_CASE("ring: an unordered job overtakes those whose results are read, and ordered ones keep their turn",
          "[executor][ring]") {
  JobsInRing jobs(6);
  const auto arrive = [&](const Seat& job) -> Seat& {
    Seat& seat = jobs.enter(job);
    jobs.pass(Lane::upload);
    jobs.pass(Lane::dispatch);
    return seat;
  };
  Seat long_result;
  long_result.readback_apart = true;
  SECTION("behind one that is being read") {
    arrive({});
    Claim first = jobs->claim(Lane::retire);
    CHECK_FALSE(jobs->ready(Lane::beside));
    arrive({});
    CHECK_FALSE(jobs->ready(Lane::beside));
    const Seat& third = arrive(unordered_seat());
    CHECK(jobs.woken == "beside submitter");
    CHECK(jobs->next(Lane::beside) == &third);
    Claim beside = jobs->claim(Lane::beside);
    CHECK(beside.lane == Lane::beside);
    CHECK(values_in(beside.seats) == SeatValues{3});
    CHECK_FALSE(jobs->ready(Lane::beside));
    jobs->pass_on(first, jobs.finished);
    CHECK(jobs.pass(Lane::retire) == SeatValues{2});  // before the one that overtakes
    arrive({});
    CHECK_FALSE(jobs->ready(Lane::retire));  // ordered: not before an earlier job that is read beside
    CHECK(jobs->next(Lane::retire) == nullptr);
    CHECK(words_of(jobs->pass_on(beside, jobs.finished)) == "retire submitter");
    CHECK(jobs.pass(Lane::retire) == SeatValues{4});
    CHECK(values_in(jobs.finished) == SeatValues{1, 2, 3, 4});
  }
  SECTION("an unordered one need not wait for it") {
    arrive({});
    Claim first = jobs->claim(Lane::retire);
    arrive(unordered_seat());
    Claim beside = jobs->claim(Lane::beside);
    jobs->pass_on(first, jobs.finished);
    arrive(unordered_seat());
    CHECK(jobs.pass(Lane::retire) == SeatValues{3});
    jobs->pass_on(beside, jobs.finished);
    CHECK(values_in(jobs.finished) == SeatValues{1, 3, 2});
  }
  SECTION("behind one that another thread will read") {
    arrive(long_result);
    CHECK_FALSE(jobs->ready(Lane::beside));
    arrive({});
    arrive(unordered_seat());
    arrive(unordered_seat());
    CHECK(jobs.woken == "retire beside submitter");
    CHECK(jobs.pass(Lane::beside) == SeatValues{3});
    CHECK(jobs.pass(Lane::beside) == SeatValues{4});
    CHECK_FALSE(jobs->ready(Lane::beside));
    CHECK(jobs.pass(Lane::retire) == SeatValues{1});
    CHECK(jobs.pass(Lane::retire) == SeatValues{2});
  }
  SECTION("not one that is first itself") {
    long_result.ordered = false;
    arrive(long_result);
    CHECK_FALSE(jobs->ready(Lane::beside));
    arrive(unordered_seat());
    CHECK(jobs.pass(Lane::beside) == SeatValues{2});
  }
  SECTION("those of one submission together") {
    arrive(long_result);
    for (int i = 0; i < 3; ++i) arrive(unordered_seat()).batch = i < 2 ? 2 : 4;
    CHECK(jobs.pass(Lane::beside) == SeatValues{2, 3});
    CHECK(jobs.pass(Lane::beside) == SeatValues{4});
  }
}

TEST_CASE("ring: a claim that is put back is the lane's next work, in the order of fences", "[executor][ring]") {
  for (const Lane lane : {Lane::upload, Lane::dispatch}) {
    JobsInRing jobs(4);
    for (int i = 0; i < 3; ++i) jobs.enter(i < 2 ? small_seat() : Seat{});
    if (lane == Lane::dispatch) jobs.pass_all(Lane::upload, 2);
    for (int round = 0; round < 2; ++round) {
      Claim claim = jobs->claim(lane);
      CHECK(values_in(claim.seats) == SeatValues{1, 2});
      jobs->put_back(claim);
      CHECK_FALSE(claim);
      CHECK(jobs->ready(lane));
    }
    CHECK(jobs.pass(lane) == SeatValues{1, 2});
    CHECK(jobs.pass(lane) == SeatValues{3});
  }
  JobsInRing jobs(4);
  Seat long_result;
  long_result.readback_apart = true;
  jobs.enter(long_result);
  jobs.enter();
  jobs.enter(unordered_seat());
  jobs.enter();
  jobs.pass_all(Lane::upload, 4);
  jobs.pass_all(Lane::dispatch, 4);
  Claim beside = jobs->claim(Lane::beside);
  CHECK(values_in(beside.seats) == SeatValues{3});
  jobs->put_back(beside);
  CHECK(jobs->ready(Lane::beside));
  for (std::uint64_t value = 1; value <= 4; ++value) CHECK(jobs.pass(Lane::retire) == SeatValues{value});
}

TEST_CASE("ring: a job is cancelled until it is on the device", "[executor][ring]") {
  using Cancelled = Ring::Cancelled;
  constexpr std::size_t count = 3;
  const std::uint64_t value = GENERATE(1u, 2u, 3u);
  CAPTURE(value);
  JobsInRing jobs(4);
  Seat* removed = nullptr;
  std::vector<Seat*> seats;
  const auto enter_all = [&](Lane until) {
    for (std::size_t i = 0; i < count; ++i) seats.push_back(&jobs.enter(small_seat()));
    if (until > Lane::upload) jobs.pass(Lane::upload);
    if (until > Lane::dispatch) jobs.pass(Lane::dispatch);
  };
  SeatValues others{1, 2, 3};
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(value) - 1);
  SECTION("waiting for the upload, or for the device") {
    const Lane lane = GENERATE(Lane::upload, Lane::dispatch);
    enter_all(lane);
    CHECK(jobs->cancel(value, removed) == Cancelled::removed);
    REQUIRE(removed == seats[value - 1]);
    CHECK(removed->over);
    CHECK(removed->cancelled);
    CHECK(jobs->cancel(value, removed) == Cancelled::absent);
    CHECK(jobs.pass(lane) == others);
  }
  SECTION("in the upload") {
    enter_all(Lane::upload);
    Claim claim = jobs->claim(Lane::upload);
    CHECK(jobs->cancel(value, removed) == Cancelled::marked);
    CHECK(removed == nullptr);
    CHECK(seats[value - 1]->cancelled);
    CHECK_FALSE(seats[value - 1]->over);
    jobs->pass_on(claim, jobs.finished);
    CHECK(values_in(jobs.finished) == SeatValues{value});
    CHECK(seats[value - 1]->over);
    CHECK(jobs.pass(Lane::dispatch) == others);
  }
  SECTION("on the device, or behind it") {
    const int where = GENERATE(0, 1, 2);
    enter_all(where == 0 ? Lane::dispatch : Lane::retire);
    for (Seat* const seat : seats) seat->batch = 1;
    Claim claim;
    if (where == 0) claim = jobs->claim(Lane::dispatch);
    if (where == 2) claim = jobs->claim(Lane::retire);
    CHECK(claim.seats.size() == (where == 1 ? 0 : count));
    CHECK(jobs->cancel(value, removed) == Cancelled::too_late);
    CHECK(removed == nullptr);
    CHECK_FALSE(seats[value - 1]->cancelled);
  }
  SECTION("read beside") {
    Seat long_result;
    long_result.readback_apart = true;
    jobs.enter(long_result);
    jobs.enter(unordered_seat());
    jobs.pass_all(Lane::upload, 2);
    jobs.pass_all(Lane::dispatch, 2);
    Claim beside = jobs->claim(Lane::beside);
    REQUIRE(values_in(beside.seats) == SeatValues{2});
    CHECK(jobs->cancel(2, removed) == Cancelled::too_late);
  }
  SECTION("never entered") {
    CHECK(jobs->cancel(value, removed) == Cancelled::absent);
    CHECK(removed == nullptr);
  }
}

// The queue's own threads, waits and wake-ups in every order that differs from the usual one in few places: three jobs
// through a RingQueue whose threads go on when a schedule says so. A schedule passes over whoever would go on next at
// most so many times (Emmi, Qadeer, Rakamarić, "Delay-bounded scheduling", POPL 2011). What the pipeline's own steps do
// in all orders without bound is test_interleavings.cpp's.
#include "core/executor/interleavings/schedule.hpp"
#include "core/executor/interleavings/stepped_device.hpp"
#include "core/executor/jobs.hpp"
#include "executor/ring_queue.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

namespace kiln::test {
namespace {

using executor::RingQueue;
using executor::Timeline;

struct Handed {
  std::size_t jobs = 3;
  std::uint32_t slots = 3;
  bool long_copies = false;    // all of them: each lane has a thread of its own
  bool first_is_long = false;  // its results alone
  std::size_t overtakes = 0;   // this job, from 1, need not finish in its turn
  std::size_t cancels = 0;     // this one is cancelled at some time
  bool loses = false;          // the device is, at some time
  bool slow_device = false;    // it works where nobody else can go on
};

struct Ran {
  std::string broken;  // what a promise was broken by; empty: none
  bool overtaken = false;
  std::vector<std::size_t> points;
};

Ran run(const Handed& handed, std::vector<std::size_t> choices) {
  struct Run {
    explicit Run(const Handed& h) : device(std::make_shared<SteppedDevice>(50'000, h.long_copies ? 100'000 : 10'000)) {}
    std::shared_ptr<SteppedDevice> device;
    std::shared_ptr<RingQueue> queue;
    std::vector<Job> jobs;
    std::vector<std::uint64_t> fences;
    std::size_t refused = 0;
    bool over = false;
    Ran ran;
  };
  // What a stuck run leaves behind stays with its threads.
  const auto here = std::make_shared<Run>(handed);
  const auto schedule = std::make_shared<Schedule>(std::move(choices));
  here->device->patience = [schedule = schedule.get()](const auto& done) { schedule->await_for_long(done); };
  constexpr std::size_t many = 1 << 16;  // by its bytes worth a thread of its own
  for (std::size_t i = 0; i < handed.jobs; ++i) {
    const bool is_long = handed.first_is_long && i == 0;
    here->jobs.push_back(add_one(here->device, std::vector<float>(is_long ? many : 1, static_cast<float>(i))));
    if (i + 1 == handed.overtakes) here->jobs.back().submission.completion = Completion::unordered;
  }
  ExecutorContext context;
  context.config.in_flight = handed.slots;
  here->queue =
      RingQueue::start(here->device, context, std::make_shared<executor::CompletionBell>(), schedule.get()).value();
  const auto broken = [run = here.get()](std::string how) {
    if (run->ran.broken.empty()) run->ran.broken = std::move(how);
  };

  schedule->add([here, broken] {  // submits
    for (const Job& job : here->jobs) {
      const auto value = here->queue->submit(job.submission, Deadline::never(), here->device->clock_ns());
      if (value) {
        here->fences.push_back(*value);
      } else {
        ++here->refused;
        if (value.error().code != StatusCode::device_lost) broken("refused: " + value.error().text());
      }
    }
  });
  const auto work = [here, schedule] {
    for (;;) {
      schedule->await([&] { return here->device->can_work() || here->over; });
      if (!here->device->can_work()) return;
      here->device->work();
    }
  };
  handed.slow_device ? schedule->add_last(work) : schedule->add(work);
  const auto state = [here](std::size_t job) {
    return job < here->fences.size() ? here->queue->state(here->fences[job]) : Timeline::State::pending;
  };
  schedule->add([here, schedule, handed, broken, state] {  // waits, and ends it all
    for (std::size_t i = 0; i < handed.jobs; ++i) {
      schedule->await([&] {
        for (std::size_t later = i + 1; later < here->fences.size(); ++later) {
          if (state(later) != Timeline::State::finished || state(i) != Timeline::State::pending) continue;
          here->ran.overtaken = true;
          if (later + 1 != handed.overtakes && later + 1 != handed.cancels) broken("out of its turn");
        }
        return state(i) == Timeline::State::finished || here->fences.size() + here->refused == handed.jobs;
      });
      if (i >= here->fences.size()) break;
      schedule->await([&] { return state(i) == Timeline::State::finished; });
      const auto result = here->queue->wait(here->fences[i], {Clock::now()});
      const auto& wanted = here->jobs[i].submission.tensors[0].host->as<float>();
      const auto& got = here->jobs[i].output->as<float>();
      if (result) {
        if (!std::ranges::equal(got, wanted, {}, {}, [](float x) { return x + 1; })) broken("an early result");
        continue;
      }
      const StatusCode code = result.error().code;
      const bool may = (code == StatusCode::cancelled && i + 1 == handed.cancels) ||
                       (code == StatusCode::device_lost && handed.loses);
      if (!may) broken("job " + std::to_string(i + 1) + ": " + result.error().text());
    }
    here->queue->request_stop();
    if (!here->queue->stop(Deadline::never())) broken("not stopped");
    here->over = true;
  });
  if (handed.cancels != 0) {
    schedule->add([here, schedule, handed] {
      schedule->await([&] { return here->fences.size() >= handed.cancels || here->refused > 0; });
      if (here->fences.size() >= handed.cancels) (void)here->queue->cancel(here->fences[handed.cancels - 1]);
    });
  }
  if (handed.loses) {
    schedule->add([here, schedule] {
      schedule->await([&] { return here->device->submitted() >= 1 || here->over; });
      here->device->lose();
    });
  }
  if (!schedule->go()) broken("nobody can go on");
  if (here->device->timed_waits() != 0) broken("the clock would have ended a wait for the device");
  here->ran.points = schedule->points();
  return here->ran;
}

struct ExploredSchedules {
  std::size_t runs = 0, overtaken = 0, points = 0;
};

// Every schedule that passes over somebody at most `delays` times.
ExploredSchedules explore_schedules(const Handed& handed, std::size_t delays) {
  ExploredSchedules explored;
  std::vector<std::vector<std::size_t>> open{{}};
  while (!open.empty()) {
    const std::vector<std::size_t> choices = std::move(open.back());
    open.pop_back();
    const Ran ran = run(handed, choices);
    ++explored.runs;
    explored.overtaken += ran.overtaken ? 1 : 0;
    explored.points = std::max(explored.points, ran.points.size());
    std::string schedule;
    for (const std::size_t choice : choices) schedule += std::to_string(choice) + " ";
    INFO("passed over: " << schedule);
    REQUIRE(ran.broken == "");
    const std::size_t spent = std::accumulate(choices.begin(), choices.end(), std::size_t{0});
    for (std::size_t point = choices.size(); point < ran.points.size(); ++point) {
      for (std::size_t over = 1; over < ran.points[point] && spent + over <= delays; ++over) {
        open.push_back(choices);
        open.back().resize(point, 0);
        open.back().push_back(over);
      }
    }
  }
  return explored;
}

TEST_CASE("hand-over: the queue's threads lose no wake-up and no result in any order with few delays",
          "[executor][interleavings]") {
  Handed handed;
  std::string name;
  SECTION("one thread") { name = "one thread"; }
  SECTION("one slot") { name = "one slot", handed.slots = 1; }
  SECTION("a thread a lane") { name = "a thread a lane", handed.long_copies = true; }
  SECTION("a thread a lane, two slots") { name = "two slots", handed.long_copies = true, handed.slots = 2; }
  SECTION("a short result overtakes") { name = "short", handed.first_is_long = true, handed.overtakes = 2; }
  SECTION("the last overtakes") { name = "the last", handed.first_is_long = true, handed.overtakes = 3; }
  SECTION("a long result overtakes") { name = "long", handed.long_copies = true, handed.overtakes = 2; }
  SECTION("one is cancelled") { name = "cancelled", handed.long_copies = true, handed.cancels = 2; }
  SECTION("the device is lost") { name = "lost", handed.long_copies = true, handed.loses = true; }
  const ExploredSchedules explored = explore_schedules(handed, is_long() && !is_sanitized ? 2 : 1);
  CHECK(explored.runs > 20);
  WARN(name << ": " << explored.runs << " runs, up to " << explored.points << " points, overtaken in "
            << explored.overtaken);
}

TEST_CASE("hand-over: likewise two jobs with twice as many delays", "[executor][interleavings][unsanitized]") {
  Handed handed;
  handed.jobs = 2;
  handed.slots = 1;
  handed.long_copies = GENERATE(false, true);
  handed.slow_device = GENERATE(false, true);
  if (!(handed.long_copies && handed.slow_device) && !is_long()) return;
  const ExploredSchedules explored = explore_schedules(handed, is_sanitized ? 1 : 2);
  CHECK(explored.runs > 20);
  WARN("two jobs, one slot, long copies " << handed.long_copies << ", slow device " << handed.slow_device << ": "
                                          << explored.runs << " runs, up to " << explored.points << " points");
}

}  // namespace
}  // namespace kiln::test

// Many jobs from many threads, against the same jobs one at a time: with copies long enough for the threads apart, and
// with waits of every kind. KILN_TEST_LONG=1 runs ten times as many.
#include "core/executor/jobs.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <deque>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

// A deterministic pattern that no two jobs share.
std::vector<float> input_of(std::size_t job, std::size_t floats) {
  std::vector<float> values(floats);
  std::uint32_t state = static_cast<std::uint32_t>(job) * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-20f;
  }
  return values;
}

std::size_t floats_of(std::size_t job, std::size_t large) { return job % 16 == 3 ? large : 3 + job % 29; }

Job job_of(const std::shared_ptr<Device>& device, std::size_t job, std::size_t large) {
  const auto input = input_of(job, floats_of(job, large));
  return job % 3 == 0 ? two_passes(device, input) : job % 3 == 1 ? add_one(device, input) : in_place(device, input);
}

void run_from_threads(Memory memory, std::uint32_t in_flight, std::size_t jobs, std::size_t large) {
  constexpr std::size_t threads = 8;
  constexpr std::size_t window = 4;
  const auto device = std::make_shared<SyntheticDevice>(memory);
  std::vector<std::vector<float>> expected(jobs);
  {
    const auto executor = ring(1);
    for (std::size_t i = 0; i < jobs; ++i) {
      const Job job = job_of(device, i, large);
      const auto measured = executor->wait(executor->submit(job.submission).value(), Deadline::never());
      if (!measured) FAIL(measured.error().text());
      expected[i] = values_of(*job.output);
    }
  }
  const auto executor = ring(in_flight);
  std::atomic<std::size_t> next{0}, right{0};
  std::vector<std::thread> callers;
  for (std::size_t t = 0; t < threads; ++t) {
    callers.emplace_back([&] {
      struct Open {
        std::size_t number;
        Fence fence;
        Job job;
      };
      std::deque<Open> open;
      const auto take = [&] {
        const auto measured = executor->wait(open.front().fence, Deadline::never());
        if (measured && values_of(*open.front().job.output) == expected[open.front().number]) ++right;
        open.pop_front();
      };
      for (std::size_t i = next++; i < jobs; i = next++) {
        Job job = job_of(device, i, large);
        const auto fence = executor->submit(job.submission);
        if (!fence) continue;
        open.push_back({i, *fence, std::move(job)});
        if (open.size() == window) take();
      }
      while (!open.empty()) take();
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(right == jobs);
}

std::size_t many(std::size_t jobs) { return is_long() ? 10 * jobs : jobs; }

}  // namespace

TEST_CASE("threads: jobs of eight threads are bit-equal to the synchronous path", "[executor][threads]") {
  SECTION("plain memory, three slots") { run_from_threads(Memory::plain, 3, many(1000), 200'000); }
  SECTION("mapped memory, sixteen slots") { run_from_threads(Memory::mapped, 16, many(1000), 200'000); }
  SECTION("wrapped memory") { run_from_threads(Memory::wrapped, 4, many(1000), 50'000); }
}

TEST_CASE("threads: ten thousand small jobs of eight threads are bit-equal to the synchronous path",
          "[executor][threads]") {
  run_from_threads(Memory::plain, 8, 10'000, 64);
}

TEST_CASE("threads: an executor that dies amid submissions of other threads finishes or refuses each",
          "[executor][threads]") {
  for (int round = 0; round < 20; ++round) {
    const auto device = std::make_shared<SyntheticDevice>();
    auto executor = ring(4);
    std::vector<Job> jobs;
    std::vector<Fence> fences;
    for (std::size_t i = 0; i < 40; ++i) {
      jobs.push_back(job_of(device, i, 40'000));
      fences.push_back(executor->submit(jobs.back().submission).value());
    }
    executor.reset();  // all that was accepted is finished first
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (i % 3 == 1) CHECK(jobs[i].output->as<float>()[0] == input_of(i, 1)[0] + 1);
    }
  }
}

TEST_CASE("executor: a job that has been short before is served on the thread that waits for it", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  const auto executor = ring(3);
  Job job = add_one(device, {1, 2});
  const auto run = [&](bool waits_next) {
    job.submission.waits_next = waits_next;
    REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
    CHECK(values_of(*job.output) == std::vector<float>{2, 3});
    return device->last_submitter() == std::this_thread::get_id();
  };
  // On a busy machine a run may take long, and the next one is not served here then.
  const auto is_served_here = [&] {
    for (int runs = 0; runs < 200; ++runs) {
      if (run(true)) return true;
    }
    return false;
  };
  CHECK_FALSE(run(true));  // how long it takes is not known yet
  CHECK(is_served_here());
  CHECK_FALSE(run(false));
  CHECK(is_served_here());
  const Fence other = executor->submit(add_one(device, {5}).submission).value();
  job.submission.waits_next = true;
  const Fence behind = executor->submit(job.submission).value();
  REQUIRE(executor->wait(behind, Deadline::never()));
  REQUIRE(executor->wait(other, Deadline::never()));
  CHECK(is_served_here());
}

TEST_CASE("executor: a plan that never ran is served on the thread that waits for it, once submissions are quick",
          "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  const auto executor = ring(3);
  const auto is_served_here = [&](Job job) {
    job.submission.waits_next = true;
    REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
    return device->last_submitter() == std::this_thread::get_id();
  };
  const auto new_plan = [&] { return add_one(device, {1, 2}); };
  CHECK_FALSE(is_served_here(new_plan()));  // how long a submission takes is not known yet
  CHECK(is_served_here(new_plan()));
  const auto packings = std::make_shared<std::atomic<int>>(0);
  // A packing runs on the device before the job's deadline is looked at.
  CHECK_FALSE(is_served_here(weigh_packed(device, {1, 2}, constant_of({3, 4}), packings)));
  CHECK(*packings == 1);
  CHECK(is_served_here(new_plan()));
  device->submit_ns = 10'000'000;
  (void)is_served_here(new_plan());
  CHECK_FALSE(is_served_here(new_plan()));  // this device works inside submit()
}

// A copy that takes 40 us has a thread of its own. A fifth of what a copy of the same size took goes into what the next
// one is expected to take.
TEST_CASE("executor: a job whose copies were slow is not served on the thread that waits for it", "[executor]") {
  struct Case {
    std::uint64_t copy_ns;
    bool served_here;
  };
  for (const Case one : {Case{190'000, true}, Case{210'000, false}}) {
    for (const bool reads : {false, true}) {
      CAPTURE(one.copy_ns, reads);
      const auto device = std::make_shared<SyntheticDevice>();
      device->untimed = true;
      const auto executor = ring(3);
      Job job = add_one(device, {1, 2});
      job.submission.waits_next = true;
      const auto is_served_here = [&] {
        REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
        return device->last_submitter() == std::this_thread::get_id();
      };
      const auto is_soon_served_here = [&] {
        for (int runs = 0; runs < 200; ++runs) {
          if (is_served_here()) return true;
        }
        return false;
      };
      REQUIRE(is_soon_served_here());
      (reads ? device->read_ns : device->write_ns) = one.copy_ns;
      (void)is_served_here();
      CHECK(is_served_here() == one.served_here);
      device->read_ns = device->write_ns = 0;
      CHECK(is_soon_served_here());
    }
  }
}

TEST_CASE("executor: a thread that serves its own job keeps to its deadline, and the job goes on without it",
          "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  const auto executor = ring(2);
  Job job = add_one(device, {1});
  job.submission.waits_next = true;
  REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  device->hold();
  const Fence held = executor->submit(job.submission).value();
  const auto late = executor->wait(held, Deadline::after(std::chrono::milliseconds(5)));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == StatusCode::timeout);
  const Fence behind = executor->submit(add_one(device, {7}).submission).value();
  device->release();
  CHECK(executor->wait(behind, Deadline::never()));
  CHECK(executor->wait(held, Deadline::never()));
  // Nobody waits for this one: it is done at the end of the executor at the latest.
  (void)executor->submit(job.submission).value();
}

TEST_CASE("executor: threads that serve their own jobs and others that do not are all served", "[executor][threads]") {
  const std::uint32_t in_flight = GENERATE(1u, 3u);
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  const auto executor = ring(in_flight);
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      Job job = add_one(device, {static_cast<float>(thread)});
      job.submission.waits_next = thread % 3 != 2;
      for (int i = 0; i < 400; ++i) {
        const auto fence = executor->submit(job.submission);
        if (!fence || !executor->wait(*fence, Deadline::after(std::chrono::seconds(60)))) ++wrong;
        if (values_of(*job.output) != std::vector<float>{static_cast<float>(thread) + 1}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

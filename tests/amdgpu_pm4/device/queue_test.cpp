#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("queue: values grow from 1, results are the device's time and are taken once") {
  const QueueFixture f;
  for (std::uint64_t value = 1; value <= 3; ++value) {
    CHECK(f.submit({f.pass(f.good)}) == value);
    const auto result = f.queue->wait(value, Deadline::never());
    REQUIRE(result.has_value());
    CHECK(result->device_ns == 1000);  // 100 ticks of 100 MHz
    CHECK(result->begun_ns > 0);
    CHECK(result->begun_ns <= now_ns());
  }
  for (const std::uint64_t value : {1u, 2u, 3u}) {
    CHECK(f.wait(value).text() == "not_found: submission " + std::to_string(value) + ": the result was already taken");
  }
  CHECK(f.wait(0).text() == "not_found: submission 0 does not exist, the last submission is 3");
  CHECK(f.wait(4).message == "submission 4 does not exist, the last submission is 3");
  CHECK(f.gpu->dispatches == 3);
}

TEST_CASE("queue: a submission without passes is one all the same") {
  const QueueFixture f;
  CHECK(f.wait(f.submit({})).ok());
  CHECK(f.gpu->dispatches == 0);
  CHECK(f.gpu->submissions == 1);
}

TEST_CASE("queue: only passes that depend on each other are parted") {
  const QueueFixture f;
  CHECK(f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.good, 2, 3), f.pass(f.good, 4, 5)})).ok());
  CHECK(f.gpu->barriers == 1);  // from the submission before
  CHECK(f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.good, 1, 2), f.pass(f.good, 2, 3)})).ok());
  CHECK(f.gpu->barriers == 1 + 3);
}

TEST_CASE("queue: thousands of passes are one submission of chained buffers") {
  const QueueFixture f;
  std::vector<BoundPass> passes;
  for (std::size_t i = 0; i < 5000; ++i) passes.push_back(f.pass(i % 7 == 0 ? f.bad : f.good, i % 2, 1 - i % 2));
  for (int round = 0; round < 3; ++round) CHECK(f.wait(f.submit(passes)).ok());
  CHECK(f.gpu->dispatches == 15000);
  CHECK(f.gpu->submissions == 3);
}

TEST_CASE("queue: each buffer is listed once, with all that the GPU needs") {
  const QueueFixture f;
  CHECK(f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.bad, 0, 2), f.pass(f.good, 0, 1)})).ok());
  REQUIRE(f.gpu->lists.size() == 1);
  const std::vector<std::uint32_t>& list = f.gpu->lists.front();
  const std::set<std::uint32_t> listed(list.begin(), list.end());
  CHECK(listed.size() == list.size());
  CHECK(listed.size() == 3 + 2 + 3);  // rings, code, buffers
  for (const auto& each : {f.buffers[0].get(), f.buffers[1].get(), f.buffers[2].get(), f.good->code.get()}) {
    CHECK(listed.contains(each->handle()));
  }
  CHECK_FALSE(listed.contains(f.buffers[3]->handle()));
}

TEST_CASE("queue: a wait that ends before the work answers timeout, and may be made again") {
  const QueueFixture f;
  f.gpu->held = true;
  const std::uint64_t value = f.submit({f.pass(f.good)});
  for (const Deadline deadline :
       {Deadline{Clock::now() - std::chrono::seconds(1)}, Deadline::after(std::chrono::milliseconds(3))}) {
    const auto result = f.queue->wait(value, deadline);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == StatusCode::timeout);
  }
  f.gpu->run_held();
  CHECK(f.wait(value).ok());
}

TEST_CASE("queue: memory of the rings is not written again before its submission has ended") {
  const QueueFixture f(4096);  // four chunks
  f.gpu->held = true;
  std::atomic<int> submitted{0};
  std::thread submitter([&] {
    for (int i = 0; i < 12; ++i) {
      if (f.queue->submit(in_order({f.pass(f.good)}))) ++submitted;
    }
  });
  for (int i = 0; i < 30'000 && submitted < 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int before = submitted;
  f.gpu->run_held();
  submitter.join();
  CHECK(before >= 4);
  CHECK(before < 12);  // it waited for room
  CHECK(submitted == 12);
  for (std::uint64_t value = 1; value <= 12; ++value) CHECK(f.wait(value).ok());
}

TEST_CASE("queue: what a submission needs is kept until it has ended, whoever drops it") {
  QueueFixture f;
  f.gpu->held = true;
  const std::uint32_t buffer = f.buffers[7]->handle(), code = f.bad->code->handle();
  const std::uint64_t value = f.submit({f.pass(f.bad, 0, 7)});
  f.buffers.pop_back();
  f.bad = nullptr;
  CHECK(f.gpu->buffers.contains(buffer));
  CHECK(f.gpu->buffers.contains(code));
  f.gpu->run_held();
  CHECK(f.wait(value).ok());
  CHECK_FALSE(f.gpu->buffers.contains(buffer));
  CHECK_FALSE(f.gpu->buffers.contains(code));
}

TEST_CASE("queue: nobody needs to wait") {
  const QueueFixture f(4096);
  for (int i = 0; i < 200; ++i) f.submit({f.pass(f.good)});
  CHECK(f.wait(1).ok());
  CHECK(f.wait(200).ok());
}

TEST_CASE("queue: who hangs the device is named, goes into quarantine, and the others go on") {
  const QueueFixture f;
  f.gpu->hang_at = 2;
  const std::uint64_t value =
      f.submit({f.pass(f.good, 0, 1), f.pass(f.good, 1, 2), f.pass(f.bad, 2, 3), f.pass(f.good, 3, 4)});
  const Status status = f.wait(value);
  CHECK(status.code == StatusCode::unavailable);
  INFO(status.message);
  CHECK_THAT(status.message, Catch::Contains("amdgpu:0: submission 1: pass 2: kernel 'bad' (program ") &&
                                 Catch::Contains(") hung the device and is in quarantine"));
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));

  const Status refused = f.refused({f.pass(f.good), f.pass(f.bad)});
  CHECK(refused.code == StatusCode::unsupported);
  CHECK_THAT(refused.message, Catch::Contains("kernel 'bad'") && Catch::Contains("quarantined until"));
  CHECK(f.gpu->contexts == 2);
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("queue: another kernel of the same code object stays out of quarantine") {
  QueueFixture f;
  const auto object = sha256("two kernels");
  const auto first = quarantine_key_of(object, "first"), second = quarantine_key_of(object, "second");
  f.quarantine.add(first);
  CHECK(f.quarantine.holds(first));
  CHECK_FALSE(f.quarantine.holds(second));
  CHECK_FALSE(f.quarantine.holds(quarantine_key_of(sha256("others"), "first")));
}

TEST_CASE("queue: what the device says of a fault stands in the error") {
  const std::pair<const char*, const char*> faults[] = {
      {"unmapped at 0x1000 (0xdc520000): no buffer is mapped there",
       ") was stopped by a fault and is in quarantine (unmapped at 0x1000 (0xdc520000): no buffer is mapped there)"},
      {"unknown opcode at 0x2000 (0x00000000): VOP2 has no opcode 0",
       ") was stopped by a fault and is in quarantine (unknown opcode at 0x2000 "},
      {"watchdog at 0x3000 (0xbfa0ffff): no workgroup has ended for 60000 ms",
       ") hung the device and is in quarantine (watchdog at 0x3000 "},
      {"planted at 0x4000: a hang was asked for", ") hung the device and is in quarantine (planted at 0x4000: "},
      {"", ") hung the device and is in quarantine ("}};
  for (const auto& [fault, message] : faults) {
    const QueueFixture f;
    f.gpu->hang_at = 0;
    f.gpu->fault = fault;
    const Status status = f.wait(f.submit({f.pass(f.bad)}));
    INFO(status.message);
    CHECK(status.code == StatusCode::unavailable);
    CHECK_THAT(status.message, Catch::Contains("pass 0: kernel 'bad' (program ") && Catch::Contains(message));
  }
}

TEST_CASE("queue: among passes that overlapped nobody is convicted, and the second time tells") {
  const QueueFixture f;
  const auto launch = [&] { return f.submit({f.pass(f.good, 0, 1), f.pass(f.bad, 2, 3)}); };
  f.gpu->hang_at = 1;
  const Status first = f.wait(launch());
  CHECK(first.code == StatusCode::unavailable);
  CHECK_THAT(first.message,
             Catch::Contains("pass 0 to 1") && Catch::Contains("each of these kernels runs alone from now on"));
  CHECK_FALSE(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
  f.gpu->hang_at = f.gpu->dispatches + 1;
  CHECK_THAT(f.wait(launch()).message, Catch::Contains("pass 1: kernel 'bad'"));
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
}

TEST_CASE("queue: of many passes in a row it is known which program hung, unless both had ended well before") {
  QueueFixture f;
  // Each writes what the one before wrote.
  const auto launch = [&](std::size_t bad_at) {
    std::vector<BoundPass> passes(256, f.pass(f.good, 0, 1));
    passes[bad_at] = f.pass(f.bad, 0, 1);
    return f.submit(passes);
  };
  SECTION("neither has") {
    f.gpu->hang_at = 101;
    f.gpu->lose_vram = true;
    CHECK_THAT(f.wait(launch(101)).message, Catch::Contains("pass 101: kernel 'bad'"));
    CHECK(f.quarantine.holds(f.bad->quarantine_key));
  }
  SECTION("one has") {
    CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
    f.gpu->hang_at = f.gpu->dispatches + 101;
    CHECK_THAT(f.wait(launch(101)).message, Catch::Contains("pass 101: kernel 'bad'"));
    CHECK(f.quarantine.holds(f.bad->quarantine_key));
  }
  SECTION("both have, and stamps stand behind four passes each") {
    CHECK(f.wait(launch(3)).ok());
    f.gpu->hang_at = f.gpu->dispatches + 101;
    const Status first = f.wait(launch(101));
    CHECK_THAT(first.message,
               Catch::Contains("pass 100 to 103") && Catch::Contains("each of these kernels runs alone from now on"));
    CHECK_FALSE(f.quarantine.holds(f.bad->quarantine_key));
    f.gpu->hang_at = f.gpu->dispatches + 202;
    CHECK_THAT(f.wait(launch(202)).message, Catch::Contains("pass 202: kernel 'bad'"));
    CHECK(f.quarantine.holds(f.bad->quarantine_key));
  }
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
}

TEST_CASE("queue: passes that are bound once run as often as they stand in the order") {
  const QueueFixture f;
  BoundDispatch dispatch;
  dispatch.add(f.pass(f.good, 0, 1));
  dispatch.add(f.pass(f.bad, 2, 3));
  dispatch.add(f.pass(f.good, 4, 5));
  dispatch.order = {0, 0, 1, 2, 2, 1, 0};
  f.gpu->hang_at = 5;
  const auto value = f.queue->submit(dispatch);
  REQUIRE(value.has_value());
  // 0 | 0 1 2 | 2 1 0: each waits for an equal one before it.
  CHECK_THAT(f.wait(*value).message, Catch::Contains("pass 4 to 6"));
  const auto later = f.queue->submit(dispatch);
  REQUIRE(later.has_value());
  CHECK(f.wait(*later).ok());
  CHECK(f.gpu->dispatches == 6 + 7);
}

TEST_CASE("queue: what was queued behind a hang is cancelled, not blamed, and may be submitted again") {
  const QueueFixture f;
  f.gpu->held = true;
  f.gpu->hang_at = 0;
  const std::uint64_t hangs = f.submit({f.pass(f.bad)});
  const std::uint64_t behind = f.submit({f.pass(f.good)});
  f.gpu->run_held();
  const Status cancelled = f.wait(behind);
  CHECK(cancelled.code == StatusCode::unavailable);
  CHECK_THAT(cancelled.message, Catch::Contains("submission 2 was cancelled: pass 0: kernel 'bad'"));
  CHECK(f.wait(hangs).code == StatusCode::unavailable);
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

namespace {

// Submits up to 12 dispatches until one waits for room in the rings. Only then, and after what is done meanwhile, does
// the device run. Gives how many were accepted before, and what refused the last one.
struct Crowded {
  int before = 0;
  Status refused;
};
Crowded submit_crowd(const QueueFixture& f, const std::function<std::vector<BoundPass>(int)>& passes,
                     const std::function<void()>& meanwhile = nullptr) {
  f.gpu->held = true;
  std::atomic<int> accepted{0};
  std::promise<Status> outcome;
  std::thread submitter([&] {
    Status status;
    for (int i = 0; i < 12 && status.ok(); ++i) {
      const auto value = f.queue->submit(in_order(passes(i)));
      value ? void(++accepted) : void(status = value.error());
    }
    outcome.set_value(status);
  });
  for (int i = 0; i < 30'000 && accepted < 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Crowded crowd;
  crowd.before = accepted;
  if (meanwhile) meanwhile();
  f.gpu->run_held();
  submitter.join();
  crowd.refused = outcome.get_future().get();
  return crowd;
}

}  // namespace

TEST_CASE("queue: what waited for room while another hung runs in the new context, and is not told as cancelled") {
  const QueueFixture f(4096);  // four chunks
  f.gpu->hang_at = 0;
  const Crowded crowd = submit_crowd(f, [&](int i) { return std::vector{f.pass(i == 0 ? f.bad : f.good)}; });
  INFO(crowd.refused.message);
  CHECK(crowd.refused.ok());
  REQUIRE(crowd.before >= 4);
  REQUIRE(crowd.before < 12);
  CHECK_THAT(f.wait(2).message, Catch::Contains("was cancelled"));
  const Status waited = f.wait(static_cast<std::uint64_t>(crowd.before) + 1);
  INFO(waited.message);
  CHECK(waited.ok());
}

TEST_CASE("queue: a submission that waits for room holds up no wait beyond its deadline") {
  const QueueFixture f(4096);  // four chunks
  const auto one = [&](int) { return std::vector{f.pass(f.good)}; };
  const Crowded crowd = submit_crowd(f, one, [&] {
    const auto begun = Clock::now();
    CHECK(f.queue->wait(1, Deadline::after(std::chrono::milliseconds(50))).error().code == StatusCode::timeout);
    CHECK(f.queue->alive().ok());
    CHECK(Clock::now() - begun < std::chrono::seconds(20));  // room is waited for three times as long
  });
  CHECK(crowd.refused.ok());
  REQUIRE(crowd.before >= 4);
  REQUIRE(crowd.before < 12);
  for (std::uint64_t value = 12; value >= 1; --value) CHECK(f.wait(value).ok());
}

TEST_CASE("queue: a kernel that is convicted while an equal one waits for room does not run again") {
  const QueueFixture f(4096);  // four chunks
  f.gpu->hang_at = 0;
  const Crowded crowd = submit_crowd(f, [&](int) { return std::vector{f.pass(f.bad)}; });
  REQUIRE(crowd.before >= 4);
  REQUIRE(crowd.before < 12);
  CHECK(crowd.refused.code == StatusCode::unsupported);
  CHECK_THAT(crowd.refused.message,
             Catch::StartsWith("amdgpu:0: kernel 'bad'") && Catch::Contains("quarantined until"));
  CHECK(f.gpu->dispatches == 1);
}

TEST_CASE("queue: kernels that come under suspicion while others wait for room run apart in those too") {
  const QueueFixture f(4096);  // a few chunks
  f.gpu->hang_at = 1;
  const Crowded crowd = submit_crowd(f, [&](int) { return std::vector{f.pass(f.good, 0, 1), f.pass(f.bad, 2, 3)}; });
  INFO(crowd.refused.message);
  CHECK(crowd.refused.ok());
  REQUIRE(crowd.before >= 4);
  REQUIRE(crowd.before < 12);
  CHECK(f.quarantine.is_suspect(f.good->quarantine_key));
  CHECK(f.quarantine.is_suspect(f.bad->quarantine_key));
  CHECK(f.gpu->barriers == f.gpu->dispatches - 1);  // one before each, but the one that hung
}

TEST_CASE("queue: a kernel that is convicted while an equal one waits for a new context does not run again") {
  const QueueFixture f;
  f.gpu->held = true;
  f.gpu->hang_at = 0;
  const std::uint64_t value = f.submit({f.pass(f.bad)});
  f.gpu->submit_errors = {-ECANCELED};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.gpu->run_held();
  });
  const Status refused = f.refused({f.pass(f.bad)});
  later.join();
  CHECK(refused.code == StatusCode::unsupported);
  CHECK_THAT(refused.message, Catch::StartsWith("amdgpu:0: kernel 'bad'") && Catch::Contains("quarantined until"));
  CHECK(f.wait(value).code == StatusCode::unavailable);
  CHECK(f.gpu->dispatches == 1);
}

TEST_CASE("queue: a reset that another program caused blames nobody here") {
  const QueueFixture f;
  f.gpu->hang_at = 0;
  f.gpu->innocent = true;
  const Status status = f.wait(f.submit({f.pass(f.bad)}));
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("another program's work caused a reset of the device"));
  CHECK_FALSE(f.quarantine.holds(f.bad->quarantine_key));
  CHECK(f.wait(f.submit({f.pass(f.bad)})).ok());
}

TEST_CASE("queue: a device whose memory was lost is lost, and says why ever after") {
  const QueueFixture f;
  f.gpu->held = true;
  f.gpu->hang_at = 0;
  f.gpu->lose_vram = true;
  const std::uint64_t first = f.submit({f.pass(f.bad)}), second = f.submit({f.pass(f.good)});
  f.gpu->run_held();
  for (const std::uint64_t value : {first, second}) {
    const Status status = f.wait(value);
    CHECK(status.code == StatusCode::device_lost);
    CHECK_THAT(status.message, Catch::Contains("device memory was lost in a reset"));
  }
  CHECK(f.refused({f.pass(f.good)}).code == StatusCode::device_lost);
  CHECK(f.queue->alive().code == StatusCode::device_lost);
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
}

TEST_CASE("queue: a context that a reset took away between submissions is replaced unseen") {
  const QueueFixture f;
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  f.gpu->submit_errors = {-ECANCELED};
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  CHECK(f.gpu->contexts == 2);
  f.gpu->submit_errors = {-ECANCELED, -ECANCELED};
  const Status twice = f.refused({f.pass(f.good)});
  CHECK(twice.code == StatusCode::unavailable);
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("queue: short of memory it waits for what is in flight, and asks once more") {
  const QueueFixture f;
  f.gpu->held = true;
  const std::uint64_t before = f.submit({f.pass(f.good)});
  f.gpu->submit_errors = {-ENOMEM};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.gpu->run_held();
  });
  const auto value = f.queue->submit(in_order({f.pass(f.good)}));
  later.join();
  REQUIRE(value.has_value());
  CHECK(f.wait(*value).ok());
  CHECK(f.wait(before).ok());
  f.gpu->submit_errors = {-ENOMEM, -ENOMEM};
  const Status refused = f.refused({f.pass(f.good)});
  CHECK(refused.code == StatusCode::unavailable);
  CHECK_THAT(refused.message, Catch::Contains("Cannot allocate memory"));
  f.gpu->submit_errors.clear();
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("queue: what the kernel driver finds wrong with a submission is told, and the next goes through") {
  const QueueFixture f;
  f.gpu->submit_errors = {-EINVAL};
  const Status refused = f.refused({f.pass(f.good)});
  CHECK(refused.code == StatusCode::internal);
  CHECK_THAT(refused.message, Catch::Contains("Invalid argument"));
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("queue: a device that was taken away is lost") {
  const QueueFixture f;
  f.gpu->submit_errors = {-ENODEV};
  CHECK(f.refused({f.pass(f.good)}).code == StatusCode::device_lost);
  CHECK(f.queue->alive().code == StatusCode::device_lost);
  CHECK(f.queue->export_fence(1).error().code == StatusCode::device_lost);
  CHECK(f.queue->wait_for_fence(-1).code == StatusCode::device_lost);
  const QueueFixture amid;  // of a submission
  amid.gpu->hang_at = 0;
  amid.gpu->hang_error = -ENODEV;
  CHECK(amid.wait(amid.submit({amid.pass(amid.good)})).code == StatusCode::device_lost);
  CHECK(amid.queue->alive().code == StatusCode::device_lost);
}

TEST_CASE("queue: refused submissions take nothing of the rings") {
  const QueueFixture f(4096);  // four chunks
  const std::size_t buffers = f.gpu->buffers.size();
  f.gpu->held = true;
  for (int i = 0; i < 20; ++i) {
    f.gpu->submit_errors = {-EINVAL};
    CHECK(f.refused({f.pass(f.good)}).code == StatusCode::internal);
  }
  const std::uint64_t value = f.submit({f.pass(f.good)});
  CHECK(f.gpu->buffers.size() == buffers);  // no memory of its own
  f.gpu->run_held();
  CHECK(f.wait(value).ok());
}

TEST_CASE("queue: threads submit and wait at once") {
  const QueueFixture f(8192);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::uint64_t> values;
  std::vector<std::string> failures;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto value = f.queue->submit(in_order({f.pass(f.good)}));
        const Status status = value ? f.wait(*value) : value.error();
        const std::lock_guard lock(mutex);
        if (value) values.insert(*value);
        if (!status.ok()) failures.push_back(status.text());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures.empty());
  CHECK(values.size() == 600);
}

}  // namespace kiln::amdgpu_pm4

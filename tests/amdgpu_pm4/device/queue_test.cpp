#include "amdgpu_pm4/device/queue.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>
#include <thread>

#include "device/fake_kernels.hpp"
#include "device/fake_winsys.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct Fixture {
  std::shared_ptr<fake::Gpu> gpu = std::make_shared<fake::Gpu>();
  std::unique_ptr<Winsys> winsys = fake::make_winsys(gpu);
  Quarantine quarantine{nullptr, "device"};
  std::shared_ptr<const LoadedKernel> good = fake::make_kernel(*winsys, "good", {Access::read, Access::write});
  std::shared_ptr<const LoadedKernel> bad = fake::make_kernel(*winsys, "bad", {Access::read, Access::write});
  std::vector<std::shared_ptr<BufferObject>> buffers;
  std::unique_ptr<Queue> queue;

  explicit Fixture(std::uint64_t ring_bytes = 1 << 16) {
    for (int i = 0; i < 8; ++i) buffers.push_back(fake::make_buffer(*winsys));
    QueueSettings settings{"amdgpu:0", navi31, {}};
    settings.commands_bytes = settings.arguments_bytes = settings.reports_bytes = ring_bytes;
    settings.chunk_bytes = 1024;
    auto made = Queue::create(*winsys, quarantine, settings);
    REQUIRE(made.has_value());
    queue = std::move(made).value();
  }

  BoundPass pass(const std::shared_ptr<const LoadedKernel>& kernel, std::size_t from = 0, std::size_t to = 1) const {
    return {kernel, {buffers[from], buffers[to]}, {3, 2, 1}};
  }
  std::uint64_t submit(const std::vector<BoundPass>& passes) const {
    const auto value = queue->submit(passes);
    INFO((value ? std::string() : value.error().text()));
    REQUIRE(value.has_value());
    return *value;
  }
  // As the device does. again: whether the commands were kept.
  std::uint64_t submit(const std::vector<BoundPass>& passes, std::uint64_t word, bool& again) const {
    DispatchKey key;
    key.add(word);
    const auto value = queue->submit_again(key);
    REQUIRE(value.has_value());
    again = value->has_value();
    if (again) return **value;
    const auto anew = queue->submit(passes, key);
    INFO((anew ? std::string() : anew.error().text()));
    REQUIRE(anew.has_value());
    return *anew;
  }
  Status wait(std::uint64_t value) const {
    const auto result = queue->wait(value, Deadline::after(std::chrono::seconds(5)));
    return result ? Status() : result.error();
  }
  Status refused(const std::vector<BoundPass>& passes) const {
    const auto value = queue->submit(passes);
    return value ? Status() : value.error();
  }
};

}  // namespace

TEST_CASE("queue: values grow from 1, results are the device's time and are taken once") {
  const Fixture f;
  for (std::uint64_t value = 1; value <= 3; ++value) {
    CHECK(f.submit({f.pass(f.good)}) == value);
    const auto result = f.queue->wait(value, Deadline::never());
    REQUIRE(result.has_value());
    CHECK(result->device_ns == 1000);  // 100 ticks of 100 MHz
    CHECK(result->begun_ns > 0);
    CHECK(result->begun_ns <= now_ns());
  }
  CHECK(f.wait(2).code == StatusCode::not_found);
  CHECK(f.wait(0).code == StatusCode::not_found);
  CHECK(f.wait(4).message == "submission 4: never made; the last is 3");
  CHECK(f.gpu->dispatches == 3);
}

TEST_CASE("queue: a submission without passes is one all the same") {
  const Fixture f;
  CHECK(f.wait(f.submit({})).ok());
  CHECK(f.gpu->dispatches == 0);
  CHECK(f.gpu->submissions == 1);
}

TEST_CASE("queue: only passes that depend on each other are parted") {
  const Fixture f;
  CHECK(f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.good, 2, 3), f.pass(f.good, 4, 5)})).ok());
  CHECK(f.gpu->barriers == 1);  // from the submission before
  CHECK(f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.good, 1, 2), f.pass(f.good, 2, 3)})).ok());
  CHECK(f.gpu->barriers == 1 + 3);
}

TEST_CASE("queue: thousands of passes are one submission of chained buffers") {
  const Fixture f;
  std::vector<BoundPass> passes;
  for (std::size_t i = 0; i < 5000; ++i) passes.push_back(f.pass(i % 7 == 0 ? f.bad : f.good, i % 2, 1 - i % 2));
  for (int round = 0; round < 3; ++round) CHECK(f.wait(f.submit(passes)).ok());
  CHECK(f.gpu->dispatches == 15000);
  CHECK(f.gpu->submissions == 3);
}

TEST_CASE("queue: each buffer is listed once, with all that the GPU needs") {
  const Fixture f;
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
  const Fixture f;
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
  const Fixture f(4096);  // four chunks
  f.gpu->held = true;
  std::atomic<int> submitted{0};
  std::thread submitter([&] {
    for (int i = 0; i < 12; ++i) {
      if (f.queue->submit({f.pass(f.good)})) ++submitted;
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
  Fixture f;
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
  const Fixture f(4096);
  for (int i = 0; i < 200; ++i) f.submit({f.pass(f.good)});
  CHECK(f.wait(1).ok());
  CHECK(f.wait(200).ok());
}

TEST_CASE("queue: who hangs the device is named, goes into quarantine, and the others go on") {
  const Fixture f;
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
  Fixture f;
  const auto object = sha256("two kernels");
  const auto first = quarantine_key_of(object, "first"), second = quarantine_key_of(object, "second");
  f.quarantine.add(first);
  CHECK(f.quarantine.holds(first));
  CHECK_FALSE(f.quarantine.holds(second));
  CHECK_FALSE(f.quarantine.holds(quarantine_key_of(sha256("others"), "first")));
}

TEST_CASE("queue: the third of equal dispatches runs the commands of the second") {
  Fixture f;
  const std::vector<BoundPass> passes{f.pass(f.good, 0, 1), f.pass(f.bad, 1, 2), f.pass(f.good, 2, 7)};
  bool again = true;
  for (std::uint64_t value = 1; value <= 6; ++value) {
    CHECK(f.submit(passes, 5, again) == value);
    CHECK(again == (value > 2));
    const auto result = f.queue->wait(value, Deadline::after(std::chrono::seconds(5)));
    REQUIRE(result.has_value());
    CHECK(result->device_ns == 3000);
    CHECK(f.gpu->dispatches == 3 * value);
    CHECK(f.gpu->lists.back() == f.gpu->lists[value == 1 ? 0 : 1]);
  }
  bool other = true;
  CHECK(f.wait(f.submit(passes, 6, other)).ok());
  CHECK_FALSE(other);

  // One that is in flight is not submitted again, and is what a later one finds.
  f.gpu->held = true;
  const std::uint64_t first = f.submit(passes, 5, again);
  CHECK(again);
  const std::uint64_t second = f.submit(passes, 5, again);
  CHECK_FALSE(again);
  const std::uint32_t buffer = f.buffers[7]->handle();
  f.buffers.pop_back();
  f.gpu->run_held();
  CHECK(f.wait(first).ok());
  CHECK(f.wait(second).ok());
  CHECK(f.gpu->buffers.contains(buffer));  // `passes` have it
}

TEST_CASE("queue: kept commands keep no buffer and no program, and are bounded") {
  Fixture f;
  bool again = false;
  const std::uint32_t buffer = f.buffers[7]->handle(), code = f.bad->code->handle();
  for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit({f.pass(f.bad, 0, 7)}, 1, again)).ok());
  CHECK(again);
  f.buffers.pop_back();
  f.bad = nullptr;
  CHECK_FALSE(f.gpu->buffers.contains(buffer));
  CHECK_FALSE(f.gpu->buffers.contains(code));

  const std::size_t before = f.gpu->buffers.size();  // with commands, arguments and stamps of the first
  for (std::uint64_t word = 2; word < 100; ++word) {
    for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit({f.pass(f.good)}, word, again)).ok());
    CHECK(f.gpu->buffers.size() <= before + std::size_t{15 * 3});
  }
  for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit({f.pass(f.good)}, 99, again)).ok());
  CHECK(again);  // the first ones were unused for long
  CHECK(f.wait(f.submit({f.pass(f.good)}, 2, again)).ok());
  CHECK_FALSE(again);
}

TEST_CASE("queue: of more dispatches in turns than are kept, some are, and none is written twice to be kept") {
  const Fixture f;
  const std::uint64_t many = GENERATE(17u, 30u, 60u, 79u, 100u, 200u);
  bool again = false;
  std::vector<std::size_t> kept;  // in each round
  for (int round = 0; round < 6; ++round) {
    const std::size_t buffers = f.gpu->buffers.size();
    std::size_t count = 0;
    for (std::uint64_t word = 1; word <= many; ++word) {
      CHECK(f.wait(f.submit({f.pass(f.good)}, word, again)).ok());
      count += again;
      for (int other = 0; other < 8; ++other) CHECK(f.wait(f.submit({f.pass(f.good)})).ok());  // without a key
    }
    kept.push_back(count);
    CHECK((round < 3 || f.gpu->buffers.size() == buffers));
  }
  CAPTURE(many, kept);
  CHECK(kept.back() == (many <= 64 ? 16 : 0));  // more are not remembered
}

TEST_CASE("queue: a burst of equal dispatches keeps one") {
  const Fixture f;
  bool again = false;
  f.gpu->held = true;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 12; ++i) values.push_back(f.submit({f.pass(f.good)}, 1, again));
  const std::size_t buffers = f.gpu->buffers.size();
  for (int i = 0; i < 12; ++i) values.push_back(f.submit({f.pass(f.good)}, 1, again));
  CHECK(f.gpu->buffers.size() == buffers);
  f.gpu->run_held();
  for (const std::uint64_t value : values) CHECK(f.wait(value).ok());
  CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  CHECK(again);
}

TEST_CASE("queue: who hangs the device in kept commands is named, and they run no more") {
  const Fixture f;
  const std::vector<BoundPass> passes{f.pass(f.good, 0, 1), f.pass(f.bad, 1, 2), f.pass(f.good, 2, 3)};
  bool again = false;
  for (int i = 0; i < 2; ++i) CHECK(f.wait(f.submit(passes, 1, again)).ok());
  f.gpu->hang_at = 7;
  const Status status = f.wait(f.submit(passes, 1, again));
  CHECK(again);
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("submission 3: pass 1: kernel 'bad' (program "));
  DispatchKey key;
  key.add(1);
  const auto refused = f.queue->submit_again(key);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == StatusCode::unsupported);
  CHECK_THAT(refused.error().message, Catch::Contains("kernel 'bad'") && Catch::Contains("quarantined until"));
}

TEST_CASE("queue: kept commands of a program that is suspected since then are written again") {
  Fixture f;
  const std::vector<BoundPass> passes{f.pass(f.good, 0, 1), f.pass(f.bad, 2, 3)};  // which overlap
  bool again = false;
  for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit(passes, 1, again)).ok());
  CHECK(again);
  f.quarantine.suspect(f.bad->quarantine_key);
  const std::uint32_t barriers = f.gpu->barriers;
  CHECK(f.wait(f.submit(passes, 1, again)).ok());
  CHECK_FALSE(again);
  CHECK(f.gpu->barriers == barriers + 2);  // one of them before the suspect
  CHECK(f.wait(f.submit(passes, 1, again)).ok());
  CHECK(again);
}

TEST_CASE("queue: kept commands that the kernel driver does not take are an error, or are written again") {
  const Fixture f;
  bool again = false;
  for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  CHECK(again);
  DispatchKey key;
  key.add(1);
  const auto error_of = [&](int error) {
    f.gpu->submit_errors = {error};
    const auto value = f.queue->submit_again(key);
    return value ? Status() : value.error();
  };
  CHECK(error_of(ENOMEM).code == StatusCode::unavailable);
  CHECK(error_of(EINVAL).code == StatusCode::internal);
  CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  CHECK(again);

  f.gpu->submit_errors = {ECANCELED};  // as after a reset
  CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  CHECK_FALSE(again);
  CHECK(f.gpu->contexts == 1);  // submit() was taken

  f.gpu->held = true;
  const std::uint64_t held = f.submit({f.pass(f.bad)});
  f.gpu->submit_errors = {ENOMEM};
  const std::uint64_t behind = f.submit({f.pass(f.good)}, 1, again);
  CHECK_FALSE(again);
  f.gpu->run_held();
  CHECK(f.wait(held).ok());
  CHECK(f.wait(behind).ok());

  CHECK(error_of(ENODEV).code == StatusCode::device_lost);
  CHECK(error_of(0).code == StatusCode::device_lost);
}

TEST_CASE("queue: without memory of its own for it a submission is not kept") {
  const Fixture f;
  bool again = false;
  CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  f.gpu->most_buffers = f.gpu->buffers.size() + 1;
  for (int i = 0; i < 3; ++i) {
    CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
    CHECK_FALSE(again);
  }
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
    const Fixture f;
    f.gpu->hang_at = 0;
    f.gpu->fault = fault;
    const Status status = f.wait(f.submit({f.pass(f.bad)}));
    INFO(status.message);
    CHECK(status.code == StatusCode::unavailable);
    CHECK_THAT(status.message, Catch::Contains("pass 0: kernel 'bad' (program ") && Catch::Contains(message));
  }
}

TEST_CASE("queue: among passes that overlapped nobody is convicted, and the second time tells") {
  const Fixture f;
  const auto launch = [&] { return f.submit({f.pass(f.good, 0, 1), f.pass(f.bad, 2, 3)}); };
  f.gpu->hang_at = 1;
  const Status first = f.wait(launch());
  CHECK(first.code == StatusCode::unavailable);
  CHECK_THAT(first.message, Catch::Contains("pass 0 to 1") && Catch::Contains("each runs alone from now on"));
  CHECK_FALSE(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
  f.gpu->hang_at = f.gpu->dispatches + 1;
  CHECK_THAT(f.wait(launch()).message, Catch::Contains("pass 1: kernel 'bad'"));
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
}

TEST_CASE("queue: what was queued behind a hang is cancelled, not blamed, and may be submitted again") {
  const Fixture f;
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

TEST_CASE("queue: a reset that another program caused blames nobody here") {
  const Fixture f;
  f.gpu->hang_at = 0;
  f.gpu->innocent = true;
  const Status status = f.wait(f.submit({f.pass(f.bad)}));
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("another program's work had the device reset"));
  CHECK_FALSE(f.quarantine.holds(f.bad->quarantine_key));
  CHECK(f.wait(f.submit({f.pass(f.bad)})).ok());
}

TEST_CASE("queue: a device whose memory was lost is lost, and says why ever after") {
  const Fixture f;
  f.gpu->held = true;
  f.gpu->hang_at = 0;
  f.gpu->lose_vram = true;
  const std::uint64_t first = f.submit({f.pass(f.bad)}), second = f.submit({f.pass(f.good)});
  f.gpu->run_held();
  for (const std::uint64_t value : {first, second}) {
    const Status status = f.wait(value);
    CHECK(status.code == StatusCode::device_lost);
    CHECK_THAT(status.message, Catch::Contains("its memory was lost in a reset"));
  }
  CHECK(f.refused({f.pass(f.good)}).code == StatusCode::device_lost);
  CHECK(f.queue->alive().code == StatusCode::device_lost);
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
}

TEST_CASE("queue: a context that a reset took away between submissions is replaced unseen") {
  const Fixture f;
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
  const Fixture f;
  f.gpu->held = true;
  const std::uint64_t before = f.submit({f.pass(f.good)});
  f.gpu->submit_errors = {-ENOMEM};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.gpu->run_held();
  });
  const auto value = f.queue->submit({f.pass(f.good)});
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
  const Fixture f;
  f.gpu->submit_errors = {-EINVAL};
  const Status refused = f.refused({f.pass(f.good)});
  CHECK(refused.code == StatusCode::internal);
  CHECK_THAT(refused.message, Catch::Contains("Invalid argument"));
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("queue: a device that was taken away is lost") {
  const Fixture f;
  f.gpu->submit_errors = {-ENODEV};
  CHECK(f.refused({f.pass(f.good)}).code == StatusCode::device_lost);
  CHECK(f.queue->alive().code == StatusCode::device_lost);
}

TEST_CASE("queue: threads submit and wait at once") {
  const Fixture f(8192);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::uint64_t> values;
  std::vector<std::string> failures;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto value = f.queue->submit({f.pass(f.good)});
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

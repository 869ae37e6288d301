// Submissions that a queue keeps, to submit their commands again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>

#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("queue: the third of equal dispatches runs the commands of the second") {
  QueueFixture f;
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
  QueueFixture f;
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
  const QueueFixture f;
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

TEST_CASE("queue: recorded commands have memory for each pass, at most one MiB") {
  const QueueFixture f;
  const auto kept = [&f](std::size_t count, std::uint64_t word) {  // the bytes of the largest buffer
    std::vector<BoundPass> passes;
    for (std::size_t i = 0; i < count; ++i) passes.push_back(f.pass(f.good, i % 2, 1 - i % 2));
    bool again = false;
    for (int i = 0; i < 3; ++i) CHECK(f.wait(f.submit(passes, word, again)).ok());
    CHECK(again);
    std::size_t words = 0;
    for (const auto& [handle, memory] : f.gpu->memory) words = std::max(words, memory.words.size());
    return 8 * words;
  };
  CHECK(kept(1, 1) == 65536);       // no more than the rings
  CHECK(kept(300, 2) == 81920);     // 4096 + 300 * 256 bytes, in pages
  CHECK(kept(5000, 3) == 1048576);  // not 1284096
}

TEST_CASE("queue: a burst of equal dispatches keeps one") {
  const QueueFixture f;
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
  const QueueFixture f;
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
  QueueFixture f;
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
  const QueueFixture f;
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
  const QueueFixture f;
  bool again = false;
  CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
  f.gpu->most_buffers = f.gpu->buffers.size() + 1;
  for (int i = 0; i < 3; ++i) {
    CHECK(f.wait(f.submit({f.pass(f.good)}, 1, again)).ok());
    CHECK_FALSE(again);
  }
}

}  // namespace kiln::amdgpu_pm4

// What the device makes of faults that the simulation is asked for: each case in a process of its own, with
// KILN_SIM_FAULT naming the fault of the third submission. Every case submits until it meets it.
#include <catch2/catch.hpp>

#include "device/opened_device.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct Faulty : OpenedDevice {
  std::unique_ptr<Program> program = build(saxpy("1.0f"));
  std::unique_ptr<Buffer> x = buffer(BufferUsage::upload, std::vector<float>(64, 1.0F));
  std::unique_ptr<Buffer> y = buffer(BufferUsage::storage, std::vector<float>(64, 0.0F));

  Status run() { return OpenedDevice::run(*program, {x.get(), y.get()}); }
  Status third() {
    REQUIRE(run().ok());
    REQUIRE(run().ok());
    const Status status = run();
    UNSCOPED_INFO(status.text());
    return status;
  }
  void check_goes_on(float runs) {
    CHECK(run().ok());
    CHECK(read(*y) == std::vector<float>(64, runs));
  }
};

}  // namespace

TEST_CASE("fault: a hang is unavailable, names the kernel, and the device goes on with others",
          "[.hang][.page_fault]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  const Status status = d.third();
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("submission 3: pass 0: kernel 'work'") && Catch::Contains("quarantine"));
  CHECK(d.run().code == StatusCode::unsupported);
  const auto other = d.build(saxpy("2.0f"));
  CHECK(d.OpenedDevice::run(*other, {d.x.get(), d.y.get()}).ok());
  CHECK(d.read(*d.y) == std::vector<float>(64, 4.0F));
}

TEST_CASE("fault: what was submitted behind a hang is cancelled and may be submitted again", "[.hang_with_others]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  REQUIRE(d.run().ok());
  REQUIRE(d.run().ok());
  const auto other = d.build(saxpy("2.0f"));
  Buffer* const bindings[] = {d.x.get(), d.y.get()};
  const PassLaunch hangs{d.program.get(), bindings, {1, 1, 1}}, behind{other.get(), bindings, {1, 1, 1}};
  const auto first = d.device->submit({{&hangs, 1}});
  REQUIRE(first.has_value());
  const auto second = d.device->submit({{&behind, 1}});
  REQUIRE(second.has_value());
  const Deadline soon = Deadline::after(std::chrono::seconds(60));
  const auto cancelled = d.device->wait(*second, soon);
  const auto hung = d.device->wait(*first, soon);
  REQUIRE_FALSE(hung.has_value());
  CHECK_THAT(hung.error().message, Catch::Contains("quarantine"));
  if (!cancelled) {
    CHECK(cancelled.error().code == StatusCode::unavailable);
    CHECK(d.OpenedDevice::run(*other, {d.x.get(), d.y.get()}).ok());
  }
  CHECK(d.read(*d.y) == std::vector<float>(64, 4.0F));
}

TEST_CASE("fault: lost memory is a lost device, and opening it anew serves", "[.vram_lost]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  const Status status = d.third();
  CHECK(status.code == StatusCode::device_lost);
  CHECK(d.run().code == StatusCode::device_lost);
  BufferDesc desc;
  desc.bytes = 64;
  desc.usage = BufferUsage::storage;
  CHECK(d.device->create_buffer(desc).error().code == StatusCode::device_lost);
  CHECK(d.device->build(saxpy("3.0f")).error().code == StatusCode::device_lost);
  d.program = nullptr;
  d.x = nullptr;
  d.y = nullptr;
  d.reopen();
  const auto program = d.build(saxpy("3.0f"));
  const auto x = d.buffer(BufferUsage::upload, counting(64)), y = d.buffer(BufferUsage::storage, counting(64));
  CHECK(d.OpenedDevice::run(*program, {x.get(), y.get()}).ok());
  CHECK(d.read(*y)[63] == 252);
}

TEST_CASE("fault: a context lost to another program's reset is replaced, and the job runs", "[.cancelled]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  CHECK(d.third().ok());
  d.check_goes_on(4);
  CHECK(d.notes.kept.empty());
}

TEST_CASE("fault: short of memory once is no failure, or one that passes", "[.enomem]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  const Status status = d.third();
  CHECK(status.code == StatusCode::unavailable);
  d.check_goes_on(3);
}

TEST_CASE("fault: a refused submission is typed, and the next goes through", "[.einval]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  const Status status = d.third();
  CHECK(status.code == StatusCode::internal);
  d.check_goes_on(3);
}

TEST_CASE("fault: a device that is taken away is lost", "[.unplugged]") {
  if (!OpenedDevice::possible()) return;
  Faulty d;
  CHECK(d.third().code == StatusCode::device_lost);
  CHECK(d.run().code == StatusCode::device_lost);
}

}  // namespace kiln::amdgpu_pm4

// A card that hangs or is taken away: a typed error for what ran and for all that follows, and other devices serve.
// Each case in a process of its own, with KILN_SIM_FAULT at a submission of the process.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
namespace {

using support::Vulkan;

struct Work {
  std::unique_ptr<Program> program;
  std::unique_ptr<Buffer> sums;

  explicit Work(Device& device) {
    program = std::move(device.build(adding_one()).value());
    BufferDesc desc;
    desc.bytes = 256;
    desc.usage = BufferUsage::readback;
    sums = std::move(device.create_buffer(desc).value());
    const std::vector<std::uint32_t> zeros(64, 0);
    REQUIRE(sums->write(0, std::as_bytes(std::span(zeros))).ok());
  }
  Status run(Device& device) const {
    Buffer* const bindings[] = {sums.get()};
    const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
    const auto value = device.submit({{&launch, 1}});
    if (!value) return value.error();
    const auto fence = device.wait(*value, Deadline::after(std::chrono::seconds(60)));
    return fence ? ok_status() : fence.error();
  }
};

}  // namespace

TEST_CASE("vulkan loss: a lost card is a typed error for all that follows, and another device serves",
          "[.hang][.unplugged]") {
  if (!Vulkan::instance().usable()) return;
  const std::shared_ptr<Device> card = Vulkan::instance().device();
  REQUIRE(card->info().kind == DeviceKind::simulated);
  // Never destroyed: the validation layer takes what a lost device had in flight for still in use.
  static const auto* const held = new Work(*card);
  const Work& work = *held;
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = work.run(*card);
  INFO(status.text());
  REQUIRE(status.code == StatusCode::device_lost);
  CHECK_THAT(status.message, Catch::Contains(card->info().id));
  CHECK(work.run(*card).code == StatusCode::device_lost);
  CHECK(card->build(adding_one()).error().code == StatusCode::device_lost);
  BufferDesc desc;
  desc.bytes = 64;
  desc.usage = BufferUsage::storage;
  CHECK(card->create_buffer(desc).error().code == StatusCode::device_lost);
  std::vector<std::byte> memory(64);
  CHECK(work.sums->read(0, memory).code == StatusCode::device_lost);

  const std::vector<DeviceInfo> listed = Vulkan::instance().plugin().driver().enumerate();
  const auto other =
      std::ranges::find_if(listed, [](const DeviceInfo& info) { return info.kind == DeviceKind::software; });
  REQUIRE(other != listed.end());
  const auto device = Vulkan::instance().plugin().open(other->id);
  const Work elsewhere(*device);
  CHECK(elsewhere.run(*device).ok());
  std::vector<std::uint32_t> sums(64);
  REQUIRE(elsewhere.sums->read(0, std::as_writable_bytes(std::span(sums))).ok());
  CHECK(sums == std::vector<std::uint32_t>(64, 1));
}

}  // namespace kiln::vulkan

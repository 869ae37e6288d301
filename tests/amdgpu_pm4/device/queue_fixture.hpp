// QueueFixture: a queue on a fake GPU, with two kernels and eight buffers.
//
// Thread-safety: as Queue. Ownership: owns all but the GPU, which it shares with what it made.
#pragma once

#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/queue.hpp"
#include "device/fake_kernels.hpp"
#include "device/fake_winsys.hpp"

namespace kiln::amdgpu_pm4 {

// Each pass bound on its own.
inline BoundDispatch in_order(const std::vector<BoundPass>& passes) {
  BoundDispatch dispatch;
  for (const BoundPass& pass : passes) dispatch.add(pass);
  return dispatch;
}

struct QueueFixture {
  std::shared_ptr<fake::Gpu> gpu = std::make_shared<fake::Gpu>();
  std::unique_ptr<Winsys> winsys = fake::make_winsys(gpu);
  Quarantine quarantine{nullptr, "device"};
  std::shared_ptr<const LoadedKernel> good = fake::make_kernel(*winsys, "good", {Access::read, Access::write});
  std::shared_ptr<const LoadedKernel> bad = fake::make_kernel(*winsys, "bad", {Access::read, Access::write});
  std::vector<std::shared_ptr<BufferObject>> buffers;
  std::unique_ptr<Queue> queue;

  explicit QueueFixture(std::uint64_t ring_bytes = 1 << 16) {
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
    const auto value = queue->submit(in_order(passes));
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
    const auto anew = queue->submit(in_order(passes), key);
    INFO((anew ? std::string() : anew.error().text()));
    REQUIRE(anew.has_value());
    return *anew;
  }
  Status wait(std::uint64_t value) const {
    const auto result = queue->wait(value, Deadline::after(std::chrono::seconds(5)));
    return result ? Status() : result.error();
  }
  Status refused(const std::vector<BoundPass>& passes) const {
    const auto value = queue->submit(in_order(passes));
    return value ? Status() : value.error();
  }
};

}  // namespace kiln::amdgpu_pm4

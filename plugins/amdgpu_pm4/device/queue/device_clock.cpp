#include "amdgpu_pm4/device/queue/device_clock.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t comparison_ns = 1'000'000'000;  // the two clocks may drift apart

}  // namespace

std::uint64_t DeviceClock::ns_between(std::uint64_t begin, std::uint64_t end) const noexcept {
  if (khz_ == 0 || end <= begin) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(end - begin) * 1e6 / static_cast<double>(khz_));
}

std::uint64_t DeviceClock::on_host_clock(std::uint64_t counter) noexcept {
  if (khz_ == 0 || refused_) return 0;
  const std::uint64_t now = now_ns();
  if (compared_at_ns_ == 0 || now > compared_at_ns_ + comparison_ns) {
    const auto read = winsys_.counter();
    refused_ = !read;
    if (refused_) return 0;
    compared_at_ns_ = now + (now_ns() - now) / 2;
    counter_then_ = *read;
  }
  return counter >= counter_then_ ? compared_at_ns_ + ns_between(counter_then_, counter)
                                  : compared_at_ns_ - ns_between(counter, counter_then_);
}

}  // namespace kiln::amdgpu_pm4

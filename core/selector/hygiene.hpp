// Which runs say how fast a device is, and why the others do not.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/device_selector.hpp>

#include <array>
#include <string_view>

namespace kiln::selector {

enum class Unfit : std::uint8_t {
  fit = 0,
  first_run,  // learned apart: what a device does once is no measure of what it does again
  prepared,   // a Constant was packed for it
  contended,  // something else ran on what the device shares
  timed_out,
  faulted,
  wrong_result,
  above_roof,  // faster than the device can be
  too_short,   // less than the clock tells apart
};

inline constexpr std::array all_unfit{Unfit::first_run, Unfit::prepared,     Unfit::contended,  Unfit::timed_out,
                                      Unfit::faulted,   Unfit::wrong_result, Unfit::above_roof, Unfit::too_short};

std::string_view to_string(Unfit unfit) noexcept;

// A run without the wait in the queue, which is another job's time.
double service_ns(const Measurement& measurement) noexcept;

// How far a rate in direct FLOPs may go; 0: not known. Beyond the roof by what an algorithm may leave out of them:
// Winograd's multiplications, and sums over the padding.
double rate_limit(const KernelSpec& spec, const DeviceInfo& device) noexcept;

// The rate of a run by the shorter of its own time and the device's, in direct GFLOP/s; 0: nothing was timed.
double rate_of(const KernelSpec& spec, const Measurement& measurement) noexcept;

// Faster than the device can be: the time is wrong.
bool is_above_roof(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept;

// first_run only where nothing else is amiss.
Unfit judge(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
            const RunConditions& conditions) noexcept;

}  // namespace kiln::selector

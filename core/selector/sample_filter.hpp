// Sample filter: decides which runs are samples of a device's speed, and names the reason for the others.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/device_selector.hpp>

#include <array>
#include <string_view>

namespace kiln::selector {

enum class Unfit : std::uint8_t {
  fit = 0,
  first_run,  // learned separately: it has one-time costs
  prepared,   // it packed a Constant
  contended,  // other work ran on shared hardware
  timed_out,
  faulted,
  wrong_result,
  above_roof,  // faster than the device's roof
  too_short,   // shorter than the clock's resolution
};

inline constexpr std::array all_unfit{Unfit::first_run, Unfit::prepared,     Unfit::contended,  Unfit::timed_out,
                                      Unfit::faulted,   Unfit::wrong_result, Unfit::above_roof, Unfit::too_short};

std::string_view to_string(Unfit unfit) noexcept;

// Returns the time of a run without its wait in the queue; of a run in a batch, with its share of the common time.
double service_ns(const Measurement& measurement) noexcept;

// The parts of a ShapeBucket that a roof limits.
struct Effort {
  double flops = 0, saving = 1;
};
Effort effort_of(const KernelSpec& spec) noexcept;

// Returns the highest possible rate in direct FLOPs; 0: unknown. It is above the roof by the FLOPs that an algorithm
// may omit: multiplications of Winograd, and sums over the padding.
double rate_limit(const Effort& effort, const DeviceInfo& device) noexcept;

// Returns the rate of a run in direct GFLOP/s, from the shorter of wall and device time; 0: not timed.
double rate_of(const Effort& effort, const Measurement& measurement) noexcept;

// Returns whether the run was faster than the device can be, so that its time is wrong.
bool is_above_roof(const Effort& effort, const DeviceInfo& device, const Measurement& measurement) noexcept;
bool is_above_roof(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept;
// internal: it was; the error has the rate and the roof.
Status check_roof(const Effort& effort, const DeviceInfo& device, const Measurement& measurement);

// Returns first_run only if no other reason applies.
Unfit judge(const ShapeBucket& work, const DeviceInfo& device, const Measurement& measurement,
            const RunConditions& conditions) noexcept;

}  // namespace kiln::selector

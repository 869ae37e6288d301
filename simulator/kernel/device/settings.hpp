// Settings: what the simulated device is told by its environment.
//   KILN_SIM_TARGET     gfx1100 (default) or gfx1030
//   KILN_SIM_FAULT      a fault plan: see FaultPlan
//   KILN_SIM_LOG        file that the journal appends to; the standard error stream without it
//   KILN_SIM_TRACE      1: the journal has a line for every ioctl
//   KILN_SIM_CAPTURE    folder that every command buffer is written to: see Capture
//   KILN_SIM_LOCKUP_MS  how long a hanging job holds its ring until the reset; 200
//   KILN_SIM_WATCHDOG_MS  a dispatch of which no workgroup ends for so long has hung; 60000. A wait packet has a sixth
//   KILN_SIM_SCHEDULE   a number: workgroups and waves run in an order drawn from it, on one thread
//
// Thread-safety and ownership: values.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "simulator/kernel/device/fault_plan.hpp"
#include "simulator/kernel/device/target.hpp"

namespace kiln::simulator::kernel {

struct Settings {
  const Target* target = nullptr;
  FaultPlan faults;
  std::string log_path;
  bool trace = false;
  std::string capture_folder;  // empty: none is kept
  std::chrono::milliseconds lockup{200};
  std::chrono::milliseconds watchdog{60'000};
  std::optional<std::uint64_t> schedule_seed;
};

// Null from `variable` means that it is not set. False with a reason that names the variable where one makes no sense.
bool read_settings(const std::function<const char*(const char*)>& variable, Settings& settings, std::string& reason);

}  // namespace kiln::simulator::kernel

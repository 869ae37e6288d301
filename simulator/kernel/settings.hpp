// Settings of the simulated device, and the faults that it plants on request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/kernel/target.hpp"

namespace kiln::simulator::kernel {

// FaultPlan: which submissions are to go wrong, and how: "hang@3,enomem@5+". A step is NAME@N for the Nth submission
// that reaches the device (from 1), NAME@N+ for that and every later one. `enomem_buffer` counts buffers created
// instead.
//
// Thread-safety and ownership: values.

enum class PlannedFault : std::uint8_t {
  invalid = 0,    // none is planned
  hang,           // the job never ends; after the lockup time its context is found guilty and the device is reset
  vram_lost,      // as hang, and the reset loses the contents of video memory
  page_fault,     // the job stops at an address without a page; reset as for hang
  cancelled,      // ECANCELED: the context was lost in a reset that others caused
  enomem,         // ENOMEM, once
  einval,         // EINVAL, once
  unplugged,      // the device is gone: ENODEV from then on
  enomem_buffer,  // ENOMEM from the creation of a buffer
};

std::string_view to_string(PlannedFault fault) noexcept;

class FaultPlan {
 public:
  // False with a reason where the text is not a plan; `plan` is then empty. An empty text is an empty plan.
  static bool parse(std::string_view text, FaultPlan& plan, std::string& reason);

  PlannedFault at_submission(std::uint64_t number) const noexcept;
  bool fails_buffer(std::uint64_t number) const noexcept;

 private:
  struct Step {
    PlannedFault fault = PlannedFault::invalid;
    std::uint64_t number = 0;
    bool onwards = false;

    bool meets(std::uint64_t at) const noexcept { return onwards ? at >= number : at == number; }
  };

  std::vector<Step> steps_;
};

// Settings: what the simulated device is told by its environment.
//   KILN_SIM_TARGET     gfx1100 (default) or gfx1030
//   KILN_SIM_FAULT      a fault plan: see FaultPlan
//   KILN_SIM_LOG        file that the journal appends to; the standard error stream without it
//   KILN_SIM_TRACE      1: the journal has a line for every ioctl
//   KILN_SIM_CAPTURE    folder that every command buffer is written to: see Capture
//   KILN_SIM_LOCKUP_MS  how long a hanging job holds its ring until the reset; 200
//   KILN_SIM_WATCHDOG_MS  a dispatch of which no workgroup ends for so long has hung; 60000. A wait packet has a sixth
//   KILN_SIM_CHECK      1: hazards are faults: see ComputeLimits::check_hazards
//   KILN_SIM_SCHEDULE   a number: workgroups and waves run in an order drawn from it, on one thread
//
// Thread-safety and ownership: values.

struct Settings {
  const Target* target = nullptr;
  FaultPlan faults;
  std::string log_path;
  bool trace = false;
  std::string capture_folder;  // empty: none is kept
  std::chrono::milliseconds lockup{200};
  std::chrono::milliseconds watchdog{60'000};
  std::optional<std::uint64_t> schedule_seed;
  bool check = false;
};

// Null from `variable` means that it is not set. False with a reason that names the variable where one makes no sense.
bool read_settings(const std::function<const char*(const char*)>& variable, Settings& settings, std::string& reason);

}  // namespace kiln::simulator::kernel

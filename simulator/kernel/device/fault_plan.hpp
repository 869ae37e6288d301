// FaultPlan: which submissions are to go wrong, and how: "hang@3,enomem@5+". A step is NAME@N for the Nth submission
// that reaches the device (from 1), NAME@N+ for that and every later one. `enomem_buffer` counts buffers created
// instead.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::simulator::kernel {

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

}  // namespace kiln::simulator::kernel

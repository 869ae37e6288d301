#include "simulator/fault.hpp"

#include <cstdio>

namespace kiln::simulator {

std::string_view to_string(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::invalid:
      return "invalid";
    case FaultKind::unknown_packet:
      return "unknown packet";
    case FaultKind::unknown_register:
      return "unknown register";
    case FaultKind::unknown_opcode:
      return "unknown opcode";
    case FaultKind::unmapped:
      return "unmapped";
    case FaultKind::permission:
      return "permission";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::not_listed:
      return "not listed";
    case FaultKind::overrun:
      return "overrun";
    case FaultKind::bad_state:
      return "bad state";
    case FaultKind::hazard:
      return "hazard";
    case FaultKind::watchdog:
      return "watchdog";
    case FaultKind::planted:
      return "planted";
  }
  return "invalid";
}

std::string describe(const Fault& fault) {
  char at[64];
  std::snprintf(at, sizeof at, " at 0x%llx", static_cast<unsigned long long>(fault.address));
  std::string text = std::string(to_string(fault.kind)) + at;
  if (fault.dword) {
    std::snprintf(at, sizeof at, " (0x%08x)", static_cast<unsigned>(*fault.dword));
    text += at;
  }
  return text + ": " + fault.reason;
}

}  // namespace kiln::simulator

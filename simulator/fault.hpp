// Fault: why the simulated device stopped a job: what it met, where, and why that is refused. The device never guesses.
//
// Thread-safety and ownership: values. A function that can fail answers std::optional<Fault>; nothing means that it
// went well. No exception crosses a source file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::simulator {

enum class FaultKind : std::uint8_t {
  invalid = 0,
  unknown_packet,    // opcode, field or length that the command processor does not know
  unknown_register,  // written or read, on this ring
  unknown_opcode,    // instruction word that no table knows, or an operand or modifier that it does not take
  unmapped,          // address without a page
  permission,        // page without the right READABLE, WRITEABLE or EXECUTABLE
  misaligned,        // address, code start, command buffer
  not_listed,        // buffer mapped, but not in the submission's list
  overrun,           // registers, LDS, scratch or code end passed
  bad_state,         // a dispatch that hardware would hang on: CU masks 0, wave size against code, workgroup 0
  hazard,            // work that depends on unfinished or invisible work
  watchdog,          // a wave or a wait that does not end
  planted            // asked for from outside
};

std::string_view to_string(FaultKind kind) noexcept;

struct Fault {
  FaultKind kind = FaultKind::invalid;
  std::uint64_t address = 0;  // of the packet, the instruction or the data; by kind
  // The word that is refused: the instruction's or the packet's. Nothing where the fault is about no word.
  std::optional<std::uint32_t> dword;
  std::string reason;  // in words, with both sides of the mismatch
};

// "unmapped at 0x8000001000 (0xdc520000): …"
std::string describe(const Fault& fault);

// Generation: which instruction set and register map a simulated device has.
//
// Thread-safety and ownership: values.

enum class Generation : std::uint8_t { invalid = 0, gfx10_3, gfx11 };

}  // namespace kiln::simulator

// A stream as lines of text, one a dword: its place, its value, and what it is. "??" marks what is not known, with the
// reason.
//
// Thread-safety: functions without state. Ownership: answers are values.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <span>
#include <string>

#include "amdgpu_pm4/packets/decode/description.hpp"

namespace kiln::amdgpu_pm4 {

// With a line's end after each line. A run of more than two fillers is one line.
std::string stream_text(std::span<const std::uint32_t> stream, Generation generation);

// Bytes of a file, little endian. invalid_argument: no whole number of dwords, or none at all.
Result<std::string> stream_text(std::span<const std::byte> bytes, Generation generation);

}  // namespace kiln::amdgpu_pm4

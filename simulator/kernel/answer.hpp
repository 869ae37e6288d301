// Answer: what an ioctl of the simulated kernel driver comes to: nothing where it went well, else the error number that
// the kernel gives and the reason in words, which goes to the journal. A refusal without words is an ordinary answer of
// the interface (a wait that ran out of time).
//
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace kiln::simulator::kernel {

struct Refusal {
  int error = 0;  // positive errno
  std::string reason;
};

using Answer = std::optional<Refusal>;

inline Answer refuse(int error, std::string reason = {}) { return Refusal{error, std::move(reason)}; }

// "0x1f"
inline std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

}  // namespace kiln::simulator::kernel

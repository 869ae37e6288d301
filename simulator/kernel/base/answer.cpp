#include "simulator/kernel/base/answer.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace kiln::simulator::kernel {

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

}  // namespace kiln::simulator::kernel

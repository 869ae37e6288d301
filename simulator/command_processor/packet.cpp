#include "simulator/command_processor/packet.hpp"

#include <cstdio>

namespace kiln::simulator {

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Fault Packet::refuse(FaultKind kind, const std::string& why) const {
  return {kind, address, header, std::string(name) + ": " + why};
}

Fault Packet::refuse(FaultKind kind, std::size_t index, const std::string& why) const {
  return {kind, address, body[index], std::string(name) + ", dword " + std::to_string(index + 1) + ": " + why};
}

}  // namespace kiln::simulator

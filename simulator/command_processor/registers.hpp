// Register accesses of packets, checked against the register map.
//
// Thread-safety: the machine's one thread. Ownership: borrows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator {

// `index`: of the dword of the body that a fault is about.
Outcome write_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                       std::uint32_t value);
Outcome read_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                      std::uint32_t& value);

}  // namespace kiln::simulator

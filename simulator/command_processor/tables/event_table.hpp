// The events that EVENT_WRITE and RELEASE_MEM may name, and where.
//
// Thread-safety and ownership: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "simulator/command_processor/tables/register_map.hpp"

namespace kiln::simulator {

struct EventRule {
  std::uint8_t type = 0;
  std::uint8_t index = 0;
  std::uint8_t body = 1;  // dwords of an EVENT_WRITE that names it; 0: only RELEASE_MEM does
  Rings rings = Rings::none;
  std::string_view name;
};

std::span<const EventRule> event_rules() noexcept;
const EventRule* find_event(std::uint32_t type) noexcept;

}  // namespace kiln::simulator

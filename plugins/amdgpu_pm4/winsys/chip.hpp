// Chip: which AMD graphics chip a node has, by the family and revision that its kernel driver tells.
//
// Thread-safety: pure functions. Ownership: values; texts are constants.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace kiln::amdgpu_pm4 {

struct Chip {
  std::string_view name;  // "Navi31"
  std::string_view isa;   // its own instruction set: "gfx1100"
  // What code for it is compiled for: the chips of RDNA2 share one instruction set. invalid: none that is dispatched.
  Target target = Target::invalid;
  std::uint32_t lanes_a_clock = 0;  // fp32 multiply-adds of one compute unit
};

// unsupported names family and revision, and the chip where it is known but nothing is dispatched to it.
Result<Chip> identify_chip(std::uint32_t family, std::uint32_t external_revision);

// Every chip that something is dispatched to, one for each instruction set of its own.
std::vector<Chip> dispatched_chips();

}  // namespace kiln::amdgpu_pm4

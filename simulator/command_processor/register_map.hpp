// The registers that command streams may write, by generation and ring, and a file of their values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/command_processor/command_processor.hpp"
#include "simulator/fault.hpp"

namespace kiln::simulator {

// The registers that command streams may write, by generation and ring, and a file of their values.
//
// Registers are known by their byte offset, as register headers name them. What is in no rule is refused: privileged
// registers, performance counters, and those of the other generation.
//
// Thread-safety: the rules never change; a RegisterFile is its owner's. Ownership: values.

enum class Treatment : std::uint8_t {
  invalid = 0,
  dispatch,   // read by dispatches
  state,      // kept; says nothing to compute work
  zero_only,  // kept; another value asks for what is not modelled
  refused     // exists, but not for command streams
};

enum class Rings : std::uint8_t { none = 0, graphics = 1, compute = 2, both = 3 };

struct RegisterRule {
  std::uint32_t first = 0;  // byte offsets, both included
  std::uint32_t last = 0;
  bool gfx10_3 = false;
  bool gfx11 = false;
  Rings rings = Rings::none;
  Treatment treatment = Treatment::invalid;
  bool cu_mask = false;  // SET_SH_REG_INDEX writes it, through the kernel's own mask
  std::string_view name;
};

std::span<const RegisterRule> register_rules() noexcept;

bool on_ring(Rings rings, Ring ring) noexcept;

class RegisterMap {
 public:
  explicit RegisterMap(Generation generation);
  // Null: no such register here.
  const RegisterRule* find(std::uint32_t offset) const noexcept;

 private:
  std::vector<const RegisterRule*> rules_;  // by dword, over the three spaces
};

// The spaces of SET_*_REG, as far as rules may reach.
namespace register_space {
constexpr std::uint32_t shader = 0xB000, shader_end = 0xC000;
constexpr std::uint32_t context = 0x28000, context_end = 0x29000;
constexpr std::uint32_t uconfig = 0x30000, uconfig_end = 0x31200;
}  // namespace register_space

class RegisterFile {
 public:
  // REQUIRES of both: a RegisterMap knows the register.
  std::uint32_t get(std::uint32_t offset) const noexcept;
  void set(std::uint32_t offset, std::uint32_t value) noexcept;
  void clear_context() noexcept;

 private:
  template <std::uint32_t first, std::uint32_t end>
  using Space = std::array<std::uint32_t, (end - first) / 4>;

  Space<register_space::shader, register_space::shader_end> shader_{};
  Space<register_space::context, register_space::context_end> context_{};
  Space<register_space::uconfig, register_space::uconfig_end> uconfig_{};
};

// Where the registers of the graphics stages lie, which drivers set at the start of every stream of the graphics ring:
// kept as state, because compute work does not read them.
//
// Thread-safety and ownership: constants.

struct RegisterRange {
  std::uint32_t first = 0;  // byte offsets, both included
  std::uint32_t last = 0;
};

std::span<const RegisterRange> graphics_shader_ranges(Generation generation) noexcept;
std::span<const RegisterRange> context_ranges(Generation generation) noexcept;

}  // namespace kiln::simulator

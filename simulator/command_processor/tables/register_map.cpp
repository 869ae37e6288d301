#include "simulator/command_processor/tables/register_map.hpp"

#include "simulator/command_processor/tables/graphics_ranges.hpp"

namespace kiln::simulator {
namespace {

using namespace register_space;

constexpr std::size_t shader_words = (shader_end - shader) / 4;
constexpr std::size_t context_words = (context_end - context) / 4;
constexpr std::size_t uconfig_words = (uconfig_end - uconfig) / 4;
constexpr RegisterRule graphics_state{
    0, 0, true, true, Rings::graphics, Treatment::state, false, "state of the graphics stages"};
constexpr std::size_t no_place = ~std::size_t{0};

// All spaces in a row.
std::size_t place(std::uint32_t offset) noexcept {
  if (offset % 4 != 0) return no_place;
  if (offset >= shader && offset < shader_end) return (offset - shader) / 4;
  if (offset >= context && offset < context_end) return shader_words + (offset - context) / 4;
  if (offset >= uconfig && offset < uconfig_end) return shader_words + context_words + (offset - uconfig) / 4;
  return no_place;
}

}  // namespace

bool on_ring(Rings rings, Ring ring) noexcept {
  const auto wanted = ring == Ring::graphics ? Rings::graphics : Rings::compute;
  return (static_cast<unsigned>(rings) & static_cast<unsigned>(wanted)) != 0;
}

RegisterMap::RegisterMap(Generation generation) : rules_(shader_words + context_words + uconfig_words) {
  for (const auto ranges : {graphics_shader_ranges(generation), context_ranges(generation)}) {
    for (const RegisterRange& range : ranges)
      for (std::uint32_t offset = range.first; offset <= range.last; offset += 4)
        rules_[place(offset)] = &graphics_state;
  }
  for (const RegisterRule& rule : register_rules()) {
    if (!(generation == Generation::gfx11 ? rule.gfx11 : rule.gfx10_3)) continue;
    for (std::uint32_t offset = rule.first; offset <= rule.last; offset += 4) rules_[place(offset)] = &rule;
  }
}

const RegisterRule* RegisterMap::find(std::uint32_t offset) const noexcept {
  const std::size_t at = place(offset);
  return at == no_place ? nullptr : rules_[at];
}

std::uint32_t RegisterFile::get(std::uint32_t offset) const noexcept {
  if (offset >= uconfig) return uconfig_[(offset - uconfig) / 4];
  if (offset >= context) return context_[(offset - context) / 4];
  return shader_[(offset - shader) / 4];
}

void RegisterFile::set(std::uint32_t offset, std::uint32_t value) noexcept {
  if (offset >= uconfig)
    uconfig_[(offset - uconfig) / 4] = value;
  else if (offset >= context)
    context_[(offset - context) / 4] = value;
  else
    shader_[(offset - shader) / 4] = value;
}

void RegisterFile::clear_context() noexcept { context_.fill(0); }

}  // namespace kiln::simulator

#include "simulator/command_processor/tables/event_table.hpp"

namespace kiln::simulator {
namespace {

using enum Rings;

// Every dispatch has ended before the next packet is read here, so the flushes have nothing to wait for.
constexpr EventRule rules[] = {
    {0x04, 5, 0, both, "CACHE_FLUSH_TS"},
    {0x07, 4, 1, both, "CS_PARTIAL_FLUSH"},
    {0x0E, 0, 1, graphics, "BREAK_BATCH"},
    {0x0F, 4, 1, graphics, "VS_PARTIAL_FLUSH"},
    {0x10, 4, 1, graphics, "PS_PARTIAL_FLUSH"},
    {0x14, 5, 0, both, "CACHE_FLUSH_AND_INV_TS"},
    {0x16, 0, 1, graphics, "CACHE_FLUSH_AND_INV"},
    {0x19, 0, 1, both, "PIPELINESTAT_START"},
    {0x1A, 0, 1, both, "PIPELINESTAT_STOP"},
    {0x24, 0, 1, graphics, "VGT_FLUSH"},
    {0x26, 0, 1, graphics, "SQ_NON_EVENT"},
    {0x28, 5, 0, both, "BOTTOM_OF_PIPE_TS"},
    {0x2A, 0, 1, graphics, "DB_CACHE_FLUSH_AND_INV"},
    {0x2B, 5, 0, graphics, "FLUSH_AND_INV_DB_DATA_TS"},
    {0x2C, 0, 1, graphics, "FLUSH_AND_INV_DB_META"},
    {0x2D, 5, 0, graphics, "FLUSH_AND_INV_CB_DATA_TS"},
    {0x2E, 0, 1, graphics, "FLUSH_AND_INV_CB_META"},
    {0x2F, 6, 0, both, "CS_DONE"},
    {0x30, 6, 0, graphics, "PS_DONE"},
    {0x31, 0, 1, graphics, "FLUSH_AND_INV_CB_PIXEL_DATA"},
    {0x38, 1, 3, graphics, "PIXEL_PIPE_STAT_CONTROL"},
};

}  // namespace

std::span<const EventRule> event_rules() noexcept { return rules; }

const EventRule* find_event(std::uint32_t type) noexcept {
  for (const EventRule& rule : rules)
    if (rule.type == type) return &rule;
  return nullptr;
}

}  // namespace kiln::simulator

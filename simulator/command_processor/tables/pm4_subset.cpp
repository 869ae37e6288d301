#include "simulator/command_processor/tables/pm4_subset.hpp"

#include <algorithm>
#include <cstdio>

#include "simulator/command_processor/tables/event_table.hpp"
#include "simulator/command_processor/tables/graphics_ranges.hpp"
#include "simulator/command_processor/tables/packet_table.hpp"

namespace kiln::simulator {
namespace {

constexpr const char* introduction = R"(# PM4 subset of the simulator

This page lists the packets, events and registers that the command processor of the simulated AMD device executes. It is
generated from its tables; a test compares it. To write it again, run the test with `KILN_UPDATE_DOCS=1`.

Everything else stops the job with a fault that names the packet's address, the dword and the reason:

* another opcode, register, event, bit or length, or an unaligned address;
* cache maintenance of a part of memory, packets of type 0 and 2, predication, interrupts.

Registers are 0 at the start of every job, so a job that does not set CU masks, workgroup size or program faults at its
dispatch. Work has ended before the next packet is read: the form of a wait is checked, and it has no effect.

)";

std::string formatted(const char* pattern, unsigned value) {
  char text[32];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string length(const BodyLength& body) {
  if (body.most == 0) return "–";
  if (body.least == body.most) return std::to_string(body.least);
  return std::to_string(body.least) + "–" + std::to_string(body.most);
}

const char* rings(Rings which) {
  switch (which) {
    case Rings::graphics:
      return "graphics";
    case Rings::compute:
      return "compute";
    case Rings::both:
      return "both";
    case Rings::none:
      break;
  }
  return "none";
}

const char* treatment(Treatment which) {
  switch (which) {
    case Treatment::dispatch:
      return "read by dispatches";
    case Treatment::state:
      return "stored";
    case Treatment::zero_only:
      return "only 0";
    case Treatment::refused:
      return "refused";
    case Treatment::invalid:
      break;
  }
  return "invalid";
}

std::string packets() {
  std::string text =
      "## Packets\n\n"
      "Columns *graphics* and *compute*: length of the body in dwords. *Bits*: the bits that may be set, for dwords in "
      "which not all may be set; a second set is for gfx11.\n\n"
      "| opcode | packet | graphics | compute | effect | bits |\n|---|---|---|---|---|---|\n";
  const auto bits = [](const PacketRule& rule, const std::array<std::uint32_t, 8>& known) {
    std::string list;
    const std::size_t dwords = std::min<std::size_t>(std::max(rule.graphics.most, rule.compute.most), known.size());
    for (std::size_t at = 0; at < dwords; ++at)
      if (known[at] != 0xFFFF'FFFF)
        list += (list.empty() ? "" : ", ") + std::to_string(at + 1) + ": " + formatted("%08X", known[at]);
    return list;
  };
  for (const PacketRule& rule : packet_rules()) {
    text += "| " + formatted("0x%02X", rule.opcode) + " | " + std::string(rule.name) + " | " + length(rule.graphics) +
            " | " + length(rule.compute) + " | " + std::string(rule.what) + " | " + bits(rule, rule.known_gfx10_3);
    if (rule.known_gfx11 != rule.known_gfx10_3) text += "; gfx11 " + bits(rule, rule.known_gfx11);
    text += " |\n";
  }
  return text + "\n";
}

std::string events() {
  std::string text = "## Events\n\n| type | index | event | ring | packet |\n|---|---|---|---|---|\n";
  for (const EventRule& rule : event_rules())
    text += "| " + formatted("0x%02X", rule.type) + " | " + std::to_string(rule.index) + " | " +
            std::string(rule.name) + " | " + rings(rule.rings) + " | " +
            (rule.body == 0 ? std::string("RELEASE_MEM")
                            : "EVENT_WRITE of " + std::to_string(rule.body) + (rule.body == 1 ? " dword" : " dwords")) +
            " |\n";
  return text + "\n";
}

std::string registers() {
  std::string text =
      "## Registers\n\nOffsets are in bytes and include both ends.\n\n"
      "| offsets | registers | gfx10.3 | gfx11 | ring | values | SET_SH_REG_INDEX |\n|---|---|---|---|---|---|---|\n";
  for (const RegisterRule& rule : register_rules()) {
    text += "| " + formatted("%05X", rule.first);
    if (rule.last != rule.first) text += "–" + formatted("%05X", rule.last);
    text += " | " + std::string(rule.name) + " | " + (rule.gfx10_3 ? "yes" : "no") + " | " +
            (rule.gfx11 ? "yes" : "no") + " | " + rings(rule.rings) + " | " + treatment(rule.treatment) + " | " +
            (rule.cu_mask ? "yes" : "no") + " |\n";
  }
  return text + "\n";
}

std::string ranges(const char* title, std::span<const RegisterRange> which) {
  std::string text = std::string(title) + "\n\n```\n";
  std::size_t column = 0;
  for (const RegisterRange& range : which) {
    const std::string piece = formatted("%05X", range.first) + "-" + formatted("%05X", range.last);
    if (column != 0) text += column + piece.size() + 1 > 110 ? "\n" : " ";
    column = text.size() - text.rfind('\n') - 1 + piece.size();
    text += piece;
  }
  return text + "\n```\n\n";
}

}  // namespace

std::string pm4_subset() {
  std::string text = introduction + packets() + events() + registers();
  text += "## State of the graphics stages\n\nGraphics ring only. Stored, and not used by dispatches.\n\n";
  text += ranges("Shader registers, gfx10.3:", graphics_shader_ranges(Generation::gfx10_3));
  text += ranges("Shader registers, gfx11:", graphics_shader_ranges(Generation::gfx11));
  text += ranges("Context registers, gfx10.3:", context_ranges(Generation::gfx10_3));
  text += ranges("Context registers, gfx11:", context_ranges(Generation::gfx11));
  text.pop_back();
  return text;
}

}  // namespace kiln::simulator

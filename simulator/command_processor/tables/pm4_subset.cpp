#include "simulator/command_processor/tables/pm4_subset.hpp"

#include <algorithm>
#include <cstdio>

#include "simulator/command_processor/tables/event_table.hpp"
#include "simulator/command_processor/tables/graphics_ranges.hpp"
#include "simulator/command_processor/tables/packet_table.hpp"

namespace kiln::simulator {
namespace {

constexpr const char* introduction = R"(# The PM4 subset of the simulator

What the command processor of the simulated AMD device (`simulator/command_processor`) takes. This page is printed by
`pm4_subset()` from the tables that the command processor works by, and a test holds it to them: after a change of the
tables, run the test with `KILN_UPDATE_DOCS=1` in its environment.

Everything that is not here stops the job with a fault that names the packet's address, the dword and the reason:
another opcode, register or event, a bit that no table knows, a length, an address that is not aligned, cache maintenance of
a range of memory, packets of type 0 and 2, predication, interrupts asked for by command streams. Registers start at 0 for
every job, so a job that sets no CU masks, workgroup or program faults at its dispatch. Work has ended before the next
packet is read: waiting for it is checked in form only.

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
      return "kept";
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
      "Bodies in dwords after the header, by ring. Bits: which may be set in the fixed dwords, where not all may; a "
      "second "
      "set is gfx11's.\n\n"
      "| opcode | packet | graphics | compute | does | bits |\n|---|---|---|---|---|---|\n";
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
      "## Registers\n\nByte offsets, both ends included.\n\n"
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
  text += "## State of the graphics stages\n\nGraphics ring only; kept, and read by nothing that computes.\n\n";
  text += ranges("Shader registers, gfx10.3:", graphics_shader_ranges(Generation::gfx10_3));
  text += ranges("Shader registers, gfx11:", graphics_shader_ranges(Generation::gfx11));
  text += ranges("Context registers, gfx10.3:", context_ranges(Generation::gfx10_3));
  text += ranges("Context registers, gfx11:", context_ranges(Generation::gfx11));
  text.pop_back();
  return text;
}

}  // namespace kiln::simulator

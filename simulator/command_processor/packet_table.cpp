#include "simulator/command_processor/packet_table.hpp"

#include <algorithm>
#include <cstdio>

#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator {
namespace {

using Bits = std::array<std::uint32_t, 8>;

constexpr BodyLength absent{};
constexpr std::uint16_t longest = 0x3FFF;  // COUNT has 14 bits, of which all ones is the NOP of one dword
constexpr std::uint32_t all = 0xFFFF'FFFF;
constexpr std::uint32_t dword_address = 0xFFFF'FFFC;
constexpr std::uint32_t high_address = 0xFFFF;
constexpr Bits free_body{all, all, all, all, all, all, all, all};
constexpr Bits set_registers{0x0000'FFFF, all, all, all, all, all, all, all};

constexpr PacketRule both(std::uint8_t opcode, std::string_view name, BodyLength length,
                          Outcome (*act)(Machine&, const Packet&), std::string_view what, const Bits& known) {
  return {opcode, name, length, length, act, what, known, known};
}

constexpr PacketRule graphics(std::uint8_t opcode, std::string_view name, BodyLength length,
                              Outcome (*act)(Machine&, const Packet&), std::string_view what, const Bits& known) {
  return {opcode, name, length, absent, act, what, known, known};
}

constexpr PacketRule rules[] = {
    both(0x10, "NOP", {1, longest}, packets::nop, "skips its body; with COUNT 0x3FFF the packet is one dword",
         free_body),
    graphics(0x11, "SET_BASE", {3, 3}, packets::set_base, "index 1: the base address of DISPATCH_INDIRECT",
             {0xF, dword_address, high_address}),
    graphics(0x12, "CLEAR_STATE", {1, 1}, packets::clear_state, "sets context registers to 0", {}),
    both(0x15, "DISPATCH_DIRECT", {4, 4}, packets::dispatch_direct, "runs x × y × z workgroups to their end",
         {all, all, all, all}),
    {0x16,
     "DISPATCH_INDIRECT",
     {2, 2},
     {3, 3},
     packets::dispatch_indirect,
     "the same with x, y, z from memory; graphics: offset from SET_BASE, compute: address",
     free_body,
     free_body},
    both(0x1E, "ATOMIC_MEM", {8, 8}, packets::atomic_mem,
         "one atomic operation in L2; may repeat until a comparison succeeds",
         {0xC600'0F7F, dword_address, high_address, all, all, all, all, 0x1FFF}),
    graphics(0x20, "SET_PREDICATION", {3, 3}, packets::set_predication,
             "skips packets whose header has bit 0 set, by 4 or 8 bytes of memory; queries of draws are refused",
             {0x0007'1100, dword_address, high_address}),
    both(0x22, "COND_EXEC", {4, 4}, packets::cond_exec, "skips dwords if a dword in memory is 0",
         {dword_address, high_address, 0, 0x3FFF}),
    graphics(0x28, "CONTEXT_CONTROL", {2, 2}, packets::context_control, "no shadowing; other forms are refused",
             {0x8000'0000, 0x8000'0000}),
    graphics(
        0x2D, "DRAW_INDEX_AUTO", {2, 2}, packets::draw_index_auto,
        "gfx10.3: expands DCC and fast clears of an image (CB_COLOR_CONTROL.MODE 2 and 6); other draws are refused",
        {all, 2}),
    graphics(0x2F, "NUM_INSTANCES", {1, 1}, packets::num_instances, "none; draws have one instance", {all}),
    both(0x37, "WRITE_DATA", {4, longest}, packets::write_data, "writes dwords to memory, L2 or a register",
         {0xC611'0F00, all, high_address, all, all, all, all, all}),
    both(0x3C, "WAIT_REG_MEM", {6, 6}, packets::wait_reg_mem,
         "polls memory or a register; a watchdog fault at the time limit",
         {0x0600'01F7, all, high_address, all, all, 0xFFFF}),
    both(0x3F, "INDIRECT_BUFFER", {3, 3}, packets::indirect_buffer,
         "CHAIN: jumps, last packet of its buffer; without CHAIN (graphics only): calls",
         {dword_address, high_address, 0x30BF'FFFF}),
    both(0x40, "COPY_DATA", {5, 5}, packets::copy_data,
         "copies 4 or 8 bytes between memory, L2, registers, an immediate value, the clock",
         {0xC611'6F0F, all, all, all, all}),
    graphics(0x42, "PFP_SYNC_ME", {1, 1}, packets::pfp_sync_me, "none; both engines are one", {}),
    both(0x46, "EVENT_WRITE", {1, 3}, packets::event_write, "see the events below", {0x0000'0F3F, all, all}),
    {0x49,
     "RELEASE_MEM",
     {7, 7},
     {7, 7},
     packets::release_mem,
     "after all work: flushes caches, then writes a value or the clock to memory or L2; no interrupt",
     {0x06FE'FF3F, 0xE703'0000, all, high_address, all, all, 0},
     {0xC7FE'FFBF, 0xE703'0000, all, high_address, all, all, 0}},
    both(0x50, "DMA_DATA", {6, 6}, packets::dma_data, "copies, fills, or prefetches into L2",
         {0xE630'6001, all, high_address, all, high_address, 0xC3FF'FFFF}),
    {0x58,
     "ACQUIRE_MEM",
     {7, 7},
     {7, 7},
     packets::acquire_mem,
     "maintains caches for all of memory; gfx11 graphics: waits for RELEASE_MEM's counter",
     {0x8000'0000, all, 0x00FF'FFFF, 0, 0, 0xFFFF, 0x0003'E3F3},
     {0x80FE'F800, all, 0x01FF'FFFF, 0, 0, 0x8000'FFFF, 0x0003'E3F3}},
    both(0x63, "LOAD_SH_REG_INDEX", {4, 4}, packets::load_sh_reg_index,
         "loads registers from memory, by address and count", {all, high_address, 0xFFFF, 0x3FFF}),
    graphics(0x69, "SET_CONTEXT_REG", {2, longest}, packets::set_context_reg, "writes context registers",
             set_registers),
    both(0x76, "SET_SH_REG", {2, longest}, packets::set_sh_reg, "writes shader registers", set_registers),
    both(0x79, "SET_UCONFIG_REG", {2, longest}, packets::set_uconfig_reg, "writes user configuration registers",
         set_registers),
    both(0x9B, "SET_SH_REG_INDEX", {2, longest}, packets::set_sh_reg_index,
         "index 3: writes CU mask registers, limited by the kernel's mask",
         {0xF000'FFFF, all, all, all, all, all, all, all}),
};

struct Refused {
  std::uint8_t opcode;
  std::string_view name;
};

constexpr Refused refused[] = {
    {0x23, "PRED_EXEC"},
    {0x24, "DRAW_INDIRECT"},
    {0x25, "DRAW_INDEX_INDIRECT"},
    {0x26, "INDEX_BASE"},
    {0x27, "DRAW_INDEX_2"},
    {0x2A, "INDEX_TYPE"},
    {0x2C, "DRAW_INDIRECT_MULTI"},
    {0x34, "STRMOUT_BUFFER_UPDATE"},
    {0x35, "DRAW_INDEX_OFFSET_2"},
    {0x38, "DRAW_INDEX_INDIRECT_MULTI"},
    {0x41, "CP_DMA"},
    {0x43, "SURFACE_SYNC"},
    {0x47, "EVENT_WRITE_EOP"},
    {0x48, "EVENT_WRITE_EOS"},
    {0x59, "REWIND"},
    {0x68, "SET_CONFIG_REG"},
    {0x7A, "SET_UCONFIG_REG_INDEX"},
    {0x98, "INVALIDATE_TLBS"},
};

}  // namespace

std::span<const PacketRule> packet_rules() noexcept { return rules; }

const PacketRule* find_packet(std::uint8_t opcode) noexcept {
  for (const PacketRule& rule : rules)
    if (rule.opcode == opcode) return &rule;
  return nullptr;
}

std::string_view refused_packet(std::uint8_t opcode) noexcept {
  for (const Refused& each : refused)
    if (each.opcode == opcode) return each.name;
  return {};
}

namespace {

// Every dispatch has ended before the next packet is read here, so the flushes have nothing to wait for.
constexpr EventRule event_table[] = {
    {0x04, 5, 0, Rings::both, "CACHE_FLUSH_TS"},
    {compute_partial_flush, 4, 1, Rings::both, "CS_PARTIAL_FLUSH"},
    {0x0E, 0, 1, Rings::graphics, "BREAK_BATCH"},
    {0x0F, 4, 1, Rings::graphics, "VS_PARTIAL_FLUSH"},
    {0x10, 4, 1, Rings::graphics, "PS_PARTIAL_FLUSH"},
    {0x14, 5, 0, Rings::both, "CACHE_FLUSH_AND_INV_TS"},
    {0x16, 0, 1, Rings::graphics, "CACHE_FLUSH_AND_INV"},
    {pipeline_statistics_start, 0, 1, Rings::both, "PIPELINESTAT_START"},
    {pipeline_statistics_stop, 0, 1, Rings::both, "PIPELINESTAT_STOP"},
    {pipeline_statistics_sample, 2, 3, Rings::both, "SAMPLE_PIPELINESTAT"},
    {0x24, 0, 1, Rings::graphics, "VGT_FLUSH"},
    {0x26, 0, 1, Rings::graphics, "SQ_NON_EVENT"},
    {0x28, 5, 0, Rings::both, "BOTTOM_OF_PIPE_TS"},
    {0x2A, 0, 1, Rings::graphics, "DB_CACHE_FLUSH_AND_INV"},
    {0x2B, 5, 0, Rings::graphics, "FLUSH_AND_INV_DB_DATA_TS"},
    {0x2C, 0, 1, Rings::graphics, "FLUSH_AND_INV_DB_META"},
    {0x2D, 5, 0, Rings::graphics, "FLUSH_AND_INV_CB_DATA_TS"},
    {0x2E, 0, 1, Rings::graphics, "FLUSH_AND_INV_CB_META"},
    {0x2F, 6, 0, Rings::both, "CS_DONE"},
    {0x30, 6, 0, Rings::graphics, "PS_DONE"},
    {0x31, 0, 1, Rings::graphics, "FLUSH_AND_INV_CB_PIXEL_DATA"},
    {0x38, 1, 3, Rings::graphics, "PIXEL_PIPE_STAT_CONTROL"},
};

}  // namespace

std::span<const EventRule> event_rules() noexcept { return event_table; }

const EventRule* find_event(std::uint32_t type) noexcept {
  for (const EventRule& rule : event_table)
    if (rule.type == type) return &rule;
  return nullptr;
}

namespace {

constexpr const char* introduction = R"(# PM4 subset of the simulator

This page lists the packets, events and registers that the command processor of the simulated AMD device executes. A test
generates it from the tables of the command processor and compares it. To write it again, run the test with `KILN_UPDATE_DOCS=1`.

Anything else stops the job with a fault. The fault names the packet's address, the dword and the reason.

* Refused are other opcodes, registers, events, bits and lengths, and unaligned addresses.
* Also refused are cache maintenance of a part of memory, packets of type 0 and 2, predication by queries of draws, and interrupts.

Registers are 0 at the start of every job. A job that does not set CU masks, workgroup size or program therefore faults at its
dispatch. The simulator completes the work of a packet before it reads the next packet. It checks the form of a wait, and the wait has
no effect.

SAMPLE_PIPELINESTAT writes eleven counters of 64 bits. The last counter is the number of invocations of compute shaders between
PIPELINESTAT_START and PIPELINESTAT_STOP. The other counters are 0, because the simulator draws nothing.

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

std::string packet_lines() {
  std::string text =
      "## Packets\n\n"
      "The columns *graphics* and *compute* contain the length of the body in dwords.\n"
      "The column *bits* contains the bits that may be set, for each dword with forbidden bits. "
      "A second set applies to gfx11.\n\n"
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
  std::string text = introduction + packet_lines() + events() + registers();
  text +=
      "## State of the graphics stages\n\nThese registers exist only on the graphics ring. The simulator stores them. "
      "Dispatches do not use them.\n\n";
  text += ranges("Shader registers, gfx10.3:", graphics_shader_ranges(Generation::gfx10_3));
  text += ranges("Shader registers, gfx11:", graphics_shader_ranges(Generation::gfx11));
  text += ranges("Context registers, gfx10.3:", context_ranges(Generation::gfx10_3));
  text += ranges("Context registers, gfx11:", context_ranges(Generation::gfx11));
  text.pop_back();
  return text;
}

}  // namespace kiln::simulator

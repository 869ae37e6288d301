#include "simulator/command_processor/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

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

namespace {

using enum Treatment;

enum class On : std::uint8_t { invalid = 0, gfx10_3, gfx11, all };
enum class CuMask : std::uint8_t { invalid = 0, no, yes };

constexpr RegisterRule rule(std::uint32_t first, std::uint32_t last, On on, Rings rings, Treatment treatment,
                            std::string_view name, CuMask cu_mask = CuMask::no) {
  return {first, last, on != On::gfx11, on != On::gfx10_3, rings, treatment, cu_mask == CuMask::yes, name};
}

constexpr RegisterRule compute(std::uint32_t first, std::uint32_t last, Treatment treatment, std::string_view name) {
  return rule(first, last, On::all, Rings::both, treatment, name);
}

constexpr RegisterRule rules[] = {
    compute(0xB800, 0xB80C, refused, "COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X..Z"),  // by DISPATCH_* alone
    compute(0xB810, 0xB818, dispatch, "COMPUTE_START_X..Z"),
    compute(0xB81C, 0xB824, dispatch, "COMPUTE_NUM_THREAD_X..Z"),
    compute(0xB828, 0xB828, state, "COMPUTE_PIPELINESTAT_ENABLE"),
    compute(0xB82C, 0xB82C, state, "COMPUTE_PERFCOUNT_ENABLE"),
    compute(0xB830, 0xB834, dispatch, "COMPUTE_PGM_LO, _HI"),
    compute(0xB838, 0xB83C, zero_only, "COMPUTE_DISPATCH_PKT_ADDR_LO, _HI"),
    rule(0xB840, 0xB844, On::gfx11, Rings::both, dispatch, "COMPUTE_DISPATCH_SCRATCH_BASE_LO, _HI"),
    rule(0xB840, 0xB844, On::gfx10_3, Rings::both, zero_only, "COMPUTE_DISPATCH_SCRATCH_BASE_LO, _HI"),
    compute(0xB848, 0xB84C, dispatch, "COMPUTE_PGM_RSRC1, RSRC2"),
    compute(0xB850, 0xB850, refused, "COMPUTE_VMID"),
    compute(0xB854, 0xB854, dispatch, "COMPUTE_RESOURCE_LIMITS"),
    rule(0xB858, 0xB85C, On::all, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE0, SE1", CuMask::yes),
    compute(0xB860, 0xB860, dispatch, "COMPUTE_TMPRING_SIZE"),
    rule(0xB864, 0xB868, On::all, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE2, SE3", CuMask::yes),
    compute(0xB86C, 0xB874, zero_only, "COMPUTE_RESTART_X..Z"),
    compute(0xB878, 0xB878, zero_only, "COMPUTE_THREAD_TRACE_ENABLE"),
    compute(0xB87C, 0xB884, zero_only, "COMPUTE_MISC_RESERVED, DISPATCH_ID, THREADGROUP_ID"),
    compute(0xB888, 0xB888, state, "COMPUTE_REQ_CTRL"),
    compute(0xB890, 0xB89C, zero_only, "COMPUTE_USER_ACCUM_0..3"),
    compute(0xB8A0, 0xB8A0, dispatch, "COMPUTE_PGM_RSRC3"),
    compute(0xB8A4, 0xB8A4, zero_only, "COMPUTE_DDID_INDEX"),
    compute(0xB8A8, 0xB8A8, state, "COMPUTE_SHADER_CHKSUM"),
    rule(0xB8AC, 0xB8B8, On::gfx10_3, Rings::both, refused, "COMPUTE_RELAUNCH, WAVE_RESTORE_ADDR_LO, _HI, RELAUNCH2"),
    rule(0xB8AC, 0xB8B8, On::gfx11, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE4..7", CuMask::yes),
    rule(0xB8BC, 0xB8BC, On::gfx11, Rings::both, state, "COMPUTE_DISPATCH_INTERLEAVE"),
    rule(0xB8C0, 0xB8CC, On::gfx11, Rings::both, refused, "COMPUTE_RELAUNCH, WAVE_RESTORE_ADDR_LO, _HI, RELAUNCH2"),
    compute(0xB900, 0xB93C, dispatch, "COMPUTE_USER_DATA_0..15"),
    compute(0xB9F4, 0xB9F4, zero_only, "COMPUTE_DISPATCH_TUNNEL"),

    rule(0xB004, 0xB004, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_PS", CuMask::yes),
    rule(0xB01C, 0xB01C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_PS", CuMask::yes),
    rule(0xB104, 0xB104, On::gfx10_3, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_VS", CuMask::yes),
    rule(0xB118, 0xB118, On::gfx10_3, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_VS", CuMask::yes),
    rule(0xB204, 0xB204, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_GS", CuMask::yes),
    rule(0xB21C, 0xB21C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_GS", CuMask::yes),
    rule(0xB404, 0xB404, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_HS", CuMask::yes),
    rule(0xB41C, 0xB41C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_HS", CuMask::yes),

    rule(0x300FC, 0x300FC, On::gfx10_3, Rings::graphics, state, "CP_STRMOUT_CNTL"),
    rule(0x301EC, 0x301EC, On::gfx10_3, Rings::both, state, "CP_COHER_START_DELAY"),
    rule(0x30900, 0x3090C, On::gfx10_3, Rings::graphics, state, "VGT_ESGS_RING_SIZE..VGT_INDEX_TYPE"),
    rule(0x30908, 0x3090C, On::gfx11, Rings::graphics, state, "VGT_PRIMITIVE_TYPE, VGT_INDEX_TYPE"),
    rule(0x30924, 0x3093C, On::all, Rings::graphics, state, "GE_MIN_VTX_INDX..VGT_HS_OFFCHIP_PARAM"),
    rule(0x30960, 0x3098C, On::gfx10_3, Rings::graphics, state, "IA_MULTI_VGT_PARAM_PIPED..GE_VRS_RATE"),
    rule(0x30964, 0x30998, On::gfx11, Rings::graphics, state, "GE_MAX_VTX_INDX..VGT_GS_OUT_PRIM_TYPE"),
    rule(0x30A00, 0x30A04, On::all, Rings::graphics, state, "PA_SU_LINE_STIPPLE_VALUE, PA_SC_LINE_STIPPLE_STATE"),
    rule(0x30E00, 0x30E04, On::all, Rings::both, state, "TA_CS_BC_BASE_ADDR, _HI"),
    rule(0x31110, 0x3111C, On::gfx11, Rings::graphics, state, "SPI_GS_THROTTLE_CNTL1..SPI_ATTRIBUTE_RING_SIZE"),
};

}  // namespace

std::span<const RegisterRule> register_rules() noexcept { return rules; }

namespace {

// SPI_SHADER_*: programs and user data of the graphics stages.
constexpr RegisterRange shader_gfx10_3[] = {
    {0xB004, 0xB004}, {0xB018, 0xB0AC}, {0xB0C0, 0xB0D4}, {0xB104, 0xB104}, {0xB114, 0xB1AC}, {0xB1C0, 0xB1D4},
    {0xB1EC, 0xB1F4}, {0xB200, 0xB214}, {0xB21C, 0xB2AC}, {0xB2C0, 0xB2D4}, {0xB2F0, 0xB2F0}, {0xB31C, 0xB36C},
    {0xB3F4, 0xB3F4}, {0xB400, 0xB414}, {0xB41C, 0xB4AC}, {0xB4C0, 0xB4D4}, {0xB4F4, 0xB4F4}, {0xB51C, 0xB56C}};
constexpr RegisterRange shader_gfx11[] = {{0xB004, 0xB004}, {0xB018, 0xB0AC}, {0xB0C0, 0xB0C0}, {0xB0C8, 0xB0D4},
                                          {0xB200, 0xB214}, {0xB21C, 0xB2B4}, {0xB2C0, 0xB2C0}, {0xB2C8, 0xB2D4},
                                          {0xB320, 0xB324}, {0xB400, 0xB414}, {0xB41C, 0xB4AC}, {0xB4C0, 0xB4C0},
                                          {0xB4C8, 0xB4D4}, {0xB520, 0xB524}};

// Render state.
constexpr RegisterRange context_gfx10_3[] = {
    {0x28000, 0x28084}, {0x281E8, 0x2835C}, {0x2840C, 0x28618}, {0x28644, 0x28714}, {0x28750, 0x2879C},
    {0x287D4, 0x287E0}, {0x287FC, 0x28848}, {0x28A00, 0x28A0C}, {0x28A18, 0x28A1C}, {0x28A40, 0x28A6C},
    {0x28A84, 0x28A84}, {0x28A8C, 0x28A8C}, {0x28A98, 0x28B98}, {0x28BD4, 0x28EFC}};
constexpr RegisterRange context_gfx11[] = {
    {0x28000, 0x28014}, {0x2801C, 0x28034}, {0x2803C, 0x2805C}, {0x28068, 0x28084}, {0x281E8, 0x28370},
    {0x283D0, 0x283DC}, {0x283E4, 0x283E4}, {0x283F0, 0x283F8}, {0x2840C, 0x28434}, {0x2843C, 0x28620},
    {0x28644, 0x286C4}, {0x286CC, 0x286D8}, {0x286E0, 0x286E0}, {0x286E8, 0x286F0}, {0x28708, 0x28714},
    {0x28750, 0x2879C}, {0x287D0, 0x287E8}, {0x287F0, 0x287F0}, {0x287F8, 0x28830}, {0x28838, 0x28848},
    {0x28A00, 0x28A0C}, {0x28A18, 0x28A1C}, {0x28A48, 0x28A50}, {0x28A70, 0x28A90}, {0x28A98, 0x28A98},
    {0x28AAC, 0x28AAC}, {0x28AB4, 0x28AB4}, {0x28ABC, 0x28AC8}, {0x28B28, 0x28B30}, {0x28B38, 0x28B38},
    {0x28B4C, 0x28B58}, {0x28B6C, 0x28B70}, {0x28B78, 0x28B90}, {0x28BD4, 0x28C54}, {0x28C60, 0x28C60},
    {0x28C6C, 0x28C78}, {0x28C94, 0x28C94}, {0x28C9C, 0x28C9C}, {0x28CA8, 0x28CB4}, {0x28CD0, 0x28CD0},
    {0x28CD8, 0x28CD8}, {0x28CE4, 0x28CF0}, {0x28D0C, 0x28D0C}, {0x28D14, 0x28D14}, {0x28D20, 0x28D2C},
    {0x28D48, 0x28D48}, {0x28D50, 0x28D50}, {0x28D5C, 0x28D68}, {0x28D84, 0x28D84}, {0x28D8C, 0x28D8C},
    {0x28D98, 0x28DA4}, {0x28DC0, 0x28DC0}, {0x28DC8, 0x28DC8}, {0x28DD4, 0x28DE0}, {0x28DFC, 0x28DFC},
    {0x28E04, 0x28E04}, {0x28E10, 0x28E1C}, {0x28E38, 0x28E38}, {0x28E40, 0x28E5C}, {0x28EA0, 0x28EFC}};

}  // namespace

std::span<const RegisterRange> graphics_shader_ranges(Generation generation) noexcept {
  if (generation == Generation::gfx11) return shader_gfx11;
  return shader_gfx10_3;
}

std::span<const RegisterRange> context_ranges(Generation generation) noexcept {
  if (generation == Generation::gfx11) return context_gfx11;
  return context_gfx10_3;
}

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

std::uint64_t Machine::now_ns() const {
  if (settings.clock_ns) return settings.clock_ns();
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

std::uint64_t Machine::gpu_clock() const {
  constexpr std::uint64_t second = 1'000'000'000;
  const std::uint64_t now = now_ns();  // in two parts: the product of the whole would not fit 64 bits
  return now / second * settings.counter_hz + now % second * settings.counter_hz / second;
}

Fault in_packet(Fault fault, const Packet& packet) {
  fault.reason += " (" + std::string(packet.name) + " at " + hexadecimal(packet.address) + ")";
  return fault;
}

Fault of_packet(Fault fault, const Packet& packet) {
  fault = in_packet(std::move(fault), packet);
  fault.dword = packet.header;
  return fault;
}

Outcome Machine::load(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out) {
  auto fault = memory.load(address, std::as_writable_bytes(out));
  if (fault) return of_packet(std::move(*fault), packet);
  return {};
}

Outcome Machine::store(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words) {
  auto fault = memory.store(address, std::as_bytes(words));
  if (fault) return of_packet(std::move(*fault), packet);
  return {};
}

Outcome Machine::read_l2(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out) {
  for (std::uint32_t& word : out) {
    Page page;
    if (auto fault = memory.page(address, Access::read, page)) return of_packet(std::move(*fault), packet);
    std::memcpy(&word, page.data + (address - page.address), sizeof word);
    address += sizeof word;
  }
  return {};
}

Outcome Machine::write_l2(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words) {
  for (const std::uint32_t word : words) {
    Page page;
    if (auto fault = memory.page(address, Access::write, page)) return of_packet(std::move(*fault), packet);
    std::memcpy(page.data + (address - page.address), &word, sizeof word);
    page.mark(address, sizeof word);
    address += sizeof word;
  }
  return {};
}

namespace {

const RegisterRule* usable(const Machine& machine, std::uint32_t offset) {
  const RegisterRule* const rule = machine.map.find(offset);
  return rule != nullptr && on_ring(rule->rings, machine.ring) ? rule : nullptr;
}

std::string called(const RegisterRule& rule, std::uint32_t offset) {
  return hexadecimal(offset) + " (" + std::string(rule.name) + ")";
}

Fault no_such(const Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset) {
  const RegisterRule* const rule = machine.map.find(offset);
  if (rule != nullptr)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not one of the compute ring");
  return packet.refuse(
      FaultKind::unknown_register, index,
      "register " + hexadecimal(offset) + " is not known on " + (machine.gfx11() ? "gfx11" : "gfx10.3"));
}

}  // namespace

Outcome write_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                       std::uint32_t value) {
  const RegisterRule* const rule = usable(machine, offset);
  if (rule == nullptr) return no_such(machine, packet, index, offset);
  if (rule->treatment == Treatment::refused)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not for command streams to write");
  if (rule->treatment == Treatment::zero_only && value != 0)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is only known with 0, not with " + hexadecimal(value));
  machine.registers.set(offset, value);
  return {};
}

Outcome read_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                      std::uint32_t& value) {
  const RegisterRule* const rule = usable(machine, offset);
  if (rule == nullptr) return no_such(machine, packet, index, offset);
  if (rule->treatment == Treatment::refused)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not for command streams to read");
  value = machine.registers.get(offset);
  return {};
}

}  // namespace kiln::simulator

#include "tests/simulator/wave/bench.hpp"

#include <immintrin.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace kiln::simulator::test {
namespace {

constexpr std::uint32_t vgprs = 64;
constexpr std::uint32_t ieee_mode = 0xF0U | 1U << mode_bit::dx10_clamp | 1U << mode_bit::ieee;

}  // namespace

Bench::Bench(BenchSettings settings) : settings_(settings), semantics_(SemanticsTable::of(settings.vectors)) {
  const unsigned lanes = static_cast<unsigned>(settings.wave);
  storage_.resize((scratch_rows + vgprs) * lanes + 16);
  void* begin = storage_.data();
  std::size_t space = storage_.size() * sizeof(std::uint32_t);
  wave.set_rows(static_cast<std::uint32_t*>(std::align(64, space - 64, begin, space)));
  wave.lane_memory = &semantics_.vector().memory;
  wave.row_shift = lanes == 32 ? 5 : 6;
  wave.halves = lanes / 32;
  wave.vgpr_count = vgprs;
  wave.generation = settings.generation;
  for (std::uint32_t& value : wave.scalar) value = 0;
  // With 32 lanes the upper word is a register like others, which no instruction takes for lanes.
  set_exec(lanes == 32 ? 0x5A5A5A5AFFFFFFFFU : ~std::uint64_t{0});
  set_mode(ieee_mode);
  wave.port = &port_;
}

void Bench::set_mode(std::uint32_t mode) {
  const unsigned host = _mm_getcsr();
  wave.set_mode(mode);
  _mm_setcsr(host);
}

std::optional<Fault> Bench::run(std::vector<std::uint32_t> words) {
  constexpr std::uint32_t endpgm_gfx11 = 0xBFB00000U, endpgm_gfx10 = 0xBF810000U;
  words.push_back(settings_.generation == Generation::gfx11 ? endpgm_gfx11 : endpgm_gfx10);
  for (unsigned i = 0; i < longest_instruction; ++i) words.push_back(words.back());
  wave.pc = memory.allocate(words, Rights::execute);
  wave.lds = {lds.data(), static_cast<std::uint32_t>(lds.size())};
  wave.instructions = 0;
  wave.fault.reset();
  port_.attach(memory);
  Program program({settings_.generation, settings_.wave}, semantics_);
  program.begin_dispatch(memory, 0);
  CodePage* page = nullptr;
  const std::atomic<const char*> stop{nullptr};
  Next next;
  do {
    next = run_wave(wave, program, page, 1'000'000, stop);
  } while (next == Next::barrier);
  if (next == Next::end) return std::nullopt;
  if (wave.fault) return wave.fault;
  return Fault{FaultKind::watchdog, wave.pc, {}, "did not end"};
}

namespace encode {
namespace {

Opcode find(const char* name) {
  for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
    if (info(static_cast<Opcode>(i)).name == name) return static_cast<Opcode>(i);
  }
  FAIL("no opcode " << name);
  return Opcode::invalid;
}

unsigned vop3_number(const char* name) {
  const OpcodeInfo& opcode = info(find(name));
  const unsigned base = opcode.encoding == Encoding::vop2 ? 256 : opcode.encoding == Encoding::vop1 ? 384 : 0;
  return base + static_cast<unsigned>(opcode.gfx11);
}

}  // namespace

unsigned number(const char* name, Generation generation) {
  const OpcodeInfo& opcode = info(find(name));
  const int result = generation == Generation::gfx11 ? opcode.gfx11 : opcode.gfx10_3;
  REQUIRE(result >= 0);
  return static_cast<unsigned>(result);
}

std::uint32_t sop2(const char* name, unsigned dst, unsigned src0, unsigned src1) {
  return 2U << 30U | number(name) << 23U | dst << 16U | src1 << 8U | src0;
}
std::uint32_t sop1(const char* name, unsigned dst, unsigned src0) {
  return 0x17DU << 23U | dst << 16U | number(name) << 8U | src0;
}
std::uint32_t sopc(const char* name, unsigned src0, unsigned src1) {
  return 0x17EU << 23U | number(name) << 16U | src1 << 8U | src0;
}
std::uint32_t sopk(const char* name, unsigned dst, int simm16) {
  return 0xBU << 28U | number(name) << 23U | dst << 16U | (static_cast<unsigned>(simm16) & 0xFFFFU);
}
std::uint32_t sopp(const char* name, int simm16) {
  return 0x17FU << 23U | number(name) << 16U | (static_cast<unsigned>(simm16) & 0xFFFFU);
}
std::uint32_t vop1(const char* name, unsigned dst, unsigned src0) {
  return 0x3FU << 25U | dst << 17U | number(name) << 9U | src0;
}
std::uint32_t vop2(const char* name, unsigned dst, unsigned src0, unsigned vsrc1) {
  return number(name) << 25U | dst << 17U | (vsrc1 & 0xFFU) << 9U | src0;
}
std::uint32_t vopc(const char* name, unsigned src0, unsigned vsrc1) {
  return 0x3EU << 25U | number(name) << 17U | (vsrc1 & 0xFFU) << 9U | src0;
}
std::vector<std::uint32_t> vop3(const char* name, unsigned dst, unsigned src0, unsigned src1, unsigned src2,
                                Vop3Modifiers m) {
  return {0x35U << 26U | vop3_number(name) << 16U | (m.clamp ? 1U << 15U : 0U) | m.op_sel << 11U | m.abs << 8U | dst,
          m.neg << 29U | m.omod << 27U | src2 << 18U | src1 << 9U | src0};
}
std::vector<std::uint32_t> vop3sd(const char* name, unsigned dst, unsigned sdst, unsigned src0, unsigned src1,
                                  unsigned src2) {
  return {0x35U << 26U | vop3_number(name) << 16U | sdst << 8U | dst, src2 << 18U | src1 << 9U | src0};
}
std::vector<std::uint32_t> vop3p(const char* name, unsigned dst, unsigned src0, unsigned src1, unsigned src2,
                                 unsigned op_sel, unsigned op_sel_hi, unsigned neg, unsigned neg_hi, bool clamp) {
  return {0xCCU << 24U | number(name) << 16U | (clamp ? 1U << 15U : 0U) | (op_sel_hi >> 2U & 1U) << 14U |
              op_sel << 11U | neg_hi << 8U | dst,
          neg << 29U | (op_sel_hi & 3U) << 27U | src2 << 18U | src1 << 9U | src0};
}
std::vector<std::uint32_t> ds(const char* name, unsigned dst, unsigned address, unsigned data0, unsigned data1,
                              unsigned offset) {
  return {0x36U << 26U | number(name) << 18U | offset, dst << 24U | data1 << 16U | data0 << 8U | address};
}
std::vector<std::uint32_t> flat(unsigned segment, const char* name, unsigned dst, unsigned address, unsigned data,
                                unsigned saddr, int offset, bool glc) {
  // A scratch address in a VGPR is marked as such.
  const unsigned vector_address = segment == 1 && address != 0 ? 1U << 23U : 0U;
  return {0x37U << 26U | number(name) << 18U | segment << 16U | (glc ? 1U << 14U : 0U) |
              (static_cast<unsigned>(offset) & 0x1FFFU),
          dst << 24U | vector_address | saddr << 16U | data << 8U | address};
}
std::vector<std::uint32_t> mubuf(const char* name, unsigned data, unsigned vaddr, unsigned rsrc, unsigned soffset,
                                 unsigned offset, bool idxen, bool offen, bool glc) {
  return {0x38U << 26U | number(name) << 18U | (glc ? 1U << 14U : 0U) | offset,
          soffset << 24U | (idxen ? 1U << 23U : 0U) | (offen ? 1U << 22U : 0U) | rsrc / 4 << 16U | data << 8U | vaddr};
}
std::vector<std::uint32_t> smem(const char* name, unsigned dst, unsigned base, int offset, unsigned soffset) {
  return {0x3DU << 26U | number(name) << 18U | dst << 6U | base / 2,
          soffset << 25U | (static_cast<unsigned>(offset) & 0x1FFFFFU)};
}
std::vector<std::uint32_t> join(std::initializer_list<std::vector<std::uint32_t>> parts) {
  std::vector<std::uint32_t> all;
  for (const std::vector<std::uint32_t>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace encode
}  // namespace kiln::simulator::test

// Bench: one wave on its own, to run a few instructions and look at its registers.
//
// Thread-safety: one thread. Ownership: owns the memory and everything else that the wave needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/semantics_table.hpp"
#include "tests/simulator/wave/fake_memory.hpp"

namespace kiln::simulator::test {

struct BenchSettings {
  Generation generation = Generation::gfx11;
  WaveSize wave = WaveSize::wave32;
  VectorChoice vectors = VectorChoice::best;
};

class Bench {
 public:
  explicit Bench(BenchSettings settings = {});

  FakeMemory memory;
  Wave wave;

  std::uint32_t& sgpr(unsigned index) { return wave.scalar[index]; }
  void set_sgpr64(unsigned index, std::uint64_t value) { wave.set_scalar64(index, value); }
  std::uint32_t& vgpr(unsigned index, unsigned lane) { return wave.row(scratch_rows + index, lane / 32)[lane % 32]; }
  void set_vgpr(unsigned index, std::uint32_t value) {
    for (unsigned lane = 0; lane < wave.lanes(); ++lane) vgpr(index, lane) = value;
  }
  void set_vgpr64(unsigned index, unsigned lane, std::uint64_t value) {
    vgpr(index, lane) = static_cast<std::uint32_t>(value);
    vgpr(index + 1, lane) = static_cast<std::uint32_t>(value >> 32U);
  }
  std::uint64_t vgpr64(unsigned index, unsigned lane) {
    return vgpr(index, lane) | static_cast<std::uint64_t>(vgpr(index + 1, lane)) << 32U;
  }
  // A buffer's descriptor in four scalar registers from `at` on; word3: its format and kind.
  void set_buffer(unsigned at, std::uint64_t base, std::uint32_t stride, std::uint32_t records, std::uint32_t word3) {
    set_sgpr64(at, base);
    sgpr(at + 1) |= stride << 16U;
    sgpr(at + 2) = records;
    sgpr(at + 3) = word3;
  }
  // The host's own rounding and denormals stay.
  void set_mode(std::uint32_t mode);
  void set_exec(std::uint64_t mask) { wave.set_scalar64(scalar_index::exec, mask); }
  std::uint64_t exec() const { return wave.exec64(); }

  // Appends s_endpgm and runs from the first word.
  std::optional<Fault> run(std::vector<std::uint32_t> words);

  std::vector<std::byte> lds = std::vector<std::byte>(4096);

 private:
  BenchSettings settings_;
  const SemanticsTable& semantics_;
  MemoryPort port_;
  std::vector<std::uint32_t> storage_;
};

// Encoders of gfx11, by the mnemonic; gfx10.3 where `generation` says so.
namespace encode {

inline constexpr unsigned v(unsigned index) { return 256 + index; }
inline constexpr unsigned literal = 255;
inline constexpr std::uint32_t raw_buffer = 3U << 28U, indexed_buffer = 1U << 28U;  // of a descriptor's word 3

struct Vop3Modifiers {
  unsigned abs = 0, neg = 0, omod = 0, op_sel = 0;
  bool clamp = false;
};

unsigned number(const char* name, Generation generation = Generation::gfx11);
std::uint32_t sop2(const char* name, unsigned dst, unsigned src0, unsigned src1);
std::uint32_t sop1(const char* name, unsigned dst, unsigned src0);
std::uint32_t sopc(const char* name, unsigned src0, unsigned src1);
std::uint32_t sopk(const char* name, unsigned dst, int simm16);
std::uint32_t sopp(const char* name, int simm16 = 0);
std::uint32_t vop1(const char* name, unsigned dst, unsigned src0);
std::uint32_t vop2(const char* name, unsigned dst, unsigned src0, unsigned vsrc1);
std::uint32_t vopc(const char* name, unsigned src0, unsigned vsrc1);
// Native VOP3 operations, and the e64 forms of VOP1, VOP2 and VOPC.
std::vector<std::uint32_t> vop3(const char* name, unsigned dst, unsigned src0, unsigned src1, unsigned src2 = 0,
                                Vop3Modifiers modifiers = {});
// With a scalar destination beside the vector one.
std::vector<std::uint32_t> vop3sd(const char* name, unsigned dst, unsigned sdst, unsigned src0, unsigned src1,
                                  unsigned src2 = 0);
std::vector<std::uint32_t> vop3p(const char* name, unsigned dst, unsigned src0, unsigned src1, unsigned src2 = 0,
                                 unsigned op_sel = 0, unsigned op_sel_hi = 7, unsigned neg = 0, unsigned neg_hi = 0,
                                 bool clamp = false);
std::vector<std::uint32_t> ds(const char* name, unsigned dst, unsigned address, unsigned data0, unsigned data1 = 0,
                              unsigned offset = 0);
// segment: 0 flat, 1 scratch, 2 global
std::vector<std::uint32_t> flat(unsigned segment, const char* name, unsigned dst, unsigned address, unsigned data,
                                unsigned saddr = 124, int offset = 0, bool glc = false);
std::vector<std::uint32_t> mubuf(const char* name, unsigned data, unsigned vaddr, unsigned rsrc, unsigned soffset,
                                 unsigned offset, bool idxen, bool offen, bool glc = false);
std::vector<std::uint32_t> smem(const char* name, unsigned dst, unsigned base, int offset, unsigned soffset = 124);

// One program out of several instructions.
std::vector<std::uint32_t> join(std::initializer_list<std::vector<std::uint32_t>> parts);

}  // namespace encode
}  // namespace kiln::simulator::test

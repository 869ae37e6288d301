// Programs with a planted hazard, and the dispatch that runs them.
//
// Thread-safety: one thread at a time. Ownership: values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/simulator/compute/launcher.hpp"
#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test::planted {

using U = std::uint32_t;
using Words = std::vector<U>;
using encode::join;
using encode::sop1;
using encode::sop2;
using encode::sopk;
using encode::sopp;
using encode::v;
using encode::vop1;
using encode::vop2;

constexpr unsigned off = 124, vcc_lo = 106, exec_lo = 126, exec_hi = 127, two = 130, minus_one = 193;
constexpr unsigned all = 0x3F;  // a counter's field that waits for nothing

// gfx11's s_waitcnt; expcnt waits for nothing.
inline U wait(unsigned vmcnt, unsigned lgkmcnt) {
  return sopp("s_waitcnt", static_cast<int>(vmcnt << 10U | lgkmcnt << 4U | 7U));
}
inline U wait_for_stores() { return sopk("s_waitcnt_vscnt", off, 0); }
inline Words global(const char* name, unsigned dst, unsigned address, unsigned data, int offset = 0, bool glc = false) {
  return encode::flat(2, name, dst, address, data, 0, offset, glc);
}

struct Shape {
  U groups = 1;
  bool wave64 = false;
  unsigned dispatches = 1;
  bool overlap = false;  // nothing waits between them
};

// Groups of two waves of 32 lanes, or of one of 64. s[0:1]: a buffer of 4 KiB; s[4:7] describes it; s8: the group. v0:
// the thread, v1: 4 * thread, v2: 16 * thread, v3: 16 * (63 - thread), v[4:5]: the address of the thread's 16 bytes, v8
// to v11: the thread.
class Planted {
 public:
  std::optional<Fault> run(const Words& words, Shape shape = {}) {
    Words code = {vop2("v_lshlrev_b32", 1, two, 0), vop2("v_lshlrev_b32", 2, 132, 0), vop2("v_sub_nc_u32", 3, 191, 0),
                  vop2("v_lshlrev_b32", 3, 132, 3)};
    const Words rest = join({encode::vop3sd("v_add_co_u32", 4, vcc_lo, 0, v(2)),
                             {vop1("v_mov_b32", 5, 1)},
                             encode::vop3sd("v_add_co_ci_u32", 5, vcc_lo, v(5), 128, vcc_lo),
                             {vop1("v_mov_b32", 8, v(0)), vop1("v_mov_b32", 9, v(0)), vop1("v_mov_b32", 10, v(0)),
                              vop1("v_mov_b32", 11, v(0))}});
    code.insert(code.end(), rest.begin(), rest.end());
    begin_ = code.size();
    code.insert(code.end(), words.begin(), words.end());
    code.resize(code.size() + 16, sopp("s_endpgm"));
    Launcher launcher;
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    DispatchState state;
    state.generation = Generation::gfx11;
    state.program = program_ = launcher.memory.allocate(code, Rights::execute);
    state.rsrc1 = 0x00AF000F;
    state.rsrc2 = 8U << 1U | 1U << 7U | 8U << 15U;  // 8 user SGPRs, the group's number, 4 KiB of LDS
    state.num_thread = {64, 1, 1};
    state.groups = {shape.groups, 1, 1};
    state.cu_mask.fill(~0U);
    state.initiator = 1U | 1U << 2U | (shape.wave64 ? 0U : 1U << 15U);
    state.user_data[0] = state.user_data[4] = static_cast<U>(buffer);
    state.user_data[1] = state.user_data[5] = static_cast<U>(buffer >> 32U);
    state.user_data[6] = 4096;
    state.user_data[7] = 0xFACU | 20U << 12U | 3U << 28U;
    std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    state.overlaps = shape.overlap;
    for (unsigned i = 1; i < shape.dispatches && !fault; ++i) {
      fault = launcher.engine.run_dispatch(state, launcher.memory);
    }
    return fault;
  }

  // Where word `index` of the program lies.
  std::uint64_t at(std::size_t index) const { return program_ + (begin_ + index) * 4; }

 private:
  std::uint64_t program_ = 0;
  std::size_t begin_ = 0;
};

}  // namespace kiln::simulator::test::planted

// Atomics: every one in every memory that has it, with corner operands. The expected values follow the formulas of
// AMD's instruction set references, written anew here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulator/wave/bench.hpp"
#include "tests/simulator/wave/corners.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using I = std::int32_t;
using W = std::uint64_t;
using L = std::int64_t;

// One atomic in every memory that has it; "" where it has not. DS: without and with the old value.
struct Atomic {
  const char *ds, *ds_returns, *flat, *global, *buffer;
  W (*expected)(W memory, W data, W second);
  enum class Second : std::uint8_t { none, compare, own } second = Second::none;  // own: DS alone has it
};

template <class Number, class Change>
W as(W bits, Change change) {
  Number value{};
  std::memcpy(&value, &bits, sizeof value);
  value = change(value);
  bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class Number>
Number to(W bits) {
  Number value{};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Unsigned>
W incremented(W m, W d) {
  return m >= d ? 0 : static_cast<Unsigned>(m + 1);
}
W decremented(W m, W d) { return m == 0 || m > d ? d : m - 1; }

constexpr auto compare = Atomic::Second::compare;
constexpr auto own = Atomic::Second::own;

const Atomic atomics32[] = {
    {"ds_add_u32", "ds_add_rtn_u32", "flat_atomic_add_u32", "global_atomic_add_u32", "buffer_atomic_add_u32",
     [](W m, W d, W) { return m + d; }},
    {"ds_sub_u32", "ds_sub_rtn_u32", "flat_atomic_sub_u32", "global_atomic_sub_u32", "buffer_atomic_sub_u32",
     [](W m, W d, W) { return m - d; }},
    {"ds_rsub_u32", "ds_rsub_rtn_u32", "", "", "", [](W m, W d, W) { return d - m; }},
    {"", "", "", "global_atomic_csub_u32", "buffer_atomic_csub_u32", [](W m, W d, W) { return m < d ? 0 : m - d; }},
    {"ds_inc_u32", "ds_inc_rtn_u32", "flat_atomic_inc_u32", "global_atomic_inc_u32", "buffer_atomic_inc_u32",
     [](W m, W d, W) { return incremented<U>(m, d); }},
    {"ds_dec_u32", "ds_dec_rtn_u32", "flat_atomic_dec_u32", "global_atomic_dec_u32", "buffer_atomic_dec_u32",
     [](W m, W d, W) { return decremented(m, d); }},
    {"ds_min_i32", "ds_min_rtn_i32", "flat_atomic_min_i32", "global_atomic_min_i32", "buffer_atomic_min_i32",
     [](W m, W d, W) { return to<I>(d) < to<I>(m) ? d : m; }},
    {"ds_max_i32", "ds_max_rtn_i32", "flat_atomic_max_i32", "global_atomic_max_i32", "buffer_atomic_max_i32",
     [](W m, W d, W) { return to<I>(d) > to<I>(m) ? d : m; }},
    {"ds_min_u32", "ds_min_rtn_u32", "flat_atomic_min_u32", "global_atomic_min_u32", "buffer_atomic_min_u32",
     [](W m, W d, W) { return std::min(m, d); }},
    {"ds_max_u32", "ds_max_rtn_u32", "flat_atomic_max_u32", "global_atomic_max_u32", "buffer_atomic_max_u32",
     [](W m, W d, W) { return std::max(m, d); }},
    {"ds_and_b32", "ds_and_rtn_b32", "flat_atomic_and_b32", "global_atomic_and_b32", "buffer_atomic_and_b32",
     [](W m, W d, W) { return m & d; }},
    {"ds_or_b32", "ds_or_rtn_b32", "flat_atomic_or_b32", "global_atomic_or_b32", "buffer_atomic_or_b32",
     [](W m, W d, W) { return m | d; }},
    {"ds_xor_b32", "ds_xor_rtn_b32", "flat_atomic_xor_b32", "global_atomic_xor_b32", "buffer_atomic_xor_b32",
     [](W m, W d, W) { return m ^ d; }},
    {"", "ds_storexchg_rtn_b32", "flat_atomic_swap_b32", "global_atomic_swap_b32", "buffer_atomic_swap_b32",
     [](W, W d, W) { return d; }},
    {"ds_mskor_b32", "ds_mskor_rtn_b32", "", "", "", [](W m, W d, W s) { return (m & ~d) | s; }, own},
    {"", "ds_wrap_rtn_b32", "", "", "", [](W m, W d, W s) { return m >= d ? m - d : m + s; }, own},
    {"ds_cmpstore_b32", "ds_cmpstore_rtn_b32", "flat_atomic_cmpswap_b32", "global_atomic_cmpswap_b32",
     "buffer_atomic_cmpswap_b32", [](W m, W d, W s) { return m == s ? d : m; }, compare},
};

const Atomic atomics64[] = {
    {"ds_add_u64", "ds_add_rtn_u64", "flat_atomic_add_u64", "global_atomic_add_u64", "buffer_atomic_add_u64",
     [](W m, W d, W) { return m + d; }},
    {"ds_sub_u64", "ds_sub_rtn_u64", "flat_atomic_sub_u64", "global_atomic_sub_u64", "buffer_atomic_sub_u64",
     [](W m, W d, W) { return m - d; }},
    {"ds_rsub_u64", "ds_rsub_rtn_u64", "", "", "", [](W m, W d, W) { return d - m; }},
    {"ds_inc_u64", "ds_inc_rtn_u64", "flat_atomic_inc_u64", "global_atomic_inc_u64", "buffer_atomic_inc_u64",
     [](W m, W d, W) { return incremented<W>(m, d); }},
    {"ds_dec_u64", "ds_dec_rtn_u64", "flat_atomic_dec_u64", "global_atomic_dec_u64", "buffer_atomic_dec_u64",
     [](W m, W d, W) { return decremented(m, d); }},
    {"ds_min_i64", "ds_min_rtn_i64", "flat_atomic_min_i64", "global_atomic_min_i64", "buffer_atomic_min_i64",
     [](W m, W d, W) { return to<L>(d) < to<L>(m) ? d : m; }},
    {"ds_max_i64", "ds_max_rtn_i64", "flat_atomic_max_i64", "global_atomic_max_i64", "buffer_atomic_max_i64",
     [](W m, W d, W) { return to<L>(d) > to<L>(m) ? d : m; }},
    {"ds_min_u64", "ds_min_rtn_u64", "flat_atomic_min_u64", "global_atomic_min_u64", "buffer_atomic_min_u64",
     [](W m, W d, W) { return std::min(m, d); }},
    {"ds_max_u64", "ds_max_rtn_u64", "flat_atomic_max_u64", "global_atomic_max_u64", "buffer_atomic_max_u64",
     [](W m, W d, W) { return std::max(m, d); }},
    {"ds_and_b64", "ds_and_rtn_b64", "flat_atomic_and_b64", "global_atomic_and_b64", "buffer_atomic_and_b64",
     [](W m, W d, W) { return m & d; }},
    {"ds_or_b64", "ds_or_rtn_b64", "flat_atomic_or_b64", "global_atomic_or_b64", "buffer_atomic_or_b64",
     [](W m, W d, W) { return m | d; }},
    {"ds_xor_b64", "ds_xor_rtn_b64", "flat_atomic_xor_b64", "global_atomic_xor_b64", "buffer_atomic_xor_b64",
     [](W m, W d, W) { return m ^ d; }},
    {"", "ds_storexchg_rtn_b64", "flat_atomic_swap_b64", "global_atomic_swap_b64", "buffer_atomic_swap_b64",
     [](W, W d, W) { return d; }},
    {"ds_mskor_b64", "ds_mskor_rtn_b64", "", "", "", [](W m, W d, W s) { return (m & ~d) | s; }, own},
    {"ds_cmpstore_b64", "ds_cmpstore_rtn_b64", "flat_atomic_cmpswap_b64", "global_atomic_cmpswap_b64",
     "buffer_atomic_cmpswap_b64", [](W m, W d, W s) { return m == s ? d : m; }, compare},
};

// Numbers alone: which NaN an atomic stores differs between the memories.
const Atomic atomics_f32[] = {
    {"ds_add_f32", "ds_add_rtn_f32", "flat_atomic_add_f32", "global_atomic_add_f32", "buffer_atomic_add_f32",
     [](W m, W d, W) { return as<float>(m, [&](float x) { return x + to<float>(d); }); }},
    {"ds_min_f32", "ds_min_rtn_f32", "flat_atomic_min_f32", "global_atomic_min_f32", "buffer_atomic_min_f32",
     [](W m, W d, W) { return to<float>(d) < to<float>(m) ? d : m; }},
    {"ds_max_f32", "ds_max_rtn_f32", "flat_atomic_max_f32", "global_atomic_max_f32", "buffer_atomic_max_f32",
     [](W m, W d, W) { return to<float>(d) > to<float>(m) ? d : m; }},
};

void check_atomic(const Atomic& atomic, unsigned bytes, W memory, W data, W second) {
  constexpr unsigned flat = 0, global = 2, off = 124;
  const W mask = bytes == 4 ? 0xFFFFFFFF : ~W{0};
  memory &= mask, data &= mask, second &= mask;
  const W expected = atomic.expected(memory, data, second) & mask;
  constexpr unsigned lane = 5, guard = 0xDEADBEEF;
  const auto run = [&](const char* name, bool returns, const auto& instruction_of) {
    if (*name == '\0') return;
    Bench bench;
    bench.set_exec(1U << lane);
    const W place = bench.memory.allocate(std::vector<U>(1024, guard));
    const bool in_lds = std::string_view(name).starts_with("ds_");
    std::memset(bench.lds.data(), 0xEF, 64);
    if (in_lds) {
      std::memcpy(bench.lds.data() + 16, &memory, bytes);
    } else {
      std::memcpy(bench.memory.host(place + 16), &memory, bytes);
    }
    bench.vgpr(1, lane) = in_lds ? 16 : 0;
    bench.set_vgpr64(2, lane, place + 16);
    bench.set_sgpr64(8, place + 16);
    bench.sgpr(10) = 64, bench.sgpr(11) = 3U << 28;  // a raw buffer of 64 bytes
    bench.set_vgpr64(4, lane, data);
    bench.set_vgpr64(bytes == 4 ? 5 : 6, lane, second);
    bench.set_vgpr64(10, lane, W{guard} << 32 | guard);
    const auto fault = bench.run(instruction_of(name, bytes == 4 ? 5U : 6U));
    INFO(name << std::hex << " memory " << memory << " data " << data << " second " << second);
    REQUIRE_FALSE(fault);
    W found = 0;
    if (in_lds) {
      std::memcpy(&found, bench.lds.data() + 16, bytes);
    } else {
      found = bench.memory.values<W>(place + 16, 1)[0] & mask;
    }
    CHECK(found == expected);
    const unsigned result = std::string_view(name).starts_with("buffer_") ? 4 : 10;
    if (returns) CHECK((bench.vgpr64(result, lane) & mask) == memory);
    if (!returns) CHECK(bench.vgpr(10, lane) == guard);
    if (!in_lds) {
      const std::vector<U> around = bench.memory.values<U>(place, 16);
      CHECK(around[3] == guard);
      CHECK(around[4 + bytes / 4] == guard);
    }
  };
  const auto in_lds = [&](bool returns) {
    return [&atomic, returns](const char* name, unsigned other) {
      return encode::ds(name, returns ? 10 : 0, 1, 4, atomic.second == Atomic::Second::none ? 0 : other);
    };
  };
  run(atomic.ds, false, in_lds(false));
  run(atomic.ds_returns, true, in_lds(true));
  if (atomic.second == Atomic::Second::own) return;
  for (const bool returns : {false, true}) {
    if (!returns && std::string_view(atomic.global).ends_with("csub_u32")) continue;  // always returns
    run(atomic.flat, returns,
        [&](const char* name, unsigned) { return encode::flat(flat, name, returns ? 10 : 0, 2, 4, off, 0, returns); });
    run(atomic.global, returns, [&](const char* name, unsigned) {
      return encode::flat(global, name, returns ? 10 : 0, 2, 4, off, 0, returns);
    });
    run(atomic.buffer, returns,
        [&](const char* name, unsigned) { return encode::mubuf(name, 4, 1, 8, 128, 0, false, false, returns); });
  }
}

}  // namespace

TEST_CASE("simulator corners: every atomic in every memory", "[simulator][corners]") {
  for (const Atomic& atomic : atomics32) {
    for (unsigned i = 0; i < 16; ++i) {
      for (unsigned j = 0; j < 16; j += 3) check_atomic(atomic, 4, corners32[i], corners32[j], corners32[(i + j) % 16]);
      check_atomic(atomic, 4, corners32[i], corners32[i], corners32[i]);
    }
  }
  for (const Atomic& atomic : atomics64) {
    for (unsigned i = 0; i < 16; ++i) {
      for (unsigned j = 0; j < 16; j += 3) check_atomic(atomic, 8, corners64[i], corners64[j], corners64[(i + j) % 16]);
      check_atomic(atomic, 8, corners64[i], corners64[i], corners64[i]);
    }
  }
  constexpr W numbers[] = {0, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x40490FDB};
  for (const Atomic& atomic : atomics_f32) {
    for (const W memory : numbers) {
      for (const W data : numbers) check_atomic(atomic, 4, memory, data, 0);
    }
  }
}

TEST_CASE("simulator corners: atomic minima and maxima of zeros and NaNs in memory", "[simulator][corners]") {
  constexpr W plus = 0, minus = 0x80000000, one = 0x3F800000, nan = 0x7FC00001;
  const auto check_both = [](W memory, W data, W least, W greatest) {
    static W wanted_least, wanted_greatest;
    wanted_least = least, wanted_greatest = greatest;
    const Atomic minimum{"", "", "flat_atomic_min_f32", "global_atomic_min_f32", "buffer_atomic_min_f32",
                         [](W, W, W) { return wanted_least; }};
    const Atomic maximum{"", "", "flat_atomic_max_f32", "global_atomic_max_f32", "buffer_atomic_max_f32",
                         [](W, W, W) { return wanted_greatest; }};
    check_atomic(minimum, 4, memory, data, 0);
    check_atomic(maximum, 4, memory, data, 0);
  };
  check_both(plus, minus, minus, plus);
  check_both(minus, plus, minus, plus);
  check_both(plus, plus, plus, plus);
  check_both(minus, minus, minus, minus);
  check_both(nan, one, one, one);  // a number wins
  check_both(one, nan, one, one);
}

}  // namespace kiln::simulator::test

// DS: LDS loads, stores and atomics. Names stand without ds_ and _rtn.

#include <iterator>

#include "simulator/wave/memory/access.hpp"
#include "simulator/wave/memory/space.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::memory_unit {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;

// Two elements of a lane, at two offsets counted in elements, or in 64 of them.
template <unsigned Words, unsigned Stride>
struct Pair {
  static constexpr unsigned bytes = Words * word_bytes;
  static Word offset(const Op& op, unsigned which) {
    return (which == 0 ? static_cast<Word>(op.offset) : op.extra) * bytes * Stride;
  }
};

// The offsets of one half's lanes; false: one lies outside, and the fault is recorded.
bool offsets_of(Wave& wave, const Op& op, unsigned half, Word bytes, Word offset, Word* out) {
  if (wave.lane_memory->local_offsets(wave, op, half, bytes, offset, out)) return true;
  Addresses at;
  return Local(wave, op, offset).addresses(half, bytes, at);
}

template <unsigned Words>
Next load_local(Wave& wave, const Op& op) {
  const Local space(wave, op);
  alignas(64) Word offsets[group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    if (Wide base; Words == 1 && space.side_by_side(half, word_bytes, base)) {
      if (const std::byte* from = space.linear_read(base, word_bytes * group)) {
        wave.lane_memory->load_row(wave.row(op.vdst, half), from, mask);
        continue;
      }
    }
    if (!offsets_of(wave, op, half, Words * word_bytes, static_cast<Word>(op.offset), offsets)) return Next::fault;
    Word* rows[Words];
    for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.vdst + w, half);
    wave.lane_memory->load_lanes(rows, Words, wave.lds.data, offsets, mask);
  }
  return Next::go;
}

template <unsigned Words>
Next store_local(Wave& wave, const Op& op) {
  const Local space(wave, op);
  alignas(64) Word offsets[group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    if (Wide base; Words == 1 && mask == ~0U && space.side_by_side(half, word_bytes, base)) {
      if (std::byte* to = space.linear_write(base, word_bytes * group)) {
        std::memcpy(to, wave.row(op.reg[1], half), word_bytes * group);
        continue;
      }
    }
    if (!offsets_of(wave, op, half, Words * word_bytes, static_cast<Word>(op.offset), offsets)) return Next::fault;
    const Word* rows[Words];
    for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.reg[1] + w, half);
    wave.lane_memory->store_lanes(rows, Words, wave.lds.data, offsets, mask);
  }
  return Next::go;
}

template <unsigned Words, unsigned Stride>
Next load_pair(Wave& wave, const Op& op) {
  using P = Pair<Words, Stride>;
  alignas(64) Word offsets[2][group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    for (unsigned which = 0; which < 2; ++which) {
      if (!offsets_of(wave, op, half, P::bytes, P::offset(op, which), offsets[which])) return Next::fault;
    }
    for (unsigned which = 0; which < 2; ++which) {
      Word* rows[Words];
      for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.vdst + which * Words + w, half);
      wave.lane_memory->load_lanes(rows, Words, wave.lds.data, offsets[which], mask);
    }
  }
  return Next::go;
}

template <unsigned Words, unsigned Stride>
Next store_pair(Wave& wave, const Op& op) {
  using P = Pair<Words, Stride>;
  alignas(64) Word offsets[group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    for (unsigned which = 0; which < 2; ++which) {
      if (!offsets_of(wave, op, half, P::bytes, P::offset(op, which), offsets)) return Next::fault;
      const Word* rows[Words];
      for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.reg[1 + which] + w, half);
      wave.lane_memory->store_lanes(rows, Words, wave.lds.data, offsets, mask);
    }
  }
  return Next::go;
}

template <unsigned Words, unsigned Stride>
Next exchange_pair(Wave& wave, const Op& op) {
  using P = Pair<Words, Stride>;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at[2];
    for (unsigned which = 0; which < 2; ++which) {
      if (!Local(wave, op, P::offset(op, which)).addresses(half, P::bytes, at[which])) return Next::fault;
    }
    for (Word left = at[0].active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      Word data[2][Words];
      for (unsigned which = 0; which < 2; ++which) {
        for (unsigned w = 0; w < Words; ++w) data[which][w] = wave.row(op.reg[1 + which] + w, half)[i];
      }
      for (unsigned which = 0; which < 2; ++which) {
        std::byte* place = wave.lds.data + at[which].lane[i];
        for (unsigned w = 0; w < Words; ++w) {
          std::memcpy(wave.row(op.vdst + which * Words + w, half) + i, place + w * word_bytes, word_bytes);
        }
        std::memcpy(place, data[which], P::bytes);
      }
    }
  }
  return Next::go;
}

// Lanes side by side from M0 on, without an address register.
template <bool Store>
Next by_thread(Wave& wave, const Op& op) {
  const Word base = (wave.scalar[scalar_index::m0] & 0xFFFFU) + static_cast<Word>(op.offset);
  const Local space(wave, op, base);
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const Wide address = base + (half * group + i) * word_bytes;
      if (address + word_bytes > wave.lds.bytes) {
        space.beyond(address, word_bytes);
        return Next::fault;
      }
      if constexpr (Store) {
        std::memcpy(wave.lds.data + address, wave.row(op.reg[1], half) + i, word_bytes);
      } else {
        std::memcpy(wave.row(op.vdst, half) + i, wave.lds.data + address, word_bytes);
      }
    }
  }
  return Next::go;
}

// Counts the word that M0 points at up (append) or down by the number of active lanes; all of them get what it was.
template <bool Append>
Next count_lanes(Wave& wave, const Op& op) {
  const Word address = (wave.scalar[scalar_index::m0] & 0xFFFFU) + static_cast<Word>(op.offset);
  const Local space(wave, op, address);
  if (address + word_bytes > wave.lds.bytes) {
    space.beyond(address, word_bytes);
    return Next::fault;
  }
  if (address % word_bytes != 0) {
    return refuse(wave, op, FaultKind::misaligned, "LDS atomic of 4 bytes at " + hex(address));
  }
  Word before;
  std::memcpy(&before, wave.lds.data + address, word_bytes);
  const Word lanes = static_cast<Word>(__builtin_popcountll(wave.exec64()));
  const Word after = Append ? before + lanes : before - lanes;
  std::memcpy(wave.lds.data + address, &after, word_bytes);
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1)
      wave.row(op.vdst, half)[__builtin_ctz(left)] = before;
  }
  return Next::go;
}

// One half's lanes in order. All waves of a group run on one thread, so nothing comes between the read and the write.
template <class T, auto Body, bool Returns>
[[gnu::always_inline]] inline void change_lanes(Wave& wave, const Op& op, unsigned half, const Word* offsets,
                                                Word mask) {
  using Bits = std::make_unsigned_t<T>;
  constexpr unsigned high = sizeof(T) == 8 ? 1 : 0;
  const Word* const operands[] = {wave.row(op.reg[1], half), wave.row(op.reg[2], half)};
  const Word* const operands_high[] = {wave.row(op.reg[1] + high, half), wave.row(op.reg[2] + high, half)};
  Word* const result = Returns ? wave.row(op.vdst, half) : nullptr;
  Word* const result_high = Returns ? wave.row(op.vdst + high, half) : nullptr;
  std::byte* const lds = wave.lds.data;
  const auto change = [&](unsigned i) {
    T operand[2];
    for (unsigned each = 0; each < 2; ++each) {
      Wide bits = operands[each][i];
      if constexpr (high != 0) bits |= static_cast<Wide>(operands_high[each][i]) << 32U;
      operand[each] = static_cast<T>(bits);
    }
    std::byte* const place = lds + offsets[i];
    Bits before;
    std::memcpy(&before, place, sizeof before);
    const Bits after = static_cast<Bits>(Body(static_cast<T>(before), operand[0], operand[1]));
    std::memcpy(place, &after, sizeof after);
    if constexpr (Returns) {
      result[i] = static_cast<Word>(before);
      if constexpr (high != 0) result_high[i] = static_cast<Word>(before >> 32U);
    }
  };
  if (mask == ~0U) {
    for (unsigned i = 0; i < group; ++i) change(i);
  } else {
    for (Word left = mask; left != 0; left &= left - 1) change(static_cast<unsigned>(__builtin_ctz(left)));
  }
}

template <class T, auto Body>
Next atomic(Wave& wave, const Op& op) {
  alignas(64) Word offsets[group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    if (!offsets_of(wave, op, half, sizeof(T), static_cast<Word>(op.offset), offsets)) return Next::fault;
    if (wave.lane_memory->any_has(offsets, sizeof(T) - 1, mask)) {
      unsigned first = 0;
      while ((mask >> first & 1U) == 0 || (offsets[first] & (sizeof(T) - 1)) == 0) ++first;
      Local(wave, op).pointer(first, offsets[first], sizeof(T));  // says so
      return Next::fault;
    }
    if ((op.select & 1U) != 0) {
      change_lanes<T, Body, true>(wave, op, half, offsets, mask);
    } else {
      change_lanes<T, Body, false>(wave, op, half, offsets, mask);
    }
  }
  return Next::go;
}

// gfx10.3 has the comparison first and the new value second; gfx11 the other way round.
template <class T>
constexpr auto compare_first = [](T old, T compare, T data) { return old == compare ? data : old; };
template <class Float, class Bits>
constexpr auto compare_first_float = [](Bits old, Bits compare, Bits data) {
  return arithmetic::number<Float>(old) == arithmetic::number<Float>(compare) ? data : old;
};
// Bit 31 says whether the low word is written; the high word follows bit 63.
constexpr auto conditional_exchange = [](Wide old, Wide data, Wide) {
  const Wide low = (data >> 31U & 1U) != 0 ? data & 0x7FFFFFFFU : old & 0xFFFFFFFFU;
  const Wide high = (data >> 63U & 1U) != 0 ? data >> 32U & 0x7FFFFFFFU : old >> 32U;
  return low | high << 32U;
};

constexpr Semantics local_entries[] = {
    {"load_b32", &load_local<1>},
    {"load_b64", &load_local<2>},
    {"load_b96", &load_local<3>},
    {"load_b128", &load_local<4>},
    {"store_b32", &store_local<1>},
    {"store_b64", &store_local<2>},
    {"store_b96", &store_local<3>},
    {"store_b128", &store_local<4>},
    {"load_2addr_b32", &load_pair<1, 1>},
    {"load_2addr_stride64_b32", &load_pair<1, 64>},
    {"load_2addr_b64", &load_pair<2, 1>},
    {"load_2addr_stride64_b64", &load_pair<2, 64>},
    {"store_2addr_b32", &store_pair<1, 1>},
    {"store_2addr_stride64_b32", &store_pair<1, 64>},
    {"store_2addr_b64", &store_pair<2, 1>},
    {"store_2addr_stride64_b64", &store_pair<2, 64>},
    {"load_u8", &load_narrow<Local, std::uint8_t, Place::whole>},
    {"load_i8", &load_narrow<Local, std::int8_t, Place::whole>},
    {"load_u16", &load_narrow<Local, std::uint16_t, Place::whole>},
    {"load_i16", &load_narrow<Local, std::int16_t, Place::whole>},
    {"load_u8_d16", &load_narrow<Local, std::uint8_t, Place::low>},
    {"load_i8_d16", &load_narrow<Local, std::int8_t, Place::low>},
    {"load_u16_d16", &load_narrow<Local, std::uint16_t, Place::low>},
    {"load_u8_d16_hi", &load_narrow<Local, std::uint8_t, Place::high>},
    {"load_i8_d16_hi", &load_narrow<Local, std::int8_t, Place::high>},
    {"load_u16_d16_hi", &load_narrow<Local, std::uint16_t, Place::high>},
    {"store_b8", &store_narrow<Local, std::uint8_t, false>},
    {"store_b16", &store_narrow<Local, std::uint16_t, false>},
    {"store_b8_d16_hi", &store_narrow<Local, std::uint8_t, true>},
    {"store_b16_d16_hi", &store_narrow<Local, std::uint16_t, true>},
    {"load_addtid_b32", &by_thread<false>},
    {"store_addtid_b32", &by_thread<true>},
    {"append", &count_lanes<true>},
    {"consume", &count_lanes<false>},
    {"storexchg_b32", &atomic<Word, arithmetic::swap<Word>>},
    {"storexchg_b64", &atomic<Wide, arithmetic::swap<Wide>>},
    {"storexchg_2addr_b32", &exchange_pair<1, 1>},
    {"storexchg_2addr_stride64_b32", &exchange_pair<1, 64>},
    {"storexchg_2addr_b64", &exchange_pair<2, 1>},
    {"storexchg_2addr_stride64_b64", &exchange_pair<2, 64>},
    {"cmpstore_b32", &atomic<Word, arithmetic::compare_swap<Word>>},
    {"cmpstore_b64", &atomic<Wide, arithmetic::compare_swap<Wide>>},
    {"cmpstore_f32", &atomic<Word, arithmetic::compare_swap_float<float, Word>>},
    {"cmpstore_f64", &atomic<Wide, arithmetic::compare_swap_float<double, Wide>>},
    {"cmpst_b32", &atomic<Word, compare_first<Word>>},
    {"cmpst_b64", &atomic<Wide, compare_first<Wide>>},
    {"cmpst_f32", &atomic<Word, compare_first_float<float, Word>>},
    {"cmpst_f64", &atomic<Wide, compare_first_float<double, Wide>>},
    {"add_u32", &atomic<Word, arithmetic::add<Word>>},
    {"sub_u32", &atomic<Word, arithmetic::subtract<Word>>},
    {"rsub_u32", &atomic<Word, arithmetic::subtract_reversed<Word>>},
    {"inc_u32", &atomic<Word, arithmetic::increment<Word>>},
    {"dec_u32", &atomic<Word, arithmetic::decrement<Word>>},
    {"min_i32", &atomic<I32, arithmetic::minimum<I32>>},
    {"max_i32", &atomic<I32, arithmetic::maximum<I32>>},
    {"min_u32", &atomic<Word, arithmetic::minimum<Word>>},
    {"max_u32", &atomic<Word, arithmetic::maximum<Word>>},
    {"and_b32", &atomic<Word, arithmetic::bit_and<Word>>},
    {"or_b32", &atomic<Word, arithmetic::bit_or<Word>>},
    {"xor_b32", &atomic<Word, arithmetic::bit_xor<Word>>},
    {"mskor_b32", &atomic<Word, arithmetic::mask_or<Word>>},
    {"wrap_b32", &atomic<Word, arithmetic::wrap>},
    {"add_f32", &atomic<Word, arithmetic::add_float>},
    {"min_f32", &atomic<Word, arithmetic::minimum_float<float, Word>>},
    {"max_f32", &atomic<Word, arithmetic::maximum_float<float, Word>>},
    {"add_u64", &atomic<Wide, arithmetic::add<Wide>>},
    {"sub_u64", &atomic<Wide, arithmetic::subtract<Wide>>},
    {"rsub_u64", &atomic<Wide, arithmetic::subtract_reversed<Wide>>},
    {"inc_u64", &atomic<Wide, arithmetic::increment<Wide>>},
    {"dec_u64", &atomic<Wide, arithmetic::decrement<Wide>>},
    {"min_i64", &atomic<I64, arithmetic::minimum<I64>>},
    {"max_i64", &atomic<I64, arithmetic::maximum<I64>>},
    {"min_u64", &atomic<Wide, arithmetic::minimum<Wide>>},
    {"max_u64", &atomic<Wide, arithmetic::maximum<Wide>>},
    {"and_b64", &atomic<Wide, arithmetic::bit_and<Wide>>},
    {"or_b64", &atomic<Wide, arithmetic::bit_or<Wide>>},
    {"xor_b64", &atomic<Wide, arithmetic::bit_xor<Wide>>},
    {"mskor_b64", &atomic<Wide, arithmetic::mask_or<Wide>>},
    {"min_f64", &atomic<Wide, arithmetic::minimum_float<double, Wide>>},
    {"max_f64", &atomic<Wide, arithmetic::maximum_float<double, Wide>>},
    {"condxchg32_b64", &atomic<Wide, conditional_exchange>},
};

}  // namespace

SemanticsList local() noexcept { return {local_entries, std::size(local_entries)}; }

// DS instructions that pass data between lanes and touch no memory. They work within 32 lanes, in wave64 too.

namespace {

Next nothing_to_do(Wave&, const Op&) { return Next::go; }

// Each lane names the lane that it reads, in bytes; one that is off gives zero.
Next permute_backward(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* from = wave.row(op.reg[0], half);
    const Word* data = wave.row(op.reg[1], half);
    Word out[group];
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = (from[i] + static_cast<Word>(op.offset)) / word_bytes % group;
      out[i] = (mask >> lane & 1U) != 0 ? data[lane] : 0;
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

// Each lane names the lane that it writes; of several the highest wins, and a lane that none names gets zero.
Next permute_forward(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* where = wave.row(op.reg[0], half);
    const Word* data = wave.row(op.reg[1], half);
    Word out[group] = {};
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = (where[i] + static_cast<Word>(op.offset)) / word_bytes % group;
      if ((mask >> i & 1U) != 0) out[lane] = data[i];
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

unsigned swizzled_lane(Word control, unsigned i) {
  if ((control & 0x8000U) == 0) {  // and, or, xor masks
    return (((i & (control & 31U)) | (control >> 5U & 31U)) ^ (control >> 10U & 31U));
  }
  return (i & ~3U) | (control >> 2U * (i & 3U) & 3U);  // within four lanes
}

Next swizzle(Wave& wave, const Op& op) {
  const Word control = static_cast<Word>(op.offset);
  if ((control & 0x8000U) != 0 && (control >> 8U & 0x7FU) != 0) {
    return refuse(wave, op, FaultKind::unknown_opcode, "swizzle mode " + hex(control) + " is not simulated");
  }
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* data = wave.row(op.reg[0], half);
    Word out[group];
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = swizzled_lane(control, i);
      out[i] = (mask >> lane & 1U) != 0 ? data[lane] : 0;
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

constexpr Semantics local_lanes_entries[] = {
    {"bpermute_b32", &permute_backward},
    {"permute_b32", &permute_forward},
    {"swizzle_b32", &swizzle},
    {"nop", &nothing_to_do},
};
constexpr Semantics idle[] = {
    {"buffer_gl0_inv", &nothing_to_do, takes::no_time},
    {"buffer_gl1_inv", &nothing_to_do, takes::no_time},
};

}  // namespace

SemanticsList local_lanes() noexcept { return {local_lanes_entries, std::size(local_lanes_entries)}; }
SemanticsList nothing() noexcept { return {idle, std::size(idle)}; }

}  // namespace kiln::simulator::memory_unit

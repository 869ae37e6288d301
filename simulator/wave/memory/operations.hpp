// The table that the flat family and buffers share: one entry an operation, for any Space.
//
// Thread-safety and ownership: constants.
#pragma once

#include <iterator>

#include "simulator/wave/memory/access.hpp"

namespace kiln::simulator::memory_unit {

// The operand is the data, the comparison the words after it.
template <class Space, class T, auto Body>
Next atomic(Wave& wave, const Op& op) {
  Space space(wave, op);
  return atomic_with<T, Body>(space, wave, op, op.reg[1], op.reg[1]);
}
template <class Space, class T, auto Body>
Next atomic_compare(Wave& wave, const Op& op) {
  Space space(wave, op);
  return atomic_with<T, Body>(space, wave, op, op.reg[1], op.reg[1] + sizeof(T) / word_bytes);
}

template <class Space>
struct Operations {
  using I32 = std::int32_t;
  using I64 = std::int64_t;
  static constexpr Semantics entries[] = {
      {"load_b32", &load_words<Space, 1>},
      {"load_b64", &load_words<Space, 2>},
      {"load_b96", &load_words<Space, 3>},
      {"load_b128", &load_words<Space, 4>},
      {"store_b32", &store_words<Space, 1>},
      {"store_b64", &store_words<Space, 2>},
      {"store_b96", &store_words<Space, 3>},
      {"store_b128", &store_words<Space, 4>},
      {"load_u8", &load_narrow<Space, std::uint8_t, Place::whole>},
      {"load_i8", &load_narrow<Space, std::int8_t, Place::whole>},
      {"load_u16", &load_narrow<Space, std::uint16_t, Place::whole>},
      {"load_i16", &load_narrow<Space, std::int16_t, Place::whole>},
      {"load_d16_u8", &load_narrow<Space, std::uint8_t, Place::low>},
      {"load_d16_i8", &load_narrow<Space, std::int8_t, Place::low>},
      {"load_d16_b16", &load_narrow<Space, std::uint16_t, Place::low>},
      {"load_d16_hi_u8", &load_narrow<Space, std::uint8_t, Place::high>},
      {"load_d16_hi_i8", &load_narrow<Space, std::int8_t, Place::high>},
      {"load_d16_hi_b16", &load_narrow<Space, std::uint16_t, Place::high>},
      {"store_b8", &store_narrow<Space, std::uint8_t, false>},
      {"store_b16", &store_narrow<Space, std::uint16_t, false>},
      {"store_d16_hi_b8", &store_narrow<Space, std::uint8_t, true>},
      {"store_d16_hi_b16", &store_narrow<Space, std::uint16_t, true>},
      {"atomic_swap_b32", &atomic<Space, Word, arithmetic::swap<Word>>},
      {"atomic_cmpswap_b32", &atomic_compare<Space, Word, arithmetic::compare_swap<Word>>},
      {"atomic_add_u32", &atomic<Space, Word, arithmetic::add<Word>>},
      {"atomic_sub_u32", &atomic<Space, Word, arithmetic::subtract<Word>>},
      {"atomic_csub_u32", &atomic<Space, Word, arithmetic::clamped_subtract>},
      {"atomic_min_i32", &atomic<Space, I32, arithmetic::minimum<I32>>},
      {"atomic_min_u32", &atomic<Space, Word, arithmetic::minimum<Word>>},
      {"atomic_max_i32", &atomic<Space, I32, arithmetic::maximum<I32>>},
      {"atomic_max_u32", &atomic<Space, Word, arithmetic::maximum<Word>>},
      {"atomic_and_b32", &atomic<Space, Word, arithmetic::bit_and<Word>>},
      {"atomic_or_b32", &atomic<Space, Word, arithmetic::bit_or<Word>>},
      {"atomic_xor_b32", &atomic<Space, Word, arithmetic::bit_xor<Word>>},
      {"atomic_inc_u32", &atomic<Space, Word, arithmetic::increment<Word>>},
      {"atomic_dec_u32", &atomic<Space, Word, arithmetic::decrement<Word>>},
      {"atomic_swap_b64", &atomic<Space, Wide, arithmetic::swap<Wide>>},
      {"atomic_cmpswap_b64", &atomic_compare<Space, Wide, arithmetic::compare_swap<Wide>>},
      {"atomic_add_u64", &atomic<Space, Wide, arithmetic::add<Wide>>},
      {"atomic_sub_u64", &atomic<Space, Wide, arithmetic::subtract<Wide>>},
      {"atomic_min_i64", &atomic<Space, I64, arithmetic::minimum<I64>>},
      {"atomic_min_u64", &atomic<Space, Wide, arithmetic::minimum<Wide>>},
      {"atomic_max_i64", &atomic<Space, I64, arithmetic::maximum<I64>>},
      {"atomic_max_u64", &atomic<Space, Wide, arithmetic::maximum<Wide>>},
      {"atomic_and_b64", &atomic<Space, Wide, arithmetic::bit_and<Wide>>},
      {"atomic_or_b64", &atomic<Space, Wide, arithmetic::bit_or<Wide>>},
      {"atomic_xor_b64", &atomic<Space, Wide, arithmetic::bit_xor<Wide>>},
      {"atomic_inc_u64", &atomic<Space, Wide, arithmetic::increment<Wide>>},
      {"atomic_dec_u64", &atomic<Space, Wide, arithmetic::decrement<Wide>>},
      {"atomic_cmpswap_f32", &atomic_compare<Space, Word, arithmetic::compare_swap_float<float, Word>>},
      {"atomic_min_f32", &atomic<Space, Word, arithmetic::minimum_float<float, Word>>},
      {"atomic_max_f32", &atomic<Space, Word, arithmetic::maximum_float<float, Word>>},
      {"atomic_add_f32", &atomic<Space, Word, arithmetic::add_float>},
      {"atomic_cmpswap_f64", &atomic_compare<Space, Wide, arithmetic::compare_swap_float<double, Wide>>},
      {"atomic_min_f64", &atomic<Space, Wide, arithmetic::minimum_float<double, Wide>>},
      {"atomic_max_f64", &atomic<Space, Wide, arithmetic::maximum_float<double, Wide>>},
  };
  static constexpr SemanticsList list() { return {entries, std::size(entries)}; }
};

}  // namespace kiln::simulator::memory_unit

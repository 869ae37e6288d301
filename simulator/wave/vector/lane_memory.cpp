// What memory instructions do with 32 lanes at once.
#include <immintrin.h>

#include <utility>

#include "simulator/wave/op.hpp"
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

namespace {

// As many words of a row as the widest register holds. A row is written as it is read: a load that takes from two
// stores waits until both are done.
#if defined(__AVX512F__)
constexpr unsigned width = 16;
#elif defined(__AVX2__)
constexpr unsigned width = 8;
#else
constexpr unsigned width = 4;
#endif
typedef Word Words __attribute__((vector_size(width * sizeof(Word))));

typedef Words WordsAnywhere __attribute__((aligned(4), may_alias));
KILN_LANE Words words_at(const Word* row) { return *reinterpret_cast<const WordsAnywhere*>(row); }
KILN_LANE void put_words(Word* row, Words words) { *reinterpret_cast<WordsAnywhere*>(row) = words; }
KILN_LANE Words all(Word word) { return Words{} + word; }

// One word in the first eight lanes and one in the next, if there are as many.
KILN_LANE Words eights_of(Word first, [[maybe_unused]] Word last) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      Words, _mm512_mask_set1_epi32(__builtin_bit_cast(__m512i, all(first)), 0xFF00, static_cast<int>(last)));
#else
  return all(first);
#endif
}

// The lanes, the first lowest, whose words differ, and whose word of `a` is the greater one.
KILN_LANE Word lanes_unequal(Words a, Words b) {
#if defined(__AVX512F__)
  return _mm512_cmpneq_epu32_mask(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b));
#elif defined(__AVX2__)
  return static_cast<Word>(_mm256_movemask_ps(__builtin_bit_cast(__m256, a != b)));
#else
  return static_cast<Word>(_mm_movemask_ps(__builtin_bit_cast(__m128, a != b)));
#endif
}
KILN_LANE Word lanes_greater(Words a, Words b) {
#if defined(__AVX512F__)
  return _mm512_cmpgt_epu32_mask(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b));
#elif defined(__AVX2__)
  return static_cast<Word>(_mm256_movemask_ps(__builtin_bit_cast(__m256, a > b)));
#else
  return static_cast<Word>(_mm_movemask_ps(__builtin_bit_cast(__m128, a > b)));
#endif
}

// The four words of every fourth of the lanes that `four` gives.
template <class Lane>
KILN_LANE Words fours(Lane&& four) {
#if defined(__AVX512F__)
  const __m512i half = _mm512_inserti32x4(_mm512_castsi128_si512(four(0)), four(4), 1);
  return __builtin_bit_cast(Words, _mm512_inserti32x4(_mm512_inserti32x4(half, four(8), 2), four(12), 3));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Words, _mm256_set_m128i(four(4), four(0)));
#else
  return __builtin_bit_cast(Words, four(0));
#endif
}

// The lanes whose word is not start, start + step, start + 2 * step …
KILN_LANE Word lanes_unlike(const Word* row, Word start, Word step) {
  constexpr auto number = []<Word... i>(std::integer_sequence<Word, i...>) { return Words{i...}; }
  (std::make_integer_sequence<Word, width>{});
  Word lanes = 0;
  for (unsigned i = 0; i < group; i += width) {
    lanes |= lanes_unequal(words_at(row + i), number * step + (start + i * step)) << i;
  }
  return lanes;
}

// The lanes whose word is greater than `limit`.
KILN_LANE Word lanes_above(const Word* row, Word limit) {
  Word lanes = 0;
  for (unsigned i = 0; i < group; i += width) lanes |= lanes_greater(words_at(row + i), all(limit)) << i;
  return lanes;
}

bool side_by_side_global(Wave& wave, const Op& op, unsigned half, Word bytes, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  const Wide offset = static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  const bool based = op.kind[2] == SourceKind::scalar;
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  // Lanes must not pass from one 4 GiB into the next.
  if (start > low[first] || start + group * bytes < start) return false;
  if ((lanes_unlike(low, start, bytes) & mask) != 0) return false;
  Wide high = 0;
  if (!based) {
    const Word* upper = wave.row(op.reg[0] + 1U, half);
    if ((lanes_unlike(upper, upper[first], 0) & mask) != 0) return false;
    high = static_cast<Wide>(upper[first]) << 32U;
  }
  base = (based ? wave.scalar64(op.sdst) : high) + start + offset;
  return (base & 3U) == 0;
}

bool side_by_side_local(Wave& wave, const Op& op, unsigned half, Word bytes, Word offset, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  if ((lanes_unlike(low, start, bytes) & mask) != 0) return false;
  const Word sum = start + offset;  // of 32 bits; the lanes must not pass their end
  if (sum + group * bytes < sum) return false;
  base = sum;
  return (base & 3U) == 0;
}

void load_row(Word* row, const std::byte* from, Word mask) {
  const Word* words = reinterpret_cast<const Word*>(from);
  if (mask == ~0U) {
    for (unsigned i = 0; i < group; ++i) row[i] = words[i];
  } else {
    for (unsigned i = 0; i < group; ++i) row[i] = (mask >> i & 1U) != 0 ? words[i] : row[i];
  }
}

bool local_offsets(Wave& wave, const Op& op, unsigned half, Word bytes, Word offset, Word* out) {
  const Word* from = words(wave, op, 0, half, out);
  const Word mask = wave.exec(half);
  if (bytes > wave.lds.bytes) return false;
  const Word limit = wave.lds.bytes - bytes;
  // Of 32 bits: compilers put a negative number in the register.
  for (unsigned i = 0; i < group; i += width) put_words(out + i, words_at(from + i) + offset);
  return (lanes_above(out, limit) & mask) == 0;
}

KILN_LANE Word word_at(const std::byte* at) {
  Word word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

// Of each four words of `a` and of `b`: the first two, or the last two, of both in turns, `unit` words at a time.
template <unsigned unit, bool last>
KILN_LANE Words interleave(Words a, Words b) {
  constexpr auto source = [](unsigned i) {
    const unsigned in_four = i % 4, turn = in_four / unit % 2, place = in_four / (2 * unit) * unit + in_four % unit;
    return i / 4 * 4 + (last ? 2 : 0) + place + turn * width;
  };
  return [&]<unsigned... i>(std::integer_sequence<unsigned, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, source(i)...);
  }
  (std::make_integer_sequence<unsigned, width>{});
}

// Words 0 to 3 of lanes 0 to 3 and, behind them, of the next four: rows become columns.
KILN_LANE void transpose(Words (&v)[4]) {
  const Words first01 = interleave<1, false>(v[0], v[1]), last01 = interleave<1, true>(v[0], v[1]);
  const Words first23 = interleave<1, false>(v[2], v[3]), last23 = interleave<1, true>(v[2], v[3]);
  v[0] = interleave<2, false>(first01, first23);
  v[1] = interleave<2, true>(first01, first23);
  v[2] = interleave<2, false>(last01, last23);
  v[3] = interleave<2, true>(last01, last23);
}

// Whether the lanes of each eight read one place: those of threads in one row of a tile.
KILN_LANE bool same_in_eights(const Word* offsets) {
  Word differ = 0;
  for (unsigned i = 0; i < group; i += width) {
    differ |= lanes_unequal(words_at(offsets + i), eights_of(offsets[i & ~7U], offsets[(i + width - 1) & ~7U]));
  }
  return differ == 0;
}

// After how many lanes, a multiple of `width`, the offsets repeat: those of threads in one column of a tile.
KILN_LANE unsigned distinct_lanes(const Word* offsets) {
  constexpr unsigned half = group / 2;
  Word differ = 0;
  for (unsigned i = 0; i < half; i += width) {
    differ |= lanes_unequal(words_at(offsets + i), words_at(offsets + half + i));
  }
  if (differ != 0) return group;
  return width == 8 && lanes_unequal(words_at(offsets), words_at(offsets + 8)) == 0 ? 8 : half;
}

void load_fours(Word* const* rows, const std::byte* data, const Word* offsets) {
  if (same_in_eights(offsets)) {
    for (unsigned i = 0; i < group; i += width) {
      for (unsigned w = 0; w < 4; ++w) {
        const auto word = [&](unsigned lane) { return word_at(data + offsets[lane] + w * 4U); };
        put_words(rows[w] + i, eights_of(word(i), word(i + width - 1)));
      }
    }
    return;
  }
  const unsigned distinct = distinct_lanes(offsets);
  for (unsigned i = 0; i < distinct; i += width) {
    Words v[4];
    for (unsigned k = 0; k < 4; ++k) {
      v[k] = fours([&](unsigned lane) __attribute__((always_inline)) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + offsets[i + k + lane]));
      });
    }
    transpose(v);
    for (unsigned to = i; to < group; to += distinct) {
      for (unsigned w = 0; w < 4; ++w) put_words(rows[w] + to, v[w]);
    }
  }
}

void store_fours(const Word* const* rows, std::byte* data, const Word* offsets) {
  for (unsigned i = 0; i < group; i += width) {
    Words v[4];
    for (unsigned w = 0; w < 4; ++w) v[w] = words_at(rows[w] + i);
    transpose(v);
    for (unsigned lane = 0; lane < width; ++lane) {
      __builtin_memcpy(data + offsets[i + lane], reinterpret_cast<const Word*>(&v[lane % 4]) + lane / 4 * 4,
                       4 * sizeof(Word));
    }
  }
}

void load_lanes(Word* const* rows, unsigned count, const std::byte* data, const Word* offsets, Word mask) {
  if (mask == ~0U && count == 4) {
    load_fours(rows, data, offsets);
    return;
  }
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  if ((lanes_unlike(offsets, offsets[first], 0) & mask) == 0) {
    for (unsigned w = 0; w < count; ++w) {
      const Word word = word_at(data + offsets[first] + w * 4U);
      Word* to = rows[w];
      for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? word : to[i];
    }
  } else if (mask != ~0U) {
    for (Word left = mask; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      for (unsigned w = 0; w < count; ++w) rows[w][i] = word_at(data + offsets[i] + w * 4U);
    }
  } else {
    for (unsigned w = 0; w < count; ++w) {
      Word* to = rows[w];
      for (unsigned i = 0; i < group; ++i) to[i] = word_at(data + offsets[i] + w * 4U);
    }
  }
}

void store_lanes(const Word* const* rows, unsigned count, std::byte* data, const Word* offsets, Word mask) {
  if (mask == ~0U && count == 4) {
    store_fours(rows, data, offsets);
  } else if (mask == ~0U && count == 1) {
    const Word* const from = rows[0];
    for (unsigned i = 0; i < group; ++i) __builtin_memcpy(data + offsets[i], from + i, sizeof(Word));
  } else {
    for (Word left = mask; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      for (unsigned w = 0; w < count; ++w) __builtin_memcpy(data + offsets[i] + w * 4U, rows[w] + i, sizeof(Word));
    }
  }
}

bool any_has(const Word* words, Word bits, Word mask) {
  Word joined = 0;
  for (unsigned i = 0; i < group; ++i) joined |= (mask >> i & 1U) != 0 ? words[i] : 0U;
  return (joined & bits) != 0;
}

}  // namespace

LaneMemory lane_memory() noexcept {
  return {&side_by_side_global, &side_by_side_local, &load_row, &local_offsets, &load_lanes, &store_lanes, &any_has};
}

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

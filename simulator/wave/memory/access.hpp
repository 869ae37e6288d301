// Loads, stores and atomics of any address space, a lane at a time or side by side.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simulator/wave/memory/space.hpp"
#include "simulator/wave/op.hpp"

namespace kiln::simulator::memory_unit {

// Loads, stores and atomics over any Space (space.hpp): handlers are made from these templates. Aligned words are moved
// whole, so that waves on other threads never see half of one.
//
// Thread-safety and ownership: as Wave's.

inline Word load_word(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_RELAXED);
}
inline void store_word(std::byte* at, Word value) {
  __atomic_store_n(reinterpret_cast<Word*>(at), value, __ATOMIC_RELAXED);
}

// Where lanes that stand side by side begin, in bytes.
template <unsigned Words>
inline constexpr auto consecutive = [] {
  std::array<Word, group> offsets{};
  for (unsigned i = 0; i < group; ++i) offsets[i] = i * Words * word_bytes;
  return offsets;
}();

// The page that holds all of 32 lanes' aligned words, and where each begins there; null where no page does.
template <class Space>
const std::byte* one_page(const Space& space, const Addresses& at, unsigned bytes, Word* begin) {
  if (at.active != ~0U || at.careful) return nullptr;
  Wide differing = 0;
  Word last = 0, all = 0;
  for (unsigned i = 0; i < group; ++i) {
    differing |= at.lane[i] ^ at.lane[0];
    begin[i] = static_cast<Word>(at.lane[i] & (Page::bytes - 1));
    last = begin[i] > last ? begin[i] : last;
    all |= begin[i];
  }
  if (differing / Page::bytes != 0 || (all & 3U) != 0 || last + bytes > Page::bytes) return nullptr;
  return space.linear_read(at.lane[0] & ~Wide{Page::bytes - 1}, 1);
}

template <class Space, unsigned Words>
Next load_words(Wave& wave, const Op& op) {
  constexpr unsigned bytes = Words * word_bytes;
  Space space(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Word* rows[Words];
    for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.vdst + w, half);
    if (Wide base; space.side_by_side(half, bytes, base)) {
      if (const std::byte* from = space.linear_read(base, bytes * group)) {
        const Word mask = wave.exec(half);
        if constexpr (Words == 1) {
          wave.lane_memory->load_row(rows[0], from, mask);
        } else {
          wave.lane_memory->load_lanes(rows, Words, from, consecutive<Words>.data(), mask);
        }
        continue;
      }
    }
    Addresses at;
    if (!space.addresses(half, bytes, at)) return Next::fault;
    alignas(64) Word begin[group];
    if (const std::byte* all = one_page(space, at, bytes, begin)) {
      wave.lane_memory->load_lanes(rows, Words, all, begin, ~0U);
      continue;
    }
    Wide page = ~Wide{0};
    const std::byte* data = nullptr;
    alignas(64) Word words[group][Words];
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const Wide address = at.lane[i], within = address & (Page::bytes - 1);
      if (address / Page::bytes != page && !at.careful) {
        data = space.linear_read(address & ~(Page::bytes - 1), 1);
        page = data != nullptr ? address / Page::bytes : ~Wide{0};
      }
      if (data != nullptr && (address & 3U) == 0 && within + bytes <= Page::bytes) [[likely]] {
        for (unsigned w = 0; w < Words; ++w) words[i][w] = load_word(data + within + w * word_bytes);
      } else if (!space.load(half * group + i, address, words[i], bytes)) {
        return Next::fault;
      }
    }
    const auto* staged = reinterpret_cast<const std::byte*>(words);
    if (at.active != 0) wave.lane_memory->load_lanes(rows, Words, staged, consecutive<Words>.data(), at.active);
  }
  return Next::go;
}

template <class Space, unsigned Words>
Next store_words(Wave& wave, const Op& op) {
  constexpr unsigned bytes = Words * word_bytes;
  Space space(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    const Word* rows[Words];
    for (unsigned w = 0; w < Words; ++w) rows[w] = wave.row(op.reg[1] + w, half);
    if (Wide base; wave.exec(half) == ~0U && space.side_by_side(half, bytes, base)) {
      if (std::byte* to = space.linear_write(base, bytes * group)) {
        if constexpr (Words == 1) {
          std::memcpy(to, rows[0], bytes * group);
        } else {
          wave.lane_memory->store_lanes(rows, Words, to, consecutive<Words>.data(), ~0U);
        }
        space.wrote(base, bytes * group);
        continue;
      }
    }
    Addresses at;
    if (!space.addresses(half, bytes, at)) return Next::fault;
    Wide page = ~Wide{0};
    std::byte* data = nullptr;
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const Wide address = at.lane[i], within = address & (Page::bytes - 1);
      if (address / Page::bytes != page && !at.careful) {
        data = space.linear_write(address & ~(Page::bytes - 1), 1);
        page = data != nullptr ? address / Page::bytes : ~Wide{0};
      }
      if (data != nullptr && (address & 3U) == 0 && within + bytes <= Page::bytes) [[likely]] {
        for (unsigned w = 0; w < Words; ++w) store_word(data + within + w * word_bytes, rows[w][i]);
        space.wrote(address, bytes);
      } else {
        Word words[Words];
        for (unsigned w = 0; w < Words; ++w) words[w] = rows[w][i];
        if (!space.store(half * group + i, address, words, bytes)) return Next::fault;
      }
    }
  }
  return Next::go;
}

// Which bits of the register a narrow value fills: all of it (extended), or one half (D16).
enum class Place : std::uint8_t { invalid = 0, whole, low, high };

inline Word placed(Word old, Word value, Place place) {
  if (place == Place::low) return (old & 0xFFFF0000U) | (value & 0xFFFFU);
  if (place == Place::high) return (old & 0xFFFFU) | value << 16U;
  return value;
}

template <class Space, class T, Place Where>
Next load_narrow(Wave& wave, const Op& op) {
  Space space(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!space.addresses(half, sizeof(T), at)) return Next::fault;
    Word* row = wave.row(op.vdst, half);
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      T value;
      if (!space.load(half * group + i, at.lane[i], &value, sizeof(T))) return Next::fault;
      row[i] = placed(row[i], static_cast<Word>(static_cast<std::int32_t>(value)), Where);
    }
  }
  return Next::go;
}

template <class Space, class T, bool High>
Next store_narrow(Wave& wave, const Op& op) {
  Space space(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!space.addresses(half, sizeof(T), at)) return Next::fault;
    const Word* row = wave.row(op.reg[1], half);
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const T value = static_cast<T>(High ? row[i] >> 16U : row[i]);
      if (!space.store(half * group + i, at.lane[i], &value, sizeof(T))) return Next::fault;
    }
  }
  return Next::go;
}

// One lane's operand of an atomic, from one or two rows.
template <class T>
T operand_of(Wave& wave, unsigned row, unsigned half, unsigned lane) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(wave.row(row, half)[lane] | static_cast<Wide>(wave.row(row + 1, half)[lane]) << 32U);
  } else {
    return static_cast<T>(wave.row(row, half)[lane]);
  }
}

// Body(old, operand, second) is the new value. `second_row`: that of the comparison, where there is one.
template <class T, auto Body, class Space>
Next atomic_with(Space& space, Wave& wave, const Op& op, unsigned operand_row, unsigned second_row) {
  using Bits = std::make_unsigned_t<T>;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!space.addresses(half, sizeof(T), at)) return Next::fault;
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      Bits before = 0;
      if ((at.outside >> i & 1U) == 0) {
        std::byte* pointer = space.pointer(half * group + i, at.lane[i], sizeof(T));
        if (pointer == nullptr) return Next::fault;
        const T operand = operand_of<T>(wave, operand_row, half, i), second = operand_of<T>(wave, second_row, half, i);
        auto* word = reinterpret_cast<Bits*>(pointer);
        before = __atomic_load_n(word, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(word, &before,
                                            static_cast<Bits>(Body(static_cast<T>(before), operand, second)), false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        }
      }
      if ((op.select & 1U) != 0) {
        wave.row(op.vdst, half)[i] = static_cast<Word>(before);
        if constexpr (sizeof(T) == 8) wave.row(op.vdst + 1U, half)[i] = static_cast<Word>(before >> 32U);
      }
    }
  }
  return Next::go;
}

}  // namespace kiln::simulator::memory_unit

namespace kiln::simulator::memory_unit::arithmetic {

// The arithmetic of atomics: (old, operand, comparison) to the new value.
//
// Thread-safety and ownership: pure functions.

using Word = std::uint32_t;
using Wide = std::uint64_t;

template <class T>
inline constexpr auto swap = [](T, T data, T) { return data; };
template <class T>
inline constexpr auto compare_swap = [](T old, T data, T compare) { return old == compare ? data : old; };
template <class T>
inline constexpr auto add = [](T old, T data, T) { return static_cast<T>(old + data); };
template <class T>
inline constexpr auto subtract = [](T old, T data, T) { return static_cast<T>(old - data); };
template <class T>
inline constexpr auto subtract_reversed = [](T old, T data, T) { return static_cast<T>(data - old); };
template <class T>
inline constexpr auto minimum = [](T old, T data, T) { return data < old ? data : old; };
template <class T>
inline constexpr auto maximum = [](T old, T data, T) { return old < data ? data : old; };
template <class T>
inline constexpr auto bit_and = [](T old, T data, T) { return static_cast<T>(old & data); };
template <class T>
inline constexpr auto bit_or = [](T old, T data, T) { return static_cast<T>(old | data); };
template <class T>
inline constexpr auto bit_xor = [](T old, T data, T) { return static_cast<T>(old ^ data); };
template <class T>  // counts up to the operand, then from 0
inline constexpr auto increment = [](T old, T data, T) { return old >= data ? T{0} : static_cast<T>(old + 1); };
template <class T>  // counts down from the operand
inline constexpr auto decrement =
    [](T old, T data, T) { return old == 0 || old > data ? data : static_cast<T>(old - 1); };
template <class T>  // clears the bits of the first operand, sets those of the second
inline constexpr auto mask_or = [](T old, T mask, T bits) { return static_cast<T>((old & ~mask) | bits); };
// Down to zero, no further.
inline constexpr auto clamped_subtract = [](Word old, Word data, Word) { return old < data ? 0U : old - data; };
// A ring: down by the first operand, and below zero up by the second.
inline constexpr auto wrap = [](Word old, Word data, Word second) { return old >= data ? old - data : old + second; };

template <class Float, class Bits>
Float number(Bits bits) {
  static_assert(sizeof(Float) == sizeof(Bits));
  Float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <class Bits, class Float>
Bits bits(Float value) {
  static_assert(sizeof(Float) == sizeof(Bits));
  Bits result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}
inline constexpr auto add_float = [](Word old, Word data, Word) {
  return bits<Word>(number<float>(old) + number<float>(data));
};
template <class Float, class Bits>  // a number wins over a NaN
inline constexpr auto minimum_float = [](Bits old, Bits data, Bits) {
  const Float a = number<Float>(old), b = number<Float>(data);
  return a != a ? data : b != b ? old : b < a || (a == b && (data & ~(~Bits{0} >> 1U)) != 0) ? data : old;
};
template <class Float, class Bits>
inline constexpr auto maximum_float = [](Bits old, Bits data, Bits) {
  const Float a = number<Float>(old), b = number<Float>(data);
  return a != a ? data : b != b ? old : a < b || (a == b && (data & ~(~Bits{0} >> 1U)) == 0) ? data : old;
};
template <class Float, class Bits>
inline constexpr auto compare_swap_float =
    [](Bits old, Bits data, Bits compare) { return number<Float>(old) == number<Float>(compare) ? data : old; };

}  // namespace kiln::simulator::memory_unit::arithmetic

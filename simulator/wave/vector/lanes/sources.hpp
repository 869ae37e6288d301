// Sources of vector instructions: 32 lanes of each, modifiers done, in the caller's storage or where the register lies.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety: as Wave's. Ownership: what is handed out
// lives as long as the storage and the wave.
#pragma once

#include "simulator/wave/vector/lanes/operand_types.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

constexpr unsigned group = 32;  // lanes that one pass works on
constexpr unsigned most_sources = 3;

template <class F>
KILN_LANE bool flushes_in(const Wave& wave) {
  return F::has_mode_of_32 ? wave.flush_in32 : wave.flush_in16;
}
template <class F>
KILN_LANE void flush(typename F::Bits* lanes) {
  for (unsigned i = 0; i < group; ++i) lanes[i] = flushed<F>(lanes[i]);
}

[[gnu::noinline, maybe_unused]] const Word* spread(const Wave& wave, const Op& op, unsigned source, Word* storage) {
  const Word value = op.kind[source] == SourceKind::scalar ? wave.scalar[op.reg[source]]
                                                           : special_value(wave, op.reg[source]);
  for (unsigned i = 0; i < group; ++i) storage[i] = value;
  return storage;
}

KILN_LANE const Word* words(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  if (op.kind[source] == SourceKind::row) [[likely]] return wave.row(op.reg[source], half);
  if (op.kind[source] == SourceKind::constant) return constant_words(op, source);
  return spread(wave, op, source, storage);
}

[[gnu::noinline, maybe_unused]] void wides(Wave& wave, const Op& op, unsigned source, unsigned half, Wide* out) {
  const Word* low;
  const Word* high;
  if (op.kind[source] == SourceKind::row) {
    low = wave.row(op.reg[source], half);
    high = wave.row(op.reg[source] + 1U, half);
  } else if (op.kind[source] == SourceKind::constant) {
    low = constant_words(op, source);
    high = low + group;
  } else {
    const Wide value = scalar_source(wave, op, source);
    for (unsigned i = 0; i < group; ++i) out[i] = value;
    return;
  }
  for (unsigned i = 0; i < group; ++i) out[i] = low[i] | static_cast<Wide>(high[i]) << 32U;
}

// With the sign modifiers of a source that has some.
template <class F>
[[gnu::noinline]] const typename F::Bits* modified(const Op& op, unsigned source, const typename F::Bits* in,
                                                   typename F::Bits* storage) {
  const typename F::Bits keep = (op.absolute >> source & 1U) != 0 ? F::sign - 1U : ~typename F::Bits{0};
  const typename F::Bits flip = (op.negate >> source & 1U) != 0 ? F::sign : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] & keep) ^ flip;
  return storage;
}

// The half of each lane that op_sel names.
[[gnu::noinline, maybe_unused]] const Word* half_words(Wave& wave, const Op& op, unsigned source, unsigned half,
                                                       Word* storage, bool is_float) {
  const Word* in = words(wave, op, source, half, storage);
  const unsigned shift = (op.select >> source & 1U) != 0 ? 16 : 0;
  const Word keep = is_float && (op.absolute >> source & 1U) != 0 ? F16::sign - 1U : 0xFFFFU;
  const Word flip = is_float && (op.negate >> source & 1U) != 0 ? F16::sign : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] >> shift & keep) ^ flip;
  if (is_float && flushes_in<F16>(wave)) flush<F16>(storage);
  return storage;
}

// The half of each lane in `in` that a packed instruction uses for the low (0) or the high (1) half of its result.
KILN_LANE void packed_half_words(const Op& op, unsigned source, unsigned high, const Word* in, Word* out,
                                 bool is_float) {
  const unsigned shift = ((high != 0 ? op.select_high : op.select) >> source & 1U) * 16U;
  const Word flip = is_float && ((high != 0 ? op.absolute : op.negate) >> source & 1U) != 0 ? F16::sign : 0U;
  for (unsigned i = 0; i < group; ++i) out[i] = (in[i] >> shift & 0xFFFFU) ^ flip;
}

// The lanes of one source as Raw<T>.
template <class T>
KILN_LANE const Raw<T>* lanes_of(Wave& wave, const Op& op, unsigned source, unsigned half, Raw<T>* storage) {
  if constexpr (is_half_register<T>) {
    return half_words(wave, op, source, half, storage, is_float_type<T>);
  } else {
    const Raw<T>* in;
    if constexpr (is_register_pair<T>) {
      wides(wave, op, source, half, storage);
      in = storage;
    } else {
      in = words(wave, op, source, half, storage);
    }
    if constexpr (is_float_type<T>) {
      if (((op.absolute | op.negate) >> source & 1U) != 0) [[unlikely]] {
        return modified<Format<T>>(op, source, in, storage);
      }
    }
    return in;
  }
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD

// The handler for the most frequent case: all lanes on, words in and out, no modifier, every source in lanes already
// but for a first one that is the same in all. It leaves whatever else it meets to the handler that serves every case.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety: as Wave's. Ownership: none of its own.
#pragma once

#include "simulator/wave/vector/lanes/pass.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

template <auto Body>
constexpr bool has_quick = is_word<Argument<Body, 0>> && is_word<Argument<Body, 1>> && is_word<Argument<Body, 2>> &&
                           (is_word<ResultOf<Body>> || __is_same(ResultOf<Body>, bool));

KILN_LANE const Word* in_lanes(const Wave& wave, const Op& op, unsigned source, unsigned half) {
  const bool row = op.kind[source] == SourceKind::row;
  return reinterpret_cast<const Word*>(wave.base[static_cast<unsigned>(op.kind[source])] + op.place[source]) +
         (row ? half * group : 0U);
}

template <auto Body, bool ScalarFirst>
Next quick(Wave& wave, const Op& op) {
  using Result = ResultOf<Body>;
  constexpr unsigned n = sources_of<Body>;
  if (wave.exec(0) != ~0U || (wave.halves == 2 && wave.exec(1) != ~0U)) return vector<Body>(wave, op);
  const Uniform same{ScalarFirst ? wave.scalar[op.reg[0]] : 0U};
  Word bits[2] = {0, 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word* a = ScalarFirst ? nullptr : in_lanes(wave, op, 0, half);
    const Word* b = n > 1 ? in_lanes(wave, op, 1, half) : nullptr;
    const Word* c = n > 2 ? in_lanes(wave, op, 2, half) : nullptr;
    const auto value_of = [&](unsigned i) __attribute__((always_inline)) {
      if constexpr (ScalarFirst) {
        return lane<Body>(wave, same, b, c, i);
      } else {
        return lane<Body>(wave, a, b, c, i);
      }
    };
    alignas(64) Word out[group];
    const bool may_hold_nan = compute<Result>(wave, value_of, out);
    if constexpr (__is_same(Result, bool)) {
      bits[half] = highest_bits(out);
    } else {
      if constexpr (__is_same(Result, float)) {
        // Nothing of this half has been written: it is done again, the long way.
        if (may_hold_nan) [[unlikely]] return vector_from<Body>(wave, op, half);
      } else if constexpr (is_chosen<Result>) {
        if (flushes_out<F32>(wave)) flush<F32>(out);
      }
      Word* to = wave.row(op.vdst, half);
      for (unsigned i = 0; i < group; ++i) to[i] = out[i];
    }
  }
  if constexpr (__is_same(Result, bool)) {
    for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, bits[half]);
  }
  return Next::go;
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD

// The handlers of a vector instruction: one for every case, and one for the most frequent case.
#pragma once

#include "simulator/wave/op.hpp"
#include "simulator/wave/vector/lane_function.hpp"
#include "simulator/wave/vector/lane_values.hpp"
#include "simulator/wave/vector/number_formats.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

// The handler of a vector instruction that serves every case: any operands, any modifiers, any EXEC.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety: as Wave's. Ownership: none of its own.

namespace {

// A value of the source type that a result's NaN may come from: the result's own.
template <class Result>
consteval auto nan_source() {
  if constexpr (__is_same(Result, Precise)) {
    return Half{};
  } else {
    return Result{};
  }
}

// Chooses the NaN of a result among the sources of its own type; a conversion, which has none, keeps its own, quiet.
template <auto Body>
KILN_LANE void settle(Raw<ResultOf<Body>>* out, const Raw<Argument<Body, 0>>* a, const Raw<Argument<Body, 1>>* b,
                      const Raw<Argument<Body, 2>>* c) {
  using F = Format<ResultOf<Body>>;
  using Own = decltype(nan_source<ResultOf<Body>>());
  constexpr bool from_a = __is_same(Own, Argument<Body, 0>);
  constexpr bool from_b = __is_same(Own, Argument<Body, 1>);
  constexpr bool from_c = __is_same(Own, Argument<Body, 2>);
  const Raw<Own>* x = nullptr;
  const Raw<Own>* y = nullptr;
  const Raw<Own>* z = nullptr;
  if constexpr (from_a) x = a;
  if constexpr (from_b) y = b;
  if constexpr (from_c) z = c;
  if constexpr (from_a || from_b || from_c) {
    settle_nan<F>(out, x, y, z);
  } else {
    for (unsigned i = 0; i < group; ++i) out[i] = is_nan<F>(out[i]) ? quiet<F>(out[i]) : out[i];
  }
}

// One pass over 32 lanes; the bits of a comparison.
template <auto Body>
KILN_LANE Word pass(Wave& wave, const Op& op, unsigned half, Word mask) {
  using Result = ResultOf<Body>;
  constexpr unsigned n = sources_of<Body>;
  using T0 = Argument<Body, 0>;
  using T1 = Argument<Body, 1>;
  using T2 = Argument<Body, 2>;
  alignas(64) Raw<T0> storage0[group];
  alignas(64) Raw<T1> storage1[group];
  alignas(64) Raw<T2> storage2[group];
  const Raw<T0>* a = lanes_of<T0>(wave, op, 0, half, storage0);
  const Raw<T1>* b = storage1;
  const Raw<T2>* c = storage2;
  if constexpr (n > 1) b = lanes_of<T1>(wave, op, 1, half, storage1);
  if constexpr (n > 2) c = lanes_of<T2>(wave, op, 2, half, storage2);

  const auto value_of = [&](unsigned i) __attribute__((always_inline)) { return lane<Body>(wave, a, b, c, i); };
  alignas(64) Raw<Result> out[group];
  const bool may_hold_nan = compute<Result>(wave, value_of, out);
  if constexpr (__is_same(Result, bool)) {
    return highest_bits(out) & mask;
  } else {
    if constexpr (is_float_type<Result> && !is_chosen<Result>) {
      if (may_hold_nan) [[unlikely]]
        settle<Body>(out, a, b, c);
    }
    if constexpr (is_chosen<Result> || __is_same(Format<Result>, F16)) {
      if (flushes_out<Format<Result>>(wave)) flush<Format<Result>>(out);
    }
    store<Result>(wave, op, half, mask, out);
    return 0;
  }
}

// f16 and f64 have rounding and denormals of their own, so MXCSR is theirs meanwhile.
struct ModeScope {
  explicit ModeScope(const Wave& w) : wave(w) {
    if (wave.split_mode) _mm_setcsr(wave.csr16);
  }
  ~ModeScope() {
    if (wave.split_mode) _mm_setcsr(wave.csr32);
  }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;
  const Wave& wave;
};

template <auto Body>
[[gnu::noinline]] Word pass_apart(Wave& wave, const Op& op, unsigned half, Word mask) {
  return pass<Body>(wave, op, half, mask);
}

// From one half of wave64 on.
template <auto Body>
[[gnu::noinline]] Next vector_from(Wave& wave, const Op& op, unsigned first) {
  using Result = ResultOf<Body>;
  constexpr bool own_mode =
      has_mode_of_16_64<Result> || (has_mode_of_16_64<Argument<Body, 0>> && !__is_same(Result, float));
  Word bits[2] = {0, 0};
  for (unsigned half = first; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    if constexpr (own_mode) {
      const ModeScope scope(wave);
      bits[half] = pass_apart<Body>(wave, op, half, mask);
    } else {
      bits[half] = pass<Body>(wave, op, half, mask);
    }
  }
  if constexpr (__is_same(Result, bool)) {
    for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, bits[half]);
  }
  return Next::go;
}

template <auto Body>
Next vector(Wave& wave, const Op& op) {
  return vector_from<Body>(wave, op, 0);
}

}  // namespace

// The handler for the most frequent case: all lanes on, words in and out, no modifier, every source in lanes already
// but for a first one that is the same in all. It leaves whatever else it meets to the handler that serves every case.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety: as Wave's. Ownership: none of its own.

namespace {

template <auto Body>
constexpr bool has_quick = is_word<Argument<Body, 0>>&& is_word<Argument<Body, 1>>&& is_word<Argument<Body, 2>> &&
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
        if (may_hold_nan) [[unlikely]]
          return vector_from<Body>(wave, op, half);
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

// What every vector source of one build shares: table entries, and the tables that the sources provide.

// The entry of the semantics table for the arithmetic of one lane (a lambda): its handlers, and the modifiers that its
// operand types take.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety and ownership: constants.

namespace {

template <auto Body>
constexpr Semantics lanes(const char* name, std::uint8_t more = 0) {
  using Result = ResultOf<Body>;
  using T0 = Argument<Body, 0>;
  using T1 = Argument<Body, 1>;
  std::uint8_t modifiers = more;
  if (is_float_type<T0> || is_float_type<T1>) modifiers |= takes::float_sources;
  if (is_float_type<Result>) modifiers |= takes::float_result;
  // A comparison's clamp only asks for exceptions, and there are none.
  if (__is_same(Result, bool) && is_float_type<T0>) modifiers |= takes::saturation;
  if (is_half_register<T0> || is_half_register<T1> || is_half_register<Result> || has_mode_of_16_64<Result>) {
    modifiers |= takes::halves;
  }
  Semantics result{name, &vector<Body>, modifiers, 0};
  if constexpr (has_quick<Body>) {
    result.quick = &quick<Body, false>;
    result.quick_scalar = &quick<Body, true>;
  }
  return result;
}

template <unsigned N>
constexpr SemanticsList list_of(const Semantics (&entries)[N]) {
  return {entries, N};
}

}  // namespace

// What every vector source of one build shares: the lane machinery, and the tables that the sources offer each other.
//
// Compiled once for each instruction set, see number_formats.hpp.

SemanticsList vop1() noexcept;
SemanticsList conversions() noexcept;
SemanticsList vop2() noexcept;
SemanticsList vop3() noexcept;
SemanticsList vop3_integer() noexcept;
SemanticsList divide() noexcept;
SemanticsList vopc() noexcept;
SemanticsList vop3p() noexcept;
SemanticsList dot() noexcept;
SemanticsList matrix() noexcept;
SemanticsList mix() noexcept;
SemanticsList cross_lane() noexcept;
SemanticsList mask() noexcept;

LaneMemory lane_memory() noexcept;
Next lane_control_begin(Wave& wave, const Op& op);
Next lane_control_end(Wave& wave, const Op& op);
Next lane_control_merge(Wave& wave, const Op& op);
Next sub_word_source(Wave& wave, const Op& op);
Next sub_word_result(Wave& wave, const Op& op);

namespace {
[[maybe_unused]] Next nothing(Wave&, const Op&) { return Next::go; }

// What instructions take that choose a half of each source for each half of their result.
constexpr std::uint8_t packed_words = takes::packed | takes::halves;
constexpr std::uint8_t packed_floats = packed_words | takes::float_sources | takes::float_result;
}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

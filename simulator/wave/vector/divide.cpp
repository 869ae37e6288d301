// Division in steps: v_div_scale, v_div_fmas, v_div_fixup. Source 0 is the value that a step works on, source 1 the
// denominator and source 2 the numerator (of v_div_fmas: the quotient's summand).
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

struct Single : F32 {
  static constexpr int exponent_shift = 23, exponent_mask = 0xFF, bias = 127;
  static constexpr int far_apart = 96;  // exponents of numerator and denominator: the quotient is near the largest
  static constexpr int small_numerator = 23, step = 64, lowest_quotient = -150;
  static constexpr unsigned rounding_shift = mode_bit::round32;
  static float scaled(float x, int by) { return __builtin_scalbnf(x, by); }
};
struct Double : F64 {
  static constexpr int exponent_shift = 52, exponent_mask = 0x7FF, bias = 1023;
  static constexpr int far_apart = 768;
  static constexpr int small_numerator = 53, step = 128, lowest_quotient = -1075;
  static constexpr unsigned rounding_shift = mode_bit::round16_64;
  static double scaled(double x, int by) { return __builtin_scalbn(x, by); }
};

template <class F>
typename F::Float of(typename F::Bits bits) {
  return __builtin_bit_cast(typename F::Float, bits);
}
template <class F>
typename F::Bits bits_of(typename F::Float value) {
  return __builtin_bit_cast(typename F::Bits, value);
}
template <class F>
int exponent(typename F::Bits bits) {
  return static_cast<int>(bits >> F::exponent_shift) & F::exponent_mask;
}
template <class F>
bool is_zero(typename F::Bits bits) {
  return magnitude<F>(bits) == 0;
}
template <class F>
bool is_denormal(typename F::Bits bits) {
  return exponent<F>(bits) == 0 && !is_zero<F>(bits);
}

template <class F>
struct Scaled {
  typename F::Bits bits;
  bool undo;  // v_div_fmas is to scale the quotient back
};

// Keeps numerator, denominator and quotient away from denormals and overflow. Whether 1/denominator and the quotient
// would be denormal follows from exact quotients, whatever MODE flushes.
template <class F>
Scaled<F> scale(typename F::Bits value, typename F::Bits denominator, typename F::Bits numerator) {
  using Bits = typename F::Bits;
  const Bits up = bits_of<F>(F::scaled(of<F>(value), F::step));
  const Bits down = bits_of<F>(F::scaled(of<F>(value), -F::step));
  if (is_zero<F>(denominator) || is_zero<F>(numerator)) return {quiet<F>(F::infinity), false};
  const int numerator_exponent = exponent<F>(numerator), denominator_exponent = exponent<F>(denominator);
  const auto fraction = [](Bits bits) { return bits & ((Bits{1} << F::exponent_shift) - 1); };
  // 1/d is denormal where d > 2^(bias-1): its own exponent field then is 2*bias-1 or above.
  const bool reciprocal_denormal = denominator_exponent != F::exponent_mask &&
                                   (denominator_exponent > 2 * F::bias - 1 ||
                                    (denominator_exponent == 2 * F::bias - 1 && fraction(denominator) != 0));
  const int quotient =
      numerator_exponent - denominator_exponent - (fraction(numerator) < fraction(denominator) ? 1 : 0);
  const bool quotient_denormal = quotient + F::bias <= 0;
  if (numerator_exponent - denominator_exponent >= F::far_apart) {
    return {value == denominator ? up : value, true};
  }
  if (is_denormal<F>(denominator)) return {up, false};
  if (reciprocal_denormal && quotient_denormal) return {value == denominator ? down : value, true};
  if (reciprocal_denormal) return {down, false};
  if (quotient_denormal) return {value == numerator ? up : value, true};
  if (numerator_exponent <= F::small_numerator) return {up, false};
  return {value, false};
}

// What a quotient too large or too small for its type becomes. MODE's rounding: nearest, up, down, to zero.
template <class F>
typename F::Bits overflow(typename F::Bits sign, unsigned rounding) {
  const bool away = rounding == 0 || rounding == (sign == 0 ? 1U : 2U);
  return sign | (away ? F::infinity : F::infinity - 1);
}
template <class F>
typename F::Bits underflow(typename F::Bits sign, unsigned rounding) {
  return sign | (rounding == (sign == 0 ? 1U : 2U) ? 1U : 0U);
}

// A quotient beyond the scaling's reach comes out of the steps as NaN (infinity minus infinity), while neither
// numerator nor denominator is one: it is the overflow.
template <class F>
typename F::Bits fixed(typename F::Bits value, typename F::Bits denominator, typename F::Bits numerator,
                       unsigned rounding) {
  using Bits = typename F::Bits;
  const Bits sign = (denominator ^ numerator) & F::sign;
  const Bits d = magnitude<F>(denominator), n = magnitude<F>(numerator);
  if (is_nan<F>(numerator)) return quiet<F>(numerator);
  if (is_nan<F>(denominator)) return quiet<F>(denominator);
  if ((d == 0 && n == 0) || (d == F::infinity && n == F::infinity)) return default_nan<F>;
  if (d == 0 || n == F::infinity) return sign | F::infinity;
  if (d == F::infinity || n == 0) return sign;
  if (exponent<F>(numerator) - exponent<F>(denominator) < F::lowest_quotient) return underflow<F>(sign, rounding);
  if (is_nan<F>(value)) return overflow<F>(sign, rounding);
  return sign | magnitude<F>(value);
}

template <class F>
void sources(Wave& wave, const Op& op, unsigned half, typename F::Bits (&storage)[3][group],
             const typename F::Bits* (&lanes)[3]) {
  for (unsigned s = 0; s < 3; ++s) {
    lanes[s] = lanes_of<typename F::Float>(wave, op, s, half, storage[s]);
    if (!flushes_in<F>(wave)) continue;  // these work on bits, so the processor's own flushing does not see them
    for (unsigned i = 0; i < group; ++i) storage[s][i] = flushed<F>(lanes[s][i]);
    lanes[s] = storage[s];
  }
}

template <class F>
Next div_scale(Wave& wave, const Op& op) {
  Word undo[2] = {0, 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) typename F::Bits storage[3][group], out[group];
    const typename F::Bits* in[3];
    sources<F>(wave, op, half, storage, in);
    for (unsigned i = 0; i < group; ++i) {
      const Scaled<F> scaled = scale<F>(in[0][i], in[1][i], in[2][i]);
      out[i] = scaled.bits;
      undo[half] |= scaled.undo ? 1U << i & mask : 0U;
    }
    store<typename F::Float>(wave, op, half, mask, out);
  }
  for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, undo[half]);
  return Next::go;
}

template <class F>
[[gnu::noinline]] void fused(const typename F::Bits* const (&in)[3], typename F::Bits* out, Word scaled) {
  for (unsigned i = 0; i < group; ++i) {
    const auto a = of<F>(in[0][i]), b = of<F>(in[1][i]), c = of<F>(in[2][i]);
    typename F::Float value;
    if constexpr (sizeof(a) == 4) {
      value = __builtin_fmaf(a, b, c);
    } else {
      value = __builtin_fma(a, b, c);
    }
    if ((scaled >> i & 1U) != 0) value = F::scaled(value, exponent<F>(in[2][i]) > F::bias ? F::step : -F::step);
    out[i] = bits_of<F>(value);
  }
  settle_nan<F>(out, in[0], in[1], in[2]);
}

template <class F>
Next div_fmas(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) typename F::Bits storage[3][group], out[group];
    const typename F::Bits* in[3];
    sources<F>(wave, op, half, storage, in);
    if constexpr (sizeof(typename F::Bits) == 8) {
      const ModeScope scope(wave);
      fused<F>(in, out, wave.scalar[scalar_index::vcc + half]);
    } else {
      fused<F>(in, out, wave.scalar[scalar_index::vcc + half]);
    }
    store<typename F::Float>(wave, op, half, mask, out);
  }
  return Next::go;
}

template <class F>
Next div_fixup(Wave& wave, const Op& op) {
  const unsigned rounding = wave.mode >> F::rounding_shift & 3U;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) typename F::Bits storage[3][group], out[group];
    const typename F::Bits* in[3];
    sources<F>(wave, op, half, storage, in);
    for (unsigned i = 0; i < group; ++i) out[i] = fixed<F>(in[0][i], in[1][i], in[2][i], rounding);
    if (flushes_out<F>(wave)) flush<F>(out);
    store<typename F::Float>(wave, op, half, mask, out);
  }
  return Next::go;
}

KILN_LANE Word fixed_half(Word value, Word denominator, Word numerator) {
  const Word sign = (denominator ^ numerator) & F16::sign;
  const Word d = magnitude<F16>(denominator), n = magnitude<F16>(numerator);
  if (is_nan<F16>(numerator)) return quiet<F16>(numerator);
  if (is_nan<F16>(denominator)) return quiet<F16>(denominator);
  if ((d == 0 && n == 0) || (d == F16::infinity && n == F16::infinity)) return default_nan<F16>;
  if (d == 0 || n == F16::infinity) return sign | F16::infinity;
  if (d == F16::infinity || n == 0) return sign;
  return sign | magnitude<F16>(value);
}

constexpr std::uint8_t floats = takes::float_sources | takes::float_result;
constexpr Semantics entries[] = {
    {"v_div_scale_f32", &div_scale<Single>, takes::float_sources},
    {"v_div_scale_f64", &div_scale<Double>, takes::float_sources},
    {"v_div_fmas_f32", &div_fmas<Single>, floats, 0},
    {"v_div_fmas_f64", &div_fmas<Double>, floats, 0},
    {"v_div_fixup_f32", &div_fixup<Single>, floats, 0},
    {"v_div_fixup_f64", &div_fixup<Double>, floats, 0},
    lanes<[](HalfBits a, HalfBits b, HalfBits c) -> Chosen<std::uint16_t> {
      return {static_cast<std::uint16_t>(fixed_half(a.bits, b.bits, c.bits))};
    }>("v_div_fixup_f16"),
};

}  // namespace

SemanticsList divide() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

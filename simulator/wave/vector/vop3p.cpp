// Packed instructions: one operation on both halves of a register, each half of the result choosing its sources' halves.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;
using U16 = std::uint16_t;
using I16 = std::int16_t;

template <auto Body>
[[gnu::noinline]] void packed_half(const Wave& wave, const Op& op, const Word* (&in)[most_sources], unsigned high,
                                   Word* out) {
  using Result = ResultOf<Body>;
  constexpr bool is_float = is_float_type<Argument<Body, 0>>;
  alignas(64) Word storage[most_sources][group] = {};
  for (unsigned s = 0; s < sources_of<Body>; ++s) {
    packed_half_words(op, s, high, in[s], storage[s], is_float);
    if (is_float && flushes_in<F16>(wave)) flush<F16>(storage[s]);
  }
  const Word *a = storage[0], *b = storage[1], *c = storage[2];
  const auto value_of = [&](unsigned i) __attribute__((always_inline)) { return lane<Body>(wave, a, b, c, i); };
  compute<Result>(wave, value_of, out);
  if constexpr (is_float) {
    if constexpr (!is_chosen<Result>) settle<Body>(out, a, b, c);
    if (flushes_out<F16>(wave)) flush<F16>(out);
    if (op.output != 0) finish<F16>(wave, op, out);
  }
}

template <auto Body>
Next packed(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], low[group], high[group];
    const Word* in[most_sources] = {};
    for (unsigned s = 0; s < sources_of<Body>; ++s) in[s] = words(wave, op, s, half, storage[s]);
    {
      const ModeScope scope(wave);
      packed_half<Body>(wave, op, in, 0, low);
      packed_half<Body>(wave, op, in, 1, high);
    }
    for (unsigned i = 0; i < group; ++i) low[i] |= high[i] << 16U;
    put(wave, op.vdst, half, mask, low);
  }
  return Next::go;
}
template <auto Plain, auto Saturating>
Next packed_limited(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? packed<Saturating>(wave, op) : packed<Plain>(wave, op);
}

template <auto Body>
constexpr Semantics pk(const char* name) {
  return {name, &packed<Body>, is_float_type<Argument<Body, 0>> ? packed_floats : packed_words, 0};
}
template <auto Plain, auto Saturating>
constexpr Semantics pk(const char* name) {
  return {name, &packed_limited<Plain, Saturating>, packed_words | takes::saturation, 0};
}

KILN_LANE I16 limited(Int x) { return static_cast<I16>(x > 0x7FFF ? 0x7FFF : x < -0x8000 ? -0x8000 : x); }
KILN_LANE U16 limited_unsigned(Long x) { return static_cast<U16>(x > 0xFFFF ? 0xFFFF : x < 0 ? 0 : x); }
template <class T>
KILN_LANE T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
KILN_LANE T larger(T a, T b) {
  return a > b ? a : b;
}

constexpr Semantics entries[] = {
    pk<[](U16 a, U16 b, U16 c) { return static_cast<U16>(Word{a} * b + c); },
       [](I16 a, I16 b, I16 c) { return limited(a * b + c); }>("v_pk_mad_i16"),
    pk<[](U16 a, U16 b, U16 c) { return static_cast<U16>(Word{a} * b + c); },
       [](U16 a, U16 b, U16 c) { return limited_unsigned(static_cast<Long>(a) * b + c); }>("v_pk_mad_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(Word{a} * b); }>("v_pk_mul_lo_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a + b); }, [](I16 a, I16 b) { return limited(a + b); }>(
        "v_pk_add_i16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a - b); }, [](I16 a, I16 b) { return limited(a - b); }>(
        "v_pk_sub_i16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a + b); }, [](U16 a, U16 b) { return limited_unsigned(a + b); }>(
        "v_pk_add_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a - b); }, [](U16 a, U16 b) { return limited_unsigned(a - b); }>(
        "v_pk_sub_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(Word{b} << (a & 15U)); }>("v_pk_lshlrev_b16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(b >> (a & 15U)); }>("v_pk_lshrrev_b16"),
    pk<[](U16 a, I16 b) { return static_cast<I16>(b >> (a & 15U)); }>("v_pk_ashrrev_i16"),
    pk<[](I16 a, I16 b) { return larger(a, b); }>("v_pk_max_i16"),
    pk<[](I16 a, I16 b) { return smaller(a, b); }>("v_pk_min_i16"),
    pk<[](U16 a, U16 b) { return larger(a, b); }>("v_pk_max_u16"),
    pk<[](U16 a, U16 b) { return smaller(a, b); }>("v_pk_min_u16"),
    pk<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_pk_fma_f16"),
    pk<[](Half a, Half b) { return Half{a.value + b.value}; }>("v_pk_add_f16"),
    pk<[](Half a, Half b) { return Half{a.value * b.value}; }>("v_pk_mul_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(minimum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_pk_min_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(maximum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_pk_max_f16"),
};

}  // namespace

SemanticsList vop3p() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

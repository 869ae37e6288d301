// Comparisons. One entry serves v_cmp_ and v_cmpx_: the destination of the second is EXEC. Names stand here without
// these prefixes.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// Bit of v_cmp_class's mask that a number belongs to.
template <class F>
KILN_LANE Word class_of(typename F::Bits bits) {
  const auto size = magnitude<F>(bits);
  constexpr auto least_normal = F::infinity & (~F::infinity + 1U);  // the exponent's lowest bit
  if (is_nan<F>(bits)) return (bits & F::quiet_bit) != 0 ? 2U : 1U;
  const unsigned kind = size == F::infinity ? 3U : size == 0 ? 0U : size < least_normal ? 1U : 2U;
  return (bits & F::sign) != 0 ? 1U << (5U - kind) : 1U << (6U + kind);
}

// Looks at the bits as they are: under MODE's flushing too a denormal is one.
Next class_of_half(Wave& wave, const Op& op) {
  Word bits[2] = {0, 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[2][group], out[group];
    const Word* a = half_words(wave, op, 0, half, storage[0], true, false);
    const Word* b = words(wave, op, 1, half, storage[1]);
    for (unsigned i = 0; i < group; ++i) out[i] = (class_of<F16>(a[i]) & b[i]) != 0 ? ~0U : 0U;
    bits[half] = highest_bits(out) & mask;
  }
  for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, bits[half]);
  return Next::go;
}

KILN_LANE float number(float x) { return x; }
KILN_LANE double number(double x) { return x; }
KILN_LANE float number(Half x) { return x.value; }
// Of type bool, which is what makes a result a mask; and without a branch.
KILN_LANE bool either(bool a, bool b) { return (a | b) != 0; }

// The sixteen conditions of one float type; each name is what it says of ordered numbers, n.. is the negation.
template <class T>
struct Floats {
  static constexpr Semantics f = lanes<[](T, T) { return false; }>("");
  static constexpr Semantics lt = lanes<[](T a, T b) { return number(a) < number(b); }>("");
  static constexpr Semantics eq = lanes<[](T a, T b) { return number(a) == number(b); }>("");
  static constexpr Semantics le = lanes<[](T a, T b) { return number(a) <= number(b); }>("");
  static constexpr Semantics gt = lanes<[](T a, T b) { return (number(a) > number(b)); }>("");
  static constexpr Semantics lg =
      lanes<[](T a, T b) { return either(number(a) < number(b), number(a) > number(b)); }>("");
  static constexpr Semantics ge = lanes<[](T a, T b) { return (number(a) >= number(b)); }>("");
  static constexpr Semantics o =
      lanes<[](T a, T b) { return !either(number(a) != number(a), number(b) != number(b)); }>("");
  static constexpr Semantics u =
      lanes<[](T a, T b) { return either(number(a) != number(a), number(b) != number(b)); }>("");
  static constexpr Semantics nge = lanes<[](T a, T b) { return !(number(a) >= number(b)); }>("");
  static constexpr Semantics nlg =
      lanes<[](T a, T b) { return !either(number(a) < number(b), number(a) > number(b)); }>("");
  static constexpr Semantics ngt = lanes<[](T a, T b) { return !(number(a) > number(b)); }>("");
  static constexpr Semantics nle = lanes<[](T a, T b) { return !(number(a) <= number(b)); }>("");
  static constexpr Semantics neq = lanes<[](T a, T b) { return number(a) != number(b); }>("");
  static constexpr Semantics nlt = lanes<[](T a, T b) { return !(number(a) < number(b)); }>("");
  static constexpr Semantics t = lanes<[](T, T) { return true; }>("");
};

template <class T>
struct Integers {
  static constexpr Semantics f = lanes<[](T, T) { return false; }>("");
  static constexpr Semantics lt = lanes<[](T a, T b) { return a < b; }>("");
  static constexpr Semantics eq = lanes<[](T a, T b) { return a == b; }>("");
  static constexpr Semantics le = lanes<[](T a, T b) { return a <= b; }>("");
  static constexpr Semantics gt = lanes<[](T a, T b) { return (a > b); }>("");
  static constexpr Semantics ne = lanes<[](T a, T b) { return a != b; }>("");
  static constexpr Semantics ge = lanes<[](T a, T b) { return (a >= b); }>("");
  static constexpr Semantics t = lanes<[](T, T) { return true; }>("");
};

constexpr Semantics named(const char* name, Semantics of) {
  of.name = name;
  return of;
}

using Of16 = Floats<Half>;
using Of32 = Floats<float>;
using Of64 = Floats<double>;
using I16 = Integers<std::int16_t>;
using U16 = Integers<std::uint16_t>;
using I32 = Integers<std::int32_t>;
using U32 = Integers<Word>;
using I64 = Integers<std::int64_t>;
using U64 = Integers<Wide>;

constexpr Semantics entries[] = {
    named("f_f16", Of16::f),
    named("lt_f16", Of16::lt),
    named("eq_f16", Of16::eq),
    named("le_f16", Of16::le),
    named("gt_f16", Of16::gt),
    named("lg_f16", Of16::lg),
    named("ge_f16", Of16::ge),
    named("o_f16", Of16::o),
    named("u_f16", Of16::u),
    named("nge_f16", Of16::nge),
    named("nlg_f16", Of16::nlg),
    named("ngt_f16", Of16::ngt),
    named("nle_f16", Of16::nle),
    named("neq_f16", Of16::neq),
    named("nlt_f16", Of16::nlt),
    named("t_f16", Of16::t),
    named("f_f32", Of32::f),
    named("lt_f32", Of32::lt),
    named("eq_f32", Of32::eq),
    named("le_f32", Of32::le),
    named("gt_f32", Of32::gt),
    named("lg_f32", Of32::lg),
    named("ge_f32", Of32::ge),
    named("o_f32", Of32::o),
    named("u_f32", Of32::u),
    named("nge_f32", Of32::nge),
    named("nlg_f32", Of32::nlg),
    named("ngt_f32", Of32::ngt),
    named("nle_f32", Of32::nle),
    named("neq_f32", Of32::neq),
    named("nlt_f32", Of32::nlt),
    named("t_f32", Of32::t),
    named("f_f64", Of64::f),
    named("lt_f64", Of64::lt),
    named("eq_f64", Of64::eq),
    named("le_f64", Of64::le),
    named("gt_f64", Of64::gt),
    named("lg_f64", Of64::lg),
    named("ge_f64", Of64::ge),
    named("o_f64", Of64::o),
    named("u_f64", Of64::u),
    named("nge_f64", Of64::nge),
    named("nlg_f64", Of64::nlg),
    named("ngt_f64", Of64::ngt),
    named("nle_f64", Of64::nle),
    named("neq_f64", Of64::neq),
    named("nlt_f64", Of64::nlt),
    named("t_f64", Of64::t),
    named("lt_i16", I16::lt),
    named("eq_i16", I16::eq),
    named("le_i16", I16::le),
    named("gt_i16", I16::gt),
    named("ne_i16", I16::ne),
    named("ge_i16", I16::ge),
    named("lt_u16", U16::lt),
    named("eq_u16", U16::eq),
    named("le_u16", U16::le),
    named("gt_u16", U16::gt),
    named("ne_u16", U16::ne),
    named("ge_u16", U16::ge),
    named("f_i32", I32::f),
    named("lt_i32", I32::lt),
    named("eq_i32", I32::eq),
    named("le_i32", I32::le),
    named("gt_i32", I32::gt),
    named("ne_i32", I32::ne),
    named("ge_i32", I32::ge),
    named("t_i32", I32::t),
    named("f_u32", U32::f),
    named("lt_u32", U32::lt),
    named("eq_u32", U32::eq),
    named("le_u32", U32::le),
    named("gt_u32", U32::gt),
    named("ne_u32", U32::ne),
    named("ge_u32", U32::ge),
    named("t_u32", U32::t),
    named("f_i64", I64::f),
    named("lt_i64", I64::lt),
    named("eq_i64", I64::eq),
    named("le_i64", I64::le),
    named("gt_i64", I64::gt),
    named("ne_i64", I64::ne),
    named("ge_i64", I64::ge),
    named("t_i64", I64::t),
    named("f_u64", U64::f),
    named("lt_u64", U64::lt),
    named("eq_u64", U64::eq),
    named("le_u64", U64::le),
    named("gt_u64", U64::gt),
    named("ne_u64", U64::ne),
    named("ge_u64", U64::ge),
    named("t_u64", U64::t),
    {"class_f16", &class_of_half, takes::float_sources | takes::saturation | takes::halves},
    lanes<[](float a, Word b) { return (class_of<F32>(as_bits(a)) & b) != 0; }>("class_f32"),
    lanes<[](double a, Word b) { return (class_of<F64>(as_bits(a)) & b) != 0; }>("class_f64"),
};

}  // namespace

SemanticsList vopc() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

// Comparisons. One entry serves v_cmp_ and v_cmpx_: the destination of the second is EXEC. Names stand here without
// these prefixes.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// Bit of v_cmp_class's mask that a number belongs to.
KILN_LANE Word class_of(bool negative, bool nan, bool quiet_nan, bool infinite, bool zero, bool denormal) {
  if (nan) return quiet_nan ? 2U : 1U;
  const unsigned kind = infinite ? 3U : zero ? 0U : denormal ? 1U : 2U;
  return negative ? 1U << (5U - kind) : 1U << (6U + kind);
}
KILN_LANE Word class_of(Word bits) {
  const Word magnitude = bits & 0x7FFFFFFFU;
  return class_of(bits >> 31U != 0, magnitude > 0x7F800000U, (bits & 0x00400000U) != 0, magnitude == 0x7F800000U,
                  magnitude == 0, magnitude < 0x00800000U);
}
KILN_LANE Word class_of(Wide bits) {
  const Wide magnitude = bits & 0x7FFFFFFFFFFFFFFFU;
  return class_of(bits >> 63U != 0, magnitude > 0x7FF0000000000000U, (bits & 0x0008000000000000U) != 0,
                  magnitude == 0x7FF0000000000000U, magnitude == 0, magnitude < 0x0010000000000000U);
}
KILN_LANE Word class_of_half(Word bits) {
  const Word magnitude = bits & 0x7FFFU;
  return class_of((bits & 0x8000U) != 0, magnitude > 0x7C00U, (bits & 0x200U) != 0, magnitude == 0x7C00U,
                  magnitude == 0, magnitude < 0x400U);
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

using F16 = Floats<Half>;
using F32 = Floats<float>;
using F64 = Floats<double>;
using I16 = Integers<std::int16_t>;
using U16 = Integers<std::uint16_t>;
using I32 = Integers<std::int32_t>;
using U32 = Integers<Word>;
using I64 = Integers<std::int64_t>;
using U64 = Integers<Wide>;

constexpr Semantics entries[] = {
    named("f_f16", F16::f),
    named("lt_f16", F16::lt),
    named("eq_f16", F16::eq),
    named("le_f16", F16::le),
    named("gt_f16", F16::gt),
    named("lg_f16", F16::lg),
    named("ge_f16", F16::ge),
    named("o_f16", F16::o),
    named("u_f16", F16::u),
    named("nge_f16", F16::nge),
    named("nlg_f16", F16::nlg),
    named("ngt_f16", F16::ngt),
    named("nle_f16", F16::nle),
    named("neq_f16", F16::neq),
    named("nlt_f16", F16::nlt),
    named("t_f16", F16::t),
    named("f_f32", F32::f),
    named("lt_f32", F32::lt),
    named("eq_f32", F32::eq),
    named("le_f32", F32::le),
    named("gt_f32", F32::gt),
    named("lg_f32", F32::lg),
    named("ge_f32", F32::ge),
    named("o_f32", F32::o),
    named("u_f32", F32::u),
    named("nge_f32", F32::nge),
    named("nlg_f32", F32::nlg),
    named("ngt_f32", F32::ngt),
    named("nle_f32", F32::nle),
    named("neq_f32", F32::neq),
    named("nlt_f32", F32::nlt),
    named("t_f32", F32::t),
    named("f_f64", F64::f),
    named("lt_f64", F64::lt),
    named("eq_f64", F64::eq),
    named("le_f64", F64::le),
    named("gt_f64", F64::gt),
    named("lg_f64", F64::lg),
    named("ge_f64", F64::ge),
    named("o_f64", F64::o),
    named("u_f64", F64::u),
    named("nge_f64", F64::nge),
    named("nlg_f64", F64::nlg),
    named("ngt_f64", F64::ngt),
    named("nle_f64", F64::nle),
    named("neq_f64", F64::neq),
    named("nlt_f64", F64::nlt),
    named("t_f64", F64::t),
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
    lanes<[](HalfBits a, Word b) { return (class_of_half(a.bits) & b) != 0; }>("class_f16"),
    lanes<[](float a, Word b) { return (class_of(as_bits(a)) & b) != 0; }>("class_f32"),
    lanes<[](double a, Word b) { return (class_of(as_bits(a)) & b) != 0; }>("class_f64"),
};

}  // namespace

SemanticsList vopc() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

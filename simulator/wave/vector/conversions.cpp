// Conversions of VOP1 and VOP3.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// Towards zero; what does not fit becomes the nearest that does, NaN becomes 0.
KILN_LANE std::int32_t to_int(float x) {
  const std::int32_t inside = static_cast<std::int32_t>(x > -2147483648.0F && x < 2147483648.0F ? x : 0.0F);
  return x >= 2147483648.0F ? 0x7FFFFFFF : x <= -2147483648.0F ? -0x7FFFFFFF - 1 : inside;
}
KILN_LANE Word to_word(float x) {
  const bool upper = x >= 2147483648.0F;
  const float lowered = upper ? x - 2147483648.0F : x;
  const Word inside = static_cast<Word>(static_cast<std::int32_t>(lowered > 0.0F && x < 4294967296.0F ? lowered : 0.0F)) +
                      (upper ? 0x80000000U : 0U);
  return x >= 4294967296.0F ? 0xFFFFFFFFU : inside;
}
KILN_LANE std::int32_t to_int(double x) {
  const std::int32_t inside = static_cast<std::int32_t>(x > -2147483649.0 && x < 2147483648.0 ? x : 0.0);
  return x >= 2147483648.0 ? 0x7FFFFFFF : x <= -2147483649.0 ? -0x7FFFFFFF - 1 : inside;
}
KILN_LANE Word to_word(double x) {
  const Wide inside = static_cast<Wide>(static_cast<std::int64_t>(x > 0.0 && x < 4294967296.0 ? x : 0.0));
  return x >= 4294967296.0 ? 0xFFFFFFFFU : static_cast<Word>(inside);
}
KILN_LANE std::int32_t limited(std::int32_t x, std::int32_t low, std::int32_t high) {
  return x < low ? low : x > high ? high : x;
}
KILN_LANE Word pair(Word low, Word high) { return (low & 0xFFFFU) | high << 16U; }

// [-1, 1] and [0, 1] to the whole range of the integer.
KILN_LANE std::int32_t normal_signed(float x) {
  const float inside = x > 1.0F ? 1.0F : x < -1.0F ? -1.0F : x;
  return to_int(__builtin_roundevenf(inside * 32767.0F));
}
KILN_LANE std::int32_t normal_unsigned(float x) {
  const float inside = x > 1.0F ? 1.0F : x < 0.0F ? 0.0F : x;
  return to_int(__builtin_roundevenf(inside * 65535.0F));
}
KILN_LANE Word towards_zero(float x) { return double_to_half_slow(static_cast<double>(x), 3, false); }

constexpr Semantics entries[] = {
    lanes<[](std::int32_t a) { return static_cast<float>(a); }>("v_cvt_f32_i32"),
    lanes<[](Word a) { return static_cast<float>(a); }>("v_cvt_f32_u32"),
    lanes<[](float a) { return to_word(a); }>("v_cvt_u32_f32"),
    lanes<[](float a) { return to_int(a); }>("v_cvt_i32_f32"),
    lanes<[](float a) { return to_int(__builtin_floorf(a + 0.5F)); }>("v_cvt_nearest_i32_f32"),
    lanes<[](float a) { return to_int(__builtin_floorf(a)); }>("v_cvt_floor_i32_f32"),
    lanes<[](double a) { return to_int(a); }>("v_cvt_i32_f64"),
    lanes<[](double a) { return to_word(a); }>("v_cvt_u32_f64"),
    lanes<[](std::int32_t a) { return static_cast<double>(a); }>("v_cvt_f64_i32"),
    lanes<[](Word a) { return static_cast<double>(a); }>("v_cvt_f64_u32"),
    lanes<[](double a) { return static_cast<float>(a); }>("v_cvt_f32_f64"),
    lanes<[](float a) { return static_cast<double>(a); }>("v_cvt_f64_f32"),
    lanes<[](float a) { return Half{a}; }>("v_cvt_f16_f32"),
    lanes<[](Half a) { return a.value; }>("v_cvt_f32_f16"),
    lanes<[](std::uint16_t a) { return Half{static_cast<float>(a)}; }>("v_cvt_f16_u16"),
    lanes<[](std::int16_t a) { return Half{static_cast<float>(a)}; }>("v_cvt_f16_i16"),
    lanes<[](Half a) { return static_cast<std::uint16_t>(limited(to_int(a.value), 0, 0xFFFF)); }>("v_cvt_u16_f16"),
    lanes<[](Half a) { return static_cast<std::int16_t>(limited(to_int(a.value), -0x8000, 0x7FFF)); }>("v_cvt_i16_f16"),
    lanes<[](std::int16_t a) { return static_cast<std::int32_t>(a); }>("v_cvt_i32_i16"),
    lanes<[](std::uint16_t a) { return static_cast<Word>(a); }>("v_cvt_u32_u16"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a << 28U) >> 28) * 0.0625F; }>(
        "v_cvt_off_f32_i4"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a & 0xFFU)); }>("v_cvt_f32_ubyte0"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 8U & 0xFFU)); }>("v_cvt_f32_ubyte1"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 16U & 0xFFU)); }>("v_cvt_f32_ubyte2"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 24U)); }>("v_cvt_f32_ubyte3"),
    lanes<[](Half a) { return static_cast<std::int16_t>(normal_signed(a.value)); }>("v_cvt_norm_i16_f16"),
    lanes<[](Half a) { return static_cast<std::uint16_t>(normal_unsigned(a.value)); }>("v_cvt_norm_u16_f16"),
    lanes<[](Word a) {
      const auto low = static_cast<std::int16_t>(a), high = static_cast<std::int16_t>(a >> 16U);
      return static_cast<std::uint16_t>(limited(low, 0, 255) | limited(high, 0, 255) << 8);
    }>("v_sat_pk_u8_i16"),

    lanes<[](float a, float b) { return pair(towards_zero(a), towards_zero(b)); }>("v_cvt_pk_rtz_f16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(normal_signed(a)), static_cast<Word>(normal_signed(b)));
    }>("v_cvt_pk_norm_i16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(normal_unsigned(a)), static_cast<Word>(normal_unsigned(b)));
    }>("v_cvt_pk_norm_u16_f32"),
    lanes<[](Half a, Half b) {
      return pair(static_cast<Word>(normal_signed(a.value)), static_cast<Word>(normal_signed(b.value)));
    }>("v_cvt_pk_norm_i16_f16"),
    lanes<[](Half a, Half b) {
      return pair(static_cast<Word>(normal_unsigned(a.value)), static_cast<Word>(normal_unsigned(b.value)));
    }>("v_cvt_pk_norm_u16_f16"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(limited(to_int(a), -0x8000, 0x7FFF)),
                  static_cast<Word>(limited(to_int(b), -0x8000, 0x7FFF)));
    }>("v_cvt_pk_i16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(limited(to_int(a), 0, 0xFFFF)), static_cast<Word>(limited(to_int(b), 0, 0xFFFF)));
    }>("v_cvt_pk_u16_f32"),
    lanes<[](Word a, Word b) { return pair(a > 0xFFFFU ? 0xFFFFU : a, b > 0xFFFFU ? 0xFFFFU : b); }>(
        "v_cvt_pk_u16_u32"),
    lanes<[](std::int32_t a, std::int32_t b) {
      return pair(static_cast<Word>(limited(a, -0x8000, 0x7FFF)), static_cast<Word>(limited(b, -0x8000, 0x7FFF)));
    }>("v_cvt_pk_i16_i32"),
    lanes<[](float a, Word b, Word c) {
      const unsigned shift = 8U * (b & 3U);
      const Word byte = static_cast<Word>(limited(to_int(__builtin_roundevenf(a)), 0, 255));
      return (c & ~(0xFFU << shift)) | byte << shift;
    }>("v_cvt_pk_u8_f32"),
};

}  // namespace

SemanticsList conversions() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD

#include "witnesses/expectations/expectation.hpp"
#include "witnesses/expectations/flushed.hpp"

#include <algorithm>
#include <bit>

namespace kiln::witness {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;

constexpr Denormals both_modes[] = {Denormals::kept, Denormals::flushed};

void float_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  for (const Denormals mode : both_modes) {
    expected.add("r", rows<float>(a.size(), 5, [&](std::size_t i, float* r) {
                   r[0] = sum(mode, a[i], b[i]);
                   r[1] = sum(mode, a[i], -b[i]);
                   r[2] = product(mode, a[i], b[i]);
                   r[3] = sum(mode, product(mode, a[i], b[i]), a[i]);
                   r[4] = product(mode, sum(mode, a[i], 1.0f), 0.1f);
                 }));
  }
}

void float_fma(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b"), c = given.read<float>("c");
  expected.add("r", rows<float>(a.size(), 4, [&](std::size_t i, float* r) {
                 r[0] = std::fma(a[i], b[i], c[i]);
                 r[1] = std::fma(a[i], -b[i], a[i] * 0.5f);
                 r[2] = std::fma(a[i], a[i], -b[i]);
                 r[3] = std::fma(a[i], 3.0f, std::fabs(c[i]));
               }));
}

void float_contraction(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b"), c = given.read<float>("c");
  expected.add("r", rows<float>(a.size(), 1, [&](std::size_t i, float* r) { r[0] = std::fma(a[i], b[i], c[i]); }));
}

void float_minmax(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  expected.add("r", rows<float>(a.size(), 6, [&](std::size_t i, float* r) {
                 const float x = a[i], y = b[i];
                 r[0] = std::min(x, y);
                 r[1] = std::max(x, y);
                 r[2] = std::clamp(x, -1.0f, 2.0f);
                 r[3] = std::max(std::min(x, y), std::min(std::max(x, y), 0.25f));
                 r[4] = std::clamp(y, 0.0f, 1.0f);
                 r[5] = std::min({x, y, -std::fabs(y)});
               }));
}

void float_signs(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  const auto bits = given.read<u32>("a"), other = given.read<u32>("b");
  expected.add("r", rows<u32>(bits.size(), 3, [&](std::size_t i, u32* r) {
                 r[0] = bits[i] & 0x7fffffffu;
                 r[1] = bits[i] ^ 0x80000000u;
                 r[2] = other[i] | 0x80000000u;
               }));
  const auto sign = [](float v) { return v > 0 ? 1.0f : v < 0 ? -1.0f : 0.0f; };
  expected.add("s", rows<float>(a.size(), 1, [&](std::size_t i, float* s) { s[0] = sign(a[i]) * 2 + sign(b[i]); }));
}

void float_rounding(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  expected.add("r", rows<float>(a.size(), 5, [&](std::size_t i, float* r) {
                 r[0] = std::floor(a[i]);
                 r[1] = std::ceil(a[i]);
                 r[2] = std::trunc(a[i]);
                 r[3] = std::nearbyint(a[i]);
                 r[4] = std::trunc(b[i]) * 1024.0f + 1.0f;
               }));
  expected.add("f", rows<float>(b.size(), 1, [&](std::size_t i, float* f) {
                 f[0] = static_cast<float>(static_cast<double>(b[i]) - std::floor(static_cast<double>(b[i])));
               }));
}

void float_mod(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  expected.add("r", rows<float>(a.size(), 2, [&](std::size_t i, float* r) {
                 const float rest = std::fmod(a[i], b[i]);
                 r[0] = rest < 0 ? rest + b[i] : rest;
                 r[1] = a[i] < b[i] ? 0.0f : 1.0f;
               }));
}

void float_classes(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  expected.add("r", rows<u32>(a.size(), 1, [&](std::size_t i, u32* r) {
                 const auto nan = [](u32 v) { return (v & 0x7fffffffu) > 0x7f800000u; };
                 // Ordered as floats are: the size, with its sign; both zeros are 0.
                 const auto key = [](u32 v) {
                   const auto size = static_cast<std::int64_t>(v & 0x7fffffffu);
                   return (v >> 31) != 0 ? -size : size;
                 };
                 const bool ordered = !nan(a[i]) && !nan(b[i]);
                 const auto x = key(a[i]), y = key(b[i]);
                 r[0] = (nan(a[i]) ? 1u : 0u) | ((a[i] & 0x7fffffffu) == 0x7f800000u ? 2u : 0u);
                 if (ordered) {
                   r[0] |= (x < y ? 4u : 0u) | (x <= y ? 8u : 0u) | (x > y ? 16u : 0u) | (x >= y ? 32u : 0u) |
                           (x == y ? 64u : 0u);
                 }
                 if (!ordered || x != y) r[0] |= 128u;
                 r[0] |= a[i] >> 16 & 0x7f00u;
               }));
}

void denormals(const Given& given, Expected& expected, Denormals mode) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  expected.add("r", rows<float>(a.size(), 4, [&](std::size_t i, float* r) {
                 r[0] = sum(mode, a[i], b[i]);
                 r[1] = sum(mode, a[i], -b[i]);
                 r[2] = product(mode, a[i], b[i]);
                 r[3] = product(mode, a[i], 1048576.0f);
               }));
}

void float_exponents(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a");
  const auto e = given.read<i32>("e");
  std::vector<i32> exponents(a.size());
  expected.add("r", rows<float>(a.size(), 2, [&](std::size_t i, float* r) {
                 r[0] = std::ldexp(a[i], e[i]);
                 r[1] = std::frexp(a[i], &exponents[i]);
               }));
  expected.add("x", exponents);
}

void float_conversions(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a");
  const auto b = given.read<u32>("b"), h_bits = given.read<u32>("h");
  const auto f = given.read<float>("f"), g = given.read<float>("g"), h = given.read<float>("h");
  expected.add("r", rows<float>(a.size(), 2, [&](std::size_t i, float* r) {
                 r[0] = static_cast<float>(static_cast<double>(a[i]));  // the double is exact: one rounding
                 r[1] = static_cast<float>(static_cast<double>(b[i]));
               }));
  expected.add("s", rows<i32>(a.size(), 2, [&](std::size_t i, i32* s) {
                 s[0] = static_cast<i32>(std::trunc(static_cast<double>(f[i])));
                 s[1] = static_cast<i32>(std::trunc(static_cast<double>(h[i]))) + (a[i] != 0 ? 100 : 0);
               }));
  expected.add("u", rows<u32>(a.size(), 2, [&](std::size_t i, u32* u) {
                 u[0] = static_cast<u32>(std::floor(static_cast<double>(g[i])));
                 u[1] = (b[i] > 5 ? 1u : 0u) + h_bits[i];
               }));
}

void half_packing(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  const auto h = given.read<u32>("h");
  const auto pack = [](double low, double high) { return u32{half_of(low)} | u32{half_of(high)} << 16; };
  expected.add("p", rows<u32>(a.size(), 1, [&](std::size_t i, u32* p) {
                 p[0] = pack(static_cast<double>(a[i]), static_cast<double>(b[i]));
               }));
  expected.add("u", rows<float>(h.size(), 2, [&](std::size_t i, float* u) {
                 u[0] = static_cast<float>(from_half(static_cast<std::uint16_t>(h[i])));
                 u[1] = static_cast<float>(from_half(static_cast<std::uint16_t>(h[i] >> 16)));
               }));
  expected.add("e", rows<u32>(a.size(), 1, [&](std::size_t i, u32* e) {
                 e[0] = pack(static_cast<double>(i) * 0.125 - 30.0, static_cast<double>(i & 255u) * 4.0);
               }));
}

void norm_packing(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a"), b = given.read<float>("b");
  const auto h = given.read<u32>("h");
  const auto unsigned_steps = [](float v, double steps) {
    return static_cast<u32>(std::lround(std::clamp(static_cast<double>(v), 0.0, 1.0) * steps));
  };
  const auto signed_steps = [](float v, double steps) {
    const double scaled = std::clamp(static_cast<double>(v), -1.0, 1.0) * steps;
    return static_cast<u32>(std::lround(scaled) + static_cast<long>(steps) + 1);  // with its sign bit turned
  };
  expected.add("p", rows<u32>(a.size(), 6, [&](std::size_t i, u32* p) {
                 p[0] = unsigned_steps(a[i], 65535.0);
                 p[1] = unsigned_steps(b[i], 65535.0);
                 p[2] = signed_steps(a[i], 32767.0);
                 p[3] = signed_steps(b[i], 32767.0);
                 p[4] = unsigned_steps(a[i], 255.0);
                 p[5] = signed_steps(a[i], 127.0);
               }));
  expected.add("u", rows<float>(h.size(), 8, [&](std::size_t i, float* u) {
                 for (int k = 0; k < 4; ++k) u[k] = static_cast<float>((h[i] >> (8 * k) & 255u) / 255.0);
                 for (int k = 0; k < 2; ++k) {
                   const auto field = static_cast<std::uint16_t>(h[i] >> (16 * k));
                   u[4 + k] = static_cast<float>(std::max(static_cast<std::int16_t>(field) / 32767.0, -1.0));
                   u[6 + k] = static_cast<float>(field / 65535.0);
                 }
               }));
}

}  // namespace

void add_float_rules(Rules& rules) {
  rules["float_arithmetic"] = float_arithmetic;
  rules["float_fma"] = float_fma;
  rules["float_contraction"] = float_contraction;
  rules["float_minmax"] = float_minmax;
  rules["float_signs"] = float_signs;
  rules["float_rounding"] = float_rounding;
  rules["float_mod"] = float_mod;
  rules["float_classes"] = float_classes;
  rules["float_denormals"] = [](const Given& given, Expected& expected) {
    for (const Denormals mode : both_modes) denormals(given, expected, mode);
  };
  rules["float_denormals_kept"] = [](const Given& given, Expected& expected) {
    denormals(given, expected, Denormals::kept);
  };
  rules["float_exponents"] = float_exponents;
  rules["float_conversions"] = float_conversions;
  rules["half_packing"] = half_packing;
  rules["norm_packing"] = norm_packing;
}

}  // namespace kiln::witness

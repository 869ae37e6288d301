#include "witnesses/expectations/expectation.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::witness {
namespace {

using u16 = std::uint16_t;
using i16 = std::int16_t;
using u8 = std::uint8_t;
using i8 = std::int8_t;

u16 settled(u16 half, bool flush) { return flush && (half & 0x7c00) == 0 ? static_cast<u16>(half & 0x8000) : half; }

void half_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<u16>("a"), b = given.read<u16>("b");
  for (const bool flush : {false, true}) {
    expected.add("r", rows<u16>(a.size(), 5, [&](std::size_t i, u16* r) {
                   // The sum and the product of two halves are exact doubles.
                   const double x = from_half(settled(a[i], flush)), y = from_half(settled(b[i], flush));
                   const double answers[] = {x + y, x - y, x * y, std::fmin(x, y), std::fmax(std::fabs(x), -y)};
                   for (std::size_t k = 0; k < 5; ++k) r[k] = settled(half_of(answers[k]), flush);
                 }));
  }
}

void half_vectors(const Given& given, Expected& expected) {
  const auto a = given.read<u16>("a"), b = given.read<u16>("b");
  expected.add("r", rows<u16>(a.size(), 1, [&](std::size_t k, u16* r) {
                 r[0] = half_of(from_half(a[k]) * from_half(b[k]) + from_half(a[k ^ 1]));
               }));
  expected.add("d", rows<float>(a.size() / 2, 1, [&](std::size_t i, float* d) {
                 const double x = from_half(a[i * 2]), y = from_half(a[i * 2 + 1]);
                 const double p = from_half(b[i * 2]), q = from_half(b[i * 2 + 1]);
                 d[0] = static_cast<float>(x * q + x * p + y * q);
               }));
}

void short_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<i16>("a"), b = given.read<i16>("b");
  expected.add("r", rows<i16>(a.size(), 8, [&](std::size_t i, i16* r) {
                 const int x = a[i], y = b[i], shift = y & 15;
                 const int logical = static_cast<u16>(x) >> 3;
                 const int answers[] = {x + y,          x - y,
                                        x * y,          std::min(x, y),
                                        std::max(x, y), x ^ (y & 0x0f0f),
                                        x >> shift,     logical + x * (1 << shift)};
                 for (std::size_t k = 0; k < 8; ++k) r[k] = static_cast<i16>(answers[k]);
               }));
}

void byte_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<i8>("a");
  const auto b = given.read<u8>("b");
  expected.add("r", rows<i8>(a.size(), 2, [&](std::size_t i, i8* r) {
                 r[0] = static_cast<i8>(a[i] + b[i]);
                 r[1] = static_cast<i8>(a[i] * 3 - b[i]);
               }));
  expected.add("u", rows<u8>(a.size(), 2, [&](std::size_t i, u8* u) {
                 u[0] = static_cast<u8>(b[i] + a[i]);
                 u[1] = static_cast<u8>(b[i] ^ static_cast<u8>(a[i]) >> 1);
               }));
  expected.add("s", rows<std::int32_t>(a.size(), 1, [&](std::size_t i, std::int32_t* s) { s[0] = a[i] * b[i]; }));
}

void half_conversions(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a");
  const auto h = given.read<u16>("h");
  const auto n = given.read<std::int32_t>("n");
  expected.add("r", rows<u16>(a.size(), 2, [&](std::size_t i, u16* r) {
                 r[0] = half_of(static_cast<double>(a[i]));
                 r[1] = half_of(n[i]);
               }));
  expected.add("f",
               rows<float>(h.size(), 1, [&](std::size_t i, float* f) { f[0] = static_cast<float>(from_half(h[i])); }));
  expected.add("s", rows<std::int32_t>(n.size(), 1, [&](std::size_t i, std::int32_t* s) { s[0] = n[i] * 2; }));
}

void long_atomics(const Given& given, Expected& expected) {
  const auto a = given.read<std::uint64_t>("a");
  auto r = given.read<std::uint64_t>("r");
  auto s = given.read<std::int64_t>("s");
  for (const std::uint64_t v : a) {
    r[0] += v;
    r[1] = std::min(r[1], v);
    r[2] = std::max(r[2], v);
    r[3] &= v | 0xffff0000ffff0000u;
    r[4] |= v & 0x00ff00ff00ff00ffu;
    r[5] ^= v;
    s[0] = std::min(s[0], static_cast<std::int64_t>(v));
    s[1] = std::max(s[1], static_cast<std::int64_t>(v));
  }
  expected.add("r", r);
  expected.add("s", s);
}

}  // namespace

void add_small_type_rules(Rules& rules) {
  rules["half_arithmetic"] = half_arithmetic;
  rules["half_vectors"] = half_vectors;
  rules["short_arithmetic"] = short_arithmetic;
  rules["byte_arithmetic"] = byte_arithmetic;
  rules["half_conversions"] = half_conversions;
  rules["long_atomics"] = long_atomics;
}

}  // namespace kiln::witness

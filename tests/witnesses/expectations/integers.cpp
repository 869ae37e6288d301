#include "witnesses/expectations/expectation.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstdlib>

// Arithmetic is done in unsigned or in wider numbers, where it cannot overflow.
namespace kiln::witness {
namespace {

using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

i32 wrap(i64 v) { return static_cast<i32>(static_cast<u32>(v)); }
u32 low(u64 v) { return static_cast<u32>(v); }

u32 reversed(u32 v) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= (v >> k & 1u) << (31 - k);
  return r;
}

i32 lowest_bit(u32 v) { return v == 0 ? -1 : std::countr_zero(v); }
i32 highest_bit(u32 v) { return v == 0 ? -1 : 31 - std::countl_zero(v); }
u32 field_mask(i32 width) { return width == 32 ? ~0u : (1u << width) - 1u; }

void int_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a"), b = given.read<i32>("b");
  expected.add("r", rows<i32>(a.size(), 10, [&](std::size_t i, i32* r) {
                 const i64 x = a[i], y = b[i];
                 r[0] = wrap(x + y);
                 r[1] = wrap(x - y);
                 r[2] = wrap(x * y);
                 r[3] = wrap(-x);
                 r[4] = x == INT32_MIN ? 7 : wrap(std::abs(x));
                 r[5] = x > 0 ? 1 : x < 0 ? -1 : 0;
                 r[6] = a[i] < b[i] ? a[i] : b[i];
                 r[7] = a[i] < b[i] ? b[i] : a[i];
                 const i64 least = y < 5 ? y : 5, most = y > 6 ? y : 6;
                 r[8] = wrap(x < least ? least : x > most ? most : x);
                 r[9] = wrap(x * 17 + y * 8 - (a[i] & b[i]));
               }));
}

void int_division(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a"), b = given.read<i32>("b");
  const auto n = given.read<u32>("n"), d = given.read<u32>("d");
  expected.add("q", rows<i32>(a.size(), 5, [&](std::size_t i, i32* q) {
                 const i64 x = a[i];
                 const i64 y = b[i] == 0 || (x == INT32_MIN && b[i] == -1) ? 3 : b[i];
                 q[0] = wrap(x / y);
                 q[1] = wrap(x / 7);
                 q[2] = wrap(x / -16);
                 q[3] = wrap(x % y);
                 q[4] = wrap((x & INT32_MAX) % std::max<i64>(y & INT32_MAX, 1));
               }));
  expected.add("u", rows<u32>(n.size(), 5, [&](std::size_t i, u32* u) {
                 const u32 z = d[i] == 0 ? 1 : d[i];
                 u[0] = n[i] / z;
                 u[1] = n[i] % z;
                 u[2] = n[i] / 10;
                 u[3] = n[i] % 1000003;
                 u[4] = n[i] % 64;
               }));
}

void uint_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  expected.add("r", rows<u32>(a.size(), 10, [&](std::size_t i, u32* r) {
                 const u64 x = a[i], y = b[i];
                 r[0] = low(x + y);
                 r[1] = low(x - y);
                 r[2] = low(x * y);
                 r[3] = low(x & ~y);
                 r[4] = low((x | y) ^ 0xa5a5a5a5u);
                 r[5] = low(std::min(x, y));
                 r[6] = low(std::max(x, y));
                 r[7] = low(std::min(std::max<u64>(x, std::min<u64>(y, 100)), std::max<u64>(y, 100)));
                 r[8] = low((x & y) | (~x & 0x12345678u));
                 r[9] = low((x + y) * 3 + (x ^ y));
               }));
}

void int_shifts(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a");
  const auto b = given.read<u32>("b"), s = given.read<u32>("s");
  expected.add("r", rows<i32>(a.size(), 3, [&](std::size_t i, i32* r) {
                 r[0] = wrap(static_cast<i64>(a[i]) * (i64{1} << s[i]));
                 r[1] = wrap(static_cast<i64>(a[i]) >> s[i]);
                 r[2] = wrap((a[i] < 0 ? -1 : 0) ^ static_cast<i64>(a[i]) * 2);
               }));
  expected.add("u", rows<u32>(b.size(), 4, [&](std::size_t i, u32* u) {
                 u[0] = low(u64{b[i]} << s[i]);
                 u[1] = b[i] >> s[i];
                 u[2] = low(u64{b[i]} << s[i]) | b[i] >> (s[i] == 0 ? 0 : 32 - s[i]);
                 u[3] = low((u64{b[i]} >> 7) + (u64{b[i]} << 5));
               }));
}

void bit_fields(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a"), o = given.read<i32>("o"), n = given.read<i32>("n");
  const auto b = given.read<u32>("b");
  const auto field = [](u32 v, i32 offset, i32 width) { return low((u64{v} >> offset) & field_mask(width)); };
  const auto insert = [](u32 base, u32 v, i32 offset, i32 width) {
    const u32 mask = low(u64{field_mask(width)} << offset);
    return (base & ~mask) | (low(u64{v} << offset) & mask);
  };
  expected.add("r", rows<i32>(a.size(), 1, [&](std::size_t i, i32* r) {
                 const i32 width = std::min(n[i], 32 - o[i]);
                 const u32 bits = field(static_cast<u32>(a[i]), o[i], width);
                 const bool negative = width > 0 && (bits >> (width - 1) & 1u) != 0;
                 r[0] = wrap(static_cast<i64>(bits) - (negative ? i64{1} << width : 0));
               }));
  expected.add("u", rows<u32>(b.size(), 4, [&](std::size_t i, u32* u) {
                 const i32 width = std::min(n[i], 32 - o[i]);
                 u[0] = field(b[i], o[i], width);
                 u[1] = insert(b[i], static_cast<u32>(a[i]), o[i], width);
                 u[2] = insert(b[i], static_cast<u32>(a[i]), 8, 12);
                 u[3] = b[i] ^ field(b[i], 13, 7);
               }));
}

void bit_counts(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a");
  const auto b = given.read<u32>("b");
  expected.add("r", rows<i32>(a.size(), 5, [&](std::size_t i, i32* r) {
                 const auto bits = static_cast<u32>(a[i]);
                 const auto shift = static_cast<u32>(i & 31u);
                 r[0] = static_cast<i32>(std::bitset<32>(bits).count());
                 r[1] = lowest_bit(bits);
                 r[2] = highest_bit(a[i] < 0 ? ~bits : bits);
                 r[3] = highest_bit(b[i]);
                 r[4] = highest_bit(b[i] >> shift) + lowest_bit(b[i] << shift) * 64;
               }));
  expected.add("u", rows<u32>(b.size(), 2, [&](std::size_t i, u32* u) {
                 u[0] = reversed(b[i]);
                 u[1] = static_cast<u32>(std::bitset<32>(u[0] ^ static_cast<u32>(a[i])).count());
               }));
}

void extended_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a"), b = given.read<i32>("b");
  expected.add("u", rows<u32>(a.size(), 6, [&](std::size_t i, u32* u) {
                 const u64 x = static_cast<u32>(a[i]), y = static_cast<u32>(b[i]);
                 u[0] = low(x * y >> 32);
                 u[1] = low(x * y);
                 u[2] = low(x + y);
                 u[3] = low((x + y) >> 32);
                 u[4] = low(x - y);
                 u[5] = x < y ? 1 : 0;
               }));
  expected.add("s", rows<i32>(a.size(), 2, [&](std::size_t i, i32* s) {
                 const i64 product = static_cast<i64>(a[i]) * b[i];
                 s[0] = wrap(product >> 32);
                 s[1] = wrap(product);
               }));
}

void int64_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<u64>("a"), b = given.read<u64>("b");
  expected.add("r", rows<u64>(a.size(), 8, [&](std::size_t i, u64* r) {
                 const u64 x = a[i], y = b[i];
                 const auto sx = static_cast<i64>(x), sy = static_cast<i64>(y);
                 r[0] = x + y;
                 r[1] = x - y;
                 r[2] = x * y;
                 r[3] = 0 - x;
                 r[4] = sx < sy ? x : y;
                 r[5] = sx < sy ? y : x;
                 r[6] = sx < sy ? x ^ y : x & y;
                 const u64 divisor = y == 0 ? 1 : y;
                 r[7] = x / divisor + x % divisor;
               }));
}

void int64_bits(const Given& given, Expected& expected) {
  const auto a = given.read<u64>("a"), b = given.read<u64>("b");
  const auto s = given.read<u32>("s");
  expected.add("r", rows<u64>(a.size(), 6, [&](std::size_t i, u64* r) {
                 r[0] = a[i] * (u64{1} << s[i]);
                 r[1] = a[i] >> s[i];
                 r[2] = static_cast<u64>(static_cast<i64>(a[i]) >> s[i]);
                 r[3] = a[i] ^ b[i];
                 r[4] = a[i] << 32 | a[i] >> 32;
                 r[5] = (a[i] >> 32) * (a[i] & 0xffffffffu);
               }));
  expected.add("c", rows<u32>(a.size(), 1, [&](std::size_t i, u32* c) {
                 const auto sx = static_cast<i64>(a[i]), sy = static_cast<i64>(b[i]);
                 c[0] = (a[i] < b[i] ? 1u : 0u) | (a[i] == b[i] ? 2u : 0u) | (sx < sy ? 4u : 8u) |
                        (a[i] > b[i] ? 16u : 0u);
               }));
}

void int64_conversions(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a");
  const auto b = given.read<u32>("b");
  const auto f = given.read<float>("f");
  const auto w = given.read<i64>("w");
  expected.add("r", rows<i64>(a.size(), 4, [&](std::size_t i, i64* r) {
                 r[0] = static_cast<i64>(a[i]) * 3;
                 r[1] = static_cast<i64>(u64{b[i]} << 16);
                 r[2] = static_cast<i64>(f[i]);
                 r[3] = static_cast<i64>(wrap(w[i])) + static_cast<i64>(low(static_cast<u64>(w[i])));
               }));
  expected.add("d",
               rows<double>(w.size(), 1, [&](std::size_t i, double* d) { d[0] = static_cast<double>(w[i] >> 12); }));
}

void crc32(const Given& given, Expected& expected) {
  const auto text = given.read<std::uint8_t>("text");
  expected.add("r", rows<u32>(text.size() / 64, 1, [&](std::size_t i, u32* r) {
                 // The remainder of the bits, mirrored, by long division with the polynomial 0x104c11db7.
                 std::vector<int> bits;
                 for (std::size_t k = 0; k < 64; ++k) {
                   for (int bit = 0; bit < 8; ++bit) bits.push_back(text[i * 64 + k] >> bit & 1);
                 }
                 for (std::size_t k = 0; k < 32; ++k) bits[k] ^= 1;
                 bits.insert(bits.end(), 32, 0);
                 for (std::size_t k = 0; k + 32 < bits.size(); ++k) {
                   if (bits[k] == 0) continue;
                   for (std::size_t p = 0; p <= 32; ++p)
                     bits[k + p] ^= static_cast<int>(0x104c11db7ull >> (32 - p) & 1u);
                 }
                 u32 crc = 0;
                 for (std::size_t k = 0; k < 32; ++k) crc |= static_cast<u32>(bits[bits.size() - 32 + k]) << k;
                 r[0] = ~crc;
               }));
}

void hashes(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  expected.add("r", rows<u32>(a.size(), 4, [&](std::size_t i, u32* r) {
                 u64 p = a[i];
                 for (u64 k = 0; k < 16; ++k) {
                   const u64 state = low((p + k) * 747796405u + 2891336453u);
                   const u64 word = low((state >> ((state >> 28) + 4) ^ state) * 277803737u);
                   p = word >> 22 ^ word;
                 }
                 r[0] = low(p);
                 u32 x = a[i] | 1u;
                 for (int k = 0; k < 40; ++k) {
                   x ^= x << 13;
                   x ^= x >> 17;
                   x ^= x << 5;
                 }
                 r[1] = x;
                 u64 f = 2166136261u;
                 for (int k = 0; k < 32; k += 8) f = low((f ^ (a[i] >> k & 255u)) * 16777619u);
                 r[2] = low(f);
                 u64 m = a[i];
                 m = low((m ^ m >> 16) * 0x85ebca6bu);
                 m = low((m ^ m >> 13) * 0xc2b2ae35u);
                 r[3] = low(m ^ m >> 16);
               }));
}

}  // namespace

void add_integer_rules(Rules& rules) {
  rules["int_arithmetic"] = int_arithmetic;
  rules["int_division"] = int_division;
  rules["uint_arithmetic"] = uint_arithmetic;
  rules["int_shifts"] = int_shifts;
  rules["bit_fields"] = bit_fields;
  rules["bit_counts"] = bit_counts;
  rules["extended_arithmetic"] = extended_arithmetic;
  rules["int64_arithmetic"] = int64_arithmetic;
  rules["int64_bits"] = int64_bits;
  rules["int64_conversions"] = int64_conversions;
  rules["crc32"] = crc32;
  rules["hashes"] = hashes;
}

}  // namespace kiln::witness

#include "witnesses/expectations/expectation.hpp"

#include <algorithm>
#include <numeric>

// Shared memory and atomics: what every order of the invocations gives.
namespace kiln::witness {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;

i32 as_signed(u32 v) { return static_cast<i32>(v); }

void shared_reduce(const Given& given, Expected& expected) {
  const auto a = given.read<i32>("a");
  const auto bits = given.read<u32>("a");
  expected.add("r", rows<u32>(8, 3, [&](std::size_t w, u32* r) {
                 i32 lowest = INT32_MAX;
                 for (std::size_t k = w * 256; k < (w + 1) * 256; ++k) {
                   r[0] += bits[k];
                   lowest = std::min(lowest, a[k]);
                   r[2] ^= bits[k];
                 }
                 r[1] = static_cast<u32>(lowest);
               }));
}

void shared_scan(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  std::vector<u32> r(a.size());
  for (std::size_t w = 0; w < a.size(); w += 128) {
    const auto at = static_cast<std::ptrdiff_t>(w);
    std::partial_sum(a.begin() + at, a.begin() + at + 128, r.begin() + at);
  }
  expected.add("r", r);
}

void transpose(const Given& given, Expected& expected, std::size_t width, std::size_t height) {
  const auto a = given.read<u32>("a");
  expected.add("r", rows<u32>(width, height, [&](std::size_t x, u32* r) {
                 for (std::size_t y = 0; y < height; ++y) r[y] = a[y * width + x];
               }));
}

void shared_rounds(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  expected.add("r", rows<u32>(4, 96, [&](std::size_t w, u32* r) {
                 std::vector<u32> ring(a.begin() + static_cast<std::ptrdiff_t>(w * 96),
                                       a.begin() + static_cast<std::ptrdiff_t>(w * 96 + 96));
                 for (u32 k = 0; k < 24; ++k) {
                   const std::vector<u32> old = ring;
                   for (std::size_t l = 0; l < 96; ++l) {
                     const u32 own = old[l];
                     ring[l] = old[(l + 95) % 96] ^ own << 3 ^ old[(l + 1) % 96] >> 5 ^ (own + k * 0x9e3779b9u);
                   }
                 }
                 std::reverse_copy(ring.begin(), ring.end(), r);
               }));
}

void shared_vectors(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  const auto other_of = [](std::size_t i) { return i / 64 * 64 + (i % 64 * 29 + 7) % 64; };
  expected.add("r", rows<u32>(256, 4, [&](std::size_t i, u32* r) {
                 for (std::size_t k = 0; k < 3; ++k) r[k] = a[other_of(i) * 4 + k];
                 r[3] = a[(i / 64 * 64 + 63 - i % 64) * 4 + 2];
               }));
  expected.add("u", rows<u32>(256, 2, [&](std::size_t i, u32* u) {
                 u[0] = b[other_of(i) * 2 + 1] + b[i * 2];
                 u[1] = b[other_of(i) * 2] + b[i * 2 + 1];
               }));
}

void copy_unaligned(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  auto r = given.read<u32>("r");
  for (std::size_t i = 0; i < 1000; ++i) {
    if (i % 3 == 1) r[i] ^= a[i + 7];
    if (i % 3 == 2) r[i] = a[1023 - i];
  }
  expected.add("r", r);
}

void buffer_atomics(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  auto r = given.read<u32>("r");
  auto s = given.read<u32>("s");
  for (u32 i = 0; i < a.size(); ++i) {
    const u32 v = a[i];
    r[0] += v;
    r[1] = std::min(r[1], v);
    r[2] = std::max(r[2], v);
    r[3] &= v | 0xffff0fffu;
    r[4] |= v & 0x00f0ff00u;
    r[5] ^= v;
    r[6] += 1;
    r[7] += i;
    if (as_signed(v) < as_signed(s[0])) s[0] = v;
    if (as_signed(v) > as_signed(s[1])) s[1] = v;
    s[2] += v;
    s[3] ^= i;
  }
  expected.add("r", r);
  expected.add("s", s);
}

void atomic_returns(const Given&, Expected& expected) {
  expected.add("counters", std::vector<u32>{1024, 0, 64, ~0u});
  expected.add("tickets", rows<u32>(1024, 1, [](std::size_t i, u32* t) { t[0] = static_cast<u32>(i * 3 + 1); }));
  expected.add("sums", std::vector<u32>{1024 * 1025 / 2, 32, 1023});
  expected.add("taken", std::vector<u32>(64, 5));
}

void atomic_float_sum(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a");
  std::vector<float> r(4);
  for (std::size_t i = 0; i < a.size(); ++i) r[i % 4] += a[i];
  expected.add("r", r);
}

void shared_atomics(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  expected.add("r", rows<u32>(4, 8, [&](std::size_t w, u32* r) {
                 r[1] = r[3] = ~0u;
                 for (u32 l = 0; l < 128; ++l) {
                   const u32 v = a[w * 128 + l];
                   r[0] += v;
                   r[1] = std::min(r[1], v);
                   r[2] = std::max(r[2], v);
                   r[3] &= v | 0xfff0ffffu;
                   r[4] |= v & 0x0f0f0f0fu;
                   r[5] ^= v;
                   r[7] ^= l * 2;
                 }
                 r[6] = 256;
               }));
  expected.add("s", rows<i32>(4, 2, [&](std::size_t w, i32* s) {
                 s[0] = INT32_MAX;
                 s[1] = -INT32_MAX;
                 for (std::size_t l = 0; l < 128; ++l) {
                   s[0] = std::min(s[0], as_signed(a[w * 128 + l]));
                   s[1] = std::max(s[1], as_signed(a[w * 128 + l]));
                 }
               }));
}

void histogram(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  std::vector<u32> bins(256);
  for (const u32 v : a) ++bins[(v ^ v >> 9) & 255u & v >> 3];
  expected.add("r", bins);
}

void prefix_sum(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  std::vector<u32> r(a.size());
  std::partial_sum(a.begin(), a.end(), r.begin());
  expected.add("r", r);
}

void register_pressure(const Given& given, Expected& expected) {
  const auto a = given.read<float>("a");
  expected.add("r", rows<float>(128, 64, [&](std::size_t i, float* r) {
                 std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(i * 64), 64, r);
                 constexpr std::size_t turned[] = {3, 0, 1, 2};
                 for (int round = 0; round < 3; ++round) {
                   for (std::size_t k = 0; k < 16; ++k) {
                     float next[4];
                     for (std::size_t c = 0; c < 4; ++c) {
                       next[c] = r[k * 4 + c] * 0.5f + r[(k * 5 + 3) % 16 * 4 + turned[c]] + r[(15 - k) * 4 + c];
                     }
                     std::copy_n(next, 4, r + k * 4);
                   }
                 }
               }));
}

}  // namespace

void add_memory_rules(Rules& rules) {
  rules["shared_reduce"] = shared_reduce;
  rules["shared_scan"] = shared_scan;
  rules["shared_transpose"] = [](const Given& given, Expected& expected) { transpose(given, expected, 64, 64); };
  rules["transpose_plain"] = [](const Given& given, Expected& expected) { transpose(given, expected, 48, 40); };
  rules["shared_rounds"] = shared_rounds;
  rules["shared_vectors"] = shared_vectors;
  rules["copy_unaligned"] = copy_unaligned;
  rules["buffer_atomics"] = buffer_atomics;
  rules["atomic_returns"] = atomic_returns;
  rules["atomic_float_sum"] = atomic_float_sum;
  rules["shared_atomics"] = shared_atomics;
  rules["histogram"] = histogram;
  rules["prefix_sum"] = prefix_sum;
  rules["register_pressure"] = register_pressure;
}

}  // namespace kiln::witness

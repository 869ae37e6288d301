#include "witnesses/expectations/expectation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>

namespace kiln::witness {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;

std::vector<double> doubles(const Given& given, std::string_view name) {
  const auto singles = given.read<float>(name);
  return {singles.begin(), singles.end()};
}

void conv2d_whole(const Given& given, Expected& expected) {
  const auto x = doubles(given, "x"), w = doubles(given, "w"), bias = doubles(given, "bias");
  expected.add("r", rows<float>(1024, 1, [&](std::size_t at, float* r) {
                 const std::size_t gx = at % 16, gy = at / 16 % 16, gz = at / 256;
                 double total = bias[gz];
                 for (std::size_t k = 0; k < 27; ++k) {
                   const std::size_t c = k / 9, ky = k / 3 % 3, kx = k % 3;
                   total += x[c * 324 + (gy + ky) * 18 + gx + kx] * w[gz * 27 + k];
                 }
                 r[0] = static_cast<float>(total > 0 ? total : 0);
               }));
}

void conv2d_padded(const Given& given, Expected& expected) {
  const auto x = doubles(given, "x"), w = doubles(given, "w");
  expected.add("r", rows<float>(512, 1, [&](std::size_t at, float* r) {
                 const auto gx = static_cast<int>(at % 16), gy = static_cast<int>(at / 16 % 16);
                 double total = 0;
                 for (int k = 0; k < 45; ++k) {
                   const int px = gx + k % 3 - 1, py = gy + k / 3 % 3 - 1;
                   if (px < 0 || px > 15 || py < 0 || py > 15) continue;
                   total += x[static_cast<std::size_t>(k / 9 * 256 + py * 16 + px)] *
                            w[at / 256 * 45 + static_cast<std::size_t>(k)];
                 }
                 r[0] = static_cast<float>(total);
               }));
}

void gemm(const Given& given, Expected& expected, std::size_t m, std::size_t n, std::size_t inner) {
  const auto a = doubles(given, "a"), b = doubles(given, "b");
  expected.add("c", rows<float>(m * n, 1, [&](std::size_t at, float* c) {
                 double total = 0;
                 for (std::size_t k = 0; k < inner; ++k) total += a[at / n * inner + k] * b[k * n + at % n];
                 c[0] = static_cast<float>(total);
               }));
}

void mandelbrot(const Given&, Expected& expected) {
  expected.add("r", rows<u32>(1024, 1, [](std::size_t at, u32* r) {
                 const float cx = static_cast<float>(at % 32) * 0.09375f - 2.25f;
                 const float cy = static_cast<float>(at / 32) * 0.0859375f - 1.375f;
                 float x = 0, y = 0;
                 while (r[0] < 200 && x * x + y * y <= 4.0f) {
                   const float real = x * x - y * y;
                   y = x * y * 2.0f + cy;
                   x = real + cx;
                   ++r[0];
                 }
               }));
}

void bitonic_shared(const Given& given, Expected& expected) {
  auto a = given.read<i32>("a");
  std::sort(a.begin(), a.begin() + 256);
  std::sort(a.begin() + 256, a.end());
  expected.add("r", a);
}

void bitonic_passes(const Given& given, Expected& expected) {
  auto r = given.read<float>("r");
  std::sort(r.begin(), r.end());
  expected.add("r", r);
}

void nbody(const Given& given, Expected& expected) {
  auto place = doubles(given, "place");
  std::vector<double> speed(place.size());
  for (int step = 0; step < 4; ++step) {
    const std::vector<double> old = place;
    for (std::size_t i = 0; i < 64; ++i) {
      double force[3] = {};
      for (std::size_t k = 0; k < 64; ++k) {
        double d[3], square = 0.05;
        for (std::size_t e = 0; e < 3; ++e) {
          d[e] = old[k * 4 + e] - old[i * 4 + e];
          square += d[e] * d[e];
        }
        for (std::size_t e = 0; e < 3; ++e) force[e] += d[e] * (old[k * 4 + 3] * 0.5 + 1.0) / std::pow(square, 1.5);
      }
      for (std::size_t e = 0; e < 3; ++e) {
        speed[i * 4 + e] += force[e] * 0.001;
        place[i * 4 + e] += speed[i * 4 + e] * 0.001;
      }
      speed[i * 4 + 3] = step;
    }
  }
  expected.add("place", std::vector<float>(place.begin(), place.end()));
  expected.add("speed", std::vector<float>(speed.begin(), speed.end()));
}

void softmax(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a");
  expected.add("r", rows<float>(8, 96, [&](std::size_t w, float* r) {
                 double total = 0;
                 for (std::size_t k = 0; k < 96; ++k) total += std::exp(a[w * 96 + k]);
                 for (std::size_t k = 0; k < 96; ++k) r[k] = static_cast<float>(std::exp(a[w * 96 + k]) / total);
               }));
}

void string_search(const Given& given, Expected& expected) {
  const auto text = given.read<std::uint8_t>("text"), word = given.read<std::uint8_t>("word");
  std::vector<u32> r(2);
  expected.add("hits", rows<u32>(512, 1, [&](std::size_t i, u32* hits) {
                 while (hits[0] < 4 && (text[i + hits[0]] & 3) == (word[hits[0]] & 3)) ++hits[0];
                 if (hits[0] < 3) return;
                 ++r[0];
                 r[1] = static_cast<u32>(i);
               }));
  expected.add("r", r);
}

void life(const Given& given, Expected& expected) {
  auto boards = std::vector<std::vector<u32>>{given.read<u32>("even"), given.read<u32>("odd")};
  for (std::size_t pass = 0; pass < 8; ++pass) {
    const auto& from = boards[pass % 2];
    auto& to = boards[(pass + 1) % 2];
    for (std::size_t at = 0; at < 1024; ++at) {
      u32 near = 0;
      for (std::size_t k = 0; k < 9; ++k) near += from[(at / 32 + 31 + k / 3) % 32 * 32 + (at % 32 + 31 + k % 3) % 32];
      near -= from[at];
      to[at] = near == 3 || (near == 2 && from[at] == 1) ? 1 : 0;
    }
  }
  expected.add("even", boards[0]);
  expected.add("odd", boards[1]);
}

void edit_distance(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  expected.add("r", rows<u32>(64, 1, [&](std::size_t i, u32* r) {
                 std::vector<std::vector<u32>> cost(17, std::vector<u32>(17));
                 for (u32 y = 0; y <= 16; ++y) {
                   for (u32 x = 0; x <= 16; ++x) {
                     if (x == 0 || y == 0) {
                       cost[y][x] = x + y;
                       continue;
                     }
                     const u32 replace = cost[y - 1][x - 1] + (a[i * 16 + y - 1] == b[x - 1] ? 0 : 1);
                     cost[y][x] = std::min({replace, cost[y - 1][x] + 1, cost[y][x - 1] + 1});
                   }
                 }
                 r[0] = cost[16][16];
               }));
}

void fourier(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a");
  expected.add("r", rows<float>(128, 2, [&](std::size_t at, float* r) {
                 std::complex<double> total = 0;
                 for (std::size_t k = 0; k < 64; ++k) {
                   const std::size_t from = (at / 64 * 64 + k) * 2;
                   total += std::complex(a[from], a[from + 1]) *
                            std::polar(1.0, -2.0 * M_PI * static_cast<double>(k * (at % 64) % 64) / 64.0);
                 }
                 r[0] = static_cast<float>(total.real());
                 r[1] = static_cast<float>(total.imag());
               }));
}

void sha256(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), k = given.read<u32>("k");
  const auto turn = [](u32 v, int n) { return std::rotr(v, n); };
  expected.add("r", rows<u32>(64, 8, [&](std::size_t i, u32* r) {
                 std::vector<u32> w(a.begin() + static_cast<std::ptrdiff_t>(i * 16),
                                    a.begin() + static_cast<std::ptrdiff_t>(i * 16 + 16));
                 for (std::size_t t = 16; t < 64; ++t) {
                   const u32 x = w[t - 15], y = w[t - 2];
                   w.push_back(w[t - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[t - 7] +
                               (turn(y, 17) ^ turn(y, 19) ^ y >> 10));
                 }
                 u32 h[] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                            0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
                 for (std::size_t t = 0; t < 64; ++t) {
                   const u32 choice = (h[4] & h[5]) ^ (~h[4] & h[6]);
                   const u32 most = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
                   const u32 one = h[7] + (turn(h[4], 6) ^ turn(h[4], 11) ^ turn(h[4], 25)) + choice + k[t] + w[t];
                   const u32 two = (turn(h[0], 2) ^ turn(h[0], 13) ^ turn(h[0], 22)) + most;
                   std::rotate(h, h + 7, h + 8);
                   h[4] += one;
                   h[0] = one + two;
                 }
                 std::copy_n(h, 8, r);
               }));
}

void quantized_dot(const Given& given, Expected& expected) {
  const auto a = given.read<std::uint8_t>("a"), b = given.read<std::uint8_t>("b");
  std::vector<u32> u(256);
  expected.add("r", rows<i32>(256, 1, [&](std::size_t i, i32* r) {
                 for (std::size_t k = 0; k < 16; ++k) {
                   const u32 x = a[i * 16 + k], y = b[(i * 4 + k / 4 * 5) % 1024 * 4 + k % 4];
                   r[0] += static_cast<i32>(static_cast<std::int8_t>(x)) * static_cast<std::int8_t>(y);
                   u[i] += x * y;
                 }
               }));
  expected.add("u", u);
}

}  // namespace

void add_algorithm_rules(Rules& rules) {
  rules["conv2d_whole"] = conv2d_whole;
  rules["conv2d_padded"] = conv2d_padded;
  rules["gemm_tiled"] = [](const Given& given, Expected& expected) { gemm(given, expected, 32, 48, 40); };
  rules["gemm_blocked"] = [](const Given& given, Expected& expected) { gemm(given, expected, 64, 64, 64); };
  rules["mandelbrot"] = mandelbrot;
  rules["bitonic_shared"] = bitonic_shared;
  rules["bitonic_passes"] = bitonic_passes;
  rules["nbody"] = nbody;
  rules["softmax"] = softmax;
  rules["string_search"] = string_search;
  rules["life"] = life;
  rules["edit_distance"] = edit_distance;
  rules["fourier"] = fourier;
  rules["sha256"] = sha256;
  rules["quantized_dot"] = quantized_dot;
}

}  // namespace kiln::witness

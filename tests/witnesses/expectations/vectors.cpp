#include "witnesses/expectations/expectation.hpp"

#include <array>
#include <cmath>

// Matrices stand as GLSL has them: m[c][r], column by column.
namespace kiln::witness {
namespace {

using Vec4 = std::array<double, 4>;
using Mat4 = std::array<Vec4, 4>;

std::vector<Vec4> vectors(const Given& given, std::string_view name) {
  const auto numbers = given.read<float>(name);
  std::vector<Vec4> all(numbers.size() / 4);
  for (std::size_t k = 0; k < numbers.size(); ++k) all[k / 4][k % 4] = static_cast<double>(numbers[k]);
  return all;
}

double dot(const Vec4& a, const Vec4& b, std::size_t count) {
  double total = 0;
  for (std::size_t k = 0; k < count; ++k) total += a[k] * b[k];
  return total;
}

Mat4 matrix_at(const std::vector<Vec4>& columns, std::size_t i) {
  return {columns[i * 4], columns[i * 4 + 1], columns[i * 4 + 2], columns[i * 4 + 3]};
}

void vector_swizzles(const Given& given, Expected& expected) {
  const auto a = given.read<std::uint32_t>("a"), b = given.read<std::uint32_t>("b");
  constexpr std::uint32_t sign = 0x80000000u, forty_two = 0x42280000u;
  expected.add("r", rows<std::uint32_t>(b.size() / 2, 8, [&](std::size_t i, std::uint32_t* r) {
                 const std::uint32_t next = a[(i + 1) % (b.size() / 2) * 4 + 1];
                 r[0] = r[2] = next;
                 r[1] = a[i * 4 + 2];
                 r[3] = a[i * 4];
                 r[b[i * 2] % 4] = forty_two;
                 r[4] = a[i * 4 + b[i * 2 + 1] % 4];
                 r[5] = r[2];
                 r[6] = r[3];
                 r[7] = r[0] ^ sign;
               }));
  expected.add("u", rows<std::uint32_t>(b.size() / 2, 4, [&](std::size_t i, std::uint32_t* u) {
                 const std::uint32_t x = b[i * 2], y = b[i * 2 + 1];
                 u[0] = y + 1;
                 u[1] = x + 2;
                 u[2] = (x ^ y) + 3;
                 u[3] = 4;
               }));
}

void vector_whole(const Given& given, Expected& expected) {
  const auto a = vectors(given, "a"), b = vectors(given, "b");
  expected.add("r", rows<float>(a.size(), 4, [&](std::size_t i, float* r) {
                 const Vec4 &x = a[i], &y = b[i];
                 r[0] = static_cast<float>(dot(x, y, 4));
                 r[1] = static_cast<float>(x[0] * y[2] + x[1] * y[1] + x[2] * y[0]);
                 r[2] = static_cast<float>(x[0] * y[1] + x[1] * y[3]);
                 r[3] = static_cast<float>(x[0] * y[1] - x[2] * y[3]);
               }));
  expected.add("c", rows<float>(a.size(), 4, [&](std::size_t i, float* c) {
                 const Vec4 &x = a[i], &y = b[i];
                 for (std::size_t k = 0; k < 3; ++k) {
                   const std::size_t p = (k + 1) % 3, q = (k + 2) % 3;
                   c[k] = static_cast<float>(x[p] * y[q] - x[q] * y[p]);
                 }
                 c[3] = static_cast<float>(dot(x, x, 4) - dot(y, y, 4));
               }));
}

void matrix_whole(const Given& given, Expected& expected) {
  const auto a = vectors(given, "a"), b = vectors(given, "b");
  const std::size_t count = a.size() / 4;
  expected.add("r", rows<float>(count, 16, [&](std::size_t i, float* r) {
                 const Mat4 m = matrix_at(a, i), n = matrix_at(b, i);
                 for (std::size_t k = 0; k < 16; ++k) {
                   double total = 0;
                   for (std::size_t e = 0; e < 4; ++e) total += m[e][k % 4] * n[k / 4][e];
                   r[k] = static_cast<float>(total);
                 }
               }));
  expected.add("t", rows<float>(count, 8, [&](std::size_t i, float* t) {
                 const Mat4 m = matrix_at(a, i), n = matrix_at(b, i);
                 const Vec4 by{1, -2, 3, 1};
                 for (std::size_t row = 0; row < 4; ++row) {
                   double total = 0;
                   for (std::size_t c = 0; c < 4; ++c)
                     total += (m[row][c] + m[c][row] * n[c][row] - n[c][row] * 2) * by[c];
                   t[row] = static_cast<float>(total);
                 }
                 const Vec4 &x = a[i], &y = b[i];
                 t[4] = static_cast<float>(x[0] * y[0] + y[2] * y[1] + x[2] * y[2]);
                 t[5] = static_cast<float>(x[1] * y[0] + y[3] * y[1] + x[0] * y[2]);
                 t[6] = static_cast<float>(y[0] * x[3]);
                 t[7] = static_cast<float>(y[2] * x[3]);
               }));
  expected.add("d", rows<float>(count, 1, [&](std::size_t i, float* d) {
                 const Mat4 m = matrix_at(a, i), n = matrix_at(b, i);
                 double total = n[0][0] * n[1][1] - n[1][0] * n[0][1];
                 for (std::size_t c = 0; c < 3; ++c) {
                   const Vec4 &p = m[(c + 1) % 3], &q = m[(c + 2) % 3];
                   total += m[c][0] * (p[1] * q[2] - p[2] * q[1]);
                 }
                 d[0] = static_cast<float>(total);
               }));
}

void matrix_inverse(const Given& given, Expected& expected) {
  const auto a = vectors(given, "a");
  expected.add("r", rows<float>(a.size() / 4, 16, [&](std::size_t i, float* r) {
                 // Gauss and Jordan; the diagonal leads, so no row need change places.
                 Mat4 m = matrix_at(a, i), n{};
                 for (std::size_t k = 0; k < 4; ++k) {
                   m[k][k] += 4;
                   n[k][k] = 1;
                 }
                 for (std::size_t k = 0; k < 4; ++k) {
                   const double pivot = m[k][k];
                   for (std::size_t e = 0; e < 4; ++e) {
                     m[k][e] /= pivot;
                     n[k][e] /= pivot;
                   }
                   for (std::size_t other = 0; other < 4; ++other) {
                     const double factor = m[other][k];
                     if (other == k) continue;
                     for (std::size_t e = 0; e < 4; ++e) {
                       m[other][e] -= factor * m[k][e];
                       n[other][e] -= factor * n[k][e];
                     }
                   }
                 }
                 for (std::size_t k = 0; k < 16; ++k) r[k] = static_cast<float>(n[k / 4][k % 4]);
               }));
}

void vector_loads(const Given& given, Expected& expected) {
  const auto a = given.read<std::uint32_t>("a"), b = given.read<std::uint32_t>("b");
  const auto c = given.read<std::uint32_t>("c"), table = given.read<std::uint32_t>("table");
  const std::size_t count = b.size() / 4;
  expected.add("r", rows<std::uint32_t>(count, 16, [&](std::size_t i, std::uint32_t* r) {
                 for (std::size_t k = 0; k < 4; ++k) {
                   r[k] = a[i * 4 + k];
                   r[4 + k] = b[i * 4 + k] ^ table[i % 16 * 4 + k];
                   r[12 + k] = table[i / 64 * 4 + k];
                 }
                 r[8] = a[i * 16 + 3];
                 r[9] = a[i * 16 + 1];
                 r[10] = a[i * 7 % 4096];
                 r[11] = table[14];
                 r[12] += table[23];
                 r[13] += table[23];
                 r[14] += table[20];
                 r[15] += table[21];
               }));
  expected.add("q", rows<std::uint32_t>(count, 2, [&](std::size_t i, std::uint32_t* q) {
                 q[0] = c[(255 - i) * 2 + 1];
                 q[1] = c[(255 - i) * 2];
               }));
}

}  // namespace

void add_vector_rules(Rules& rules) {
  rules["vector_swizzles"] = vector_swizzles;
  rules["vector_whole"] = vector_whole;
  rules["matrix_whole"] = matrix_whole;
  rules["matrix_inverse"] = matrix_inverse;
  rules["vector_loads"] = vector_loads;
}

}  // namespace kiln::witness

#include "witnesses/expectations/expectation.hpp"
#include "witnesses/expectations/flushed.hpp"

#include <algorithm>

namespace kiln::witness {
namespace {

constexpr Denormals both_modes[] = {Denormals::kept, Denormals::flushed};

void double_arithmetic(const Given& given, Expected& expected) {
  const auto a = given.read<double>("a"), b = given.read<double>("b");
  for (const Denormals mode : both_modes) {
    expected.add("r", rows<double>(a.size(), 4, [&](std::size_t i, double* r) {
                   r[0] = sum(mode, a[i], b[i]);
                   r[1] = sum(mode, a[i], -b[i]);
                   r[2] = product(mode, a[i], b[i]);
                   r[3] = sum(mode, product(mode, a[i], b[i]), 1.0);
                 }));
  }
}

void double_fma(const Given& given, Expected& expected) {
  const auto a = given.read<double>("a"), b = given.read<double>("b"), c = given.read<double>("c");
  expected.add("r", rows<double>(a.size(), 2, [&](std::size_t i, double* r) {
                 r[0] = std::fma(a[i], b[i], c[i]);
                 r[1] = std::fma(-a[i], a[i], std::fabs(b[i]));
               }));
}

void double_division(const Given& given, Expected& expected) {
  const auto a = given.read<double>("a"), b = given.read<double>("b");
  expected.add("q", rows<double>(a.size(), 2, [&](std::size_t i, double* q) {
                 q[0] = a[i] / b[i];
                 q[1] = 1.0 / b[i];
               }));
  expected.add("s", rows<double>(b.size(), 2, [&](std::size_t i, double* s) {
                 s[0] = std::sqrt(b[i]);
                 s[1] = static_cast<double>(1.0L / std::sqrt(static_cast<long double>(b[i])));
               }));
}

void double_rounding(const Given& given, Expected& expected) {
  const auto a = given.read<double>("a"), b = given.read<double>("b");
  expected.add("r", rows<double>(a.size(), 6, [&](std::size_t i, double* r) {
                 r[0] = std::floor(b[i]);
                 r[1] = std::ceil(b[i]);
                 r[2] = std::trunc(b[i] * 16.0);
                 r[3] = std::min(a[i], b[i]);
                 r[4] = std::max(a[i], b[i]);
                 r[5] = b[i] > 0 ? std::fabs(a[i]) : b[i] < 0 ? -std::fabs(a[i]) : 0.0;
               }));
  expected.add("f", rows<double>(b.size(), 1, [&](std::size_t i, double* f) { f[0] = b[i] - std::floor(b[i]); }));
}

void double_conversions(const Given& given, Expected& expected) {
  const auto a = given.read<std::int32_t>("a");
  const auto b = given.read<std::uint32_t>("b"), d_words = given.read<std::uint32_t>("d");
  const auto f = given.read<float>("f");
  const auto d = given.read<double>("d");
  expected.add("r", rows<double>(a.size(), 3, [&](std::size_t i, double* r) {
                 r[0] = a[i];
                 r[1] = b[i] * 0.5;
                 r[2] = static_cast<double>(f[i]);
               }));
  expected.add("g", rows<float>(d.size(), 2, [&](std::size_t i, float* g) {
                 g[0] = static_cast<float>(d[i]);
                 g[1] = static_cast<float>(d[i] * 0.000001);
               }));
  expected.add("s", rows<std::int32_t>(
                        d.size(), 1, [&](std::size_t i, std::int32_t* s) { s[0] = static_cast<std::int32_t>(d[i]); }));
  expected.add("u", rows<std::uint32_t>(d.size(), 3, [&](std::size_t i, std::uint32_t* u) {
                 u[0] = static_cast<std::uint32_t>(std::fabs(d[i]) * 2.0);
                 u[1] = d_words[2 * i];
                 u[2] = d_words[2 * i + 1];
               }));
}

void double_compare(const Given& given, Expected& expected) {
  const auto a = given.read<double>("a"), b = given.read<double>("b");
  expected.add("r", rows<std::uint32_t>(a.size(), 1, [&](std::size_t i, std::uint32_t* r) {
                 const double x = a[i], y = b[i];
                 const bool above = x > y, large = x > 2.0;
                 r[0] = (x < y ? 1u : 0u) | (x <= y ? 2u : 0u) | (x == y ? 4u : 0u) | (x >= y ? 8u : 0u) |
                        (x != y ? 16u : 0u) | (std::isinf(x) ? 32u : 0u) | (above != large ? 64u : 0u);
               }));
}

void double_horner(const Given& given, Expected& expected) {
  const auto x = given.read<double>("x"), c = given.read<double>("c");
  expected.add("r", rows<double>(x.size(), 1, [&](std::size_t i, double* r) {
                 long double total = 0, power = 1;
                 for (const double each : c) {
                   total += power * static_cast<long double>(each);
                   power *= static_cast<long double>(x[i]);
                 }
                 r[0] = static_cast<double>(total);
               }));
}

}  // namespace

void add_double_rules(Rules& rules) {
  rules["double_arithmetic"] = double_arithmetic;
  rules["double_fma"] = double_fma;
  rules["double_division"] = double_division;
  rules["double_rounding"] = double_rounding;
  rules["double_conversions"] = double_conversions;
  rules["double_compare"] = double_compare;
  rules["double_horner"] = double_horner;
}

}  // namespace kiln::witness

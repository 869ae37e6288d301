#include "witnesses/expectations/expectation.hpp"

#include <cmath>

// Quotients, roots and the functions of analysis: worked out in double, rounded once.
namespace kiln::witness {
namespace {

std::vector<double> doubles(const Given& given, std::string_view name) {
  const auto singles = given.read<float>(name);
  return {singles.begin(), singles.end()};
}

void add_rounded(Expected& expected, const std::string& name, const std::vector<double>& values) {
  expected.add(name, std::vector<float>(values.begin(), values.end()));
}

void float_division(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a"), b = doubles(given, "b");
  add_rounded(expected, "q", rows<double>(a.size(), 2, [&](std::size_t i, double* q) {
                q[0] = a[i] / b[i];
                q[1] = 1.0 / b[i];
              }));
  add_rounded(expected, "s",
              rows<double>(b.size(), 1, [&](std::size_t i, double* s) { s[0] = 1.0 / std::sqrt(b[i]); }));
  add_rounded(expected, "t", rows<double>(b.size(), 1, [&](std::size_t i, double* t) { t[0] = std::sqrt(b[i]); }));
}

void float_exponentials(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a"), b = doubles(given, "b"), c = doubles(given, "c");
  add_rounded(expected, "e", rows<double>(a.size(), 2, [&](std::size_t i, double* e) {
                e[0] = std::exp2(a[i]);
                e[1] = std::exp(a[i]);
              }));
  add_rounded(expected, "l", rows<double>(b.size(), 2, [&](std::size_t i, double* l) {
                l[0] = std::log2(b[i]);
                l[1] = std::log(b[i]);
              }));
  add_rounded(expected, "p", rows<double>(b.size(), 1, [&](std::size_t i, double* p) { p[0] = std::pow(b[i], c[i]); }));
}

void float_trigonometry(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a"), b = doubles(given, "b");
  add_rounded(expected, "r", rows<double>(a.size(), 2, [&](std::size_t i, double* r) {
                r[0] = std::sin(a[i]);
                r[1] = std::cos(a[i]);
              }));
  add_rounded(expected, "t", rows<double>(b.size(), 1, [&](std::size_t i, double* t) { t[0] = std::tan(b[i]); }));
}

void float_inverse_trigonometry(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a"), b = doubles(given, "b"), c = doubles(given, "c");
  add_rounded(expected, "r", rows<double>(a.size(), 4, [&](std::size_t i, double* r) {
                r[0] = std::asin(a[i]);
                r[1] = std::acos(a[i]);
                r[2] = std::atan(b[i]);
                r[3] = std::atan2(b[i], c[i]);
              }));
}

void float_hyperbolic(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a");
  add_rounded(expected, "r", rows<double>(a.size(), 3, [&](std::size_t i, double* r) {
                r[0] = std::sinh(a[i]);
                r[1] = std::cosh(a[i]);
                r[2] = std::tanh(a[i]);
              }));
}

void float_blends(const Given& given, Expected& expected) {
  const auto a = doubles(given, "a"), b = doubles(given, "b"), t = doubles(given, "t");
  add_rounded(expected, "r", rows<double>(a.size(), 5, [&](std::size_t i, double* r) {
                r[0] = a[i] + (b[i] - a[i]) * t[i];
                const double s = std::fmin(std::fmax((a[i] + 3.0) / 6.5, 0.0), 1.0);
                r[1] = s * s * (3.0 - 2.0 * s);
                r[2] = std::sqrt(a[i] * a[i] + b[i] * b[i] + t[i] * t[i]);
                r[3] = std::hypot(a[i] - t[i], b[i] - 1.0);
                r[4] = a[i] * b[i] + b[i] * t[i] + t[i] * a[i] + 1.0;
              }));
}

}  // namespace

void add_elementary_rules(Rules& rules) {
  rules["float_division"] = float_division;
  rules["float_exponentials"] = float_exponentials;
  rules["float_trigonometry"] = float_trigonometry;
  rules["float_inverse_trigonometry"] = float_inverse_trigonometry;
  rules["float_hyperbolic"] = float_hyperbolic;
  rules["float_blends"] = float_blends;
}

}  // namespace kiln::witness

// OpenCL C's functions of float with their error bounds, long double references for them, and arguments to try.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kiln::amdgpu_pm4 {

// One function of one or two floats. The second operand of `integer` ones is an int, made of the second argument.
struct MathFunction {
  const char* name;
  double bound;  // in ulp, as the OpenCL C specification has it for single precision; 0: correctly rounded
  long double (*one)(long double) = nullptr;
  long double (*two)(long double, long double) = nullptr;
  bool integer = false;
  bool any_zero = false;  // the library returns zeros of either sign
};

inline long double sinpi_of(long double x) {
  if (!std::isfinite(x)) return std::numeric_limits<long double>::quiet_NaN();
  long double turns = std::fmod(x, 2.0L);
  if (turns == 0) return std::copysign(0.0L, x);
  const long double size = std::fabs(turns);
  if (size == 1) return std::copysign(0.0L, x);
  const long double within = size > 1 ? size - 2 : size;  // the same sine, in (-1, 1)
  const long double half = std::fabs(within) > 0.5L ? std::copysign(1 - std::fabs(within), within) : within;
  return std::copysign(1.0L, turns) * std::sin(3.14159265358979323846264L * half);
}

inline long double cospi_of(long double x) {
  if (!std::isfinite(x)) return std::numeric_limits<long double>::quiet_NaN();
  const long double turns = std::fabs(std::fmod(x, 2.0L));
  const long double size = turns > 1 ? 2 - turns : turns;
  if (size == 0.5L) return 0.0L;
  return size < 0.25L ? std::cos(3.14159265358979323846264L * size) : sinpi_of(0.5L - size);
}

inline long double power_of_positive(long double x, long double y) {
  const bool undefined = std::isnan(x) || std::isnan(y) || x < 0 || (x == 0 && y == 0) || (std::isinf(x) && y == 0) ||
                         (x == 1 && std::isinf(y));
  if (undefined) return std::numeric_limits<long double>::quiet_NaN();
  return std::pow(std::fabs(x), y);
}

inline long double root_of(long double x, long double n) {
  if (n == 0 || (x < 0 && std::fmod(n, 2.0L) == 0)) return std::numeric_limits<long double>::quiet_NaN();
  const bool odd = std::fmod(n, 2.0L) != 0;
  const long double size = std::pow(std::fabs(x), 1 / n);
  return odd ? std::copysign(size, x) : size;
}

inline const std::vector<MathFunction>& math_functions() {
  using L = long double;
  static const std::vector<MathFunction> functions = {
      {"acos", 4, [](L x) { return std::acos(x); }},
      {"acosh", 4, [](L x) { return std::acosh(x); }},
      {"acospi", 5, [](L x) { return std::acos(x) / 3.14159265358979323846264L; }},
      {"asin", 4, [](L x) { return std::asin(x); }},
      {"asinh", 4, [](L x) { return std::asinh(x); }},
      {"asinpi", 5, [](L x) { return std::asin(x) / 3.14159265358979323846264L; }},
      {"atan", 5, [](L x) { return std::atan(x); }},
      {"atanh", 5, [](L x) { return std::atanh(x); }},
      {"atanpi", 5, [](L x) { return std::atan(x) / 3.14159265358979323846264L; }},
      {"cbrt", 2, [](L x) { return std::cbrt(x); }},
      {"ceil", 0, [](L x) { return std::ceil(x); }},
      {"cos", 4, [](L x) { return std::cos(x); }},
      {"cosh", 4, [](L x) { return std::cosh(x); }},
      {"cospi", 4, cospi_of, nullptr, false, true},
      {"degrees", 2, [](L x) { return x * 57.295779513082320876798L; }},
      {"erf", 16, [](L x) { return std::erf(x); }},
      {"erfc", 16, [](L x) { return std::erfc(x); }},
      {"exp", 3, [](L x) { return std::exp(x); }},
      {"exp10", 3, [](L x) { return std::pow(10.0L, x); }},
      {"exp2", 3, [](L x) { return std::exp2(x); }},
      {"expm1", 3, [](L x) { return std::expm1(x); }, nullptr, false, true},
      {"fabs", 0, [](L x) { return std::fabs(x); }},
      {"floor", 0, [](L x) { return std::floor(x); }},
      {"log", 3, [](L x) { return std::log(x); }},
      {"log10", 3, [](L x) { return std::log10(x); }},
      {"log1p", 2, [](L x) { return std::log1p(x); }},
      {"log2", 3, [](L x) { return std::log2(x); }},
      {"logb", 0, [](L x) { return std::logb(x); }},
      {"radians", 2, [](L x) { return x * 0.017453292519943295769L; }},
      {"rint", 0, [](L x) { return std::rint(x); }},
      {"round", 0, [](L x) { return std::round(x); }},
      {"rsqrt", 2, [](L x) { return 1 / std::sqrt(x); }},
      {"sin", 4, [](L x) { return std::sin(x); }},
      {"sinh", 4, [](L x) { return std::sinh(x); }},
      {"sinpi", 4, sinpi_of, nullptr, false, true},
      {"sqrt", 0, [](L x) { return std::sqrt(x); }},
      {"tan", 5, [](L x) { return std::tan(x); }},
      {"tanh", 5, [](L x) { return std::tanh(x); }},
      {"tanpi", 6, [](L x) { return sinpi_of(x) / cospi_of(x); }, nullptr, false, true},
      {"tgamma", 16, [](L x) { return std::tgamma(x); }, nullptr, false, true},
      {"trunc", 0, [](L x) { return std::trunc(x); }},
      {"atan2", 6, nullptr, [](L y, L x) { return std::atan2(y, x); }},
      {"atan2pi", 6, nullptr, [](L y, L x) { return std::atan2(y, x) / 3.14159265358979323846264L; }},
      {"copysign", 0, nullptr, [](L x, L y) { return std::copysign(x, y); }},
      {"fdim", 0, nullptr, [](L x, L y) { return std::fdim(x, y); }},
      {"fmax", 0, nullptr, [](L x, L y) { return std::fmax(x, y); }},
      {"fmin", 0, nullptr, [](L x, L y) { return std::fmin(x, y); }},
      {"fmod", 0, nullptr, [](L x, L y) { return std::fmod(x, y); }},
      {"hypot", 4, nullptr, [](L x, L y) { return std::hypot(x, y); }},
      {"nextafter", 0, nullptr,
       [](L x, L y) { return L{std::nextafter(static_cast<float>(x), static_cast<float>(y))}; }, false, true},
      {"pow", 16, nullptr, [](L x, L y) { return std::pow(x, y); }},
      {"powr", 16, nullptr, power_of_positive},
      {"remainder", 0, nullptr, [](L x, L y) { return std::remainder(x, y); }},
      {"ldexp", 0, nullptr, [](L x, L n) { return std::ldexp(x, static_cast<int>(n)); }, true},
      {"pown", 16, nullptr, [](L x, L n) { return std::pow(x, n); }, true},
      {"rootn", 16, nullptr, root_of, true},
  };
  return functions;
}

// Special values, values near them and near multiples of pi/2 and of 1/2, then random ones: half of them of any bits,
// the others between -100 and 100.
inline std::vector<float> math_arguments(std::size_t count, std::uint32_t seed) {
  std::vector<float> values;
  const auto add = [&values](double value) {
    auto near = static_cast<float>(value);
    for (int step = 0; step < 3; ++step) {
      values.push_back(near);
      values.push_back(-near);
      near = std::nextafter(near, std::numeric_limits<float>::infinity());
    }
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const double value :
       {0.0,   1.0,   2.0,   0.5,   0x1p-149, 0x1p-126,   0x1p-127,  0x1.fffffep127, 88.72,        88.02,   103.97,
        87.33, 127.0, 128.0, 149.0, 126.0,    38.53,      44.85,     1e30,           2000.0,       5000.0,  1e10,
        34.0,  35.04, 9.194, 3.832, 10.05,    16777216.0, 8388608.0, 8388607.5,      2147483648.0, 0x1p-24, 0x1p-12}) {
    add(value);
    add(std::nextafter(static_cast<float>(value), 0.0F));
  }
  values.insert(values.end(), {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()});
  for (int k = 1; k < 200; ++k) add(k * 1.57079632679489661923), add(k * 0.5), add(1.0 + k * 0x1p-20);
  std::mt19937 random(seed);
  for (int power = 8; power < 126; ++power) {
    add(std::ldexp(1.57079632679489661923 * (1 + static_cast<double>(random() % 1024)), power));
  }
  std::uniform_real_distribution<float> small(-100, 100), unit(-1.01F, 1.01F);
  while (values.size() < count) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    values.push_back(random() % 2 == 0 ? small(random) : unit(random));
  }
  values.resize(count);
  return values;
}

// The error of `got` in units of the last place of `want` as a float; infinity where one is NaN and the other not, or
// where zeros differ in their sign.
inline double ulp_error(const MathFunction& function, float got, long double want) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : wrong;
  const auto nearest = static_cast<float>(want);
  if (got == nearest)
    return got == 0 && want == 0 && !function.any_zero && std::signbit(got) != std::signbit(want) ? wrong : 0;
  const long double value = std::isinf(got) ? std::copysign(0x1p128L, static_cast<long double>(got)) : got;
  if (std::isinf(want)) return wrong;
  const int exponent = want == 0 ? -126 : std::max(std::ilogb(want), -126);
  return static_cast<double>(std::fabs(value - want) / std::ldexp(1.0L, exponent - 23));
}

// A kernel that writes one function after another: y[f * count + i].
inline std::string math_kernel(const std::vector<const MathFunction*>& functions) {
  std::string text =
      "__attribute__((reqd_work_group_size(64, 1, 1)))\n"
      "kernel void work(global const float* x, global const float* z, global float* y) {\n"
      "  const uint i = get_global_id(0), count = get_global_size(0);\n"
      "  const float a = x[i], b = z[i];\n  const int n = isnan(b) ? 0 : (int)clamp(b, -1000.0f, 1000.0f);\n";
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const MathFunction& function = *functions[f];
    text += "  y[" + std::to_string(f) + " * count + i] = " + function.name +
            (function.one != nullptr ? "(a)"
             : function.integer      ? "(a, n)"
                                     : "(a, b)") +
            ";\n";
  }
  return text + "}\n";
}

inline long double math_reference(const MathFunction& function, float a, float b) {
  if (function.one != nullptr) return function.one(a);
  if (!function.integer) return function.two(a, b);
  return function.two(a, std::isnan(b) ? 0 : static_cast<int>(std::fmin(std::fmax(b, -1000.0F), 1000.0F)));
}

}  // namespace kiln::amdgpu_pm4

#include "witnesses/catalog/comparison.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace kiln::witness {
namespace {

struct Format {
  int fraction_bits;
  double smallest_normal;
};

Format format_of(Scalar scalar) {
  if (scalar == Scalar::float16) return {10, std::ldexp(1.0, -14)};
  if (scalar == Scalar::float32) return {23, static_cast<double>(FLT_MIN)};
  return {52, DBL_MIN};
}

double ulp_of(Scalar scalar, double value) {
  const Format format = format_of(scalar);
  int exponent = 0;
  std::frexp(std::max(std::fabs(value), format.smallest_normal), &exponent);
  return std::ldexp(1.0, exponent - 1 - format.fraction_bits);
}

bool same_float(Scalar scalar, const Comparison& how, double slack, double got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (got == expected) return how.zeros_equal || how.ulps > 0 || how.absolute > 0;  // else the bits had been the same
  const double small = format_of(scalar).smallest_normal;
  if (how.flush && std::fabs(got) < small && std::fabs(expected) < small) return got == 0.0 || expected == 0.0;
  if (std::isinf(got) || std::isinf(expected)) return false;
  const double apart = std::fabs(got - expected);
  return apart <= slack * how.absolute || apart <= slack * how.ulps * ulp_of(scalar, expected);
}

// Halves of one sign are ordered as their bits are.
bool same_half(std::int64_t steps, std::uint64_t got, std::uint64_t expected) {
  const auto nan = [](std::uint64_t h) { return (h & 0x7fffu) > 0x7c00u; };
  if (nan(got) || nan(expected)) return nan(got) && nan(expected);
  const auto size_got = static_cast<std::int64_t>(got & 0x7fffu);
  const auto size_expected = static_cast<std::int64_t>(expected & 0x7fffu);
  if ((got & 0x8000u) != (expected & 0x8000u)) return size_got + size_expected <= steps;
  return std::abs(size_got - size_expected) <= steps;
}

bool same(Scalar scalar, const Comparison& how, double slack, const Bytes& got, const Bytes& expected, std::size_t at) {
  const std::uint64_t a = bits_at(scalar, got, at);
  const std::uint64_t b = bits_at(scalar, expected, at);
  if (a == b) return true;
  if (how.half_steps > 0) {
    const auto steps = static_cast<std::int64_t>(slack) * how.half_steps;
    return same_half(steps, a & 0xffffu, b & 0xffffu) && same_half(steps, a >> 16, b >> 16);
  }
  if (how.off > 0) {
    const auto off = static_cast<std::int64_t>(slack) * how.off;
    if (scalar == Scalar::float16) return same_half(off, a, b);
    return std::abs(whole_at(scalar, got, at) - whole_at(scalar, expected, at)) <= off;
  }
  return is_float(scalar) &&
         same_float(scalar, how, slack, number_at(scalar, got, at), number_at(scalar, expected, at));
}

}  // namespace

Comparison parse_comparison(std::string_view text) {
  Comparison how;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    const std::string name = word.substr(0, word.find('='));
    const double value = name.size() < word.size() ? std::strtod(word.c_str() + name.size() + 1, nullptr) : 0;
    if (name == "none") {
      how.none = true;
    } else if (name == "value") {
      how.zeros_equal = true;
    } else if (name == "flush") {
      how.flush = true;
    } else if (name == "ulp" && value > 0) {
      how.ulps = value;
    } else if (name == "abs" && value > 0) {
      how.absolute = value;
    } else if (name == "half" && value > 0) {
      how.half_steps = static_cast<std::int64_t>(value);
    } else if (name == "off" && value > 0) {
      how.off = static_cast<std::int64_t>(value);
    } else if (name != "exact") {
      throw std::runtime_error("comparison: unknown word \"" + word + "\"");
    }
  }
  return how;
}

Difference compare(Scalar scalar, const Comparison& how, double slack, const Bytes& got,
                   std::span<const Bytes> alternatives) {
  Difference found;
  for (const Bytes& each : alternatives) {
    if (each.size() == got.size()) continue;
    return {1, 0, std::to_string(got.size()) + " bytes instead of " + std::to_string(each.size())};
  }
  for (std::size_t at = 0; at < got.size() / size_of(scalar); ++at) {
    const bool held = std::any_of(alternatives.begin(), alternatives.end(),
                                  [&](const Bytes& expected) { return same(scalar, how, slack, got, expected, at); });
    if (held) continue;
    if (found.count++ == 0) {
      found.first = at;
      found.text = text_at(scalar, got, at) + " instead of";
      for (const Bytes& expected : alternatives) found.text += " " + text_at(scalar, expected, at);
    }
  }
  return found;
}

}  // namespace kiln::witness

#include "dynamic_shaders/families/user/glsl/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace kiln::dynamic_shaders {
namespace {

constexpr double most_exact = 9007199254740992.0;  // 2^53: up to here a double holds every integer

Range of_corners(std::initializer_list<double> corners, bool whole) {
  for (const double corner : corners) {
    if (std::isnan(corner)) return {};
  }
  return {std::min(corners), std::max(corners), whole};
}

double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

Range product(Range a, Range b) {
  return of_corners({times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)}, a.whole && b.whole);
}

Range quotient(Range a, Range b) {
  if (b.lo <= 0 && b.hi >= 0) return {};
  const bool whole = a.whole && b.whole;
  Range range = of_corners({a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi}, whole);
  if (whole) range.lo = std::trunc(range.lo), range.hi = std::trunc(range.hi);
  return range;
}

Range remainder(Range a, Range b) {
  if (b.lo <= 0 && b.hi >= 0) return {};
  if (a.is_one_value() && b.is_one_value()) return exactly(std::fmod(a.lo, b.lo));
  const double most = std::max(std::abs(b.lo), std::abs(b.hi)) - 1;
  return {a.lo >= 0 ? 0 : -most, a.hi <= 0 ? 0 : std::min(most, std::max(a.hi, -a.lo)), true};
}

Range shifted(Range a, Range by, bool left) {
  if (by.lo < 0 || by.hi > 62) return {};
  const Range factor{std::exp2(by.lo), std::exp2(by.hi), true};
  if (left) return product(a, factor);
  Range range = of_corners({a.lo / factor.lo, a.lo / factor.hi, a.hi / factor.lo, a.hi / factor.hi}, true);
  return {std::floor(range.lo), std::floor(range.hi), true};
}

Range bits(std::string_view sign, Range a, Range b) {
  const auto exact = [](Range range) { return range.is_one_value() && std::abs(range.lo) < most_exact; };
  if (exact(a) && exact(b)) {
    const auto one = static_cast<std::int64_t>(a.lo);
    const auto other = static_cast<std::int64_t>(b.lo);
    return exactly(static_cast<double>(sign == "&" ? one & other : sign == "|" ? one | other : one ^ other));
  }
  if (sign == "&" && (a.lo >= 0 || b.lo >= 0)) {
    return {0, std::min(a.lo >= 0 ? a.hi : b.hi, b.lo >= 0 ? b.hi : a.hi), true};
  }
  if (a.lo >= 0 && b.lo >= 0) return {0, a.hi + b.hi, true};  // no bit is there that was in neither
  return {};
}

Range decided(bool yes, bool no) { return yes ? exactly(1) : no ? exactly(0) : Range{0, 1, true}; }

Range compared(std::string_view sign, Range a, Range b) {
  if (sign == "<") return decided(a.hi < b.lo, a.lo >= b.hi);
  if (sign == ">") return decided(a.lo > b.hi, a.hi <= b.lo);
  if (sign == "<=") return decided(a.hi <= b.lo, a.lo > b.hi);
  if (sign == ">=") return decided(a.lo >= b.hi, a.hi < b.lo);
  const bool same = a.is_one_value() && b.is_one_value() && a.lo == b.lo;
  const bool differ = a.hi < b.lo || a.lo > b.hi;
  return sign == "==" ? decided(same, differ) : decided(differ, same);
}

Range least(Range a, Range b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi), a.whole && b.whole}; }
Range most(Range a, Range b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), a.whole && b.whole}; }

}  // namespace

Range exactly(double value, bool whole) noexcept { return {value, value, whole}; }

Range negated(Range range) noexcept { return {-range.hi, -range.lo, range.whole}; }

Range applied(std::string_view sign, Range of) noexcept {
  if (sign == "-") return negated(of);
  if (sign == "!") return decided(of.is_false(), of.is_true());
  if (sign == "~") return {-of.hi - 1, -of.lo - 1, of.whole};
  return of;
}

Range applied(std::string_view sign, Range a, Range b) noexcept {
  if (sign == "+") return of_corners({a.lo + b.lo, a.hi + b.hi}, a.whole && b.whole);
  if (sign == "-") return of_corners({a.lo - b.hi, a.hi - b.lo}, a.whole && b.whole);
  if (sign == "*") return product(a, b);
  if (sign == "/") return quotient(a, b);
  if (sign == "%") return remainder(a, b);
  if (sign == "<<" || sign == ">>") return shifted(a, b, sign == "<<");
  if (sign == "&" || sign == "|" || sign == "^") return bits(sign, a, b);
  if (sign == "&&") return decided(a.is_true() && b.is_true(), a.is_false() || b.is_false());
  if (sign == "||") return decided(a.is_true() || b.is_true(), a.is_false() && b.is_false());
  if (sign == "^^") return {0, 1, true};
  return compared(sign, a, b);
}

Range chosen(Range condition, Range yes, Range no) noexcept {
  if (condition.is_true()) return yes;
  if (condition.is_false()) return no;
  return {std::min(yes.lo, no.lo), std::max(yes.hi, no.hi), yes.whole && no.whole};
}

Range called(std::string_view function, std::span<const Range> given) noexcept {
  if (given.size() == 1) {
    if (function == "int" || function == "uint" || function == "float") return held_by(function, given[0]);
    if (function == "abs" && given[0].lo >= 0) return given[0];
  }
  if (given.size() == 2 && function == "min") return least(given[0], given[1]);
  if (given.size() == 2 && function == "max") return most(given[0], given[1]);
  if (given.size() == 3 && function == "clamp") return least(most(given[0], given[1]), given[2]);
  return {};
}

Range held_by(std::string_view type, Range range) noexcept {
  if (type == "float" || type == "double") return {range.lo, range.hi, false};
  if (type != "int" && type != "uint") return {};
  range = {std::trunc(range.lo), std::trunc(range.hi), true};
  if (type == "uint" && range.lo < 0) return {0, Range{}.hi, true};
  return range;
}

}  // namespace kiln::dynamic_shaders

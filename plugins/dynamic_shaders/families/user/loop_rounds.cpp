#include "dynamic_shaders/families/user/loop_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

constexpr double word_values = 4294967296.0;  // 2^32: of an int or a uint, after which doubling starts anew
constexpr double most_counted = 1e6;          // rounds of a loop whose factor is hardly more than one
constexpr int most_depth = 200;               // of brackets in a condition; the stack is finite

std::string_view mirrored(std::string_view sign) {
  if (sign == "<") return ">";
  if (sign == ">") return "<";
  if (sign == "<=") return ">=";
  return sign == ">=" ? "<=" : sign;
}

bool compares(std::string_view sign) {
  return sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==" || sign == "!=";
}

// What a loop's head does to its variable in each round.
struct Step {
  char how = 0;  // '+', '*' or '/'
  Range by;
};

std::optional<Step> step_by(std::string_view sign, Range by) {
  if (sign == "+") return Step{'+', by};
  if (sign == "-") return Step{'+', negated(by)};
  if (sign == "*" || sign == "/") return Step{sign.front(), by};
  if (sign != "<<" && sign != ">>") return std::nullopt;
  return Step{sign == "<<" ? '*' : '/', {std::exp2(by.lo), std::exp2(by.hi), true}};
}

// `bound` and `start` decide how often `sign` holds of a variable that grows by at least `step`.
std::optional<double> times_upwards(Range start, std::string_view sign, Range bound, Range step) {
  const double way = bound.hi - start.lo;
  if (sign == "!=") {
    const bool exact = start.is_one_value() && bound.is_one_value() && step.is_one_value() && step.whole;
    if (!exact || way < 0 || std::fmod(way, step.lo) != 0) return std::nullopt;
    return way / step.lo;
  }
  if (!std::isfinite(way) || (sign != "<" && sign != "<=")) return std::nullopt;
  const double times = sign == "<" ? std::ceil(way / step.lo) : std::floor(way / step.lo) + 1;
  const bool rounds_off = !start.whole || !step.whole;
  return std::max(0.0, times + (rounds_off ? 1 : 0));
}

std::optional<double> times_multiplied(Range start, std::string_view sign, Range bound, Range factor) {
  if ((sign != "<" && sign != "<=") || !(factor.lo > 1) || !(start.lo > 0)) return std::nullopt;
  const double end = std::min(bound.hi, word_values);
  double times = 0;
  for (double value = start.lo; (sign == "<" ? value < end : value <= end) && times < most_counted; ++times) {
    value *= factor.lo;
  }
  return times;
}

std::optional<double> times_divided(Range start, std::string_view sign, Range bound, Range divisor) {
  const bool ends = sign == ">" ? bound.lo >= 0 : sign == ">=" ? bound.lo >= 1 : sign == "!=" && bound.hi == 0;
  if (!ends || !(divisor.lo >= 2) || !start.whole || (sign == "!=" && start.lo < 0)) return std::nullopt;
  double times = 0;
  for (double value = std::min(start.hi, word_values);
       sign == ">=" ? value >= bound.lo : value > std::max(bound.lo, 0.0); ++times) {
    value = std::floor(value / divisor.lo);
  }
  return times;
}

bool is_of_uint(const Token& token) {
  const std::string_view text = token.text;
  const bool is_number = text[0] >= '0' && text[0] <= '9';
  return text == "uint" || (is_number && (text.ends_with('u') || text.ends_with('U')));
}

// Of a uint that goes down by `step` in each of `times` rounds: below zero it starts anew from above, where `sign`
// still holds.
bool may_wrap(Range start, std::string_view sign, Range bound, Range step, double times) {
  if (start.is_one_value() && bound.is_one_value() && step.is_one_value()) return start.lo < times * step.lo;
  const double last_inside = sign == ">" ? bound.lo + 1 : bound.lo;
  return last_inside < step.hi;
}

std::optional<Course> shorter(const std::optional<Course>& a, const std::optional<Course>& b) {
  if (!a || !b) return a ? a : b;
  return a->times <= b->times ? a : b;
}

// A for loop's head without its condition.
class Head {
 public:
  Head(Tokens init, Tokens step, NamesInSight names) : init_(init), step_(step), names_(names) {}

  // `depth`: of the brackets around it.
  std::optional<Course> course_while(Tokens condition, int depth) const {
    if (condition.empty() || depth > most_depth) return std::nullopt;
    if (condition[0].text == "(" && past_brackets(condition, 0) == condition.size()) {
      return course_while(in_brackets(condition, 0), depth + 1);
    }
    // One part of these may hold for ever, whatever becomes of the others.
    for (const std::string_view sign : {",", "?", "||", "^^"}) {
      if (split(condition, sign).size() > 1) return std::nullopt;
    }
    const std::vector<Tokens> parts = split(condition, "&&");
    if (parts.size() == 1) return course_compared(condition);
    std::optional<Course> shortest;
    for (const Tokens part : parts) shortest = shorter(shortest, course_while(part, depth + 1));
    return shortest;
  }

 private:
  std::optional<Course> course_compared(Tokens comparison) const {
    std::size_t at = 0;  // of its sign
    for (std::size_t i = 0; i < comparison.size(); i = past_brackets(comparison, i)) {
      if (!compares(comparison[i].text)) continue;
      if (at != 0) return std::nullopt;  // i < 10 == again
      at = i;
    }
    if (at == 0 || comparison[at].text == "==") return std::nullopt;
    const Tokens left = comparison.first(at);
    const Tokens right = comparison.subspan(at + 1);
    std::optional<Course> course;
    if (left.size() == 1) course = course_below(left[0].text, comparison[at].text, right);
    if (!course && right.size() == 1) course = course_below(right[0].text, mirrored(comparison[at].text), left);
    return course;
  }

  // i < min(a, b) is i < a && i < b.
  std::optional<Course> course_below(std::string_view variable, std::string_view sign, Tokens bound) const {
    const bool is_least = bound.size() > 3 && bound[0].text == "min" && bound[1].text == "(" &&
                          past_brackets(bound, 1) == bound.size() && (sign == "<" || sign == "<=");
    if (!is_least) return course_to(variable, sign, bound);
    std::optional<Course> shortest;
    for (const Tokens each : split(in_brackets(bound, 1), ",")) {
      shortest = shorter(shortest, course_to(variable, sign, each));
    }
    return shortest;
  }

  std::optional<Course> course_to(std::string_view variable, std::string_view sign, Tokens bound_text) const {
    const std::optional<Step> step = step_of(variable);
    if (!step) return std::nullopt;
    const Tokens first = first_of(variable);
    const Range start = start_of(first, variable);
    const Range bound = value_of(bound_text, names_);
    std::optional<double> times;
    Range inside = start;
    std::string_view base;
    if (step->how == '*') {
      times = times_multiplied(start, sign, bound, step->by);
      inside.hi = bound.hi;
    } else if (step->how == '/') {
      times = times_divided(start, sign, bound, step->by);
      inside.lo = std::min(0.0, start.lo);
    } else if (step->by.lo > 0) {
      // From a to a + 8 it is as far as from 0 to 8, whatever a is.
      const bool goes_on = first.size() == 1 && bound_text.size() > 2 && bound_text[0].text == first[0].text &&
                           bound_text[1].text == "+" && is_name(first[0].text);
      if (goes_on) base = first[0].text;
      times = goes_on ? times_upwards({0, 0, start.whole}, sign, value_of(bound_text.subspan(2), names_), step->by)
                      : times_upwards(start, sign, bound, step->by);
      inside.hi = std::max(start.lo, sign == "<=" || !start.whole ? bound.hi : bound.hi - 1);
    } else if (step->by.hi < 0) {
      times = times_upwards(negated(start), mirrored(sign), negated(bound), negated(step->by));
      // A comparison with a uint is one of uints, whatever the variable is.
      const bool is_uint = std::ranges::any_of(init_, is_of_uint) || std::ranges::any_of(bound_text, is_of_uint);
      if (times && is_uint && may_wrap(start, sign, bound, negated(step->by), *times)) times.reset();
      inside.lo = std::min(start.hi, sign == ">=" || !start.whole ? bound.lo : bound.lo + 1);
    }
    if (!times) return std::nullopt;
    return Course{*times, variable, inside, base};
  }

  // What the head sets the variable to; empty: nothing.
  Tokens first_of(std::string_view variable) const {
    for (const Tokens piece : split(init_, ",")) {
      for (std::size_t i = 0; i + 2 < piece.size(); ++i) {
        if (piece[i].text == variable && piece[i + 1].text == "=") return piece.subspan(i + 2);
      }
    }
    return {};
  }

  Range start_of(Tokens first, std::string_view variable) const {
    const Token name{variable};
    if (first.empty()) return value_of({&name, 1}, names_);
    const auto type = std::ranges::find_if(init_, is_scalar_type, &Token::text);
    const Range start = value_of(first, names_);
    return type == init_.end() ? start : held_by(type->text, start);
  }

  std::optional<Step> step_of(std::string_view variable) const {
    for (const Tokens part : split(step_, ",")) {
      if (part.size() == 2 && (part[0].text == variable || part[1].text == variable)) {
        const std::string_view sign = part[0].text == variable ? part[1].text : part[0].text;
        if (sign == "++") return Step{'+', exactly(1)};
        if (sign == "--") return Step{'+', exactly(-1)};
      }
      if (part.size() < 3 || part[0].text != variable) continue;
      const std::string_view sign = part[1].text;
      if (sign != "=") return step_by(sign.substr(0, sign.size() - 1), value_of(part.subspan(2), names_));
      // i = i + 2, or with a bracket for the 2.
      if (part.size() < 5 || part[2].text != variable || past_brackets(part, 4) != part.size()) return std::nullopt;
      return step_by(part[3].text, value_of(part.subspan(4), names_));
    }
    return std::nullopt;
  }

  Tokens init_, step_;
  NamesInSight names_;
};

}  // namespace

std::optional<Course> course_of(Tokens init, Tokens condition, Tokens step, NamesInSight names) {
  return Head(init, step, names).course_while(condition, 0);
}

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/families/user/glsl/expressions.hpp"

#include <charconv>
#include <cstdint>

namespace kiln::dynamic_shaders {
namespace {

constexpr int most_depth = 200;  // of brackets; the stack is finite

// 0: no operator between two operands.
int rank_of(std::string_view sign) {
  if (sign == "||") return 1;
  if (sign == "^^") return 2;
  if (sign == "&&") return 3;
  if (sign == "|") return 4;
  if (sign == "^") return 5;
  if (sign == "&") return 6;
  if (sign == "==" || sign == "!=") return 7;
  if (sign == "<" || sign == ">" || sign == "<=" || sign == ">=") return 8;
  if (sign == "<<" || sign == ">>") return 9;
  if (sign == "+" || sign == "-") return 10;
  if (sign == "*" || sign == "/" || sign == "%") return 11;
  return 0;
}

Range number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const bool whole = hexadecimal || text.find_first_of(".eEfF") == std::string_view::npos;
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  double value = 0;
  if (whole) {
    const int base = hexadecimal ? 16 : text.size() > 1 && text[0] == '0' ? 8 : 10;
    std::uint64_t integer = 0;
    read = std::from_chars(text.data() + (hexadecimal ? 2 : 0), end, integer, base);
    value = static_cast<double>(integer);
  } else {
    read = std::from_chars(text.data(), end, value);
  }
  const std::string_view suffix(read.ptr, static_cast<std::size_t>(end - read.ptr));
  const bool known = suffix.empty() || (whole ? suffix == "u" || suffix == "U" : suffix.size() <= 2);
  return read.ec == std::errc() && known ? exactly(value, whole) : Range{};
}

class Expression {
 public:
  Expression(Tokens tokens, NamesInSight names) : tokens_(tokens), names_(names) {}

  Range value() {
    const Range range = choice();
    return at_ == tokens_.size() ? range : Range{};
  }

 private:
  std::string_view next(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string_view();
  }
  bool take(std::string_view text) {
    if (next() != text) return false;
    ++at_;
    return true;
  }
  Range give_up() {
    at_ = tokens_.size() + 1;  // so that the whole is not known
    return {};
  }

  Range choice() {
    if (++depth_ > most_depth) return give_up();
    Range range = binary(1);
    if (take("?")) {
      const Range yes = choice();
      if (!take(":")) return give_up();
      const Range no = choice();
      range = chosen(range, yes, no);
    }
    --depth_;
    return range;
  }

  Range binary(int least) {
    Range left = unary();
    for (int rank = rank_of(next()); rank >= least && rank != 0; rank = rank_of(next())) {
      const std::string_view sign = next();
      ++at_;
      left = applied(sign, left, binary(rank + 1));
    }
    return left;
  }

  Range unary() {
    if (++depth_ > most_depth) return give_up();
    const std::string_view sign = next();
    const bool is_signed = take("-") || take("+") || take("!") || take("~");
    const Range range = is_signed ? applied(sign, unary()) : indexed(primary());
    --depth_;
    return range;
  }

  // What is fetched from an array is not known, nor the parts of what a call answers.
  Range indexed(Range range) {
    while (next() == "[" || next() == "." || next() == "(") {
      range = {};
      at_ = next() == "." ? at_ + 2 : past_brackets(tokens_, at_);
    }
    return range;
  }

  Range primary() {
    const std::string_view text = next();
    if (take("(")) {
      const Range range = choice();
      return take(")") ? range : give_up();
    }
    if (text.empty() || text == ")" || text == "]") return give_up();
    ++at_;
    if (is_name(text)) return next() == "(" ? call(text) : name(text);
    return (text[0] >= '0' && text[0] <= '9') || text[0] == '.' ? number(text) : give_up();
  }

  Range name(std::string_view text) {
    if (text == "true" || text == "false") return exactly(text == "true" ? 1 : 0);
    std::string_view member;
    while (next() == "." && is_name(next(1))) {
      if (!member.empty()) text = member;  // of "block.array.length" the last two decide
      member = next(1);
      at_ += 2;
    }
    const bool of_length = member == "length" && next() == "(" && next(1) == ")";
    if (of_length) at_ += 2;
    for (const Values* values : {names_.locals, names_.globals}) {
      if (const Range* range = values == nullptr ? nullptr : values->find(text, member)) return *range;
    }
    return of_length ? Range{0, Range{}.hi, true} : Range{};
  }

  Range call(std::string_view function) {
    ++at_;
    std::vector<Range> given;
    while (next() != ")") {
      given.push_back(choice());
      if (!take(",") && next() != ")") return give_up();
    }
    ++at_;
    return called(function, given);
  }

  Tokens tokens_;
  NamesInSight names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

void Values::add_member(std::string_view name, std::string_view member, Range range) {
  ranges_[{name, member}].push_back(range);
  added_.emplace_back(name, member);
}

const Range* Values::find(std::string_view name, std::string_view member) const noexcept {
  const auto found = ranges_.find({name, member});
  return found == ranges_.end() ? nullptr : &found->second.back();
}

void Values::shrink_to(std::size_t size) {
  for (; added_.size() > size; added_.pop_back()) {
    const auto last = ranges_.find(added_.back());
    last->second.pop_back();
    if (last->second.empty()) ranges_.erase(last);
  }
}

Range value_of(Tokens expression, NamesInSight names) { return Expression(expression, names).value(); }

}  // namespace kiln::dynamic_shaders

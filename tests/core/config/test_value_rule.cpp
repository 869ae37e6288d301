// What a rule accepts, at its borders; and the words for what it expects and for what was found.
#include "core/config/config_fixture.hpp"

#include "config/value_rule.hpp"

#include <array>
#include <cmath>
#include <limits>

using namespace kiln;
using namespace kiln::config;
using namespace kiln::test;

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
using Lines = std::vector<std::string>;

std::string refusal_of(const ConfigValue& value, const ValueRule& rule) {
  const Result<ConfigValue> result = checked(value, rule);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == StatusCode::invalid_argument);
  return result.error().message;
}

ConfigValue accepted_value(const ConfigValue& value, const ValueRule& rule) {
  Result<ConfigValue> result = checked(value, rule);
  REQUIRE(result);
  return *result;
}

ConfigValue value_as(std::int64_t integer) { return integer; }
ConfigValue value_as(const char* text) { return std::string(text); }

}  // namespace

TEST_CASE("config::rule: what is expected, with a bound at either side", "[config]") {
  constexpr std::array<std::string_view, 2> words{"one", "two"};
  ValueRule free_text{ValueKind::text};
  free_text.may_be_empty = true;
  const std::pair<ValueRule, std::string> rules[] = {
      {{ValueKind::boolean}, "true or false"},
      {{ValueKind::integer}, "an integer"},
      {{ValueKind::integer, 2, unbounded}, "an integer of at least 2"},
      {{ValueKind::integer, -unbounded, 9}, "an integer of at most 9"},
      {{ValueKind::integer, 2, 9}, "an integer from 2 to 9"},
      {{ValueKind::number, 0.5, unbounded}, "a number of at least 0.5"},
      {{ValueKind::number, -unbounded, 1}, "a number of at most 1.0"},
      {{ValueKind::text}, "a text that is not empty"},
      {free_text, "a text"},
      {word_of(words), "one of one, two"},
      {{ValueKind::text_list}, "an array of texts"},
      {{ValueKind::size, 0, 2048}, "a size such as \"50 MiB\", from 0 B to 2 KiB"},
      {{ValueKind::duration, 1, 60e9}, "a duration such as \"10 s\", from 1 ns to 1 min"},
      {{ValueKind::path}, "a path"},
      {{ValueKind::path_list}, "an array of paths"},
      {{}, "nothing"},
  };
  for (const auto& [rule, expected] : rules) CHECK(expected_text(rule) == expected);
}

TEST_CASE("config::rule: a number is accepted at both bounds and refused next to them", "[config]") {
  const ValueRule integer{ValueKind::integer, -2, 9};
  CHECK(accepted_value(value_as(-2), integer) == value_as(-2));
  CHECK(accepted_value(value_as(9), integer) == value_as(9));
  CHECK(refusal_of(value_as(-3), integer) == "found -3, expected an integer from -2 to 9");
  CHECK(refusal_of(value_as(10), integer) == "found 10, expected an integer from -2 to 9");
  CHECK(refusal_of(2.0, integer) == "found the number 2.0, expected an integer from -2 to 9");
  CHECK(refusal_of(true, integer) == "found the boolean true, expected an integer from -2 to 9");

  const ValueRule number{ValueKind::number, 0.5, 2};
  CHECK(accepted_value(0.5, number) == ConfigValue(0.5));
  CHECK(accepted_value(value_as(2), number) == ConfigValue(2.0));
  CHECK(refusal_of(0.25, number) == "found 0.25, expected a number from 0.5 to 2.0");
  CHECK(refusal_of(value_as(3), number) == "found 3, expected a number from 0.5 to 2.0");
  CHECK(refusal_of(std::nan(""), number) == "found nan, expected a number from 0.5 to 2.0");
  CHECK(refusal_of(value_as("1"), number) == "found the text \"1\", expected a number from 0.5 to 2.0");
  CHECK(refusal_of(unbounded, {ValueKind::number}) == "found inf, expected a number");

  const ValueRule size{ValueKind::size, 1024, 4096};
  CHECK(accepted_value(value_as("1 KiB"), size) == value_as(1024));
  CHECK(accepted_value(value_as(4096), size) == value_as(4096));
  CHECK(refusal_of(value_as("1023"), size) ==
        "found \"1023\", expected a size such as \"50 MiB\", from 1 KiB to 4 KiB");
  CHECK(refusal_of(value_as(4097), size) == "found 4097, expected a size such as \"50 MiB\", from 1 KiB to 4 KiB");
  CHECK(refusal_of(1.5, size) == "found the number 1.5, expected a size such as \"50 MiB\", from 1 KiB to 4 KiB");
  const ValueRule duration{ValueKind::duration, 1000, 1e9};
  CHECK(accepted_value(value_as("1 us"), duration) == value_as(1000));
  CHECK(refusal_of(value_as("2 s"), duration) ==
        "found \"2 s\", expected a duration such as \"10 s\", from 1 us to 1 s");
  CHECK(refusal_of(value_as(5), duration) ==
        "found the integer 5, expected a duration such as \"10 s\", from 1 us to 1 s");
}

TEST_CASE("config::rule: booleans, texts and lists", "[config]") {
  CHECK(accepted_value(false, boolean_value) == ConfigValue(false));
  CHECK(refusal_of(value_as(1), boolean_value) == "found the integer 1, expected true or false");
  CHECK(refusal_of(Lines{"x"}, boolean_value) == "found an array of texts, expected true or false");
  CHECK(accepted_value(value_as("x"), text_value) == value_as("x"));
  CHECK(refusal_of(value_as(""), text_value) == "found an empty text, expected a text that is not empty");
  CHECK(refusal_of(false, text_value) == "found the boolean false, expected a text that is not empty");
  CHECK(refusal_of(std::string("a\0b", 3), text_value) ==
        "found the text \"a\\u0000b\", which contains a NUL character, expected a text that is not empty");
  ValueRule free_text = text_value;
  free_text.may_be_empty = true;
  CHECK(accepted_value(value_as(""), free_text) == value_as(""));
  constexpr std::array<std::string_view, 2> words{"fast", "safe"};
  CHECK(accepted_value(value_as("safe"), word_of(words)) == value_as("safe"));
  CHECK(refusal_of(value_as("save"), word_of(words)) == "found \"save\", expected one of fast, safe; nearest: safe");
  CHECK(accepted_value(Lines{}, {ValueKind::text_list}) == ConfigValue(Lines{}));
  CHECK(accepted_value(Lines{"a"}, {ValueKind::path_list}) == ConfigValue(Lines{"a"}));
  CHECK(refusal_of(value_as("a"), {ValueKind::path_list}) == "found the text \"a\", expected an array of paths");
  CHECK(refusal_of(value_as("a"), {}) == "found the text \"a\", expected nothing");
}

TEST_CASE("config::rule: a long text is cut between two characters", "[config]") {
  const auto found = [](const std::string& text) { return refusal_of(text, boolean_value); };
  const std::string sixty(60, 'x');
  CHECK(found(sixty) == "found the text \"" + sixty + "\", expected true or false");
  CHECK(found(sixty + "y") == "found the text \"" + sixty + "\"…, expected true or false");
  const std::string before(58, 'x');  // "€" has three bytes: from 58 to 60 inside, from 57 to 59 whole
  CHECK(found(before + "€uro") == "found the text \"" + before + "\"…, expected true or false");
  const std::string less(57, 'x');
  CHECK(found(less + "€uro") == "found the text \"" + less + "€\"…, expected true or false");
}

TEST_CASE("config::rule: the rule of a plugin's key", "[config]") {
  constexpr std::array<std::string_view, 1> words{"w"};
  const std::pair<ConfigType, ValueKind> kinds[] = {
      {ConfigType::boolean, ValueKind::boolean},     {ConfigType::integer, ValueKind::integer},
      {ConfigType::number, ValueKind::number},       {ConfigType::text, ValueKind::text},
      {ConfigType::text_list, ValueKind::text_list}, {ConfigType::invalid, ValueKind::invalid}};
  for (const auto& [type, kind] : kinds) {
    ConfigKey key;
    key.type = type;
    const ValueRule rule = rule_of(key, words);
    CHECK(rule.kind == kind);
    CHECK(rule.may_be_empty);
    CHECK(rule.least == -unbounded);
    CHECK(rule.most == unbounded);
    REQUIRE(rule.allowed.size() == 1);
    CHECK(rule.allowed[0] == "w");
    key.least = 2, key.most = 5;
    CHECK(rule_of(key, {}).least == 2);
    CHECK(rule_of(key, {}).most == 5);
    CHECK(rule_of(key, {}).allowed.empty());
  }
}

TEST_CASE("config::rule: nodes as values and as words", "[config]") {
  const auto parsed = parse_toml(
      "a = true\nb = 3\nc = 1.5\nd = 'x'\ne = ['x', 'y']\nf = [1]\ng = []\nh = {}\ni = 10:20:30\nj = "
      "2024-01-31T10:20:30Z\nk = 2024-01-31\n");
  REQUIRE(std::holds_alternative<TomlNode>(parsed));
  const std::vector<TomlMember>& nodes = std::get<TomlNode>(parsed).members;
  const std::pair<std::optional<ConfigValue>, std::string> expected[] = {
      {true, "the boolean true"},
      {value_as(3), "the integer 3"},
      {1.5, "the number 1.5"},
      {value_as("x"), "the text \"x\""},
      {Lines{"x", "y"}, "an array of texts"},
      {std::nullopt, "an array"},
      {Lines{}, "an empty array"},
      {std::nullopt, "a table"},
      {std::nullopt, "the date or time 10:20:30"},
      {std::nullopt, "the date or time 2024-01-31T10:20:30Z"},
      {std::nullopt, "the date or time 2024-01-31"},
  };
  REQUIRE(nodes.size() == std::size(expected));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    INFO(nodes[i].key);
    CHECK(plain_value(nodes[i].value) == expected[i].first);
    CHECK(describe(nodes[i].value) == expected[i].second);
    CHECK(checked(nodes[i].value, ValueRule{ValueKind::text_list}).has_value() == (i == 4 || i == 6));
  }
}

TEST_CASE("config::rule: values in TOML's syntax, quantities in their units", "[config]") {
  CHECK(print(ConfigValue(true)) == "true");
  CHECK(print(ConfigValue(false)) == "false");
  CHECK(print(value_as(-3)) == "-3");
  CHECK(print(ConfigValue(2.0)) == "2.0");
  CHECK(print(value_as("a\"b")) == "\"a\\\"b\"");
  CHECK(print(ConfigValue(Lines{})) == "[]");
  CHECK(print(ConfigValue(Lines{"a", "b", "c"})) == "[\"a\", \"b\", \"c\"]");
  CHECK(print(value_as(2048), {ValueKind::size}) == "\"2 KiB\"");
  CHECK(print(value_as(2000), {ValueKind::duration}) == "\"2 us\"");
  CHECK(print(value_as(2048), {ValueKind::integer}) == "2048");
  CHECK(print(value_as("x"), {ValueKind::size}) == "\"x\"");
}

#include <kiln/visible_text.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <utility>

using namespace kiln;

TEST_CASE("visible text: control characters and invalid UTF-8 are escaped", "[contract]") {
  const std::pair<std::string, std::string> texts[] = {
      {"", ""},
      {"plain text", "plain text"},
      {"a\nb\tc", "a\\nb\\tc"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"\x7f", "\\x7f"},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},  // é € and an emoji
      {"\xc2\x85", "\\u0085"},                                                               // a control character
      {"\xe2\x80\xa8", "\\u2028"},                                                           // line separator
      {"\xe2\x80\xae", "\\u202e"},                                                           // right-to-left override
      {"\xe2\x81\xa9", "\\u2069"},
      {"\xc3", "\\xc3"},
      {"\xc3(", "\\xc3("},
      {"\xc0\x80", "\\xc0\\x80"},                   // overlong
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},          // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          // surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}  // above U+10FFFF
  };
  for (const auto& [text, shown] : texts) {
    CAPTURE(shown);
    CHECK(visible(text) == shown);
  }
}

TEST_CASE("visible text: lines are indented and lose their line ends", "[contract]") {
  const std::pair<std::string, std::string> texts[] = {
      {"", ""},
      {"one", "one"},
      {"one\n", "one"},
      {"one\ntwo", "one\n  two"},
      {"one\r\ntwo\r\n", "one\n  two"},
      {"one\r", "one"},
      {"one\r\r\ntwo", "one\\x0d\n  two"},
      {"\n\n", "\n  "},
      {"a\tb\n\x1b", "a\\tb\n  \\x1b"},
  };
  for (const auto& [text, shown] : texts) {
    CAPTURE(shown);
    CHECK(visible_lines(text) == shown);
  }
}

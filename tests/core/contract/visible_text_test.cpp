#include <kiln/visible_text.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
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

namespace {

std::string utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)), byte(0x80 | (code >> 6 & 0x3f)),
          byte(0x80 | (code & 0x3f))};
}

}  // namespace

TEST_CASE("visible text: a character has the length of its UTF-8 form, and surrogates have none", "[contract]") {
  for (std::uint32_t code = 0; code <= 0x110000; code += code < 0x3000 || code % 0x400 >= 0x3fe ? 1 : 0x3f) {
    const std::string text = utf8(code);
    const bool valid = code < 0x110000 && (code < 0xd800 || code >= 0xe000);
    if (character_length(text) != (valid ? text.size() : 0)) FAIL("U+" << std::hex << code);
    if (character_length(text + "x") != (valid ? text.size() : 0)) FAIL("U+" << std::hex << code << " and a letter");
    if (text.size() > 1 && character_length(std::string_view(text).substr(0, text.size() - 1)) != 0) {
      FAIL("U+" << std::hex << code << " without its end");
    }
  }
  for (const char* wrong : {"\x80", "\xbf", "\xc1\xbf", "\xf5\x80\x80\x80", "\xff", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
                            "\xf4\x90\x80\x80", "\xc2\xc2", "\xe1\x80\x40", "\xf1\x80\x80\x40", "\xe1\x40\x80"}) {
    CAPTURE(visible(wrong));
    CHECK(character_length(wrong) == 0);
  }
}

TEST_CASE("visible text: control characters are those without a form, and those that turn text around", "[contract]") {
  const std::pair<std::uint32_t, std::uint32_t> controls[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
                                                              {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  for (std::uint32_t code = 0; code < 0x3000; ++code) {
    bool expected = false;
    for (const auto& [first, last] : controls) expected = expected || (code >= first && code <= last);
    const std::string text = utf8(code);
    if (is_control_character(text) != expected) FAIL("U+" << std::hex << code);
    char escape[16];
    std::snprintf(escape, sizeof escape, code < 0x80 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
    const std::string shown = code == '\n' ? "\\n" : code == '\t' ? "\\t" : expected ? escape : text;
    if (visible(text) != shown) FAIL("U+" << std::hex << code << " is shown as " << visible(text));
  }
}

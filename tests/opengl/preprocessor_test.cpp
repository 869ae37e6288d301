#include "codec/preprocessor.hpp"

#include "codec/declarations.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl::glsl {
namespace {

std::string joined(Tokens tokens) {
  std::string all;
  for (const Token& token : tokens)
    all += (all.empty() ? "" : " ") + std::string(token.text == "\n" ? "$" : token.text);
  return all;
}

std::string after(const std::string& text, const std::vector<Define>& constants = {}) {
  return joined(preprocessed(text, constants).tokens);
}

}  // namespace

TEST_CASE("opengl: glsl: tokens have no comments, and every form of line end is one", "[opengl][glsl]") {
  CHECK(joined(tokens_of("a /* b \n c */ d // e\nf")) == "a d $ f");
  CHECK(joined(tokens_of("a\r\nb\rc\n\nd")) == "a $ b $ c $ $ d");
  CHECK(joined(tokens_of("a \\\nb \\\r\nc // d \\\ne\nf")) == "a b c $ f");
  CHECK(joined(tokens_of("x<<=1.5e-3f; /* never closed")) == "x <<= 1.5e-3f ;");
  const std::vector<Token> tokens = tokens_of("a /*\r\n*/ b\rc \\\n d");
  CHECK(tokens[0].line == 1);
  CHECK(tokens[1].line == 2);
  CHECK(tokens[3].line == 3);
  CHECK(tokens[4].line == 4);
}

TEST_CASE("opengl: glsl: conditions are evaluated with macros and constants", "[opengl][glsl]") {
  CHECK(after("#if 0\na\n#else\nb\n#endif\nc") == "b c");
  CHECK(after("#define SIZE 100\n#if defined(LONG) || SIZE > 100\na\n#endif\nb") == "b");
  CHECK(after("#ifndef LONG\na\n#elif 1\nb\n#else\nc\n#endif") == "a");
  CHECK(after("#if defined LONG\na\n#elif 1\nb\n#else\nc\n#endif") == "b");
  CHECK(after("#if FAST\na\n#else\nb\n#endif", {{"FAST", "1"}}) == "a");
  CHECK(after("#if FAST\na\n#else\nb\n#endif") == "b");
  CHECK(after("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif") == "b");
  CHECK(after("#version 450\n#if __VERSION__ >= 450\na\n#endif") == "a");
  CHECK(after("#define A\n#undef A\n#ifdef A\na\n#endif\nb") == "b");
  const std::pair<const char*, bool> conditions[] = {{"1 + 2 * 3 == 7", true},
                                                     {"(1 + 2) * 3 == 7", false},
                                                     {"-1 < 0 && !0", true},
                                                     {"~0 == -1", true},
                                                     {"0x10 == 16 && 010 == 8", true},
                                                     {"7 / 2 == 3 && 7 % 2 == 1", true},
                                                     {"1 << 4 == 16", true},
                                                     {"8 >> 1 & 4", true},
                                                     {"2 - 1 - 1", false},
                                                     {"1 / 0", false},
                                                     {"", false},
                                                     {"1 1", false},
                                                     {"(1", false},
                                                     {"1u", true},
                                                     {"A", false},
                                                     {"A == 0", true}};
  for (const auto& [condition, holds] : conditions) {
    INFO(condition);
    CHECK(after("#if " + std::string(condition) + "\na\n#endif") == (holds ? "a" : ""));
  }
}

TEST_CASE("opengl: glsl: operators of conditions and their precedence", "[opengl][glsl]") {
  const std::pair<const char*, std::int64_t> expressions[] = {
      {"3 || 4", 1},
      {"3 || 0", 1},
      {"0 || 4", 1},
      {"0 || 0", 0},
      {"3 && 4", 1},
      {"3 && 0", 0},
      {"0 && 4", 0},
      {"0 && 0", 0},
      {"12 | 10", 14},
      {"12 ^ 10", 6},
      {"12 & 10", 8},
      {"3 == 3", 1},
      {"3 == 4", 0},
      {"3 != 3", 0},
      {"3 != 4", 1},
      {"3 < 4", 1},
      {"4 < 4", 0},
      {"5 < 4", 0},
      {"3 > 4", 0},
      {"4 > 4", 0},
      {"5 > 4", 1},
      {"3 <= 4", 1},
      {"4 <= 4", 1},
      {"5 <= 4", 0},
      {"3 >= 4", 0},
      {"4 >= 4", 1},
      {"5 >= 4", 1},
      {"3 << 4", 48},
      {"48 >> 4", 3},
      {"-8 >> 1", -4},
      {"1 << 63 >> 62", -2},
      {"7 + 5", 12},
      {"7 - 5", 2},
      {"7 * 5", 35},
      {"37 / 5", 7},
      {"37 % 5", 2},
      {"-37 / 5", -7},
      {"-37 % 5", -2},
      {"37 / -1", -37},
      {"37 % -1", 0},
      {"-5", -5},
      {"- -5", 5},
      {"+5", 5},
      {"!5", 0},
      {"!0", 1},
      {"!1", 0},
      {"!!5", 1},
      {"~5", -6},
      // In 64 bits that wrap around.
      {"9223372036854775807 + 1 < 0", 1},
      {"(1 << 63) - 1 > 0", 1},
      {"(1 << 63) / -1 < 0", 1},
      {"(1 << 63) % -1", 0},
      // What has no value makes the whole condition 0.
      {"2 + 5 / 0", 0},
      {"2 + 5 % 0", 0},
      {"2 + (1 << 64)", 0},
      {"2 + (1 >> 64)", 0},
      {"2 + (1 << -1)", 0},
      {"2 + (1 >> -1)", 0},
      {"2 +", 0},
      {"2 + (3", 0},
      {"2 3", 0},
      // Numbers and names.
      {"0xFF", 255},
      {"0XfFu", 255},
      {"017", 15},
      {"0", 0},
      {"12U", 12},
      {"2 + 08", 0},
      {"2 + 12f", 0},
      {"2 + 0x", 0},
      {"2 + unknown", 2},
      // From the operator that binds least to the one that binds most; the weaker one first, then last.
      {"1 || 0 && 0", 1},
      {"0 && 0 || 1", 1},
      {"0 && 1 | 2", 0},
      {"2 | 0 && 0", 0},
      {"1 | 1 ^ 1", 1},
      {"1 ^ 1 | 1", 1},
      {"1 ^ 1 & 0", 1},
      {"0 & 1 ^ 1", 1},
      {"2 & 2 == 2", 0},
      {"2 == 2 & 2", 0},
      {"2 & 2 != 3", 0},
      {"3 != 2 & 2", 0},
      {"3 == 2 < 3", 0},
      {"0 < 2 == 1", 1},
      {"1 == 3 > 2", 1},
      {"2 == 2 <= 3", 0},
      {"1 == 3 >= 2", 1},
      {"1 < 1 << 1", 1},
      {"1 << 1 < 1", 0},
      {"1 < 4 >> 1", 1},
      {"1 << 1 + 1", 4},
      {"1 + 1 << 1", 4},
      {"8 >> 2 - 1", 4},
      {"2 + 3 * 4", 14},
      {"2 * 3 + 4", 10},
      {"9 - 8 / 4", 7},
      {"9 - 7 % 4", 6},
      {"-2 * 3", -6},
      {"!0 + 1", 2},
      {"~0 & 6", 6},
      {"(2 + 3) * 4", 20},
      // Of the same rank from the left.
      {"9 - 4 - 3", 2},
      {"9 - 4 + 3", 8},
      {"64 / 4 / 2", 8},
      {"64 / 4 * 2", 32},
      {"7 % 4 * 2", 6},
      {"1 << 2 << 3", 32},
      {"5 > 4 > 3", 0},
      {"3 == 3 == 3", 0},
      {"3 != 3 == 0", 1},
      {"2 <= 1 >= 0", 1}};
  for (const auto& [text, expected] : expressions) {
    INFO(text);
    const std::vector<Token> tokens = tokens_of(text);
    CHECK(value_of_condition(tokens) == expected);
  }
}

TEST_CASE("opengl: glsl: defined() with and without parentheses", "[opengl][glsl]") {
  const std::pair<const char*, bool> conditions[] = {{"defined A", true},
                                                     {"defined(A)", true},
                                                     {"defined ( A ) && 1", true},
                                                     {"defined B", false},
                                                     {"defined(B)", false},
                                                     {"!defined(A)", false},
                                                     {"!defined(B)", true},
                                                     {"defined(A) && defined A && !defined B", true},
                                                     {"defined B || defined(A)", true},
                                                     {"defined(A) + defined A + defined(B) == 2", true},
                                                     {"defined", false},
                                                     {"defined(", false}};
  for (const auto& [condition, holds] : conditions) {
    INFO(condition);
    CHECK(after("#define A\n#if " + std::string(condition) + "\nyes\n#else\nno\n#endif") == (holds ? "yes" : "no"));
  }
}

TEST_CASE("opengl: glsl: ## joins two tokens of up to 1024 characters in total", "[opengl][glsl]") {
  const std::string left(1000, 'x');
  const auto pasted = [&left](std::size_t more) {
    return after("#define JOIN(a, b) a##b\nJOIN(" + left + ", " + std::string(more, 'y') + ")");
  };
  CHECK(pasted(1) == left + "y");
  CHECK(pasted(24) == left + std::string(24, 'y'));
  CHECK(pasted(25) == left);  // the second part is left out
}

TEST_CASE("opengl: glsl: macros are expanded where they are used", "[opengl][glsl]") {
  CHECK(after("#define RO readonly\nRO buffer", {{"N", "4"}}) == "readonly buffer");
  CHECK(after("#define MUL(a, b) ((a) * (b))\nMUL(x, f(1, 2))") == "( ( x ) * ( f ( 1 , 2 ) ) )");
  CHECK(after("#define F(a) a\nF") == "F");
  CHECK(after("#define A A + 1\nA") == "A + 1");
  CHECK(after("#define A (1)\nA") == "( 1 )");
  CHECK(after("#define F(a) a\nF(\nb\n)\nc") == "b c");
  CHECK(preprocessed("#define A x y\n\nA", {}).tokens.back().line == 3);
}

TEST_CASE("opengl: glsl: #line names lines and source strings, #extension lines are reported", "[opengl][glsl]") {
  const Preprocessed read = preprocessed(
      "#extension A : enable\na\n#line 10 2\nb\n#if 0\n#line 1 1\n#extension B : enable\n#endif\nc\n"
      "#line 3\nd",
      {});
  REQUIRE(read.tokens.size() == 4);
  const std::pair<std::uint32_t, std::uint32_t> places[] = {{2, 0}, {10, 2}, {15, 2}, {3, 2}};
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(read.tokens[i].text);
    CHECK(read.tokens[i].line == places[i].first);
    CHECK(read.tokens[i].source == places[i].second);
  }
  REQUIRE(read.extensions.size() == 1);
  CHECK(joined(read.extensions[0]) == "A : enable");
}

TEST_CASE("opengl: glsl: texts that nest or double without end take no time", "[opengl][glsl]") {
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    doubling += "#define M" + std::to_string(i + 1) + " M" + std::to_string(i) + " M" + std::to_string(i) + "\n";
  }
  const std::clock_t begin = std::clock();  // of this process's work: others may be busy
  CHECK(preprocessed(doubling + "M60", {}).tokens.size() > 1);
  CHECK(after("#if " + std::string(100'000, '(') + "\na\n#endif\nb") == "b");
  CHECK(after("#if " + std::string(100'000, '-') + "1\na\n#endif\nb") == "b");
  CHECK(after("#endif\n#else\n#elif 1\n#define\n#if\n#endif\nb") == "b");
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 20);
}

// A text asks for few names or for many, which are found in two ways.
TEST_CASE("opengl: glsl: the members that a text does not read", "[opengl][glsl]") {
  for (const int members : {3, 60}) {
    CAPTURE(members);
    std::string block = "layout(std140) uniform P {\n", body;
    std::vector<std::string> unread;
    for (int i = 0; i < members; ++i) {
      const std::string name = "m" + std::to_string(i);
      block += "  float " + name + ";\n";
      if (i % 3 == 0) {
        unread.push_back(name);
      } else {
        body += "  x += " + name + ";\n";
      }
    }
    const std::string text = block + "};\nvoid main() {\n" + body + "}\n";
    const std::vector<Declaration> found = declarations(preprocessed(text, {}).tokens);
    REQUIRE(found.size() == 1);
    CHECK(found[0].unread == unread);
    CHECK(found[0].mentioned);
  }
  const std::string unused = "buffer B { float a; };\nbuffer C { float c; } inst;\nvoid main() {}";
  const std::vector<Declaration> found = declarations(preprocessed(unused, {}).tokens);
  REQUIRE(found.size() == 2);
  CHECK_FALSE(found[0].mentioned);
  CHECK_FALSE(found[1].mentioned);
}

}  // namespace kiln::opengl::glsl

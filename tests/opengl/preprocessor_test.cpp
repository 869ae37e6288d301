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

TEST_CASE("opengl: glsl: macros with arguments, and macros in macros", "[opengl][glsl]") {
  const std::pair<const char*, const char*> texts[] = {
      // Which arguments a parameter gets; one that is left out stays as it is written.
      {"#define F(a, b) b a\nF(1, 2)", "2 1"},
      {"#define F(a, b) b a\nF(1, 2, 3)", "2 1"},
      {"#define F(a, b) b a\nF(1)", "b 1"},
      {"#define F(a, b) [a b]\nF(, 2)", "[ 2 ]"},
      {"#define F(a, b) [a b]\nF((1, 2), g(3, 4))", "[ ( 1 , 2 ) g ( 3 , 4 ) ]"},
      {"#define F() x\nF() y", "x y"},
      {"#define F(a) a a\nF(1", "1 1"},
      {"#define F(a\nF(1) x", "x"},
      {"#define F(a)\nF(1) x", "x"},
      {"#define F(a) a\nx F", "x F"},
      {"#define F(a) a\nF F(1)", "F 1"},
      {"#define F (a)\nF(1)", "( a ) ( 1 )"},
      // A macro is not expanded within itself, but in its arguments.
      {"#define F(a) a + 1\nF(F(2))", "2 + 1 + 1"},
      {"#define A B\n#define B A\nA B", "A B"},
      {"#define A B x\n#define B A y\nA B", "A y x B x y"},
      {"#define A 1\n#define F(a) a A\nF(A)", "1 1"},
      {"#define G F\n#define F(a) [a]\nG(1)", "F ( 1 )"},
      // Tokens beside ## are joined as they are written.
      {"#define N 4\n#define P(a) a a##x x##a\nP(N)", "4 Nx xN"},
      {"#define P(a, b, c) a##b##c\nP(x, y, z)", "xyz"},
      {"#define P(a, b) a##b\nP(, y) P(x, ) P(, )", "y x"},
      {"#define P(a) ## a\nP(x)", "## x"},
      {"#define P(a) a ##\nP(x)", "x ##"},
      {"#define N x ## y\n#define xy 5\nN", "5"},
      // The latest definition counts, a removed one does not.
      {"#define A 1\nA\n#define A 2\nA\n#undef A\nA", "1 2 A"},
      {"#define A 1\n#define B 2\n#undef A\nA B", "A 2"},
      {"#undef A\nA", "A"},
      {"#define\n#undef\nA", "A"}};
  for (const auto& [text, expected] : texts) {
    INFO(text);
    CHECK(after(text) == expected);
  }
}

TEST_CASE("opengl: glsl: the parts of conditions that are not reached change nothing", "[opengl][glsl]") {
  const std::pair<const char*, const char*> texts[] = {
      {"#if 0\n#elif 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif\ne", "b e"},
      {"#if 1\na\n#elif 1\nb\n#else\nc\n#endif\nd", "a d"},
      {"#if 0\na\n#elif 0\nb\n#else\nc\n#endif\nd", "c d"},
      {"#if 0\n#ifdef A\na\n#else\nb\n#endif\nc\n#elif 1\nd\n#endif\ne", "d e"},
      {"#if 0\n#ifndef A\na\n#elif 1\nb\n#endif\n#endif\nc", "c"},
      {"#if 1\n#if 0\na\n#else\nb\n#endif\nc\n#else\nd\n#endif", "b c"},
      {"#if 0\n#define A 1\n#else\n#define B 2\n#endif\nA B", "A 2"},
      {"#define A 1\n#if 0\n#undef A\n#endif\nA", "1"},
      {"#if 0\n#line 7\n#version 450\n#endif\n#ifdef __VERSION__\na\n#endif\nb", "b"},
      {"#define A\n#ifdef A\na\n#endif\n#ifndef A\nb\n#endif\n#ifdef\nc\n#endif\n#ifndef\nd\n#endif", "a d"},
      {"a\n#\nb\n# // nothing\nc\n#unknown d\ne", "a b c e"},
      {"#version 450\n#ifdef GL_core_profile\na\n#endif\nb", "a b"},
      {"#version 450 core\n#ifdef GL_core_profile\na\n#endif\nb", "a b"},
      {"#version 450 compatibility\n#ifdef GL_core_profile\na\n#endif\nb", "b"},
      {"#version 310 es\n#ifdef GL_core_profile\na\n#endif\n__VERSION__", "310"}};
  for (const auto& [text, expected] : texts) {
    INFO(text);
    CHECK(after(text) == expected);
  }
}

TEST_CASE("opengl: glsl: the tokens of a macro have the place of its use", "[opengl][glsl]") {
  const Preprocessed read = preprocessed("#define F(a) a\n#define A x\\\n y\n#line 20 3\nA F(\nb\n) c", {});
  REQUIRE(joined(read.tokens) == "x y b c");
  const std::uint32_t lines[] = {20, 20, 20, 22};
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(read.tokens[i].text);
    CHECK(read.tokens[i].line == lines[i]);
    CHECK(read.tokens[i].source == 3);
  }
}

TEST_CASE("opengl: glsl: #line takes macros and continued lines, and what is no number changes nothing",
          "[opengl][glsl]") {
  struct Named {
    const char* text;
    std::uint32_t line, source;  // of the last token
  };
  const Named texts[] = {{"#line 10\na", 10, 0},
                         {"#line 10 4\n\na", 11, 4},
                         {"#line 10 4\n#line 20\na", 20, 4},
                         {"#line 0\na", 0, 0},
                         {"#define N 30\n#line N\na", 30, 0},
                         {"#define N 30 5\n#line N\na", 30, 5},
                         {"#line \\\n10\na", 10, 0},
                         {"#\\\nline 10 \\\n 2\na", 10, 2},
                         {"#line 10\n\n\n\n#line 3\na", 3, 0},
                         {"#line\na", 2, 0},
                         {"#line x\na", 2, 0},
                         {"#line 10 x\na", 2, 0},
                         {"#line 10 2 x\na", 10, 2}};
  for (const auto& [text, line, source] : texts) {
    INFO(text);
    const Preprocessed read = preprocessed(text, {});
    REQUIRE_FALSE(read.tokens.empty());
    CHECK(read.tokens.back().line == line);
    CHECK(read.tokens.back().source == source);
  }
}

TEST_CASE("opengl: glsl: #extension lines that are reached, in their order", "[opengl][glsl]") {
  const Preprocessed read = preprocessed(
      "#extension A : enable\n#if 0\n#extension B : enable\n#endif\n#extension C : require\n#extension\na", {});
  REQUIRE(read.extensions.size() == 3);
  CHECK(joined(read.extensions[0]) == "A : enable");
  CHECK(joined(read.extensions[1]) == "C : require");
  CHECK(read.extensions[2].empty());
  CHECK(joined(read.tokens) == "a");
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

TEST_CASE("opengl: glsl: macros in macros are expanded up to the two hundredth", "[opengl][glsl]") {
  std::string chain = "#define M0 end\n";
  for (int i = 1; i <= 210; ++i) chain += "#define M" + std::to_string(i) + " M" + std::to_string(i - 1) + "\n";
  CHECK(after(chain + "M199") == "end");
  CHECK(after(chain + "M200") == "M0");
  CHECK(after(chain + "M205") == "M5");
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

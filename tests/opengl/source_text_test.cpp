#include "codec/source_text.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace kiln::opengl {
namespace {

KernelSource with(std::string text, std::vector<Define> constants = {}) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  source.constants = std::move(constants);
  return source;
}

std::vector<std::string> texts_of(const std::string& text) {
  std::vector<std::string> texts;
  for (const glsl::Token& token : glsl::tokens_of(text)) texts.emplace_back(token.text);
  return texts;
}

}  // namespace

TEST_CASE("opengl: source text: the version stays first and lines keep their numbers", "[opengl][source]") {
  CHECK(assemble(with("#version 450 core\nvoid main() {}\n", {{"A", "1"}, {"B", "2.5"}})).value() ==
        "#version 450 core\n#define A 1\n#define B 2.5\n#line 2\nvoid main() {}\n");
  CHECK(assemble(with("void main() {}\n", {{"A", "1"}})).value() ==
        "#version 430 core\n#define A 1\n#line 1\nvoid main() {}\n");
  CHECK(assemble(with("// why\n/* two\nlines */\n  #  version 430\nx\n")).value() ==
        "// why\n/* two\nlines */\n  #  version 430\n#line 5\nx\n");
  CHECK(assemble(with("#version 430")).value() == "#version 430\n#line 1\n");
  CHECK(assemble(with("")).value() == "#version 430 core\n#line 1\n");
  // A version in a comment, or behind another directive, is none.
  CHECK(assemble(with("// #version 450\nx")).value() == "#version 430 core\n#line 1\n// #version 450\nx");
  CHECK(assemble(with("/* never closed")).value() == "#version 430 core\n#line 1\n/* never closed");
}

TEST_CASE("opengl: source text: every form of line end, continued lines and a byte-order mark", "[opengl][source]") {
  CHECK(assemble(with("#version 430\r\nx\r\n", {{"A", "1"}})).value() == "#version 430\r\n#define A 1\n#line 2\nx\r\n");
  CHECK(assemble(with("#version 430\rx\r", {{"A", "1"}})).value() == "#version 430\r#define A 1\n#line 2\nx\r");
  CHECK(assemble(with("#version \\\n430\nx", {{"A", "1"}})).value() == "#version \\\n430\n#define A 1\n#line 3\nx");
  CHECK(assemble(with("#\\\r\nversion 430 /* a\nb */ core\nx")).value() ==
        "#\\\r\nversion 430 /* a\nb */ core\n#line 4\nx");
  CHECK(assemble(with("\\\n// a \\\n b\n#version 430 // c \\\n d\nx")).value() ==
        "\\\n// a \\\n b\n#version 430 // c \\\n d\n#line 6\nx");
  CHECK(assemble(with("\xef\xbb\xbf#version 430\nx")).value() == "#version 430\n#line 2\nx");
  CHECK_THAT(assemble(with(std::string("#version 430\n\0", 14))).error().message,
             Catch::Contains("line 2 has a NUL byte"));
}

TEST_CASE("opengl: source text: what cannot be assembled is refused by name", "[opengl][source]") {
  KernelSource other = with("x");
  other.dialect = Dialect::opencl_c;
  CHECK(assemble(other).error().code == StatusCode::unsupported);
  CHECK_THAT(assemble(other).error().message, Catch::Contains("opencl_c"));
  KernelSource entry = with("x");
  entry.entry = "start";
  CHECK_THAT(assemble(entry).error().message, Catch::Contains("start"));
  for (const char* name : {"", "1A", "A B", "A(x)"}) {
    CHECK(assemble(with("x", {{name, "1"}})).error().code == StatusCode::invalid_argument);
  }
  CHECK(assemble(with("x", {{"A", "1\n#error"}})).error().code == StatusCode::invalid_argument);
  CHECK(assemble(with("x", {{"A", "1 \\"}})).error().code == StatusCode::invalid_argument);
}

TEST_CASE("opengl: source text: signs, numbers, names and strings are tokens", "[opengl][source]") {
  using Texts = std::vector<std::string>;
  for (const char* sign : {"<<=", ">>=", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
                           "^=",  "<<",  ">>", "<=", ">=", "==", "!=", "&&", "||", "^^", "##"}) {
    CHECK(texts_of("a" + std::string(sign) + "b") == Texts{"a", sign, "b"});
  }
  for (const char* sign : {"+", "-", "*", "/", "%", "&", "|", "^", "<", ">", "=", "!", "~",
                           "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "#", "@"}) {
    CHECK(texts_of(sign) == Texts{sign});
    CHECK(texts_of("a" + std::string(sign) + "b") == Texts{"a", sign, "b"});
  }
  CHECK(texts_of("a<-b!+c*-d=~e") == Texts{"a", "<", "-", "b", "!", "+", "c", "*", "-", "d", "=", "~", "e"});
  CHECK(texts_of("_a1 Z9_ é") == Texts{"_a1", "Z9_", "\xc3", "\xa9"});
  CHECK(texts_of("1.5e+3f .5 5. 0x1F 0xE+1 1e-2-3 7u 0x1e-2 ..5") ==
        Texts{"1.5e+3f", ".5", "5.", "0x1F", "0xE", "+", "1", "1e-2", "-", "3", "7u", "0x1e", "-", "2", ".", ".5"});
  CHECK(texts_of("\"a b\" \"open\nnext") == Texts{"\"a b\"", "\"open", "\n", "next"});
  CHECK(texts_of("a\tb\vc\fd") == Texts{"a", "b", "c", "d"});
  CHECK(texts_of("a/b//c\n/* d */e/") == Texts{"a", "/", "b", "\n", "e", "/"});
  CHECK(texts_of("a\\b") == Texts{"a", "\\", "b"});
  CHECK(texts_of("") == Texts{});
}

TEST_CASE("opengl: source text: brackets and separators", "[opengl][source]") {
  const std::vector<glsl::Token> tokens = glsl::tokens_of("f(a, g[b, {c}], d) + e");
  REQUIRE(tokens.size() == 17);
  CHECK(glsl::past_brackets(tokens, 1) == 15);
  CHECK(glsl::past_brackets(tokens, 5) == 12);
  CHECK(glsl::in_brackets(tokens, 1).size() == 12);
  CHECK(glsl::in_brackets(tokens, 1).front().text == "a");
  CHECK(glsl::in_brackets(tokens, 1).back().text == "d");
  CHECK(glsl::in_brackets(tokens, 8).size() == 1);
  const auto pieces = glsl::split(glsl::in_brackets(tokens, 1), ",");
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size() == 1);
  CHECK(pieces[1].size() == 8);
  CHECK(pieces[2].front().text == "d");
  CHECK(glsl::split({}, ",").size() == 1);
  const std::vector<glsl::Token> commas = glsl::tokens_of(",");
  CHECK(glsl::split(commas, ",").size() == 2);
  const std::vector<glsl::Token> open = glsl::tokens_of("( a (");
  CHECK(glsl::past_brackets(open, 0) == 3);
  CHECK(glsl::in_brackets(open, 0).size() == 1);
  const std::vector<glsl::Token> empty = glsl::tokens_of("()");
  CHECK(glsl::in_brackets(empty, 0).empty());
  CHECK(glsl::past_brackets(empty, 0) == 2);
  for (const char* name : {"a", "Z", "_", "if"}) CHECK(glsl::is_name(name));
  for (const char* other : {"", "1", "1a", "+", "\"a\""}) CHECK_FALSE(glsl::is_name(other));
  for (const char* bracket : {"(", "[", "{"}) {
    CHECK(glsl::is_opening(bracket));
    CHECK_FALSE(glsl::is_closing(bracket));
  }
  for (const char* bracket : {")", "]", "}"}) {
    CHECK(glsl::is_closing(bracket));
    CHECK_FALSE(glsl::is_opening(bracket));
  }
  for (const char* other : {"", "((", "))", "a", "<"})
    CHECK_FALSE((glsl::is_opening(other) || glsl::is_closing(other)));
}

TEST_CASE("opengl: source text: a macro of the text's own takes the place of the replaced barrier()",
          "[opengl][source]") {
  const auto edited = [](const std::string& text) {
    return assemble(with("#version 430\n" + text, {{"barrier()", "X"}})).value();
  };
  const std::string head = "#version 430\n#define barrier() X\n#line 2\n";
  CHECK(edited("void main() { barrier(); }\n") == head + "void main() { barrier(); }\n");
  CHECK(edited("#define barrier() { barrier(); }\nx\n") ==
        head +
            "#undef barrier\n#define kiln_own_barrier\n#define kiln_barrier() X\n#line 2\n"
            "#define barrier() { kiln_barrier(); }\nx\n");
  CHECK(edited("a\n#undef barrier // gone\nb\n") ==
        head + "a\n#undef kiln_own_barrier\n#line 3\n#undef barrier\n#define barrier() X\n#line 3\n // gone\nb\n");
  CHECK(edited("#ifdef barrier\n#elif defined(barrier) || A\n#endif\n#ifndef barrier\n#endif\n#if barrier\n#endif\n") ==
        head +
            "#ifdef kiln_own_barrier\n#elif defined(kiln_own_barrier) || A\n#endif\n#ifndef kiln_own_barrier\n"
            "#endif\n#if kiln_own_barrier\n#endif\n");
  CHECK(edited("#line 40\n#define barrier() b\n") ==
        head +
            "#line 40\n#undef barrier\n#define kiln_own_barrier\n#define kiln_barrier() X\n#line 40\n"
            "#define barrier() b\n");
  CHECK(edited("#define other barrier\n#undef other\n#pragma barrier\n#\n") ==
        head + "#define other barrier\n#undef other\n#pragma barrier\n#\n");
  for (const char* call : {"barrier();", "else barrier();", "do barrier();", "return barrier();", "barrier\n(\n)\n;",
                           "int barrier;", "barrier"}) {
    INFO(call);
    CHECK(edited(call) == head + call);
  }
  const auto refusal = [](const std::string& text) {
    return assemble(with("#version 430\n" + text, {{"barrier()", "X"}})).error().message;
  };
  const std::string why =
      ": function 'barrier' replaces the built-in barrier(), in front of which this driver needs "
      "memoryBarrierShared(). "
      "Rename the function, or set [plugin.opengl] barrier_fix = \"off\"";
  CHECK(refusal("void barrier() {}") == "line 2" + why);
  CHECK(refusal("\nbarrier(1);") == "line 3" + why);
  CHECK(refusal("#line 10\n\nbarrier(\n2);") == "line 11" + why);
  CHECK(refusal("barrier(") == "line 2" + why);
}

TEST_CASE("opengl: source text: barrier() is replaced only in sources that have the word", "[opengl][source]") {
  CHECK_FALSE(with_barrier(with("void main() {}"), "X").has_value());
  CHECK_FALSE(with_barrier(with("x", {{"barrier", "1"}}), "X").has_value());
  const auto in_text = with_barrier(with("barrier();", {{"A", "1"}}), "X");
  REQUIRE(in_text.has_value());
  REQUIRE(in_text->constants.size() == 2);
  CHECK(in_text->constants[1].name == "barrier()");
  CHECK(in_text->constants[1].text == "X");
  CHECK(in_text->text == "barrier();");
  CHECK(with_barrier(with("SYNC;", {{"SYNC", "barrier()"}}), "X").has_value());
}

}  // namespace kiln::opengl

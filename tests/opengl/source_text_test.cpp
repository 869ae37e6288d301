#include "codec/source_text.hpp"

#include <catch2/catch.hpp>

namespace kiln::opengl {
namespace {

KernelSource with(std::string text, std::vector<Define> constants = {}) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  source.constants = std::move(constants);
  return source;
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

}  // namespace kiln::opengl

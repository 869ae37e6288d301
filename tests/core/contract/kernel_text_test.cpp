#include <kiln/kernel_text.hpp>

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kiln {
namespace {

using Catch::Matchers::Contains;
using namespace std::string_literals;

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "kiln_kernel_text_XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  Result<KernelText> read(Dialect dialect = Dialect::glsl, std::vector<std::string> include = {}) const {
    return read_kernel_text({path_, "main.comp", std::move(include)}, dialect);
  }
  std::string text(const std::string& main, std::vector<std::string> include = {}) const {
    write("main.comp", main);
    const auto read = this->read(Dialect::glsl, std::move(include));
    INFO((read ? "" : read.error().message));
    REQUIRE(read.has_value());
    return read->text;
  }
  std::string refusal(const std::string& main, std::vector<std::string> include = {}) const {
    write("main.comp", main);
    const auto read = this->read(Dialect::glsl, std::move(include));
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == StatusCode::invalid_argument);
    return read.error().message;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("kernel text: a SPIR-V module is read as it is, and other files are refused", "[kernel_text]") {
  const Folder folder;
  const std::string module = "\x03\x02\x23\x07"s + "\0\r\n\xff#include \"a\""s + "\0\0\0\0"s;
  folder.write("main.comp", module + std::string((4 - module.size() % 4) % 4, '\0'));
  const auto read = folder.read(Dialect::code_object);
  REQUIRE(read.has_value());
  CHECK(read->text.starts_with(module));
  CHECK(read->includes.empty());
  for (const std::string& bad :
       {""s, "\x03\x02\x23"s, "\x07\x23\x02\x03"s, "#version 430\n"s, module + "1"s, "\x7f"s + "ELF\0\0\0\0"s}) {
    folder.write("main.comp", bad);
    const auto refused = folder.read(Dialect::code_object);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == StatusCode::invalid_argument);
    CHECK_THAT(refused.error().message, Contains("main.comp") && Contains("SPIR-V"));
  }
}

TEST_CASE("kernel text: a module that is missing or no module, word for word", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.read(Dialect::code_object).error().text() ==
        "io: main.comp: file " + (folder.path() / "main.comp").string() + ": cannot open: No such file or directory");
  for (const std::string& bad : {"\x03\x02\x23\x07"s + "123"s, "\x03\x02\x23\x06"s + "1234"s}) {
    folder.write("main.comp", bad);
    CHECK(
        folder.read(Dialect::code_object).error().text() ==
        "invalid_argument: main.comp: is not a SPIR-V module (expected a multiple of 4 bytes that begins with 03 02 23 "
        "07, found " +
            std::to_string(bad.size()) + " bytes). Compile the shader, for example with glslangValidator -V");
  }
}

TEST_CASE("kernel text: an include is found however its directive is written", "[kernel_text]") {
  const Folder folder;
  folder.write("part.glsl", "int part;\n");
  for (const char* directive : {"#include \"part.glsl\"", "  #  include \"part.glsl\"", "#\\\ninclude \"part.glsl\"",
                                "#inc\\\nlude \"part.glsl\"", "/* a */ # /* b */ include \"part.glsl\"",
                                "#                                        include \"part.glsl\""}) {
    INFO(directive);
    CHECK_THAT(folder.text(std::string("#version 430\n#define A 1\n") + directive + "\nint rest;\n"),
               Contains("int part;") && Contains("int rest;"));
  }
  // No directive of these needs anything: the text stays as it is.
  for (const char* text : {"#version 430\n#define include(x) x\n#if 1\n#else\n#endif\n", "int include, pragma, line;\n",
                           "#undef A\n#ifdef B\n#elif C\n#error no\n#endif\n#ifndef D\n#endif"}) {
    CHECK(folder.text(text) == text);
  }
}

TEST_CASE("kernel text: byte-order marks, line ends and NUL bytes", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.text("\xef\xbb\xbf#version 430\n") == "#version 430\n");
  CHECK(folder.text("#version 430\r\na\rb\nc") == "#version 430\na\nb\nc");
  CHECK(folder.text("") == "");
  CHECK_THAT(folder.refusal("\xff\xfe#\0v\0"s), Contains("main.comp: ") && Contains("UTF-16") && Contains("UTF-8"));
  CHECK_THAT(folder.refusal("\xfe\xff\0#\0v"s), Contains("UTF-16"));
  CHECK_THAT(folder.refusal("\xff\xfe\0\0#\0\0\0"s), Contains("UTF-32"));
  CHECK_THAT(folder.refusal("\0\0\xfe\xff\0\0\0#"s), Contains("UTF-32"));
  CHECK_THAT(folder.refusal("#version 430\r\nab\0c"s), Contains("main.comp:2:3: ") && Contains("NUL"));
  CHECK_THAT(folder.refusal("#\0v\0e\0"s), Contains("main.comp:1:2: ") && Contains("UTF-16"));
  folder.write("common.glsl",
               "\xef\xbb\xbf"
               "float f;\n");
  CHECK(folder.text("#include \"common.glsl\"\n") == "#line 1 1\nfloat f;\n#line 2 0\n");
  folder.write("common.glsl", "float\0f;\n"s);
  CHECK_THAT(folder.refusal("\n#include \"common.glsl\"\n"),
             Contains("main.comp:2: ") && Contains("common.glsl:1:6: "));
}

TEST_CASE("kernel text: an included file takes the place of its #include, with #line", "[kernel_text]") {
  const Folder folder;
  folder.write("common.glsl", "float twice(float v) { return 2.0 * v; }");
  const std::string twice = "#line 1 1\nfloat twice(float v) { return 2.0 * v; }\n";
  CHECK(folder.text("#version 430\n#include \"common.glsl\"\nmain\n") ==
        "#version 430\n" + twice + "#line 3 0\nmain\n");
  CHECK(folder.text("#version 430\n# /* why */ include <common.glsl> // this\nmain\n") ==
        "#version 430\n" + twice + "#line 3 0\nmain\n");
  CHECK(folder.text("#version 430\n#include \\\n  \"common.glsl\"\nmain\n") ==
        "#version 430\n" + twice + "#line 4 0\nmain\n");
  CHECK(folder.text("/* #include \"no.glsl\"\n*/ // #include \"no.glsl\"\n") ==
        "/* #include \"no.glsl\"\n*/ // #include \"no.glsl\"\n");
  CHECK(folder.text("x /*\n*/ #include \"no.glsl\"\n") == "x /*\n*/ #include \"no.glsl\"\n");  // no directive
  CHECK(folder.text("#include \"common.glsl\"\n#include \"common.glsl\"\n") ==
        twice + "#line 2 0\n" + twice + "#line 3 0\n");
  const auto read = folder.read();
  CHECK(read->includes == std::vector<std::string>{"common.glsl"});

  folder.write("main.comp", "a\n#include \"common.glsl\"\nb\n");
  CHECK(folder.read(Dialect::opencl_c)->text ==
        "a\n#line 1 \"kiln-file-1\"\nfloat twice(float v) { return 2.0 * v; }\n#line 3 \"kiln-file-0\"\nb\n");
}

TEST_CASE("kernel text: strings with comment signs and escapes", "[kernel_text]") {
  const Folder folder;
  // Behind each string a comment begins: the directive in it names no file.
  for (const char* literal :
       {"\"\"", "\"a\"", "\"\\\"\"", "\"\\\\\"", "\"a\\\\\\\"b\"", "\"//\"", "\"/*\"", "\"*/\"", "\"a\\\nb\""}) {
    CAPTURE(literal);
    const std::string text = std::string("s = ") + literal + "; /*\n#include \"gone.glsl\"\n*/\nrest\n";
    CHECK(folder.text(text) == text);
  }
  // A string without an end goes to the end of its line, or of the text.
  folder.write("part.glsl", "int part;\n");
  CHECK(folder.text("s = \"/*\n#include \"part.glsl\"\n") == "s = \"/*\n#line 1 1\nint part;\n#line 3 0\n");
  for (const std::string& end : {"s = \"a"s, "s = \"a\\"s, "s = \""s, "s = \"\\\""s}) {
    CAPTURE(end);
    CHECK(folder.text("#include \"part.glsl\"\n" + end) == "#line 1 1\nint part;\n#line 2 0\n" + end);
  }
}

TEST_CASE("kernel text: files are found beside the including file, then in the include folders", "[kernel_text]") {
  const Folder folder;
  folder.write("sub/a.glsl", "#include \"b.glsl\"\n#include \"../top.glsl\"\n");
  folder.write("sub/b.glsl", "b\n");
  folder.write("top.glsl", "top\n");
  folder.write("lib/c.glsl", "c\n");
  folder.write("lib/b.glsl", "wrong\n");
  CHECK(folder.text("#include \"sub/a.glsl\"\n#include <c.glsl>\n#include \"/c.glsl\"\n", {"lib"}) ==
        "#line 1 1\n#line 1 2\nb\n#line 2 1\n#line 1 3\ntop\n#line 3 1\n#line 2 0\n"
        "#line 1 4\nc\n#line 3 0\n#line 1 4\nc\n#line 4 0\n");
  CHECK(folder.read(Dialect::glsl, {"lib"})->includes ==
        std::vector<std::string>{"sub/a.glsl", "sub/b.glsl", "top.glsl", "lib/c.glsl"});
  CHECK_THAT(folder.refusal("\n\n#include \"no.glsl\"\n", {"lib", "other"}),
             Contains("main.comp:3: #include \"no.glsl\": no such file (tried no.glsl, lib/no.glsl, other/no.glsl)") &&
                 Contains("include"));
  CHECK_THAT(folder.refusal("#include \"no.glsl\"\n", {".", "lib", "lib/"}), Contains("(tried no.glsl, lib/no.glsl)"));
  folder.write("sub/a.glsl", "x\n#include <gone.glsl>\n");
  CHECK_THAT(folder.refusal("#include \"sub/a.glsl\"\n"),
             Contains("sub/a.glsl:2: #include <gone.glsl>") && Contains("sub/gone.glsl"));
  CHECK_THAT(folder.refusal("#include NAME\n"), Contains("main.comp:1: #include NAME: expected"));
  CHECK_THAT(folder.refusal("#include \"sub\"\n"), Contains("no such file"));
}

TEST_CASE("kernel text: include guards, #pragma once and files that include each other", "[kernel_text]") {
  const Folder folder;
  folder.write("guard.glsl", "// a library\n#ifndef GUARD\n#define GUARD\n#include \"guard.glsl\"\ng\n#endif\n");
  const std::string once = folder.text("#include \"guard.glsl\"\n#include \"guard.glsl\"\nend\n");
  CHECK(once == "#line 1 1\n// a library\n#ifndef GUARD\n#define GUARD\n\ng\n#endif\n#line 2 0\n\nend\n");
  folder.write("pragma.glsl", "#pragma once\n#include \"main.comp\"\np\n");
  CHECK(folder.text("#pragma once\n#include \"pragma.glsl\"\n#include \"pragma.glsl\"\n") ==
        "\n#ifndef KILN_ONCE_1\n#define KILN_ONCE_1\n#line 1 1\n\n\np\n#endif\n#line 3 0\n\n");
  // Under a condition nothing says that the file was compiled: its guard decides in the second place.
  CHECK(folder.text("#if A\n#include \"guard.glsl\"\n#endif\n#include \"guard.glsl\"\n").find("g\n", 0) !=
        folder.text("#if A\n#include \"guard.glsl\"\n#endif\n#include \"guard.glsl\"\n").rfind("g\n"));
  folder.write("a.glsl", "#include \"b.glsl\"\n");
  folder.write("b.glsl", "\n#include \"a.glsl\"\n");
  CHECK_THAT(folder.refusal("#include \"a.glsl\"\n"),
             Contains("b.glsl:2: ") && Contains("main.comp -> a.glsl -> b.glsl -> a.glsl") && Contains("#pragma once"));
  // Each doubles the one before: refused by its size, at once.
  for (int i = 1; i < 60; ++i) {
    const std::string below = "#if A\n#include \"d" + std::to_string(i - 1) + ".glsl\"\n#endif\n";
    folder.write("d" + std::to_string(i) + ".glsl", below + below);
  }
  folder.write("d0.glsl", std::string(10'000, 'x') + "\n");
  CHECK_THAT(folder.refusal("#include \"d59.glsl\"\n"), Contains("more than 16777216 bytes"));
}

TEST_CASE("kernel text: what is an include guard", "[kernel_text]") {
  const Folder folder;
  const auto is_guarded = [&](const std::string& text) {
    folder.write("g.glsl", text);
    const std::string twice = folder.text("#include \"g.glsl\"\n#include \"g.glsl\"\n");
    return twice.find("MARK") == twice.rfind("MARK");
  };
  for (const char* text :
       {"#ifndef G\n#define G\nMARK\n#endif\n", "#if !defined(G)\n#define G 1\nMARK\n#endif\n",
        "#if !defined G\n#define G\nMARK\n#endif", "# if ! defined ( G )\n# define G\nMARK\n# endif\n",
        "\n// why\n\n#ifndef G // not\n#define G\nMARK\n#endif /* G */\n\n",
        "#ifndef G\n#define G\n#if A\nMARK\n#else\n#endif\n#endif\n",
        "#ifndef G\n#define G\n#ifdef A\n#elif B\n#ifndef C\n#endif\n#endif\nMARK\n#endif\n"}) {
    CAPTURE(text);
    CHECK(is_guarded(text));
  }
  for (const char* text :
       {"MARK\n", "#ifndef G\n#define G\nMARK\n#else\n#endif\n", "#ifndef G\n#define G\nMARK\n#elif A\n#endif\n",
        "x\n#ifndef G\n#define G\nMARK\n#endif\n", "#ifndef G\n#define G\nMARK\n#endif\nx\n",
        "#ifndef G\n#define G\n#endif\nMARK\n", "#ifndef G\n#define H\nMARK\n#endif\n",
        "#ifndef G\n#undef G\nMARK\n#endif\n", "#ifndef G\nMARK\n#define G\n#endif\n",
        "#ifndef G H\n#define G\nMARK\n#endif\n", "#ifdef G\n#define G\nMARK\n#endif\n",
        "#if defined(G)\n#define G\nMARK\n#endif\n", "#if !G\n#define G\nMARK\n#endif\n",
        "#if !defined(G) && A\n#define G\nMARK\n#endif\n", "#if !defined(G\n#define G\nMARK\n#endif\n",
        "#ifndef G\n#define G\nMARK\n#endif\n#ifndef H\n#endif\n", "#ifndef G\n#define G\n#if A\nMARK\n#endif\n"}) {
    CAPTURE(text);
    CHECK_FALSE(is_guarded(text));
  }
}

TEST_CASE("kernel text: at most 100 files include each other in a chain", "[kernel_text]") {
  const Folder folder;
  for (int i = 1; i < 100; ++i) {
    folder.write(std::to_string(i) + ".glsl", "#include \"" + std::to_string(i + 1) + ".glsl\"\n");
  }
  folder.write("100.glsl", "last\n");
  CHECK_THAT(folder.text("#include \"2.glsl\"\n"), Contains("last"));  // the source itself is the hundredth
  CHECK_THAT(folder.refusal("#include \"1.glsl\"\n"), Contains("more than 100 nested includes"));
}

TEST_CASE("kernel text: a file that is missing under a condition is the compiler's to report", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.text("#if 0\n#include \"gone.glsl\"\n#endif\n") ==
        "#if 0\n#error #include \"gone.glsl\": no such file (tried gone.glsl). Put the file there, or add the "
        "folder of the file to the "
        "job's include\n#endif\n");
  CHECK_THAT(folder.text("#ifdef A\n#else\n#include MACRO\n#endif\n"), Contains("#error #include MACRO"));
  folder.write("guard.glsl", "#ifndef GUARD\n#define GUARD\n#include \"gone.glsl\"\n#endif\n");
  CHECK_THAT(folder.refusal("#include \"guard.glsl\"\n"), Contains("guard.glsl:3: "));
  CHECK_THAT(folder.text("#if A\n#include \"guard.glsl\"\n#endif\n"), Contains("#error"));
}

TEST_CASE("kernel text: the include extensions do not reach the GLSL compiler", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.text("#version 430\n#extension GL_ARB_shading_language_include : require\n"
                    "#extension GL_GOOGLE_include_directive : enable\n#extension GL_ARB_gpu_shader5 : enable\n") ==
        "#version 430\n\n\n#extension GL_ARB_gpu_shader5 : enable\n");
  folder.write("main.comp", "#extension GL_GOOGLE_include_directive : enable\n");
  CHECK(folder.read(Dialect::opencl_c)->text == "#extension GL_GOOGLE_include_directive : enable\n");
}

TEST_CASE("kernel text: GLSL's #line may name a file", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.text("#line 7 \"made/from.lua\"\na\n#line 9 2\n#line 8 \"made/from.lua\"\n") ==
        "#line 7 1\na\n#line 9 2\n#line 8 1\n");
  CHECK(folder.read()->includes == std::vector<std::string>{"made/from.lua"});
  CHECK(folder.text("#line 7 \\\n \\\n \"made/from.lua\"\na\n") == "#line 7 1\n\n\na\n");
  CHECK(folder.text("#line 7 \"one\"\n#line 3 \"two\"\n#line 9 \"one\"\n") == "#line 7 1\n#line 3 2\n#line 9 1\n");
}

TEST_CASE("kernel text: a source that is no file is refused by name", "[kernel_text]") {
  const Folder folder;
  CHECK(folder.read().error().code == StatusCode::io);
  CHECK_THAT(folder.read().error().message, Contains("kernel source main.comp: no such file"));
  std::filesystem::create_directory(folder.path() / "main.comp");
  CHECK_THAT(folder.read().error().message, Contains("not a regular file"));
}

}  // namespace kiln

// The ends and beginnings of what is looked for in a kernel's text: comments, directives, words, calls.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"
#include "amdgpu_pm4/toolchain/pointee.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::EndsWith;

// What stands for the source's own lines.
std::string own_lines(const std::string& text, const std::string& name = "k.cl") {
  const auto assembled = assemble(opencl(text, "k"), name);
  INFO((assembled ? std::string() : assembled.error().text()));
  REQUIRE(assembled);
  const std::string marker = "# 1 \"constants\"\n";
  return assembled->text.substr(assembled->text.find(marker) + marker.size());
}

std::string cycle_of_body(const std::string& body) {
  std::string names;
  for (const std::string& name : call_cycle("int f(int n) { " + body + " }\nkernel void k() { f(1); }\n", "k")) {
    names += name + ".";
  }
  return names;
}

}  // namespace

TEST_CASE("text edges: a name in a line marker has neither quotes nor control characters") {
  const std::pair<const char*, const char*> names[] = {
      {"", "kernel"}, {"a b.cl", "a b.cl"}, {"a\\b.cl", "a_b.cl"}, {"a\x1f\x7f.cl", "a_\x7f.cl"}, {"\"\"", "__"}};
  for (const auto& [name, marked] : names) {
    CHECK(own_lines("int a;\n", name) == "# 1 \"" + std::string(marked) + "\"\nint a;\n");
  }
  CHECK(own_lines("int a;") == "# 1 \"k.cl\"\nint a;\n");  // the last line ends
  CHECK(own_lines("") == "# 1 \"k.cl\"\n");
}

TEST_CASE("text edges: an include is found on its line, whatever blanks stand around it") {
  const auto line = [](const std::string& text) {
    const auto assembled = assemble(opencl(text, "k"), "k.cl");
    if (assembled) return std::string("none");
    const std::string said = assembled.error().text();
    return said.substr(0, said.find(" #include"));
  };
  CHECK(line("#include <a>") == "unsupported: k.cl:1:");
  CHECK(line("\n\n \t#\tinclude <a>\nint b;\n") == "unsupported: k.cl:3:");
  CHECK(line("\v\f\r#include <a>") == "unsupported: k.cl:1:");
  CHECK(line("#\v\f\rinclude <a>") == "unsupported: k.cl:1:");
  CHECK(line("#define A\n#if A\n#include <a>\n#include <b>\n") == "unsupported: k.cl:3:");
  CHECK(line("%: include <a>") == "unsupported: k.cl:1:");
  CHECK(line("%:include <a>") == "unsupported: k.cl:1:");
  CHECK(line("?\?= include <a>") == "unsupported: k.cl:1:");
  for (const char* const none : {"", "\n", "#", "#\n", "%include <a>", "?include <a>", "include <a>",
                                 "#define include 1", "a #include <a>", "#pragma include", "\"#include <a>\""}) {
    INFO(none);
    CHECK(line(none) == "none");
  }
}

TEST_CASE("text edges: a function that is extern and inline is inline alone") {
  const auto is = [](const std::string& text, const std::string& expected) {
    INFO(text);
    CHECK(own_lines(text + "\n") == "# 1 \"k.cl\"\n" + expected + "\n");
  };
  is("extern inline int f();", "       inline int f();");
  is("extern __inline int f();", "       __inline int f();");
  is("extern\n\t inline int f();", "      \n\t inline int f();");
  is("(extern inline", "(       inline");
  is("extern inline a; extern inline b;", "       inline a;        inline b;");
  for (const char* const kept :
       {"extern int inline;", "externinline f();", "an_extern inline f();", "// extern inline", "extern", "extern ",
        "\"extern inline\"", "extern /**/ int f();", "#define E extern inline"}) {
    is(kept, kept);
  }
}

TEST_CASE("text edges: names of files stand in directives at the beginning of a line alone") {
  KernelSource source = opencl(
      "#line 1 \"kiln-file-1\"\n #line 2 \"kiln-file-1\"\n#line 3 \"kiln-file-1\"\n"
      "// \"kiln-file-0\"\n#line 4 \"kiln-file-2\"\n#line 5 \"kiln-file-0\"\n");
  source.files = {"a\"b.cl", "c.h"};
  CHECK_THAT(assemble(source, "label")->text,
             EndsWith("# 1 \"a_b.cl\"\n#line 1 \"c.h\"\n #line 2 \"kiln-file-1\"\n#line 3 \"c.h\"\n"
                      "// \"kiln-file-0\"\n#line 4 \"kiln-file-2\"\n#line 5 \"a_b.cl\"\n"));
}

TEST_CASE("text edges: comments and literals end where they end") {
  const std::pair<const char*, const char*> codes[] = {{"a/**/b", "a    b"},
                                                       {"a/*/ b */c", "a        c"},
                                                       {"a /* b", "a     "},
                                                       {"a // b", "a     "},
                                                       {"a / b * c", "a / b * c"},
                                                       {"a //\nb", "a   \nb"},
                                                       {"\"a\\\\\" b", "      b"},
                                                       {"\"a\\\"b\" c", "       c"},
                                                       {"\"a\\", "   "},
                                                       {"\"a\nb\"", "  \nb "},
                                                       {"'\"' a '\"'", "    a    "},
                                                       {"\"/*\" a", "     a"},
                                                       {"/*\"*/ a", "      a"},
                                                       {"/", "/"},
                                                       {"", ""}};
  for (const auto& [text, code] : codes) {
    INFO(text);
    CHECK(code_of(text) == code);
    CHECK(code_and_directives_of(text) == code);
  }
}

TEST_CASE("text edges: a directive begins a line, and ends with it where nothing continues it") {
  struct Row {
    const char *text, *code, *with_directives;
  };
  const Row rows[] = {{"#a\nb", "\f\f\nb", "#a\nb"},
                      {" \t#a\nb", " \t\f\f\nb", " \t#a\nb"},
                      {"a #b", "a #b", "a #b"},
                      {"#a \\\nb\nc", "\f\f\f\f\n\f\nc", "#a \\\nb\nc"},
                      {"#a /*\n*/ b\nc", "\f\f\f\f\f\n\f\f\f\f\nc", "#a   \n   b\nc"},
                      {"#a // b\nc", "\f\f\f\f\f\f\f\nc", "#a     \nc"},
                      {"/**/#a\nb", "    \f\f\nb", "    #a\nb"},
                      {"#", "\f", "#"},
                      {"#\n#\n", "\f\n\f\n", "#\n#\n"}};
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(code_of(row.text) == row.code);
    CHECK(code_and_directives_of(row.text) == row.with_directives);
  }
}

TEST_CASE("text edges: a word has letters, digits and underscores") {
  for (const char c : {'a', 'z', 'A', 'Z', '0', '9', '_'}) CHECK(is_word(c));
  for (const char c : {'/', ':', '@', '[', '`', '{', '-', ' ', '\0', '\xe9', '\f'}) CHECK_FALSE(is_word(c));
}

TEST_CASE("text edges: what a text's directives and declarations name is kept") {
  const auto reachable = [](const std::string& text) { return only_reachable(text, "k").value_or("nothing"); };
  const std::string f = "int f() { return 1; }\n", kernel = "void k() {}\n";
  const std::string blanked = std::string(21, ' ') + "\n";
  CHECK(reachable(f + kernel) == blanked + kernel);
  CHECK(reachable("#define F f\n" + f + kernel) == "nothing");
  CHECK(reachable("#define F g\n" + f + kernel) == "#define F g\n" + blanked + kernel);
  CHECK(reachable("int a = f;\n" + f + kernel) == "nothing");
  CHECK(reachable("int t[] = {1, 2};\n" + f + kernel) == "int t[] = {1, 2};\n" + blanked + kernel);
  CHECK(reachable("struct S { int a; };\n" + f + kernel) == "struct S { int a; };\n" + blanked + kernel);
  // Reached by what is reached, three steps away.
  const std::string chain = "int c() { return 1; }\nint b() { return c(); }\nint a() { return b(); }\n";
  CHECK(reachable(chain + f + "void k() { a(); }\n") == chain + blanked + "void k() { a(); }\n");
  // The name stands outside of brackets, and is no attribute.
  CHECK(reachable("void g(int (*h)(int)) {}\nvoid k() { }\n") == std::string(24, ' ') + "\nvoid k() { }\n");
  CHECK(reachable("void g (int a) {}\nvoid k() { g(1); }\nint f() {}\n") ==
        "void g (int a) {}\nvoid k() { g(1); }\n" + std::string(10, ' ') + "\n");
  CHECK(reachable("void g() {}}\n{ void k() {}") == "nothing");
  CHECK(reachable("(void) g() {}\n" + kernel) == std::string(13, ' ') + "\n" + kernel);
}

TEST_CASE("text edges: the workgroup's attribute stands at the entry alone, where it is a kernel of the text") {
  const std::string other = "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void a() {}\n";
  const std::string attribute = "__attribute__((reqd_work_group_size(2,1,1))) ";
  const auto is = [&](const std::string& text, const std::string& expected) {
    KernelSource source = opencl(text, "k");
    source.workgroup = {2, 1, 1};
    INFO(text);
    CHECK_THAT(assemble(source, "k.cl")->text, EndsWith("# 1 \"k.cl\"\n" + expected));
  };
  is(other + "\n  kernel void k() {}\n", other + "\n  " + attribute + "kernel void k() {}\n");
  is("__kernel void k() {}\n" + other, attribute + "__kernel void k() {}\n" + other);
  is(other + "void k() {}\n", other + "void k() {}\n");
  is(other + "kernel void other() {}\n", other + "kernel void other() {}\n");
  is(other + "kernel void k() {}}\n", other + "kernel void k() {}}\n");
  is(other + "#define R reqd_work_group_size\nkernel void k() {}\n",
     other + "#define R reqd_work_group_size\nkernel void k() {}\n");
}

TEST_CASE("text edges: a call stands behind no member's dot or arrow, and behind no type") {
  for (const char* const call :
       {"return a > f(n);", "a - f(n);", "a-> b; f(n);", "x = 1.f; f(n);", "!f(n);", "(f(n));", "a ? f(n) : 0;",
        "return\tf(n);", "else f(n);", "do f(n); while (0);", "case f(1):;", "f\t(n);", "{f(n);}"}) {
    INFO(call);
    CHECK(cycle_of_body(call) == "f.");
  }
  for (const char* const none : {"s.f(n);", "s . f(n);", "s->f(n);", "s -> f(n);", "float f(n);", "returns f(n);", "f;",
                                 "f", "f.n();", "ff(n);", "f_(n);", "n = f;", "f[n];"}) {
    INFO(none);
    CHECK(cycle_of_body(none) == "");
  }
}

TEST_CASE("text edges: conditions in a function and macros of its name leave it unjudged, other directives do not") {
  for (const char* const judged : {"\n#pragma unroll\n", "\n#define other f\n", "\n#undef f\n", "\n#line 5\n"}) {
    INFO(judged);
    CHECK(cycle_of_body(std::string(judged) + "f(n);") == "f.");
  }
  for (const char* const unjudged : {"\n#if A\n#endif\n", "\n#ifdef A\n#endif\n", "\n# ifndef A\n#endif\n",
                                     "\n#\tdefine\tf 1\n", "\n#define f(n) 1\n", "\n#define f\n"}) {
    INFO(unjudged);
    CHECK(cycle_of_body(std::string(unjudged) + "f(n);") == "");
  }
  const std::string text = "int f(int n) { return f(n); }\nkernel void k() { f(1); }\n";
  CHECK(call_cycle(text, "k", {{"g", "1"}}) == std::vector<std::string>{"f"});
  CHECK(call_cycle("#if A\n#endif\n" + text, "k") == std::vector<std::string>{"f"});
  CHECK(call_cycle("#define g(n) f\n" + text, "k") == std::vector<std::string>{"f"});
  CHECK(call_cycle(text, "other").empty());
}

TEST_CASE("text edges: a circle is told from its first name, without what leads into it") {
  using Names = std::vector<std::string>;
  const auto cycle = [](const std::string& text) { return call_cycle(text + "kernel void k() { m(); }\n", "k"); };
  CHECK(cycle("int z() { a(); }\nint a() { z(); }\nint m() { z(); }\n") == Names{"a", "z"});
  CHECK(cycle("int a() { z(); }\nint z() { y(); }\nint y() { z(); }\nint m() { a(); }\n") == Names{"z", "y"});
  CHECK(cycle("int a() { b(); c(); }\nint b() {}\nint c() { a(); }\nint m() { a(); }\n") == Names{"a", "c"});
  CHECK(cycle("int a() { b(); }\nint b() {}\nint m() { a(); }\n").empty());
}

TEST_CASE("text edges: what a pointer points to, by every name of OpenCL C") {
  struct Row {
    const char* type;
    ElementType element;
    std::uint32_t bytes, components;
  };
  using E = ElementType;
  const Row rows[] = {{"char*", E::i8, 1, 1},        {"uchar2*", E::u8, 1, 2},       {"short3*", E::i16, 2, 3},
                      {"ushort4*", E::u16, 2, 4},    {"int8*", E::i32, 4, 8},        {"uint16*", E::u32, 4, 16},
                      {"long*", E::i64, 8, 1},       {"ulong2*", E::u64, 8, 2},      {"half8*", E::f16, 2, 8},
                      {"float4", E::f32, 4, 4},      {"double16*", E::f64, 8, 16},   {"float1*", E::unknown, 0, 1},
                      {"float5*", E::unknown, 0, 1}, {"float32*", E::unknown, 0, 1}, {"void*", E::unknown, 0, 1},
                      {"4*", E::unknown, 0, 1},      {"", E::unknown, 0, 1}};
  for (const Row& row : rows) {
    INFO(row.type);
    const Pointee found = pointee_of(row.type, opencl(""));
    CHECK(found.element == row.element);
    CHECK(found.bytes == row.bytes);
    CHECK(found.components == row.components);
  }
}

TEST_CASE("text edges: a type of the text's own is one of OpenCL C by its words") {
  const auto element = [](const std::string& text, const std::string& type = "T*") {
    return pointee_of(type, opencl(text)).element;
  };
  using E = ElementType;
  const std::pair<const char*, E> declared[] = {{"typedef int T;", E::i32},
                                                {"typedef unsigned T;", E::u32},
                                                {"typedef unsigned int T;", E::u32},
                                                {"typedef signed T;", E::i32},
                                                {"typedef signed char T;", E::i8},
                                                {"typedef unsigned char T;", E::u8},
                                                {"typedef char unsigned T;", E::u8},
                                                {"typedef short int T;", E::i16},
                                                {"typedef unsigned short int T;", E::u16},
                                                {"typedef long int T;", E::i64},
                                                {"typedef long unsigned int T;", E::u64},
                                                {"typedef long unsigned T;", E::u64},
                                                {"typedef  const\nfloat4\tT ;", E::f32},
                                                {"typedef float T; typedef float T;", E::f32},
                                                {"typedef float T; typedef int T;", E::unknown},
                                                {"typedef float T; a typedef half U;", E::f32},
                                                {"mytypedef float T;", E::unknown},
                                                {"typedef float TT;", E::unknown},
                                                {"typedef T;", E::unknown},
                                                {"typedef T T;", E::unknown},
                                                {"typedef float* T;", E::unknown},
                                                {"typedef float T[4];", E::unknown},
                                                {"typedef float (T);", E::unknown},
                                                {"typedef struct { int a; } T;", E::unknown},
                                                {"// typedef float T;", E::unknown},
                                                {"typedef float T", E::f32},
                                                {"", E::unknown}};
  for (const auto& [text, expected] : declared) {
    INFO(text);
    CHECK(element(text) == expected);
  }
  // One of another, up to seven of them.
  std::string chain = "typedef float t7;";
  for (const char* const next : {"typedef t7 t6;", "typedef t6 t5;", "typedef t5 t4;", "typedef t4 t3;",
                                 "typedef t3 t2;", "typedef t2 t1;", "typedef t1 t0;"}) {
    chain += next;
  }
  CHECK(element(chain, "t1") == E::f32);
  CHECK(element(chain, "t0") == E::unknown);
  KernelSource other = opencl("typedef float T;");
  other.dialect = Dialect::code_object;
  CHECK(pointee_of("T*", other).element == E::unknown);
  CHECK(pointee_of("float*", other).element == E::f32);
}

}  // namespace kiln::amdgpu_pm4

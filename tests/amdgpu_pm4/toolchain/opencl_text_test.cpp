// What stands in front of a kernel's lines, and what is not let through.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"
#include "amdgpu_pm4/toolchain/pointee.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

}  // namespace

TEST_CASE("text: constants stand before the kernel, whose lines keep their numbers") {
  KernelSource source = opencl("__kernel void kiln_kernel() {}");
  source.constants = {{"TILE", "8"}, {"SUM(a, b)", "x"}};
  CHECK_THAT(assemble(source, "x.cl").error().text(), Contains("constant 'SUM(a, b)': not an identifier"));
  source.constants[1] = {"SCALE", "(2.0f / 3.0f)"};
  CHECK_THAT(assemble(source, "dir/x.cl")->text,
             EndsWith("# 1 \"constants\"\n#pragma clang diagnostic error \"-Wfinal-macro\"\n"
                      "#define TILE 8\n#pragma clang final(TILE)\n"
                      "#define SCALE (2.0f / 3.0f)\n#pragma clang final(SCALE)\n"
                      "# 1 \"dir/x.cl\"\n__kernel void kiln_kernel() {}\n"));
  CHECK_THAT(assemble(source, "a\"b\n.cl")->text, Contains("# 1 \"a_b_.cl\"\n"));
  source.constants[1].text = "1\n#define TILE 9";
  CHECK_THAT(assemble(source, "x.cl").error().text(), Contains("constant 'SCALE'"));
}

TEST_CASE("text: other dialects, entries and includes are refused") {
  KernelSource source = opencl("void main() {}");
  source.dialect = Dialect::glsl;
  CHECK(assemble(source, "x").error().text() == "unsupported: dialect glsl, expected opencl_c");
  CHECK_THAT(assemble(opencl("", "a b"), "x").error().text(), StartsWith("invalid_argument: entry 'a b'"));
  for (const char* const line : {"#include \"a.h\"", "  #  include <b.h>", "%:include \"c.h\"", "#import \"d.h\"",
                                 "\?\?=include \"e.h\"", "#embed \"f\"", "/* g */ # /* h */ include \"g.h\""}) {
    CHECK_THAT(assemble(opencl("int a;\n" + std::string(line) + "\n"), "k.cl").error().text(),
               StartsWith("unsupported: k.cl:2: #include"));
  }
  CHECK(assemble(opencl("// #include is not offered\n#define include_it 1\n"), "k.cl").has_value());
  CHECK(assemble(opencl("/* kept:\n#include \"old.h\"\n*/ int a;\n"), "k.cl").has_value());
}

TEST_CASE("text: the files of a source are named in its #line directives, whatever the label is") {
  KernelSource source = opencl("int a;\n#line 1 \"kiln-file-1\"\nint b; // \"kiln-file-1\"\n#line 3 \"kiln-file-0\"\n");
  source.files = {"dir/k.cl", "lib/b.h"};
  CHECK_THAT(assemble(source, "label")->text,
             EndsWith("# 1 \"dir/k.cl\"\nint a;\n#line 1 \"lib/b.h\"\nint b; // \"kiln-file-1\"\n"
                      "#line 3 \"dir/k.cl\"\n"));
}

TEST_CASE("text: the job's workgroup is an attribute of kernels that declare none") {
  const auto assembled = [](const std::string& text) {
    KernelSource source = opencl(text, "k");
    source.workgroup = {8, 4, 1};
    return assemble(source, "k.cl")->text;
  };
  const std::string attribute = "__attribute__((reqd_work_group_size(8,4,1)))";
  const std::string defined = "#define kernel " + attribute + " kernel\n#define __kernel " + attribute + " __kernel\n";
  const std::string other = "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void a() { { } }\n";
  CHECK_THAT(assembled("kernel void k() {}\n"), EndsWith(defined + "# 1 \"k.cl\"\nkernel void k() {}\n"));
  CHECK_THAT(assembled("// reqd_work_group_size\nkernel void k() {}\n"), Contains(defined));
  CHECK_THAT(assembled(other + "// k\nkernel void k() {}\n"),
             !Contains(defined) && EndsWith(other + "// k\n" + attribute + " kernel void k() {}\n"));
  CHECK_THAT(assembled("inline int f() { return 1; }\n#define A f()\n__kernel void k() { A; }\n" + other),
             EndsWith("#define A f()\n" + attribute + " __kernel void k() { A; }\n" + other));
  // The kernel's own; perhaps a macro's; no kernel.
  for (const std::string text :
       {"kernel void a() {}\n__attribute__((reqd_work_group_size(8, 4, 1))) kernel void k() {}\n",
        "#define GROUP __attribute__((reqd_work_group_size(8, 4, 1)))\nGROUP kernel void k() {}\n"}) {
    CHECK_THAT(assembled(text), !Contains(attribute) && EndsWith(text));
  }
  CHECK_THAT(assembled(other + "void k() {}\n"), EndsWith(other + "void k() {}\n"));
  KernelSource source = opencl("kernel void k() {}\n", "k");
  source.workgroup = {3, 5, 7};
  CHECK_THAT(assemble(source, "k.cl")->text, Contains("kernel __attribute__((reqd_work_group_size(3,5,7))) kernel\n"));
}

TEST_CASE("text: only what the text may use is asked for") {
  const std::string uses = uses_of("y[i] = convert_float4(fmax(a, b)) + mul24(i, j) + vload16(0, p) * 1.5f;");
  for (const char* const name :
       {"convert_float4", "convert_float", "convert", "fmax", "mul24", "mul", "vload", "wide"}) {
    CHECK_THAT(uses, Contains("#define KILN_USES_" + std::string(name) + " 1\n"));
  }
  CHECK_THAT(uses, !Contains("KILN_USES_half ") && !Contains("KILN_USES_atomic"));
  CHECK_THAT(uses, StartsWith("#define KILN_USES(name) KILN_USES_##name\n"));
  CHECK(uses_of("#define F(T) convert_##T") == "#define KILN_USES(name) 1\n");
  CHECK_THAT(uses_of("int a; // ## a double\n/* half */"),
             Contains("_int 1") && !Contains("double") && !Contains("half"));
}

TEST_CASE("text: numbers of double are told by their form, constants by their name") {
  for (const char* const text : {"a * 1.0", "1.", "a + .5;", "1e3", "1E+3 * b", "0x1p3", "0x1.8P-3;", "1e-5", "0x1p+3",
                                 "v1.x * 2.5 + v2.y", "r * M_PI", "DBL_MAX", "HUGE_VAL", "#define HALF 0.5\n"}) {
    INFO(text);
    CHECK_THAT(uses_of(text), Contains("#define KILN_USES_double_literal 1\n"));
  }
  for (const char* const text :
       {"a * 1.5f", "2.0h",    "1e3f",       "1e+3f",     "2e-3h",       "1.F",     ".5H",    "0x1p3f",
        "0x1p-3f",  "0x1e+5",  "0xe1 + 10u", "0x1E",      "v1.x + a.s0", "a[1].x",  "M_PI_F", "M_PI_H",
        "HALF_MAX", "FLT_MAX", "// 1.0\n",   "/* 1.0 */", "\"1.0\"",     "float1e3"}) {
    INFO(text);
    CHECK_THAT(uses_of(text), !Contains("double_literal"));
  }
}

TEST_CASE("text: the library's conversions are corrected, not functions whose names are alike") {
  CHECK(corrections_for("convert_half(a) + convert_short4_sat_rtz(b);") ==
        "#define convert_half(...) convert_half(kiln_in_half_(__VA_ARGS__))\n"
        "#define convert_short4_sat_rtz(...) convert_short4_sat_rtz(kiln_number_(__VA_ARGS__))\n");
  CHECK(corrections_for("convert_half_to_float(a) + convert_half5(b) + convert_half_sat(c) + convert_and_saturate(d) +"
                        "convert_int_satisfied(e) + convert_int_rte_sat(f) + convert_int_rte(g)")
            .empty());
  CHECK_THAT(corrections_for("#define TO(T) convert_##T\n"),
             Contains("#define convert_half16_rtn(") && Contains("#define convert_long3_sat_rte("));
}

TEST_CASE("text: a call of the library is seen whatever stands around it") {
  for (const char* const name :
       {"sin",    "step",   "all",      "any",          "sign",           "length", "dot",
        "mix",    "select", "tgamma",   "convert_half", "convert_float4", "isnan",  "popcount",
        "rotate", "vload4", "prefetch", "shuffle",      "fract",          "hypot",  "smoothstep"}) {
    INFO(name);
    CHECK(calls_library("y[0] = " + std::string(name) + "(y[1]);"));
  }
  for (const char* const text :
       {"/* the root */ sin(x);", "// the next is a\nsin(x);", "#pragma unroll\nsin(x);", "return sin(x);",
        "else sin(x);", "y = (sin)(x);", "y = ( sin ) (x);", "#define S sin\n", "#define S(x) (x + \\\n sin(x))\n",
        "# define S(a) sin (a)", "\"text\" sin(x);", "#endif\nsin(x);", "#define A(b) b\n#define C sin\n",
        "y = work_group_any(x);", "y = work_group_reduce_add(x);"}) {
    INFO(text);
    CHECK(calls_library(text));
  }
  for (const char* const text : {"float sin(float x);",
                                 "y = fma(a, b, c);",
                                 "// sin(x)\n",
                                 "/* sin(x) */",
                                 "\"sin(x)\"",
                                 "if (a) while (b) {}",
                                 "y = (float)(x);",
                                 "y[0] = abs(y[1]);",
                                 "#define SQUARE(v) ((v) * (v))  // of sin(x)\n",
                                 "#define WIDE \\\n 14\n",
                                 "#if defined(sin)\n",
                                 "#define VALUE 14  // elements\n",
                                 "#pragma unroll\nfor (;;) {}",
                                 "__attribute__((aligned(16)))",
                                 "atomic_min(p, sub_group_reduce_max(x));",
                                 "atomic_fetch_add_explicit(p, 1, memory_order_relaxed);",
                                 "work_group_barrier(CLK_LOCAL_MEM_FENCE);",
                                 "y = (x);",
                                 "sin(",
                                 "("}) {
    INFO(text);
    CHECK(calls_library(text) == (std::string_view(text) == "sin("));
  }
}

TEST_CASE("text: of functions that the entry does not reach, lines and directives are left") {
  const auto reachable = [](const std::string& text) { return only_reachable(text, "k").value_or("nothing"); };
  CHECK(reachable("int f() { return 1; }\nint g() { return 2; }\nvoid k() { f(); }\n") ==
        "int f() { return 1; }\n                     \nvoid k() { f(); }\n");
  // Through other functions, and through macros.
  CHECK(reachable("int f() { return 1; }\nint g() { return f(); }\n#define G g\nvoid k() { G(); }\n") == "nothing");
  // Neither a comment nor a literal names a function, or has a brace.
  const std::string kernel = "/* g { */ void k() { \"g\"; /* g */ }";
  CHECK(reachable("void g(char* t) {\n g(\"}\\\"{\"); '{'; // }\n}\n" + kernel) ==
        std::string(17, ' ') + "\n" + std::string(21, ' ') + "\n \n" + kernel);
  CHECK(reachable("void g()\n{\n#if 1 /* {\n */\n  int a;\n#endif\n}\nvoid k() {}") ==
        "        \n \n#if 1 /* {\n */\n        \n#endif\n \nvoid k() {}");
  // What is declared, and attributes around a name, are no functions.
  CHECK(reachable("struct S { int a; };\nconstant int t[] = {f(1)};\nint g();\n"
                  "__attribute__((a(1))) void g(int b) __attribute__((c(2))) {}\nvoid k() {}") == "nothing");
  CHECK(reachable("__attribute__((a(1))) void g(int b) __attribute__((c(2))) {}void k() {}") ==
        std::string(60, ' ') + "void k() {}");
  // No such kernel; braces that are not in pairs.
  CHECK(reachable("void g() {}\n") == "nothing");
  CHECK(reachable("void g() {}\nvoid k() {\n#if A\n{\n#else\n{\n#endif\n}}") == "nothing");
  CHECK(reachable("void g() {}}\nvoid k() {}") == "nothing");
  CHECK(reachable("") == "nothing");
}

TEST_CASE("text: a quote that stands alone ends with its line") {
  CHECK(code_of("#if 0\nThis isn't it\n#endif\nint a;\n") == "\f\f\f\f\f\nThis isn     \n\f\f\f\f\f\f\nint a;\n");
  CHECK(code_of("#error don't\nint a;\n") == std::string(12, '\f') + "\nint a;\n");
  CHECK(code_of("a = '\\'' + '\"'; \"b\" c") == "a =      +    ;     c");
  CHECK(code_of("isn't") == "isn  ");
}

TEST_CASE("text: the first long long is warned of") {
  const auto warning = [](const std::string& text) { return assemble(opencl(text), "mine.cl")->warning; };
  CHECK(warning("// 1ULL\nulong a = 0x5851F42D4C957F2DULL * 3ll;\n") ==
        "mine.cl: warning: 'ULL' of 0x5851F42D4C957F2DULL means 128 bits in OpenCL C: write UL\n");
  CHECK_THAT(warning("#define ONE 1ll // one\n"), Contains("'ll' of 1ll means 128 bits in OpenCL C: write l\n"));
  CHECK_THAT(warning("a = 7LLu;"), Contains("'LLu' of 7LLu") && EndsWith("write Lu\n"));
  CHECK_THAT(warning("unsigned long\nlong a;"), Contains("'unsigned long long'") && EndsWith("write ulong\n"));
  CHECK_THAT(warning("long long a;"), Contains("'long long'") && EndsWith("write long\n"));
  for (const char* const text : {"", "long a, b; a = 1L + 2UL + 0xFUL;", "float f = 1.0f;", "int ll = LL(1) + a1LL;",
                                 "long a(long b);", "/* long long */ \"1ULL\"", "f(long, long);", "a = x.ll;"}) {
    INFO(text);
    CHECK(warning(text).empty());
  }
}

TEST_CASE("text: functions that call themselves are found, if the entry reaches them") {
  const auto cycle = [](const std::string& text) {
    std::string names;
    for (const std::string& name : call_cycle(text, "k")) names += (names.empty() ? "" : " ") + name;
    return names;
  };
  const std::string kernel = "kernel void k(global int* y) { y[0] = f(y[1]); }\n";
  const std::string fib = "int f(int n) { return n < 2 ? n : f(n - 1) + f (n - 2); }\n";
  CHECK(cycle(fib + kernel) == "f");
  CHECK(cycle("TYPE(int) f(int n)\n{\n#pragma unroll\n  return f(n);\n}\n" + kernel) == "f");
  CHECK(cycle("int g(int n);\nint f(int n) { return g(n); }\nint h(int n) { return f(n); }\n"
              "int g(int n) { if (n) return 0; else return h(n); }\n" +
              kernel) == "f g h");
  CHECK(cycle("int g(int n) { return h(n); }\nint h(int n) { return h(n); }\nint f(int n) { return g(n); }\n" +
              kernel) == "h");
  CHECK(cycle("void k() { k(); }") == "k");
  for (const char* const body : {"return f(n);", "return(f(n));", "if (n) return 1; else f(n); return 0;",
                                 "do f(n); while (n); return 0;", "switch (n) { case f(0): break; } return 0;",
                                 "n = f(n); return n;", "f\n(n); return 0;", "{ f(n); } return 0;"}) {
    INFO(body);
    CHECK(cycle("int f(int n) { " + std::string(body) + " }\n" + kernel) == "f");
  }
  // Not reached; and no calls of the function: a variable, a member, a declaration, a comment, a literal.
  CHECK(cycle(fib + "kernel void k(global int* y) { y[0] = 1; }\n").empty());
  for (const char* const body :
       {"int f = n; return f * (f);", "s.f(n); return t->f (n);", "int f(int n); return 1;", "/* f(n) */ return 1;",
        "return \"f(n)\"[0];", "return g(n);", "return af(n) + f2(n);"}) {
    INFO(body);
    CHECK(cycle("int f(int n) { " + std::string(body) + " }\n" + kernel).empty());
  }
  // Not judged: another function or a macro of that name, conditions within.
  CHECK(cycle("float __attribute__((overloadable)) f(float2 v) { return f(v.x); }\n" + kernel).empty());
  CHECK(cycle("float f(float2 v) { return f(v.x); }\nfloat f(float v) { return v; }\n" + kernel).empty());
  CHECK(cycle(fib + "#  define f(n) n\n" + kernel).empty());
  CHECK(call_cycle(fib + kernel, "k", {{"f", "sin"}}).empty());
  CHECK(cycle("int f(int n) {\n#if A\n  return f(n);\n#else\n  return 1;\n#endif\n}\n" + kernel).empty());
  CHECK(cycle("int f(int n) { return f(n);\n" + kernel).empty());
  CHECK(cycle("").empty());
}

TEST_CASE("text: a type of the text's own is not taken for one of OpenCL C that its name begins with") {
  const KernelSource source = opencl(
      "typedef char int8_t;\ntypedef short int16_t;\ntypedef long int64_t;\ntypedef unsigned long uint64_t;\n"
      "typedef half float16_t;\ntypedef double float64_t;\ntypedef float4 float4_t;\n"
      "typedef struct { float rows[16]; } float4x4;\n");
  const auto is = [&source](const char* type, ElementType element, std::uint32_t bytes, std::uint32_t components) {
    INFO(type);
    const Pointee found = pointee_of(type, source);
    CHECK(found.element == element);
    CHECK(found.bytes == bytes);
    CHECK(found.components == components);
  };
  is("int8_t*", ElementType::i8, 1, 1);
  is("int16_t*", ElementType::i16, 2, 1);
  is("int64_t*", ElementType::i64, 8, 1);
  is("uint64_t*", ElementType::u64, 8, 1);
  is("float16_t*", ElementType::f16, 2, 1);
  is("float64_t*", ElementType::f64, 8, 1);
  is("float4_t*", ElementType::f32, 4, 4);
  is("float4x4*", ElementType::unknown, 0, 1);
  is("uint5*", ElementType::unknown, 0, 1);
  is("int16*", ElementType::i32, 4, 16);
  is("uchar3*", ElementType::u8, 1, 3);
  is("double*", ElementType::f64, 8, 1);
}

}  // namespace kiln::amdgpu_pm4

#include "dynamic_shaders/families/user/long_loops.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "dynamic_shaders/families/user/glsl/expressions.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

using Catch::Matchers::Contains;

namespace kiln::dynamic_shaders {
namespace {

// What main() does begins on line 6, where nothing stands before main().
UserKernelSpec kernel_of(const std::string& body, const std::string& before = "") {
  UserKernelSpec spec;
  spec.path = "mine.comp";
  spec.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer Y { float y[]; };\n"
      "uniform int n;\n" +
      before + "void main() {\n" + body + "\n}\n";
  spec.dialect = Dialect::glsl;
  spec.bindings = {{Access::read_write, 4000}};
  spec.grid = {16, 1, 1};
  return spec;
}

std::vector<std::string> told(const std::string& body, const std::string& before = "") {
  return long_loops(kernel_of(body, before));
}

std::string only(const std::vector<std::string>& sentences) {
  INFO(sentences.size() << " sentences");
  REQUIRE(sentences.size() == 1);
  return sentences.front();
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("long loops: the last loop that is short enough, and the first that is not", "[loops]") {
  const std::string pairs[][2] = {
      {"for (int i = 0; i < 65535; ++i)", "for (int i = 0; i < 65536; ++i)"},
      {"for (int i = 0; i <= 65534; i++)", "for (int i = 0; i <= 65535; i++)"},
      {"for (uint i = 0u; i != 65535u; i++)", "for (uint i = 0u; i != 65536u; i++)"},
      {"for (int i = 5; 65540 > i; ++i)", "for (int i = 4; 65540 > i; ++i)"},
      {"for (int i = 0; i < 131070; i += 2)", "for (int i = 0; i < 131071; i += 2)"},
      {"for (int i = 0; i < 131070; i = i + 2)", "for (int i = 0; i < 131071; i = i + 2)"},
      {"for (int i = 65535; i > 0; --i)", "for (int i = 65536; i > 0; --i)"},
      {"for (int i = 65534; i >= 0; i--)", "for (int i = 65535; i >= 0; i--)"},
      {"for (int i = 131070; i > 0; i -= 2)", "for (int i = 131071; i > 0; i -= 2)"},
      {"for (int i = 0x0; i < 0xffff; ++i)", "for (int i = 0x0; i < 0x10000; ++i)"},
  };
  for (const auto& [below, above] : pairs) {
    INFO(below << " and " << above);
    CHECK(told(below + " y[0] += 1.0;").empty());
    CHECK_THAT(only(told(above + " y[0] += 1.0;")),
               Catch::StartsWith("line 6: ") && Contains("65,536 times in a lane") && Contains("65,535 rounds"));
  }
  CHECK(told("for (int i = 0; i < 10; ++i) y[i] = 1.0;").empty());
  CHECK(told("y[0] = 1.0;").empty());
  CHECK(told("[[unroll]] for (int i = 0; i < 70000; ++i) y[0] += 1.0;").size() == 1);
}

TEST_CASE("long loops: those that double or halve are short, whatever bounds them", "[loops]") {
  CHECK(told("for (int i = 1; i < 2000000000; i *= 2) y[0] += 1.0;").empty());
  CHECK(told("for (int i = 1; i < n; i <<= 1) y[0] += 1.0;").empty());
  CHECK(told("for (uint s = gl_WorkGroupSize.x / 2u; s > 0u; s >>= 1) y[s] += 1.0;").empty());
  CHECK(told("for (int i = 0; i < 100; i *= 2) y[0] += 1.0;").size() == 1);  // it stays at zero
}

TEST_CASE("long loops: nested ones multiply, each with its last look", "[loops]") {
  const auto square = [](int outer, int inner) {
    return told("for (int i = 0; i < " + std::to_string(outer) + "; ++i)\n  for (int j = 0; j < " +
                std::to_string(inner) + "; ++j) y[j] += 1.0;");
  };
  CHECK(square(255, 255).empty());
  CHECK(square(255, 256).size() == 1);  // 65,280 sums, and 254 looks
  CHECK_THAT(only(square(300, 300)), Catch::StartsWith("line 6: ") && Contains("90,598 times"));
}

TEST_CASE("long loops: all loops of a lane count together, in both branches of an if too", "[loops]") {
  const auto two = [](const std::string& first, const std::string& second, const std::string& between) {
    return told("for (int i = 0; i < " + first + "; ++i) y[0] += 1.0;\n" + between + "for (int j = 0; j < " + second +
                "; ++j) y[0] += 1.0;");
  };
  CHECK(two("32767", "32767", "").empty());
  CHECK(two("32767", "32768", "").size() == 1);
  CHECK_THAT(only(two("40000", "40000", "")), Catch::StartsWith("lines 6 to 7: ") && Contains("80,001 times together"));
  CHECK_THAT(only(two("70000", "10", "")), Catch::StartsWith("line 6: ") && Contains("70,000"));
  CHECK(told("if (n > 3) { for (int i = 0; i < 40000; ++i) y[0] += 1.0; }\n"
             "else for (int i = 0; i < 40000; ++i) y[0] += 2.0;")
            .size() == 1);
  CHECK(told("switch (n) { case 1: for (int i = 0; i < 70000; ++i) y[0] += 1.0; break; default: break; }").size() == 1);
}

TEST_CASE("long loops: a function counts where it is called, with its arguments", "[loops]") {
  const std::string sum = "float sum(int m) { float s = 0.0; for (int i = 0; i < m; ++i) s += y[i]; return s; }\n";
  CHECK(told("for (int j = 0; j < 300; ++j) y[j] = sum(10);", sum).empty());
  CHECK_THAT(only(told("for (int j = 0; j < 300; ++j) y[j] = sum(300);", sum)),
             Catch::StartsWith("line 7: ") && Contains("90,598"));
  CHECK_THAT(only(told("y[0] = sum(70000);", sum)), Catch::StartsWith("line 5: ") && Contains("70,000"));
  CHECK_THAT(only(told("y[0] = sum(n);", sum)), Catch::StartsWith("line 5: ") && Contains("not known"));
  CHECK(told("y[0] = 1.0;", sum).empty());
  CHECK(told("for (int j = 0; j < 10; ++j) turn(j);", "void turn(inout int j) { --j; }\n").size() == 1);
  // No compiler takes a function that calls itself.
  CHECK(told("y[0] = f(1.0);", "float f(float x) { for (int i = 0; i < 1; ++i) x += 1.0; return f(x) + f(x); }\n")
            .size() == 1);
  CHECK(told("for (int j = 0; j < 10; ++j) y[j] = f(1.0);", "float f(float x) { return f(x) + f(x); }\n").empty());
}

TEST_CASE("long loops: helpers without a loop may be called as often as they like", "[loops]") {
  const std::string hash = "float hash(float x) { return fract(sin(x) * 43758.5453); }\n";
  CHECK(told("for (int i = 0; i < 10; ++i) y[i] = 1.0;\n" + repeated("y[0] += hash(y[1]);\n", 3000), hash).empty());
  // One whose loop is behind others does count, in whatever order they stand.
  CHECK_THAT(only(told("y[0] = outer();",
                       "float inner(int m);\nfloat outer() { return inner(70000); }\n"
                       "float inner(int m) { float s = 0.0; for (int i = 0; i < m; ++i) s += y[i]; return s; }\n")),
             Catch::StartsWith("line 7: ") && Contains("70,000"));
}

TEST_CASE("long loops: where nothing bounds a loop before it runs, that is said", "[loops]") {
  CHECK_THAT(only(told("for (int i = 0; i < n; ++i) y[i] = 1.0;")),
             Catch::StartsWith("line 6: how often this loop goes round is not known") && Contains("(i < n)") &&
                 Contains("65,535"));
  CHECK_THAT(only(told("\nwhile (y[0] < 1.0) y[0] += 0.1;")),
             Catch::StartsWith("line 7: ") && Contains("(y[0] < 1.0)"));
  CHECK_THAT(only(told("do { y[0] += 0.1; }\nwhile (y[0] < 1.0);")), Catch::StartsWith("line 6: "));
  CHECK_THAT(only(told("for (;;) { if (y[0] > 1.0) break; }")), Catch::StartsWith("line 6: "));
  CHECK(told("for (int i = 0; i < 10; ++i) { if (y[i] > 0.0) i--; }").size() == 1);
  CHECK(told("int m = 10; m = n; for (int i = 0; i < m; ++i) y[i] = 1.0;").size() == 1);
  CHECK(told("for (int i = 10; i > 0; ++i) y[i] = 1.0;").size() == 1);
  CHECK(told("int a = 8, b = 8; b = n; for (int i = 0; i < b; ++i) y[i] = 1.0;").size() == 1);
  // One sentence for a nest; one that is too long by what is known of it says so.
  CHECK(told("while (n > 1) { while (n > 2) y[0] += 1.0; }").size() == 1);
  CHECK_THAT(only(told("while (n > 1) for (int i = 0; i < 70000; ++i) y[0] += 1.0;")), Contains("70,000"));
  CHECK(told("do y[0] += 1.0; while (false);").empty());
}

TEST_CASE("long loops: a part of a condition that another may hold without bounds nothing", "[loops]") {
  for (const char* condition :
       {"i < 10 || y[0] > 0.0", "y[0] > 0.0 || i < 10", "y[0] > 0.0 ? i < 10 : true", "(i < 10 || y[0] > 0.0)",
        "i < 10 ^^ y[0] > 0.0", "i < 10 == y[0] > 0.0", "i < 10, y[0] > 0.0", "i < 10 && y[1] > 0.0 || y[0] > 0.0",
        "(i < 10 && y[1] > 0.0) || y[0] > 0.0"}) {
    INFO(condition);
    CHECK_THAT(only(told("for (int i = 0; " + std::string(condition) + "; ++i) y[0] += 1.0;")), Contains("not known"));
  }
}

TEST_CASE("long loops: a uint that goes down below zero starts anew", "[loops]") {
  for (const char* head :
       {"uint i = 7u; i >= 0u; --i", "uint i = 7; i >= 0; i--", "uint i = 7u; 0u <= i; --i", "int i = 7; i >= 0u; --i",
        "uint i = 7u; i > 0u; i -= 2u", "uint i = gl_LocalInvocationID.x; i > 0u; i -= 2u"}) {
    INFO(head);
    CHECK_THAT(only(told("for (" + std::string(head) + ") y[0] += 1.0;")), Contains("not known"));
  }
  for (const char* head :
       {"uint i = 7u; i > 0u; --i", "uint i = 7u; i >= 1u; --i", "uint i = 8u; i > 0u; i -= 2u",
        "uint i = gl_LocalInvocationID.x; i > 0u; --i", "uint i = gl_LocalInvocationID.x; i >= 8u; i -= 8u"}) {
    INFO(head);
    CHECK(told("for (" + std::string(head) + ") y[0] += 1.0;").empty());
  }
}

TEST_CASE("long loops: what is bounded without being constant is not warned of", "[loops]") {
  for (const char* head : {
           "for (int i = 0; i < min(n, 100); ++i)",
           "for (int i = 0; i < 10 && y[i] > 0.0; ++i)",
           "for (int i = 0; i < (n & 15); ++i)",
           "for (int i = 0; (i < 10); ++i)",
           "for (int i = 0; ((i < 10)); ++i)",
           "for (int i = 0; (i < 10) && (y[i] > 0.0); ++i)",
           "for (int i = 0; (y[0] > 0.0 || y[1] > 0.0) && ((i < 10) && y[i] > 0.0); ++i)",
           "for (int i = 0; i < (n > 3 ? 20 : 10); ++i)",
           "int a = 8, b = 8; for (int i = 0; i < b; ++i)",
           "int a[2], b = 8; for (int i = 0; i < b; ++i)",
           "for (uint i = 0u, m = 8u; i < m; ++i)",
           "for (int i = n; i < n + 8; ++i)",
           "for (uint i = gl_LocalInvocationID.x; i < 4096u; i += gl_WorkGroupSize.x)",
           "for (uint i = gl_GlobalInvocationID.x; i < 1000000u; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)",
           "for (int i = 0; i < y.length(); ++i)",
           "const int m = 3 * 5; for (int i = 0; i < m; ++i)",
           "int m = n > 3 ? 20 : 10; for (int i = 0; i < m; ++i)",
           "for (int t = 0; t < 1000; t += 8) for (int i = t; i < min(t + 8, n); ++i)",
           "float w[9]; for (int i = 0; i < w.length(); ++i)",
       }) {
    INFO(head);
    CHECK(told(std::string(head) + " y[0] += 1.0;").empty());
  }
  UserKernelSpec long_buffer = kernel_of("for (int i = 0; i < y.length(); ++i) y[0] += 1.0;");
  long_buffer.bindings[0].bytes = 400000;
  CHECK_THAT(only(long_loops(long_buffer)), Contains("100,000 times"));
}

TEST_CASE("long loops: comments, texts and what #if leaves out are no loops", "[loops]") {
  CHECK(told("// for (int i = 0; i < 100000; ++i)\n/* while (true)\n{} */ y[0] = 1.0;").empty());
  CHECK(told("debugPrintfEXT(\"while (true) { for (;;) } // \");").empty());
  CHECK(told("int format = 1; int meanwhile = format; y[meanwhile] = 1.0;").empty());
  CHECK(told("#if 0\nwhile (true) {\n#else\n{\n#endif\ny[0] = 1.0; }").empty());
  CHECK(told("#if defined(LONG) || SIZE > 100\nfor (;;) {}\n#endif", "#define SIZE 100\n").empty());
  CHECK(told("#ifndef LONG\n#elif 1\nfor (;;) {}\n#else\nfor (;;) {}\n#endif\n").empty());
  CHECK_THAT(only(told("/* a\n b */ // \\\n c\nwhile (true) {}")), Catch::StartsWith("line 9: "));
}

TEST_CASE("long loops: macros and the job's constants are put in", "[loops]") {
  const std::string loop = "for (int i = 0; i < ROUNDS; ++i) y[0] += 1.0;";
  CHECK_THAT(only(told(loop, "#define ROUNDS (2 * HALF)\n#define HALF 40000\n")), Contains("80,000"));
  CHECK(told(loop, "#define ROUNDS (HALF / 2)\n#define HALF 40000\n").empty());
  CHECK_THAT(only(told("TIMES(70 * 1000) y[k] = 0.0;", "#define TIMES(m) for (int k = 0; \\\n  k < (m); ++k)\n")),
             Catch::StartsWith("line 8: ") && Contains("70,000"));
  CHECK(told(loop, "#define ROUNDS ROUNDS\n").size() == 1);
  UserKernelSpec spec = kernel_of(loop);
  for (const auto& [text, sentences] : {std::pair("7", 0u), std::pair("70000", 1u), std::pair("n", 1u)}) {
    spec.constants = {{"ROUNDS", text}};
    INFO(text);
    CHECK(long_loops(spec).size() == sentences);
  }
}

TEST_CASE("long loops: calls of macros in one another end, however many they are", "[loops]") {
  const std::string loop = "for (int i = 0; i < F(F(F(10))); ++i) y[0] += 1.0;";
  CHECK_THAT(only(told(loop, "#define F(x) (x * 20)\n")), Contains("80,000"));
  // 2^40 pieces of text, or as many looks at no text at all.
  const std::string after = "\nfor (int i = 0; i < 70000; ++i) y[0] += 1.0;";
  CHECK(told(repeated("F(", 40) + "y[0] += 1.0;" + repeated(")", 40) + ";" + after, "#define F(x) x x\n").size() == 1);
  CHECK(told(repeated("F(", 40) + repeated(")", 40) + ";" + after, "#define F(x) x x\n").size() == 1);
  // More of them than a stack holds.
  const std::string deep = "y[0] = " + repeated("F(", 20000) + "1.0" + repeated(")", 20000) + ";";
  CHECK(told(deep + after, "#define F(x) (x + 1.0)\n").size() == 1);
}

TEST_CASE("long loops: what stands behind a long chain of else if is read", "[loops]") {
  const std::string chain = "if (n == 0) y[0] = 1.0;\n" + repeated("else if (n == 1) y[0] = 1.0;\n", 300);
  CHECK_THAT(only(told(chain + "for (int i = 0; i < 70000; ++i) y[0] += 1.0;")), Catch::StartsWith("line 307: "));
  CHECK_THAT(only(told(chain + "else for (int i = 0; i < 70000; ++i) y[0] += 1.0;")), Catch::StartsWith("line 307: "));
}

TEST_CASE("long loops: the values of names are found among very many", "[loops]") {
  std::vector<std::string> names;
  for (int i = 0; i < 50'000; ++i) names.push_back("name" + std::to_string(i));
  Values values;
  for (const std::string& name : names) values.add(name, exactly(1));
  // Minutes where each one is compared with every name, and less than a second where it is not.
  const auto begin = std::chrono::steady_clock::now();
  double sum = 0;
  for (int i = 0; i < 400'000; ++i) sum += values.find(names[static_cast<std::size_t>(i) % 100], {})->lo;
  CHECK(sum == 400'000);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));

  values.add(names[0], exactly(2));
  values.add_member(names[0], "x", exactly(3));
  CHECK(values.find(names[0], {})->lo == 2);
  CHECK(values.find(names[0], "x")->lo == 3);
  values.shrink_to(names.size());
  CHECK(values.find(names[0], {})->lo == 1);
  CHECK(values.find(names[0], "x") == nullptr);
}

TEST_CASE("long loops: text that no compiler takes is borne", "[loops]") {
  const std::string many(1000, '(');
  CHECK(told("for (int i = 0; i < " + many + "10" + std::string(1000, ')') + "; ++i) {}").size() == 1);
  CHECK(told("for (int i = 0; i < " + many + "; ++i) {}").size() == 1);
  CHECK(told(std::string(1000, '{') + "for (int i = 0; i < 10; ++i) {}").empty());
  CHECK(told("for ) } ] while do else for (", "#define\n#if\n#endif\n#endif\n#else\n").size() <= 2);
  std::string doubling = "#define A0 y[0] += 1.0;\n";
  for (int i = 0; i < 60; ++i) {
    const std::string before = "A" + std::to_string(i);
    doubling += "#define A" + std::to_string(i + 1) + " " + before + " " + before + "\n";
  }
  CHECK(told("for (int i = 0; i < 10; ++i) { A60 }", doubling).empty());
}

TEST_CASE("dynamic_shaders: a plan tells of long loops where its device is one in software", "[loops]") {
  UserKernelSpec spec = kernel_of("for (int i = 0; i < ROUNDS; ++i) y[0] += 1.0;");
  spec.parameters = {{"ROUNDS", {"10", "70000"}}};
  DeviceInfo device = sample_device();
  const auto notes = [&](const char* variant) {
    const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, variant);
    REQUIRE(plan.has_value());
    return plan->notes;
  };
  CHECK(notes("user:ROUNDS=10").empty());
  CHECK_THAT(only(notes("user:ROUNDS=70000")), Catch::StartsWith("kernel mine.comp, line 6: "));
  device.kind = DeviceKind::gpu;
  CHECK(notes("user:ROUNDS=70000").empty());
}

}  // namespace kiln::dynamic_shaders

// What is asked of the prelude, replaced, refused or called, word by word.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// "#define KILN_USES_a 1" for each of the words, in order.
std::string uses_text(const std::vector<std::string>& words) {
  std::string text = "#define KILN_USES(name) KILN_USES_##name\n";
  for (const std::string& word : words) text += "#define KILN_USES_" + word + " 1\n";
  return text;
}

const std::string enabled = "#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable\n";
const std::string disabled = "#pragma OPENCL EXTENSION __cl_clang_variadic_functions : disable\n";

}  // namespace

TEST_CASE("prelude: a name asks for its parts, and for them without the digits at their ends") {
  const std::pair<const char*, std::vector<std::string>> rows[] = {
      {"", {}},
      {"1 + 2", {}},
      {"f", {"f"}},
      {"f3", {"f", "f3"}},
      {"f8", {"f", "f8", "wide"}},
      {"f16", {"f", "f16", "wide"}},
      {"f18", {"f", "f18", "wide"}},
      {"f6", {"f", "f6"}},
      {"a_b12_c3", {"a", "a_b", "a_b12", "a_b12_c", "a_b12_c3", "b", "b12", "c", "c3"}},
      {"a__b", {"a", "a_", "a__b", "b"}},
      {"_a", {"_a", "a"}},
      {"a_", {"a", "a_"}},
      {"scale_2x", {"scale", "scale_2x"}},
      {"x_16", {"wide", "x", "x_", "x_16"}},
      {"x_16_y", {"wide", "x", "x_", "x_16", "x_16_y", "y"}},
      {"b a b", {"a", "b"}}};
  for (const auto& [text, words] : rows) {
    INFO(text);
    CHECK(uses_of(text) == uses_text(words));
  }
}

TEST_CASE("prelude: a number of double is told at any place of the text") {
  for (const char* const text : {"0.", ".0", "0.0", "00.5", "1e0", "1E9", "9.9", "0X1P3", "0x.8p1", "1e+9;", "1.0l",
                                 "1.0L", "-.5", "1.5*x", "(1.)"}) {
    INFO(text);
    CHECK(uses_of(text).find("KILN_USES_double_literal 1") != std::string::npos);
  }
  for (const char* const text : {"0", "9", "10", "0xE", "0x1e", "1u", "1ul", "a1", "e1", "_1e5", "1.0f", "1.0F", ".5h",
                                 ".5H", "0x1p3F", "1-e", "1+2", "a.b"}) {
    INFO(text);
    CHECK(uses_of(text).find("double_literal") == std::string::npos);
  }
  for (const char* const name : {"M_E", "M_PI_4", "DBL_MAX", "DBL_", "HUGE_VAL"}) {
    INFO(name);
    CHECK(uses_of(name).find("KILN_USES_double_literal 1") != std::string::npos);
  }
  for (const char* const name : {"M_E_F", "M_PI_4_H", "DBL", "HUGE_VALF", "HUGE_VAL_", "AM_PI", "M", "FLT_MAX"}) {
    INFO(name);
    CHECK(uses_of(name).find("double_literal") == std::string::npos);
  }
}

TEST_CASE("prelude: each conversion with saturation and each one to half is corrected") {
  for (const char* const width : {"", "2", "3", "4", "8", "16"}) {
    for (const char* const mode : {"", "_rte", "_rtz", "_rtp", "_rtn"}) {
      for (const char* const type : {"char", "short", "int", "long"}) {
        const std::string name = "convert_" + std::string(type) + width + "_sat" + mode;
        CHECK(corrections_for("a = " + name + "(b);") ==
              "#define " + name + "(...) " + name + "(kiln_number_(__VA_ARGS__))\n");
      }
      const std::string half = "convert_half" + std::string(width) + mode;
      CHECK(corrections_for(half) == "#define " + half + "(...) " + half + "(kiln_in_half_(__VA_ARGS__))\n");
    }
  }
  for (const char* const right : {"convert_uchar_sat", "convert_ulong4_sat", "convert_float", "convert_int",
                                  "convert_half5", "convert_int_sat_rtx", "convert_int1_sat", ""}) {
    CHECK(corrections_for(right) == "");
  }
  const std::string all = corrections_for("a ## b");
  CHECK(std::ranges::count(all, '\n') == 6 * 5 * 5);
}

TEST_CASE("prelude: what is not offered is declared so that each use is an error") {
  const auto function = [](const std::string& declared, const std::string& name) {
    return "__attribute__((overloadable, unavailable(\"" + name + " is not offered\"))) int " + declared + "(...);\n";
  };
  CHECK(refusals_for("") == "");
  CHECK(refusals_for("a + b") == "");
  CHECK(refusals_for("printf") == enabled + function("printf", "printf") + disabled);
  CHECK(refusals_for("to_local(a)") ==
        enabled + function("kiln_no_to_local", "to_local") + disabled + "#define to_local kiln_no_to_local\n");
  CHECK(refusals_for("image2d_t") ==
        "typedef struct { int none; } kiln_no_image2d_t __attribute__((unavailable(\"image2d_t is not offered\")));\n"
        "#define image2d_t kiln_no_image2d_t\n");
  CHECK(refusals_for("read_only a, __write_only b") == "#define read_only \n#define __write_only \n");
  CHECK(refusals_for("sampler_t s = CLK_FILTER_NEAREST | CLK_ADDRESS_CLAMP | CLK_NORMALIZED_COORDS_TRUE;") ==
        "#define CLK_ADDRESS_CLAMP 0\n#define CLK_FILTER_NEAREST 0\n#define CLK_NORMALIZED_COORDS_TRUE 0\n"
        "#define sampler_t uint\n");
  CHECK(refusals_for("CLK_LOCAL_MEM_FENCE CLK_ADDRESS CLK_FILTER printf_ image2d sampler") == "");
}

TEST_CASE("prelude: where identifiers are made by two signs all that is refused is declared") {
  const std::string all = refusals_for("a ## b");
  CHECK(std::ranges::count(all, '\n') == 34 + 2 * 24 + 2 * 16 + 6 + 2);
  for (const char* const word :
       {"capture_event_profiling_info", "write_imageui", "kiln_no_commit_read_pipe", "kiln_no_write_pipe",
        "kiln_no_clk_event_t", "kiln_no_reserve_id_t", "#define __read_write \n"}) {
    INFO(word);
    CHECK(all.find(word) != std::string::npos);
  }
  CHECK(all.find("sampler_t") == std::string::npos);
}

TEST_CASE("prelude: it is a text of its own") {
  CHECK(prelude().size() > 1000);
  CHECK(prelude().back() == '\n');
  CHECK(prelude().find('\0') == std::string_view::npos);
}

TEST_CASE("prelude: what it defines is no call of the library") {
  for (const char* const name : {"sub_group_reduce_add",
                                 "sub_group_reduce_min",
                                 "sub_group_reduce_max",
                                 "sub_group_scan_inclusive_add",
                                 "sub_group_scan_inclusive_min",
                                 "sub_group_scan_inclusive_max",
                                 "sub_group_scan_exclusive_add",
                                 "sub_group_scan_exclusive_min",
                                 "sub_group_scan_exclusive_max",
                                 "atomic_add",
                                 "atomic_sub",
                                 "atomic_min",
                                 "atomic_max",
                                 "atomic_and",
                                 "atomic_or",
                                 "atomic_xor",
                                 "atomic_inc",
                                 "atomic_load",
                                 "atomic_load_explicit",
                                 "atomic_flag_clear",
                                 "work_group_barrier",
                                 "barrier",
                                 "get_global_id",
                                 "fma",
                                 "if",
                                 "for",
                                 "while",
                                 "switch",
                                 "return",
                                 "sizeof",
                                 "vec_type_hint",
                                 "work_group_size_hint",
                                 "reqd_work_group_size",
                                 "aligned",
                                 "__attribute__"}) {
    INFO(name);
    CHECK_FALSE(calls_library("y = " + std::string(name) + "(x);"));
  }
  for (const char* const name :
       {"tgamma", "amd_bfe", "amd_sad4", "work_group_all", "work_group_broadcast", "work_group_reduce_max",
        "work_group_scan_inclusive_add", "atomic_nothing", "sub_group_reduce_mul", "KILN_nothing"}) {
    INFO(name);
    CHECK(calls_library("y = " + std::string(name) + "(x);"));
  }
}

TEST_CASE("prelude: a call is told from a declaration, and from a macro's own name and parameters") {
  for (const char* const text :
       {"do sin(x);", "case sin(x):", "a; sin(x);", "float sin (x), sin(x);", "sin\t\v\f\r\n(x);", "sin(x)",
        "((sin))(x)(sin)(y)", "f = (sin)(x)", "#define S(a) sin\n", "#define S(a, b sin\n#define T sin\n",
        "# define S sin", "#define S \\\n sin\n", "#define S (sin)\n", "#define S(cos) sin\n",
        "#define A(sin) sin\n#define B sin\n", "#undef A\n#define B sin\n", "#define A\nsin(x);", "a##b"}) {
    INFO(text);
    CHECK(calls_library(text));
  }
  for (const char* const text : {"",
                                 "sin",
                                 "sin;",
                                 "sin[0]",
                                 "(sin)",
                                 "(sin);",
                                 "(sin)[1]",
                                 "sin)(x)",
                                 "float sin(x)",
                                 "float\n\tsin(x)",
                                 "#undef sin\n",
                                 "#if sin(x)\n",
                                 "#define sin\n",
                                 "#define sin(x) x\n",
                                 "#define S(sin) sin\n",
                                 "#define S(a, sin) a sin(sin)\n",
                                 "#define S 1 \\\n + 2\n",
                                 "#pragma sin(x)\n",
                                 "#define S(sin, cos) cos \\\n sin\n",
                                 "#ifdef A\n#define sin 1\n"}) {
    INFO(text);
    CHECK_FALSE(calls_library(text));
  }
}

}  // namespace kiln::amdgpu_pm4

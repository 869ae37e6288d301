// Vector comparisons and classes of numbers, with corner operands. The expected values follow the formulas of AMD's
// instruction set references, written anew here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulator/wave/bench.hpp"
#include "tests/simulator/wave/corners.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

}  // namespace

TEST_CASE("simulator corners: every comparison of every type", "[simulator][corners]") {
  const std::pair<const char*, unsigned> float_conditions[] = {
      {"f", 0}, {"lt", 1},  {"eq", 2},   {"le", 3},   {"gt", 4},   {"lg", 5},   {"ge", 6},   {"o", 7},
      {"u", 8}, {"nge", 9}, {"nlg", 10}, {"ngt", 11}, {"nle", 12}, {"neq", 13}, {"nlt", 14}, {"t", 15}};
  const std::pair<const char*, unsigned> integer_conditions[] = {{"f", 0},  {"lt", 1}, {"eq", 2}, {"le", 3},
                                                                 {"gt", 4}, {"ne", 5}, {"ge", 6}, {"t", 7}};
  for (const auto& [name, kind] : types) {
    const std::string suffix = name;
    const Type type = kind;
    Bench bench;
    for (unsigned i = 0; i < 32; ++i) {  // each lane has a first operand, each round a second
      for (unsigned lane = 0; lane < 32; ++lane) {
        set_operand(bench, 2, lane, type, corner(type, lane));
        set_operand(bench, 4, lane, type, corner(type, i));
      }
      const auto check = [&](const char* condition, unsigned mask) {
        U expected = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          if ((order_of(type, corner(type, lane), corner(type, i)) & mask) != 0) expected |= 1U << lane;
        }
        const std::string compare = std::string("v_cmp_") + condition + suffix;
        const std::string exec = std::string("v_cmpx_") + condition + suffix;
        bench.set_exec(0xFFFFFFFF);
        REQUIRE_FALSE(bench.run(
            encode::join({encode::vop3(compare.c_str(), 20, v(2), v(4)), {encode::vopc(exec.c_str(), v(2), v(4))}})));
        INFO(compare << " with second operand " << std::hex << corner(type, i));
        CHECK(bench.sgpr(20) == expected);
        CHECK(bench.exec() == expected);
      };
      if (is_float(type)) {
        for (const auto& [condition, mask] : float_conditions) check(condition, mask);
      } else {
        const bool has_constants = bits_of(type) != 16;  // always and never
        for (const auto& [condition, mask] : integer_conditions) {
          if (has_constants || (mask != 0 && mask != 7)) check(condition, mask);
        }
      }
    }
  }
}

TEST_CASE("simulator corners: classes of numbers", "[simulator][corners]") {
  struct Class {
    unsigned bit;
    W f16, f32, f64;
  };
  const Class classes[] = {{0, 0x7D01, 0x7F800001, 0x7FF0000000000001},
                           {0, 0xFC01, 0xFFBFFFFF, 0xFFF7FFFFFFFFFFFF},
                           {1, 0x7E00, 0x7FC00000, 0x7FF8000000000000},
                           {1, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF},
                           {2, 0xFC00, 0xFF800000, 0xFFF0000000000000},
                           {3, 0xFBFF, 0xFF7FFFFF, 0xFFEFFFFFFFFFFFFF},
                           {3, 0x8400, 0x80800000, 0x8010000000000000},
                           {4, 0x83FF, 0x807FFFFF, 0x800FFFFFFFFFFFFF},
                           {4, 0x8001, 0x80000001, 0x8000000000000001},
                           {5, 0x8000, 0x80000000, 0x8000000000000000},
                           {6, 0, 0, 0},
                           {7, 1, 1, 1},
                           {7, 0x03FF, 0x007FFFFF, 0x000FFFFFFFFFFFFF},
                           {8, 0x0400, 0x00800000, 0x0010000000000000},
                           {8, 0x7BFF, 0x7F7FFFFF, 0x7FEFFFFFFFFFFFFF},
                           {9, 0x7C00, 0x7F800000, 0x7FF0000000000000}};
  struct Name {
    const char *compare, *exec;
    Type type;
  };
  for (const Name& name :
       {Name{"v_cmp_class_f16", "v_cmpx_class_f16", Type::f16}, Name{"v_cmp_class_f32", "v_cmpx_class_f32", Type::f32},
        Name{"v_cmp_class_f64", "v_cmpx_class_f64", Type::f64}}) {
    for (unsigned bit = 0; bit < 10; ++bit) {
      for (const bool inverse : {false, true}) {
        Bench bench;
        U expected = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          const Class& one = classes[lane % 16];
          set_operand(bench, 2, lane, name.type,
                      name.type == Type::f16   ? one.f16
                      : name.type == Type::f32 ? one.f32
                                               : one.f64);
          if ((one.bit == bit) != inverse) expected |= 1U << lane;
        }
        bench.set_vgpr(4, inverse ? 0x3FF & ~(1U << bit) : 1U << bit);
        REQUIRE_FALSE(bench.run(
            encode::join({encode::vop3(name.compare, 20, v(2), v(4)), {encode::vopc(name.exec, v(2), v(4))}})));
        INFO(name.compare << " class " << bit << " inverse " << inverse);
        CHECK(bench.sgpr(20) == expected);
        CHECK(bench.exec() == expected);
      }
    }
  }
}

}  // namespace kiln::simulator::test

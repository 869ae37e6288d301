// The variants of a kernel with parameters, and grids written as expressions.

#include <kiln/kernel_parameters.hpp>

#include <catch2/catch.hpp>

#include <limits>

using namespace kiln;
using Catch::Matchers::Contains;

namespace {

UserKernelSpec with_parameters() {
  UserKernelSpec kernel;
  kernel.path = "tiled.comp";
  kernel.text = "a text";
  kernel.dialect = Dialect::glsl;
  kernel.bindings = {{Access::read_write, 4096}};
  kernel.constants = {{"N", "1000"}};
  kernel.parameters = {{"TILE", {"8", "16"}}, {"UNROLL", {"1", "2", "4"}}};
  kernel.grid_expressions[0] = "(N + TILE - 1) / TILE";
  return kernel;
}

std::string refusal_of(const std::string& expression) {
  const std::vector<Define> names = {{"N", "1000"}, {"WORD", "vec4"}, {"HUGE", "99999999999999999999"}};
  const auto value = value_of(expression, names);
  INFO(expression);
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().code == StatusCode::invalid_argument);
  return value.error().message;
}

}  // namespace

TEST_CASE("grid expressions: the usual precedence, from left to right, with names", "[contract]") {
  const std::vector<Define> names = {{"N", "1000"}, {"TILE_2", "64"}, {"LESS", "-3"}};
  const auto is = [&](std::string_view expression, std::int64_t expected) {
    const auto value = value_of(expression, names);
    INFO(expression << ": " << (value ? "" : value.error().message));
    REQUIRE(value.has_value());
    CHECK(*value == expected);
  };
  is("7", 7);
  is(" 1 + 2 * 3 ", 7);
  is("(1+2)*3", 9);
  is("10 - 2 - 3", 5);
  is("100 / 7 / 2", 7);
  is("17 % 5", 2);
  is("(N + TILE_2 - 1) / TILE_2", 16);
  is("N + LESS", 997);
  is("9223372036854775807", std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("grid expressions: what is none says where and why", "[contract]") {
  CHECK(refusal_of("") == "ends where a number or a name is expected");
  CHECK(refusal_of("1 +") == "ends where a number or a name is expected");
  CHECK(refusal_of("(1 + 2") == "a ')' is missing");
  CHECK(refusal_of("1 2") == "character 3 ('2') is not allowed here");
  CHECK(refusal_of("1 + $") == "character 5 ('$') is not allowed here");
  CHECK(refusal_of("1)") == "character 2 (')') is not allowed here");
  CHECK(refusal_of("M") == "there is no constant or parameter 'M'");
  CHECK(refusal_of("WORD * 2") == "WORD = vec4 is not an integer");
  CHECK(refusal_of("HUGE") == "HUGE = 99999999999999999999 does not fit in 64 bits");
  CHECK(refusal_of("12ab") == "'12ab' is not an integer");
  CHECK(refusal_of("N / (N - 1000)") == "division by zero");
  CHECK(refusal_of("N % 0") == "division by zero");
  CHECK(refusal_of("9223372036854775807 + 1") == "the result does not fit in 64 bits");
  CHECK(refusal_of("9223372036854775807 * 2") == "the result does not fit in 64 bits");
  CHECK_THAT(refusal_of(std::string(100'000, '(')), Contains("more than 64 nested parentheses"));
  CHECK(refusal_of(std::string(65, '(') + "1" + std::string(65, ')')) == "has more than 64 nested parentheses");
  CHECK(value_of(std::string(64, '(') + "1" + std::string(64, ')'), {}).value_or(0) == 1);
  CHECK_THAT(refusal_of(std::string("1\0 2", 4)), Contains("character 2"));
}

TEST_CASE("kernel parameters: every combination is a variant, the first one first", "[contract]") {
  const UserKernelSpec kernel = with_parameters();
  CHECK(validate(kernel).ok());
  CHECK(variants_of(kernel) == std::vector<std::string>{"user:TILE=8,UNROLL=1", "user:TILE=8,UNROLL=2",
                                                        "user:TILE=8,UNROLL=4", "user:TILE=16,UNROLL=1",
                                                        "user:TILE=16,UNROLL=2", "user:TILE=16,UNROLL=4"});
  const auto one = settled(kernel, "user:TILE=16,UNROLL=2");
  REQUIRE(one.has_value());
  CHECK(one->constants == std::vector<Define>{{"N", "1000"}, {"TILE", "16"}, {"UNROLL", "2"}});
  CHECK(one->grid == std::array<std::uint32_t, 3>{63, 1, 1});
  CHECK(one->parameters.empty());
  CHECK(settled(kernel, "user:TILE=32,UNROLL=2").error().code == StatusCode::not_found);
  CHECK(settled(kernel, "user").error().code == StatusCode::not_found);
  UserKernelSpec plain;
  CHECK(variants_of(plain) == std::vector<std::string>{"user"});
  CHECK(settled(plain, "user").value() == plain);
}

TEST_CASE("kernel parameters: texts may hold what parts names from texts", "[contract]") {
  UserKernelSpec kernel = with_parameters();
  kernel.parameters = {{"A", {"1,B=2", "1"}}, {"B", {"2", "2,B=2"}}};
  kernel.grid_expressions[0].clear();
  CHECK(settled(kernel, "user:A=1,B=2,B=2")->constants[1].text == "1,B=2");
}

TEST_CASE("kernel parameters: what cannot be tried is refused in words", "[contract]") {
  const auto refusal = [](auto change) {
    UserKernelSpec kernel = with_parameters();
    change(kernel);
    const Status status = validate(kernel);
    CHECK(status.code == StatusCode::invalid_argument);
    CHECK_THAT(status.message, Catch::StartsWith("kernel tiled.comp: "));
    return status.message;
  };
  CHECK_THAT(refusal([](auto& k) { k.parameters[1].texts.clear(); }), Contains("parameter UNROLL: has no values"));
  CHECK_THAT(refusal([](auto& k) {
               k.parameters[0].texts = {"8", "8"};
             }),
             Contains("parameter TILE: has value '8' twice"));
  CHECK_THAT(refusal([](auto& k) { k.parameters[0].texts = {"8\t"}; }),
             Contains("expected values of one printable line"));
  CHECK_THAT(refusal([](auto& k) { k.parameters[1].name = "TILE"; }), Contains("parameter TILE: is declared twice"));
  CHECK_THAT(refusal([](auto& k) { k.parameters[1].name = "N"; }),
             Contains("parameter N: a constant has the same name"));
  CHECK_THAT(refusal([](auto& k) { k.parameters[1].name = "2X"; }), Contains("parameter '2X': expected letters"));
  CHECK_THAT(refusal([](auto& k) {
               for (int i = 0; i < 1100; ++i) k.parameters[0].texts.push_back(std::to_string(i + 100));
             }),
             Contains("more than 1024 combinations"));
  CHECK_THAT(refusal([](auto& k) { k.grid_expressions[0] = "N / TILE - 62"; }),
             Contains("grid[0] = \"N / TILE - 62\": is 0 in variant user:TILE=16,UNROLL=1, expected 1 to 4294967295"));
  CHECK_THAT(refusal([](auto& k) { k.grid_expressions[2] = "TILES"; }),
             Contains("grid[2] = \"TILES\": there is no constant or parameter 'TILES'"));
}

TEST_CASE("kernel parameters: a grid has 4294967295 workgroups at most", "[contract]") {
  UserKernelSpec kernel = with_parameters();
  kernel.grid_expressions[0] = "4294967295";
  const auto largest = settled(kernel, "user:TILE=16,UNROLL=2");
  REQUIRE(largest);
  CHECK(largest->grid[0] == 4294967295u);
  kernel.grid_expressions[0] = "4294967296";
  CHECK_THAT(validate(kernel).message,
             Contains("is 4294967296 in variant user:TILE=8,UNROLL=1, expected 1 to 4294967295"));
}

TEST_CASE("kernel parameters: what is tried is part of what is computed", "[contract]") {
  const UserKernelSpec kernel = with_parameters();
  UserKernelSpec other = kernel;
  other.parameters[0].texts.push_back("32");
  CHECK(canonical_text(other) != canonical_text(kernel));
  other = kernel;
  std::swap(other.grid_expressions[0], other.grid_expressions[1]);
  CHECK(canonical_text(other) != canonical_text(kernel));
}

TEST_CASE("parameters: failed variants are listed once each, those with one reason together", "[contract]") {
  FailedVariants failed;
  CHECK(failed.empty());
  failed.add("user:A=1",
             invalid_argument("program job/user:A=1: GLSL compiler: 0:1: warning: x\n0:3(7): error: bad\nmore"));
  failed.add("user:A=2", invalid_argument("program job/user:A=2: GLSL compiler: 0:3(7): error: bad"));
  failed.add("user:A=3", timed_out("bench: hung for 20000 ms"));
  failed.add("user:A=1", timed_out("again"));
  CHECK(failed.size() == 3);
  CHECK(failed.contains("user:A=3"));
  CHECK_FALSE(failed.contains("user:A"));
  CHECK(failed.lines()[0] == "user:A=1: invalid_argument: 0:3(7): error: bad");
  CHECK(failed.lines()[1] == "user:A=2: invalid_argument: GLSL compiler: 0:3(7): error: bad");
  CHECK(failed.lines()[2] == "user:A=3: timeout: bench: hung for 20000 ms");
  failed.add("user:A=4", timed_out("bench: hung for 20000 ms"));
  CHECK_THAT(failed.text(), Contains("; user:A=3, user:A=4: timeout: bench: hung"));
  CHECK(short_reason("v", internal_error(std::string(1000, 'x'))).size() == 300 + std::string("internal: ...").size());
}

TEST_CASE("kernel parameters: the letters of a name, and of a text", "[contract]") {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  for (int code = 0; code < 256; ++code) {
    const char letter = static_cast<char>(code);
    INFO("character " << code);
    const bool first = letters.find(letter) != std::string::npos;
    CHECK(is_define_name(std::string(1, letter)) == first);
    CHECK(is_define_name(std::string("a") + letter) == (first || (code >= 48 && code <= 57)));
    CHECK(is_define_text(std::string("a") + letter) == (code != 0 && code != 10 && code != 13 && code != 92));
  }
  CHECK_FALSE(is_define_name(""));
  CHECK(is_define_text(""));
}

TEST_CASE("parameters: at most 16 variants with one reason are named", "[contract]") {
  FailedVariants failed;
  std::string named;
  for (int at = 1; at <= 16; ++at) {
    const std::string variant = "v" + std::to_string(at);
    failed.add(variant, "too large");
    named += (at == 1 ? "" : ", ") + variant;
    CHECK(failed.text() == named + ": too large");
  }
  failed.add("v17", "too large");
  CHECK(failed.text() == named + " and 1 more: too large");
  failed.add("v18", "too large");
  CHECK(failed.text() == named + " and 2 more: too large");
}

TEST_CASE("grid expressions: letters at the ends of the alphabet, spaces, and what leaves 64 bits", "[contract]") {
  const std::vector<Define> names = {{"azAZ_09", "5"}, {"z", "2"}, {"LEAST", "-9223372036854775808"}, {"BACK", "-1"}};
  const auto value = [&](std::string_view expression) {
    const auto found = value_of(expression, names);
    INFO(expression << ": " << (found ? "" : found.error().message));
    REQUIRE(found);
    return *found;
  };
  CHECK(value("azAZ_09*z") == 10);
  CHECK(value("\tz\t+\t1\t") == 3);
  CHECK(value("((((z))))") == 2);
  CHECK(value("LEAST") == std::numeric_limits<std::int64_t>::min());
  CHECK(value("LEAST / 1") == std::numeric_limits<std::int64_t>::min());
  CHECK(value("BACK % 1") == 0);
  CHECK(value("7 / BACK") == -7);
  CHECK(value("7 % BACK") == 0);
  for (const std::string_view expression : {"LEAST / BACK", "LEAST % BACK", "LEAST - 1", "LEAST * z", "LEAST + BACK"}) {
    INFO(expression);
    const auto beyond = value_of(expression, names);
    REQUIRE_FALSE(beyond);
    CHECK(beyond.error().message == "the result does not fit in 64 bits");
  }
  CHECK(refusal_of("(1 2)") == "character 4 ('2') is not allowed here");
  CHECK(refusal_of("1 % 0") == "division by zero");
  const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "1" + std::string(depth, ')'); };
  CHECK(value(nested(64)) == 1);
  CHECK(refusal_of(nested(65)) == "has more than 64 nested parentheses");
  CHECK(value("(1)" + std::string(70, ' ') + "+ (1)") == 2);
}

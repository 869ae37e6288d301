// Units, nearest words and TOML's syntax for values.
#include "core/config/config_fixture.hpp"

#include "base/policy_names.hpp"
#include "config/config_text.hpp"

#include <kiln/config_text.hpp>

#include <array>
#include <limits>

using namespace kiln;
using namespace kiln::config;
using Catch::Matchers::Contains;

TEST_CASE("config::text: sizes", "[config]") {
  CHECK(parse_size("50 MiB").value() == 50ull << 20);
  CHECK(parse_size("500MiB").value() == 500ull << 20);
  CHECK(parse_size("1 GiB").value() == 1ull << 30);
  CHECK(parse_size("4096").value() == 4096);
  CHECK(parse_size(" 7 B ").value() == 7);
  CHECK(parse_size("0").value() == 0);
  CHECK(parse_size("3 KiB").value() == 3072);
  CHECK(parse_size("2 TiB").value() == 2ull << 40);
  for (const char* bad :
       {"", " ", "MiB", "-1", "-1 MiB", "-0.5 MiB", ".5 MiB", "1. MiB", "1,5 MiB", "1.5.5 MiB", "5 MB", "5 mib",
        "5 MiB MiB", "0x10", "+5", "5 Mi B", "9223372036854775808", "9000000000 GiB"}) {
    INFO(bad);
    CHECK(parse_size(bad).error().code == StatusCode::invalid_argument);
  }
  CHECK(parse_size("9223372036854775807 B").value() == 9223372036854775807ull);
  CHECK(parse_size("1.5 GiB").value() == 3ull << 29);
  CHECK(parse_size("0.25KiB").value() == 256);
  CHECK(parse_size("7.0").value() == 7);
  CHECK(parse_size("1.000000000000000000000 MiB").value() == 1ull << 20);
  CHECK_THAT(parse_size("0.1 GiB").error().message,
             Contains("not a whole number of B") && Contains("nearest: \"107374182 B\""));
  CHECK_THAT(parse_size("1.5 B").error().message, Contains("not a whole number of B") && Contains("\"1 B\""));
  CHECK(parse_size("5 MB").error().message ==
        "found \"5 MB\", expected a size such as \"50 MiB\" (units: B, KiB, MiB, GiB, TiB); nearest unit: MiB");
}

TEST_CASE("config::text: durations", "[config]") {
  using namespace std::chrono_literals;
  CHECK(parse_duration("10 s").value() == 10s);
  CHECK(parse_duration("250 ms").value() == 250ms);
  CHECK(parse_duration("30d").value() == 24h * 30);
  CHECK(parse_duration("5 min").value() == 5min);
  CHECK(parse_duration("2h").value() == 2h);
  CHECK(parse_duration("7 us").value() == 7us);
  CHECK(parse_duration("9ns").value() == 9ns);
  CHECK(parse_duration("1.5 s").value() == 1500ms);
  CHECK(parse_duration("0.000000001 s").value() == 1ns);
  CHECK(parse_duration("2.5h").value() == 150min);
  CHECK(parse_duration("0.1 min").value() == 6s);
  CHECK_THAT(parse_duration("0.3 ns").error().message, Contains("not a whole number of ns"));
  CHECK_THAT(parse_duration("1.0000000001 s").error().message,
             Contains("not a whole number of ns") && Contains("nearest: \"1 s\""));
  for (const char* bad : {"", "10", "s", "-1 s", "-1.5 s", "1.5", ".5 s", "1. s", "1e3 s", "10 S", "10 sec", "1 s 2 ms",
                          "99999999999 d"}) {
    INFO(bad);
    CHECK(parse_duration(bad).error().code == StatusCode::invalid_argument);
  }
}

TEST_CASE("config::text: values at the limit of 64 bits, and above it only by a fraction", "[config]") {
  using namespace std::chrono_literals;
  const auto most = parse_duration("9223372036.854775807 s");
  REQUIRE(most);
  CHECK(most->count() == std::numeric_limits<std::int64_t>::max());
  const auto days = parse_duration("106751.99 d");
  REQUIRE(days);
  CHECK(*days == 106751 * 24h + 85536s);
  // Two whose whole part fits and whose sum does not, then two whose whole part does not.
  for (const char* const beyond :
       {"9223372036.854775808 s", "106751.999 d", "9223372036854775807.5 us", "99999999999999999999 ns"}) {
    INFO(beyond);
    const auto duration = parse_duration(beyond);
    REQUIRE_FALSE(duration);
    CHECK(duration.error().message ==
          "found \"" + std::string(beyond) + "\", expected a duration such as \"10 s\": the number is too large");
  }
  for (const char* const beyond : {"9223372036854775808", "8388608 TiB"}) {
    INFO(beyond);
    const auto size = parse_size(beyond);
    REQUIRE_FALSE(size);
    CHECK(size.error().message ==
          "found \"" + std::string(beyond) + "\", expected a size such as \"50 MiB\": the number is too large");
  }
  const auto largest = parse_size("8388607.5 TiB");
  REQUIRE(largest);
  CHECK(*largest == (std::uint64_t{1} << 63) - (std::uint64_t{1} << 39));
}

TEST_CASE("config::text: quantities are printed with the largest unit that divides them, and read back", "[config]") {
  CHECK(print_size(0) == "0 B");
  CHECK(print_size(50 << 20) == "50 MiB");
  CHECK(print_size((1 << 20) + 1) == "1048577 B");
  CHECK(print_duration(10'000'000'000) == "10 s");
  CHECK(print_duration(90'000'000'000) == "90 s");
  CHECK(print_duration(120'000'000'000) == "2 min");
  CHECK(print_duration(1) == "1 ns");
  for (const std::int64_t value :
       {std::int64_t{1}, std::int64_t{1023}, std::int64_t{3} << 30, std::int64_t{86'400'000'000'000}}) {
    CHECK(parse_size(print_size(value)).value() == static_cast<std::uint64_t>(value));
    CHECK(parse_duration(print_duration(value)).value().count() == value);
  }
}

TEST_CASE("config::text: edit distance", "[config]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("policy", "polcy") == 1);
  CHECK(edit_distance("policy", "poilcy") == 1);  // a swap of neighbours is one step
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("lru", "LRU") == 3);
}

TEST_CASE("config::text: the nearest word", "[config]") {
  constexpr std::array<std::string_view, 4> words{"lru", "sieve", "fifo3", "cost"};
  CHECK(nearest_word("lruu", words) == "lru");
  CHECK(nearest_word("fifo", words) == "fifo3");
  CHECK(nearest_word("cots", words) == "cost");
  CHECK(nearest_word("x", std::span<const std::string_view>{}).empty());
  constexpr std::array<std::string_view, 2> units{"B", "MiB"};
  CHECK(nearest_word("MB", units) == "MiB");  // both one step away: the one that begins alike
}

TEST_CASE("config::text: of long words the first 128 letters are compared", "[config]") {
  const std::string longest(128, 'a');
  CHECK(edit_distance("", longest) == 128);
  CHECK(edit_distance("", longest + "a") == 128);
  CHECK(edit_distance(longest + "a", "") == 128);
  CHECK(edit_distance(longest + "xyz", longest) == 0);
  CHECK(edit_distance(longest, longest + "xyz") == 0);
}

TEST_CASE("config::text: a word is close to another where it looks like a typing error", "[config]") {
  const std::array<std::string_view, 3> ids{"cpu", "opengl:0", "amdgpu:0"};
  for (const auto& [typed, close] : {std::pair("opengl0", "opengl:0"),
                                     {"OPENGL:0", "opengl:0"},
                                     {"gpu", "cpu"},
                                     {"amdgpu:1", "amdgpu:0"},
                                     {"opnegl:0", "opengl:0"}}) {
    INFO(typed);
    REQUIRE(close_word(typed, ids).has_value());
    CHECK(*close_word(typed, ids) == close);
  }
  for (const char* typed : {"cuda:0", "vulkan:0", "", "metal"}) CHECK_FALSE(close_word(typed, ids).has_value());
}

TEST_CASE("config::text: values in TOML's syntax", "[config]") {
  CHECK(toml_text("a \"b\" \\ c") == R"("a \"b\" \\ c")");
  CHECK(toml_text("one\ntwo\t\r\x01\x7F") == R"("one\ntwo\t\r\u0001\u007F")");
  CHECK(toml_text("größer") == "\"größer\"");
  CHECK(toml_key("max_disk-2") == "max_disk-2");
  CHECK(toml_key("azAZ09") == "azAZ09");
  for (const char* beside : {"@", "[", "`", "{", "/", ":"}) CHECK(toml_key(beside) == '"' + std::string(beside) + '"');
  CHECK(toml_key("a b") == "\"a b\"");
  CHECK(toml_key("") == "\"\"");
  CHECK(print_number(2.5) == "2.5");
  CHECK(print_number(2) == "2.0");
  CHECK(print_number(-0.0) == "-0.0");
  CHECK(print_number(1e30) == "1e+30");
  CHECK(print_number(0.1) == "0.1");
  CHECK(print_number(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(print_number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(print_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("config::text: names of keys", "[config]") {
  const std::string allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (int code = 0; code < 256; ++code) {
    const char letter = static_cast<char>(code);
    INFO("character " << code);
    CHECK(is_key_name(std::string("a") + letter) == (allowed.find(letter) != std::string::npos));
    CHECK(is_key_name(std::string(1, letter)) == (allowed.find(letter) < allowed.size() - 3 || letter == '_'));
  }
  CHECK_FALSE(is_key_name(""));
  CHECK(is_key_name(std::string(64, 'a')));
  CHECK_FALSE(is_key_name(std::string(65, 'a')));
}

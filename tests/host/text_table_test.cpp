// Tables and figures for people.
#include "text_table.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kiln::host {

TEST_CASE("text table: columns are as wide as their widest cell, numbers stand right") {
  TextTable table({{"device", Align::left}, {"ms", Align::right}, {"notes", Align::left}});
  CHECK(table.text() == "device  ms  notes\n");
  table.add({"cpu", "1.25", ""});
  table.add({"opengl:0", "7", "late"});
  CHECK(table.text() ==
        "device      ms  notes\n"
        "cpu       1.25\n"
        "opengl:0     7  late\n");
  TextTable right({{"n", Align::right}, {"x", Align::right}});
  right.add({"100", "y"});
  CHECK(right.text() == "  n  x\n100  y\n");
}

TEST_CASE("text table: a character of several bytes takes one column, and a row is one line") {
  TextTable table({{"µs", Align::right}, {"name", Align::left}, {"end", Align::left}});
  table.add({"1–2", "é\nb", "x"});
  table.add({"10", "abcdef", "y"});
  const std::string text = table.text();
  CHECK(text.substr(0, text.find('\n')) == " µs  name    end");
  std::size_t lines = 0;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  CHECK(lines == 3);
}

TEST_CASE("figures: about three digits") {
  const std::pair<double, const char*> numbers[] = {
      {0, "0.000"}, {0.0994, "0.099"}, {0.1, "0.10"},    {9.99, "9.99"},    {10, "10.0"},    {99.94, "99.9"},
      {100, "100"}, {1234.5, "1234"},  {99.96, "100.0"}, {0.0996, "0.100"}, {-1.5, "-1.500"}};
  for (const auto& [value, text] : numbers) CHECK(short_number(value) == text);
}

TEST_CASE("figures: sizes in powers of 1024") {
  const std::pair<std::uint64_t, const char*> sizes[] = {{0, "0 B"},
                                                         {1, "1 B"},
                                                         {1023, "1023 B"},
                                                         {1024, "1.0 KiB"},
                                                         {1536, "1.5 KiB"},
                                                         {102'348, "99.9 KiB"},
                                                         {102'400, "100 KiB"},
                                                         {1'048'575, "1024 KiB"},
                                                         {1'048'576, "1.0 MiB"},
                                                         {std::uint64_t{3} << 30, "3.0 GiB"},
                                                         {std::uint64_t{5} << 40, "5.0 TiB"},
                                                         {std::uint64_t{7} << 50, "7168 TiB"}};
  for (const auto& [bytes, text] : sizes) CHECK(human_size(bytes) == text);
}

TEST_CASE("figures: ages in the largest unit that is full, days from the second on") {
  constexpr std::int64_t now = 1'700'000'000, minute = 60, hour = 60 * minute, day = 24 * hour;
  const std::pair<std::int64_t, const char*> ages[] = {{0, "just now"},
                                                       {59, "just now"},
                                                       {-5, "just now"},
                                                       {60, "1 min ago"},
                                                       {119, "1 min ago"},
                                                       {hour - 1, "59 min ago"},
                                                       {hour, "1 h ago"},
                                                       {2 * hour - 1, "1 h ago"},
                                                       {2 * day - 1, "47 h ago"},
                                                       {2 * day, "2 d ago"},
                                                       {30 * day + hour, "30 d ago"}};
  for (const auto& [seconds, text] : ages) CHECK(human_age(now - seconds, now) == text);
  CHECK(human_age(0, now) == "–");
}

TEST_CASE("figures: times in the unit that leaves few digits") {
  const std::pair<double, const char*> times[] = {
      {0.05, "0.050 ms"},     {12.34, "12.3 ms"},    {9999, "9999 ms"},       {10'000, "10.0 s"},
      {599'000, "599 s"},     {600'000, "10.0 min"}, {3'540'000, "59.0 min"}, {35'940'000, "599 min"},
      {36'000'000, "10.0 h"}, {-20'000, "-20.000 s"}};
  for (const auto& [ms, text] : times) CHECK(human_ms(ms) == text);
  CHECK(to_ms(std::uint64_t{2'500'000}) == 2.5);
  CHECK(to_ms(1'250'000.0) == 1.25);
}

TEST_CASE("figures: counts, and values that are unknown") {
  CHECK(counted(0, "program") == "0 programs");
  CHECK(counted(1, "program") == "1 program");
  CHECK(counted(2, "program") == "2 programs");
  CHECK(known(0) == Json(nullptr));
  CHECK(known(7) == Json(7));
  CHECK(known(0.0) == Json(nullptr));
  CHECK(text_or_null("") == Json(nullptr));
  CHECK(text_or_null("a") == Json("a"));
  CHECK(continues_a_character('\xa9'));
  CHECK_FALSE(continues_a_character('\xc3'));
  CHECK_FALSE(continues_a_character('a'));
}

TEST_CASE("figures: a date is local time to the minute") {
  const std::time_t time = 1'700'000'000;
  std::tm parts{};
  REQUIRE(localtime_r(&time, &parts) != nullptr);
  char expected[64];
  std::snprintf(expected, sizeof expected, "%04d-%02d-%02d %02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min);
  CHECK(human_date(time) == expected);
}

TEST_CASE("problems of a configuration: without a file or a line they have null there") {
  std::vector<ConfigProblem> problems(3);
  problems[0].place.file = "a.toml";
  problems[0].place.line = 3;
  problems[0].place.column = 7;
  problems[0].message = "first";
  problems[1].place.file = "--set";
  problems[1].message = "second";
  problems[2].message = "third";
  CHECK(config_problems_json(problems).dump() ==
        R"([{"file":"a.toml","line":3,"column":7,"message":"first"},)"
        R"({"file":"--set","line":null,"column":null,"message":"second"},)"
        R"({"file":null,"line":null,"column":null,"message":"third"}])");
  CHECK(config_problems_json({}).dump() == "[]");
}

}  // namespace kiln::host

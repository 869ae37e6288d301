// The tree that the TOML library's answer is turned into: kinds, places, order, and the bounds on depth.
#include "core/config/config_fixture.hpp"

#include "config/toml_document.hpp"

#include <variant>

using namespace kiln::config;

namespace {

TomlNode parsed(const std::string& text) {
  auto result = parse_toml(text);
  REQUIRE(std::holds_alternative<TomlNode>(result));
  return std::get<TomlNode>(std::move(result));
}

TomlFailure refused(const std::string& text) {
  auto result = parse_toml(text);
  REQUIRE(std::holds_alternative<TomlFailure>(result));
  return std::get<TomlFailure>(std::move(result));
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("config::toml: kinds and places", "[config]") {
  const TomlNode root = parsed("z = 1\na = -2.5\n[t]\nb = true\n  s = 'text'\nd = 2024-01-31\nl = [1, [2]]\n");
  REQUIRE(root.members.size() == 3);
  CHECK(root.members[0].key == "z");  // in the order of the file, not of the alphabet
  CHECK(root.members[0].value.integer == 1);
  CHECK(root.members[0].value.at == TextPosition{1, 5});
  CHECK(root.members[1].value.number == -2.5);
  const TomlMember& table = root.members[2];
  CHECK(table.at == TextPosition{3, 2});
  CHECK(table.value.kind == TomlKind::table);
  REQUIRE(table.value.members.size() == 4);
  CHECK(table.value.members[0].value.boolean);
  CHECK(table.value.members[1].value.text == "text");
  CHECK(table.value.members[1].at == TextPosition{5, 3});
  CHECK(table.value.members[2].value.kind == TomlKind::moment);
  CHECK(table.value.members[2].value.text == "2024-01-31");
  REQUIRE(table.value.members[3].value.items.size() == 2);
  CHECK(table.value.members[3].value.items[1].items[0].integer == 2);
  CHECK(table.value.members[3].value.items[1].at == TextPosition{7, 9});
}

TEST_CASE("config::toml: an empty text is an empty table", "[config]") {
  CHECK(parsed("").kind == TomlKind::table);
  CHECK(parsed("# nothing\n").members.empty());
}

TEST_CASE("config::toml: failures have a place", "[config]") {
  CHECK(refused("a = 1\nb = \"x").at == TextPosition{2, 7});
  CHECK(refused("a = 1\na = 2\n").at.line == 2);
  CHECK_FALSE(refused("[a").message.empty());
}

TEST_CASE("config::toml: depth is bounded", "[config]") {
  CHECK(parsed(repeated("a.", 15) + "a = 1").members.size() == 1);
  const TomlFailure failure = refused("x = 1\n" + repeated("a.", 16) + "a = 1");
  CHECK(failure.at == TextPosition{2, 32});
  CHECK(failure.message == "a key has more than 16 parts");
  CHECK_FALSE(refused("[" + repeated("a.", 100'000) + "a]").message.empty());
  CHECK_FALSE(refused("x = " + repeated("[", 100'000)).message.empty());
  CHECK_FALSE(refused("x = " + repeated("{a=", 100'000)).message.empty());
}

TEST_CASE("config::toml: dots inside texts and comments are no key's parts", "[config]") {
  const std::string dots(100, '.');
  CHECK(parsed("# " + dots + "\na = \"" + dots + "\" # " + dots + "\n").members.size() == 1);
  CHECK(parsed("a = '" + dots + "'\nb = \"\"\"\n" + dots + "\n\\\"" + dots + "\"\"\"\n").members.size() == 2);
  CHECK(parsed("a = '''\n" + dots + "\n" + dots + "'''\n").members.size() == 1);
  CHECK(parsed("a = [" + repeated("1.5, ", 40) + "]\n").members[0].value.items.size() == 40);
  CHECK(parsed("\"" + dots + "\" = \"\\\"" + dots + "\"\n").members.size() == 1);
}

TEST_CASE("config::toml: characters beyond ASCII stand in quotes and comments only", "[config]") {
  CHECK(parsed("\xEF\xBB\xBF# größer\na = \"größer\" # ѕ\nb = 'ѕ'\n\"ѕ\" = 1\n").members.size() == 3);
  CHECK(parsed("a = '''ѕ'''''\n").members[0].value.text == "ѕ''");
  CHECK(parsed("a = \"\"\"ѕ\\\"ѕ\"\"\"\"\n").members[0].value.text == "ѕ\"ѕ\"");
  for (const char* text :
       {"ѕ = 1", "a = ѕ", "a = 1 ѕ", "a.ѕ = 1", "[ѕ]", "a = '''x'''' ѕ", "a = [1, ѕ]", "a\xC2\xA0= 1"}) {
    INFO(text);
    CHECK(refused(text).at.line == 1);
  }
  CHECK_THAT(refused("a = 1 ѕ").message, Catch::Matchers::EndsWith("saw 'ѕ'"));
  CHECK(refused("a = \"ö\" ö").at == TextPosition{1, 9});
  CHECK(refused("a = \"\"\"x \\ѕ\"\"\"").at == TextPosition{1, 11});
  CHECK(parsed("a = \"\"\"x \\\n  ѕ\"\"\"").members[0].value.text == "x ѕ");
  CHECK(parsed("a = \"\"\"x \\\n  \\u0455\"\"\"").members[0].value.text == "x ѕ");
}

// Each stands where the library looks for white space; the quote inside a number is none to it.
TEST_CASE("config::toml: a number that goes on beyond ASCII is refused", "[config]") {
  for (const char* text : {"a = 3\"ѕ\"", "a = 3\"M.u ѕ", "a = 3 é", "a = 3\"あ", "a = 3\"M\nѕ = 1"}) {
    INFO(text);
    CHECK(refused(text).at.line == 1);
  }
}

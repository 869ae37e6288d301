// docs/plugin-contract.md: every rule names tests, and they exist.
#include <catch2/catch.hpp>

#include <set>
#include <sstream>

#include "core/plugin/plugin_folder.hpp"

using namespace kiln::test;

namespace {

// The texts between `before` and the next `after`.
std::vector<std::string> between(const std::string& text, const std::string& before, const std::string& after) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    const std::size_t end = text.find(after, at);
    if (end == std::string::npos) break;
    found.push_back(text.substr(at, end - at));
    at = end + after.size();
  }
  return found;
}

std::set<std::string> tests_there_are() {
  std::set<std::string> names;
  const std::filesystem::path tests = std::filesystem::path(KILN_SOURCE_DIR) / "tests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp") {
      for (const std::string& name : between(read_file(entry.path()), "TEST_CASE(\"", "\"")) names.insert(name);
    } else if (entry.path().filename() == "CMakeLists.txt") {
      for (const std::string& name : between(read_file(entry.path()), "add_test(NAME ", "\n")) names.insert(name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("contract page: every numbered rule names a test that exists") {
  const std::set<std::string> tests = tests_there_are();
  std::istringstream page(read_file(std::filesystem::path(KILN_SOURCE_DIR) / "docs/plugin-contract.md"));
  int rules = 0;
  std::size_t tests_of_rule = 1;
  for (std::string line; std::getline(page, line);) {
    INFO(line);
    if (line.starts_with(std::to_string(rules + 1) + ". ")) {
      CHECK(tests_of_rule > 0);  // of the rule before
      ++rules;
      tests_of_rule = 0;
    }
    const std::size_t list = line.find("Test: ");
    if (list == std::string::npos) continue;
    for (const std::string& name : between(line.substr(list), "`", "`")) {
      INFO(name);
      CHECK(tests.contains(name));
      ++tests_of_rule;
    }
  }
  CHECK(tests_of_rule > 0);
  CHECK(rules >= 20);
}

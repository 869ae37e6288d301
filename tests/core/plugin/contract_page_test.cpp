// docs/plugin-contract.md: the table of tests has a test for every rule, and each test exists.
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
  std::set<int> tested;
  for (std::string line; std::getline(page, line);) {
    INFO(line);
    if (line.starts_with(std::to_string(rules + 1) + ". ")) ++rules;
    // A row of the table of tests: | rule | `test` |
    const std::vector<std::string> names = between(line, " | `", "` |");
    if (!line.starts_with("| ") || line.size() < 3 || line[2] < '0' || line[2] > '9' || names.size() != 1) continue;
    CHECK(tests.contains(names[0]));
    tested.insert(std::stoi(line.substr(2)));
  }
  CHECK(rules >= 20);
  CHECK(static_cast<int>(tested.size()) == rules);
  CHECK((!tested.empty() && *tested.begin() == 1 && *tested.rbegin() == rules));
}

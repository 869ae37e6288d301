// Every file of tests/golden/config/bad against the exact problems it must give.
#include "core/config/config_fixture.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

// The same text with the golden folder cut off the names of files.
std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("config: every bad file gives its golden problems", "[config]") {
  const std::filesystem::path folder = source_dir() / "tests/golden/config/bad";
  const std::vector<std::filesystem::path> files = files_with(folder, ".toml");
  CHECK(files.size() >= 40);
  CHECK(files_with(folder, ".expected").size() == files.size());
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    ConfigSources sources = at_home();
    sources.file = file;
    const ConfigReading reading = read_config(sources);
    CHECK_FALSE(reading.problems.empty());
    std::string found;
    for (const ConfigProblem& problem : reading.problems) {
      CHECK(problem.place.line > 0);
      CHECK(problem.place.column > 0);
      found += without_folder(problem.text(), folder.string() + "/") + "\n";
    }
    CHECK(found == file_text(std::filesystem::path(file).replace_extension(".expected")));
  }
}

TEST_CASE("config: a job with a problem is left out, the others are kept", "[config]") {
  const ConfigReading reading = read_text(R"(
[[job]]
name = "bad"
op = "gemm"
m = 0
n = 1
k = 1
input = "random:1"
weights = "random:2"

[[job]]
name = "good"
op = "gemm"
m = 2
n = 3
k = 4
input = "random:1"
weights = "random:2"
)");
  CHECK(reading.problems.size() == 1);
  REQUIRE(reading.config.jobs.size() == 1);
  CHECK(reading.config.jobs[0].name == "good");
}

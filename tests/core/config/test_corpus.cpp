// The fuzzer's kept corpus through the reader: no crash, and the same answer twice.
#include "core/config/config_fixture.hpp"

#include "config/job_reader.hpp"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("config: the kept corpus is read, twice the same", "[config]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/corpus/config")) {
    INFO(entry.path().filename().string());
    ++files;
    const std::string text = file_text(entry.path());
    const ConfigReading first = read_text(text), second = read_text(text);
    CHECK(texts(first.problems) == texts(second.problems));
    CHECK(show_config(first.config, {}) == show_config(second.config, {}));
    for (const std::string& problem : texts(first.problems)) CHECK(problem.find('\n') == std::string::npos);
    ConfigSources argument = at_home();
    argument.set = {text};
    for (const std::string& problem : texts(read_text("", argument).problems))
      CHECK(problem.find('\n') == std::string::npos);
    const config::JobTable table = config::parse_job_table(text, "test.csv");
    CHECK((!table.rows.empty() || !table.problems.empty()));
  }
  CHECK(files >= 10);
}

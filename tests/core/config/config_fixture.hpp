// What the tests of the configuration share: sources with a fixed home, problems as texts, files of the source tree.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/config_reader.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

inline std::filesystem::path source_dir() { return KILN_SOURCE_DIR; }

inline ConfigSources at_home() {
  ConfigSources sources;
  sources.environment = {{"HOME", "/home/person"}};
  return sources;
}

inline std::vector<std::string> texts(const std::vector<ConfigProblem>& problems) {
  std::vector<std::string> out;
  for (const ConfigProblem& problem : problems) out.push_back(problem.text());
  return out;
}

inline ConfigReading read_text(std::string_view text, const ConfigSources& sources = at_home()) {
  return read_config_text(text, "test.toml", sources);
}

// The reading of a text that has no problem.
inline Config read_valid(std::string_view text, const ConfigSources& sources = at_home()) {
  ConfigReading reading = read_text(text, sources);
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  return std::move(reading.config);
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// Each line of a text without its line's end.
inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

inline std::vector<std::filesystem::path> files_with(const std::filesystem::path& folder,
                                                     const std::string& extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace kiln::test

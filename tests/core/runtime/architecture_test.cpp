// docs/architecture.md: its listings are the source, and includes follow its layers.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path root = KILN_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The fenced C++ blocks of a page.
std::vector<std::string> listings(const std::string& page) {
  const std::string begin = "```cpp\n", end = "```\n";
  std::vector<std::string> found;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    const std::size_t stop = page.find(end, at);
    REQUIRE(stop != std::string::npos);
    found.push_back(page.substr(at, stop - at));
    at = stop + end.size();
  }
  return found;
}

struct Include {
  fs::path file;     // relative to the root
  std::string name;  // as written, without quotes or brackets
  bool quoted = false;
};

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".hpp"; }

std::vector<Include> includes_below(const std::string& folder) {
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("#include ") || line.size() < 12) continue;
      const char open = line[9];
      const std::size_t close = line.find(open == '"' ? '"' : '>', 10);
      if (close == std::string::npos) continue;
      found.push_back({fs::relative(entry.path(), root), line.substr(10, close - 10), open == '"'});
    }
  }
  return found;
}

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

std::set<std::string> folders_of(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(root / folder)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("docs/architecture.md: its listings are the source") {
  const std::string source = text_of(root / "core/runtime/runtime.cpp") + text_of(root / "core/cache/tiered_cache.cpp");
  const std::vector<std::string> shown = listings(text_of(root / "docs/architecture.md"));
  REQUIRE(shown.size() == 2);
  for (const std::string& listing : shown) {
    INFO(listing);
    CHECK(source.find(listing) != std::string::npos);
  }
}

TEST_CASE("architecture: within core no include points up") {
  // What each folder may include, beside itself and the public headers.
  const std::map<std::string, std::set<std::string>> below = {
      {"base", {}},
      {"json", {}},
      {"contract", {}},
      {"reference", {"contract"}},
      {"executor", {}},
      {"data", {"base", "config"}},
      {"config", {"base"}},
      {"plugin", {"base"}},
      {"selector", {"base"}},
      {"cache", {"base"}},
      {"cache_admin", {"base", "cache"}},
      {"runtime",
       {"base", "cache", "cache_admin", "config", "contract", "executor", "plugin", "reference", "selector"}},
      {"c_interface", {"base", "cache", "cache_admin", "config", "data", "executor", "plugin", "runtime", "selector"}},
  };
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(root / "core")) {
    if (!entry.is_directory() || entry.path().filename() == "include") continue;
    const std::string folder = entry.path().filename().string();
    INFO("core/" << folder << " has no place in the layers");
    REQUIRE(below.contains(folder));
    for (const Include& include : includes_below("core/" + folder)) {
      const std::string other = first_folder(include.name);
      if (!include.quoted || other == folder || !below.contains(other)) continue;
      ++seen;
      CAPTURE(include.file.string(), include.name);
      CHECK(below.at(folder).contains(other));
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("architecture: public headers include public headers alone, and so do plugins") {
  for (const Include& include : includes_below("core/include")) {
    CAPTURE(include.file.string(), include.name);
    CHECK_FALSE(include.quoted);
  }
  const std::set<std::string> core = folders_of("core"), plugins = folders_of("plugins");
  REQUIRE(core.contains("runtime"));
  REQUIRE(plugins.contains("cpu"));
  for (const Include& include : includes_below("plugins")) {
    if (!include.quoted) continue;
    CAPTURE(include.file.string(), include.name);
    const std::string plugin = std::next(include.file.begin())->string();  // plugins/<plugin>/…
    const std::string folder = first_folder(include.name);
    if (core.contains(folder)) CHECK(fs::exists(root / "plugins" / plugin / include.name));
    if (plugins.contains(folder)) CHECK(folder == plugin);
  }
  for (const Include& include : includes_below("simulator")) {
    CAPTURE(include.file.string(), include.name);
    CHECK_FALSE(include.name.starts_with("kiln/"));
  }
}

// A release builds everything else as hidden (core/CMakeLists.txt).
TEST_CASE("architecture: public headers declare their names as visible") {
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(root / "core/include/kiln")) {
    CAPTURE(entry.path().string());
    CHECK(text_of(entry.path()).find("namespace [[gnu::visibility(\"default\")]] ") != std::string::npos);
    ++seen;
  }
  CHECK(seen > 40);
}

// In a release libkiln_core.so exports nothing else: what includes more does not link there.
TEST_CASE("architecture: the command and the examples include public headers and their own alone") {
  for (const std::string folder : {"host", "examples"}) {
    std::size_t seen = 0;
    for (const Include& include : includes_below(folder)) {
      CAPTURE(include.file.string(), include.name);
      ++seen;
      if (!include.quoted || include.name == "commit.hpp") continue;  // which the build writes
      CHECK(
          (fs::exists(root / folder / include.name) || fs::exists((root / include.file).parent_path() / include.name)));
    }
    CHECK(seen > 30);
  }
}

TEST_CASE("architecture: number of source files and folders") {
  std::size_t files = 0;
  std::set<fs::path> folders;
  for (const char* top : {"core", "host", "plugins", "simulator", "benchmarks", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files;
      folders.insert(entry.path().parent_path());
    }
  }
  std::cout << "sources outside tests: " << files << " files in " << folders.size() << " folders\n";
  CHECK(files > 0);
}

#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("help lists every verb and ends with 0") {
  const Finished help = run_kiln({"--help"});
  CHECK(help.status == 0);
  for (const char* verb : {"run", "devices", "plugins", "config check", "config show"})
    CHECK_THAT(help.out, Contains(verb));
  CHECK(help.err == "");
}

TEST_CASE("each verb has its own help") {
  for (const char* verb : {"run", "devices", "plugins"}) {
    const Finished help = run_kiln({verb, "--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Contains("Usage: kiln " + std::string(verb)));
  }
  CHECK_THAT(run_kiln({"config", "check", "--help"}).out, Contains("Usage: kiln config check"));
}

TEST_CASE("the version is told") { CHECK_THAT(run_kiln({"--version"}).out, Contains("kiln 0.")); }

TEST_CASE("usage errors end with 2 and name what was given and what is expected") {
  const struct {
    std::vector<std::string> words;
    std::vector<std::string> says;
  } cases[] = {
      {{}, {"no verb", "run", "config check"}},
      {{"fly"}, {"'fly'", "expected one of", "run"}},
      {{"config", "burn"}, {"'config burn'", "config check"}},
      {{"run"}, {"kiln run", "no configuration file"}},
      {{"run", "a.toml", "b.toml"}, {"unexpected argument 'b.toml'"}},
      {{"run", "a.toml", "--repeat", "0"}, {"--repeat 0", "1 to 1000000"}},
      {{"run", "a.toml", "--jobs", "0"}, {"--jobs 0", "1 to 64"}},
      {{"cache", "warm", "--top=-1"}, {"--top -1", "1 to 1000000"}},
      {{"tune", "audit", "--sample=-1"}, {"--sample -1", "1 to 1000000"}},
      {{"devices", "--jobs", "2"}, {"--jobs is not supported"}},
      {{"run", "a.toml", "--repeat", "many"}, {"many"}},
      {{"run", "a.toml", "--progress", "loud"}, {"loud", "auto, plain or none"}},
      {{"run", "a.toml", "--no-such-option"}, {"--no-such-option"}},
  };
  for (const auto& one : cases) {
    const Finished finished = run_kiln(one.words);
    CHECK(finished.status == 2);
    CHECK(finished.out == "");
    for (const std::string& text : one.says) CHECK_THAT(finished.err, Contains(text));
  }
}

TEST_CASE("the list of verbs has its summaries in one column") {
  std::istringstream help(run_kiln({"--help"}).out);
  std::size_t verbs = 0;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (line == "Verbs:") listed = true;
    if (listed && line.empty()) break;
    if (!line.starts_with("  ")) continue;
    ++verbs;
    INFO(line);
    const std::size_t gap = line.find("  ", 2), summary = line.find_first_not_of(' ', gap);
    REQUIRE(gap != std::string::npos);
    // "…" has three bytes, and takes one column.
    const auto columns_before = [&line](std::size_t end) {
      return std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end),
                           [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    };
    CHECK(columns_before(summary) == std::max<std::ptrdiff_t>(30, columns_before(gap) + 2));
  }
  CHECK(verbs > 40);
}

TEST_CASE("usage errors are these words, and the last number that is allowed is none") {
  const std::string numbers = ": expected 1 to ";
  const struct {
    std::vector<std::string> words;
    std::string says;  // behind "kiln: "
  } cases[] = {
      {{"run", "a.toml", "--repeat", "1000001"}, "--repeat 1000001" + numbers + "1000000"},
      {{"run", "a.toml", "--jobs", "65"}, "--jobs 65" + numbers + "64"},
      {{"bench", "--passes", "0"}, "--passes 0" + numbers + "9"},
      {{"bench", "--passes", "10"}, "--passes 10" + numbers + "9"},
      {{"cache", "warm", "--top", "0"}, "--top 0" + numbers + "1000000"},
      {{"cache", "warm", "--top", "1000001"}, "--top 1000001" + numbers + "1000000"},
      {{"tune", "audit", "--sample", "1000001"}, "--sample 1000001" + numbers + "1000000"},
      {{"run", "a.toml", "--verify=all"}, "--verify=all: expected --verify or --verify=steps"},
      {{"run", "a.toml", "--device", ""}, "--device '': expected auto or a device id, as listed by `kiln devices`"},
      {{"run", "a.toml", "--progress", "loud"}, "--progress loud: expected auto, plain or none"},
      {{"tune", "a.toml", "--budget", "x"}, "--budget: found \"x\", expected a duration such as \"10 s\""},
      {{"cache", "list", "x"}, "kiln cache list: unexpected argument 'x' after 'list'"},
      {{"cache", "inspect", "a", "b"}, "kiln cache inspect: unexpected argument 'b' after 'a'"},
      {{"cache", "inspect"}, "kiln cache inspect: no argument given; usage: kiln cache inspect LABEL|KEY"},
      {{"cache", "inspect", ""}, "kiln cache inspect: no argument given; usage: kiln cache inspect LABEL|KEY"},
      {{"cache", "persist", "a", ""}, "kiln cache persist: empty argument; usage: kiln cache persist [LABEL|KEY...]"},
      {{"cache", "export", "", "a"}, "kiln cache export: empty argument; usage: kiln cache export FILE [LABEL|KEY...]"},
      {{"simulate"}, "kiln simulate: no command given; usage: kiln simulate [--target NAME] -- COMMAND…"},
      {{"simulate", "--", ""}, "kiln simulate: no command given; usage: kiln simulate [--target NAME] -- COMMAND…"},
      {{"run"}, "kiln run: no configuration file given; usage: kiln run CONFIG"},
      {{"config"}, "verb 'config': expected one of config check, config show; nearest: config; see kiln --help"}};
  for (const auto& one : cases) {
    const Finished finished = run_kiln(one.words);
    CHECK(finished.status == 2);
    CHECK(finished.out == "");
    CHECK(finished.err == "kiln: " + one.says + "\n");
  }
  for (const std::vector<std::string>& last : {std::vector<std::string>{"--repeat", "1000000"},
                                               {"--jobs", "64"},
                                               {"--jobs", "1"},
                                               {"--verify=steps"},
                                               {"--progress", "none"}}) {
    std::vector<std::string> words{"run", "/no/such/file.toml"};
    words.insert(words.end(), last.begin(), last.end());
    const Finished finished = run_kiln(words);
    INFO(finished.err);
    CHECK_THAT(finished.err, Contains("/no/such/file.toml") && !Contains("expected 1 to"));
  }
}

TEST_CASE("help and version are verbs too, and -h is help") {
  const std::string overall = run_kiln({"--help"}).out;
  const std::string of_run = run_kiln({"run", "--help"}).out;
  const std::string of_list = run_kiln({"cache", "list", "--help"}).out;
  const struct {
    std::vector<std::string> words;
    std::string out;
  } cases[] = {{{"help"}, overall},
               {{"-h"}, overall},
               {{"help", "run"}, of_run},
               {{"run", "-h"}, of_run},
               {{"-h", "run"}, of_run},
               {{"help", "cache", "list"}, of_list},
               {{"cache", "list", "-h"}, of_list},
               {{"help", "cache"}, run_kiln({"cache", "--help"}).out},
               {{"version"}, run_kiln({"--version"}).out}};
  for (const auto& one : cases) {
    const Finished finished = run_kiln(one.words);
    INFO(one.words[0] << " " << finished.err);
    CHECK(finished.status == 0);
    CHECK_FALSE(one.out.empty());
    CHECK(finished.out == one.out);
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"help", "fly"}, {"fly", "--help"}}) {
    const Finished finished = run_kiln(words);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("'fly'"));
  }
  // Behind "--" stands another command's line.
  const Finished other = run_kiln({"simulate", "--", "/bin/echo", "-h"});
  CHECK_THAT(other.out, !Contains("Usage"));
}

TEST_CASE("a mistyped verb or option gets the nearest one") {
  const struct {
    std::vector<std::string> words;
    const char* nearest;  // null: none is close
  } cases[] = {{{"rnu", "a.toml"}, "run"},
               {{"devcies"}, "devices"},
               {{"Run", "a.toml"}, "run"},
               {{"cache", "lst"}, "cache list"},
               {{"cahce", "list"}, "cache list"},
               {{"cofnig", "check", "a.toml"}, "config check"},
               {{"hlep"}, "help"},
               {{"run", "a.toml", "--devcie", "cpu"}, "--device"},
               {{"run", "a.toml", "--repeet", "2"}, "--repeat"},
               {{"devices", "--jsno"}, "--json"},
               {{"teleport"}, nullptr},
               {{"run", "a.toml", "--zzzzzz"}, nullptr}};
  for (const auto& one : cases) {
    const Finished finished = run_kiln(one.words);
    INFO(finished.err);
    CHECK(finished.status == 2);
    if (one.nearest != nullptr) {
      CHECK_THAT(finished.err, Contains("; nearest: " + std::string(one.nearest) + ";"));
    } else {
      CHECK_THAT(finished.err, !Contains("nearest"));
    }
  }
}

TEST_CASE("a closed standard output is an error that is told") {
  std::string command = KILN_BINARY_DIR;
  command += "/bin/kiln --help >/dev/full";
  const Finished finished = run_process({"sh", "-c", command});
  CHECK(finished.status != 0);
}

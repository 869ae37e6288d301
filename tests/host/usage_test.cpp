#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

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

#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("help lists every verb and ends with 0") {
  const Finished help = run_kiln({"--help"});
  CHECK(help.status == 0);
  for (const char* verb : {"run", "devices", "plugins", "config check", "config show"})
    CHECK_THAT(help.out, Contains(verb));
  CHECK(help.err.empty());
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
      {{"devices", "--jobs", "2"}, {"takes no --jobs"}},
      {{"run", "a.toml", "--repeat", "many"}, {"many"}},
      {{"run", "a.toml", "--progress", "loud"}, {"loud", "auto, plain or none"}},
      {{"run", "a.toml", "--no-such-option"}, {"--no-such-option"}},
  };
  for (const auto& one : cases) {
    const Finished finished = run_kiln(one.words);
    CHECK(finished.status == 2);
    CHECK(finished.out.empty());
    for (const std::string& text : one.says) CHECK_THAT(finished.err, Contains(text));
  }
}

TEST_CASE("a closed standard output is an error that is told") {
  std::string command = KILN_BINARY_DIR;
  command += "/bin/kiln --help >/dev/full";
  const Finished finished = run_process({"sh", "-c", command});
  CHECK(finished.status != 0);
}

// What a person at a terminal sees while it lasts, and that nobody else sees anything of it.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "report/run_progress.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::WarmingState;
using kiln::host::warming_text;

TEST_CASE("warming_text: a bar of twenty places, and how many of how many; nothing where nothing is under way") {
  CHECK(warming_text({.running = true, .done = 0, .of = 8}) == "warming [--------------------] 0 of 8");
  CHECK(warming_text({.running = true, .done = 3, .of = 8}) == "warming [#######-------------] 3 of 8");
  CHECK(warming_text({.running = true, .done = 8, .of = 8}) == "warming [####################] 8 of 8");
  CHECK(warming_text({.running = false, .done = 3, .of = 8}).empty());
  CHECK(warming_text({.running = true}).empty());  // not known yet how many
}

TEST_CASE("kiln cache warm and kiln run: on a terminal a line that is redrawn and wiped, elsewhere nothing") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("two.toml", conv_3x3("one") + conv_3x3("two", {.channels = 3, .size = 32, .filters = 32}));
  const std::string wiped = "\r\033[K";
  const auto kiln = [&](std::vector<std::string> words, StandardOutput errors) {
    words.insert(words.end(), {file, "--device", "opengl:0", "--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(std::move(words), {.errors = errors});
    INFO(finished.out << finished.err);
    CHECK(finished.status == 0);
    return finished;
  };
  const Finished shown = kiln({"cache", "warm"}, StandardOutput::terminal);
  CHECK_THAT(shown.err, Contains(wiped + "opengl:0: program 1 of ") && Contains(wiped + "opengl:0: program 2 of "));
  CHECK(shown.err.ends_with(wiped));
  CHECK_THAT(shown.out, Contains(" linked in "));
  CHECK(kiln({"cache", "warm"}, StandardOutput::pipe).err.empty());
  const Finished ran = kiln({"run"}, StandardOutput::terminal);
  CHECK_THAT(ran.err, Contains(wiped + "one") || Contains(wiped + "job"));
  CHECK(ran.err.ends_with(wiped));
  CHECK(kiln({"run"}, StandardOutput::pipe).err.empty());
}

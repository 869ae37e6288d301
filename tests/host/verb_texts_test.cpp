// What verbs say to people where other tests look at their JSON, and what they refuse, in these words.
#include "host/stored_cache.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// One user's folders: for the cache, the key and the configuration.
struct TextUser {
  TemporaryFolder folder;

  Finished kiln(std::vector<std::string> words, ProcessOptions options = {}) const {
    options.environment.emplace("KILN_CACHE_DIR", folder / "cache");
    options.environment.emplace("KILN_KEY_FILE", folder / "state/key");
    options.environment.emplace("XDG_CONFIG_HOME", folder / "config");
    options.environment.emplace("KILN_CONFIG", "");
    return run_kiln(std::move(words), options);
  }
  // What a verb without fault says.
  std::string said(const std::vector<std::string>& words) const {
    const Finished finished = kiln(words);
    INFO(words[0] << " " << finished.err << finished.out);
    CHECK(finished.status == 0);
    CHECK(finished.err.empty());
    return finished.out;
  }
};

}  // namespace

TEST_CASE("verb texts: what is missing or too much is told with the usage") {
  const TextUser user;
  const std::string key(64, 'a');
  const struct {
    std::vector<std::string> words;
    std::string says;  // behind "kiln: "
  } cases[] = {
      {{"cache", "export"}, "kiln cache export: no file named; usage: kiln cache export FILE [LABEL|KEY...]"},
      {{"cache", "export", "--show-key", "x"},
       "kiln cache export --show-key: unexpected argument 'x'. --show-key writes no file"},
      {{"cache", "import", "x"},
       "kiln cache import: no --trust (expected the public key of the exporting machine). Print the key there with "
       "`kiln "
       "cache export --show-key`"},
      {{"cache", "key", "trust", "n"},
       "kiln cache key trust: found 0 keys, expected one; usage: kiln cache key trust NAME KEY|FILE"},
      {{"cache", "key", "trust", "n", key, key},
       "kiln cache key trust: found 2 keys, expected one; usage: kiln cache key trust NAME KEY|FILE"},
      {{"cache", "layer", "create", "f"},
       "kiln cache layer create: no --sign-with (expected the name of a key). `kiln cache key list` prints them"},
      {{"cache", "layer", "create", "f", "--sign-with", "n", "--from", "b"},
       "kiln cache layer create: --from BUNDLE and --trust KEY must be used together (expected both or neither)"},
      {{"cache", "layer", "create", "f", "--sign-with", "n", "--trust", key},
       "kiln cache layer create: --from BUNDLE and --trust KEY must be used together (expected both or neither)"},
      {{"report"}, "kiln report: no file given; usage: kiln report FILE… --output page.html"},
      {{"bench", "table"}, "kiln bench table: no file given; usage: kiln bench table FILE [ID…]"},
      {{"selector", "explain", user.folder.write("none.toml", "[log]\nlevel = \"error\"\n")},
       user.folder / "none.toml: no [[job]] and no [[pipeline]]: nothing to explain"},
      {{"selector", "reset", "--set", "cache.read_only=true"},
       "cache.read_only = true: nothing is removed from " + (user.folder / "cache").string()},
  };
  for (const auto& one : cases) {
    const Finished finished = user.kiln(one.words);
    INFO(one.says);
    CHECK(finished.status == 2);
    CHECK(finished.out == "");
    CHECK(finished.err == "kiln: " + one.says + "\n");
  }
}

TEST_CASE("verb texts: keys, one a line, with their state") {
  const TextUser user;
  const std::string old_key(64, 'a'), good_key(64, 'b');
  CHECK(user.said({"cache", "key", "list"}) == "no key is trusted\n");
  CHECK(user.said({"cache", "key", "trust", "old", old_key, "--until", "2020-01-01"}) ==
        "trusted key 'old' until 2020-01-01: " + old_key + "\n");
  CHECK(user.said({"cache", "key", "trust", "good", good_key}) == "trusted key 'good': " + good_key + "\n");
  CHECK_THAT(user.said({"cache", "key", "create", "mine", "--until", "2099-12-31"}),
             Catch::Matches("created key 'mine' until 2099-12-31: [0-9a-f]{64}\n"));
  CHECK_THAT(user.said({"cache", "key", "list"}), Catch::Matches("key +state +until +signs +public key\n"
                                                                 "good +trusted +– +no +b{64}\n"
                                                                 "mine +trusted +2099-12-31 +yes +[0-9a-f]{64}\n"
                                                                 "old +expired +2020-01-01 +no +a{64}\n"));
  CHECK(user.said({"cache", "key", "revoke", "good"}) == "revoked key 'good': " + good_key + "\n");
  CHECK_THAT(user.said({"cache", "key", "list"}), Contains("\ngood  revoked  "));
  const auto revoked = user.kiln({"cache", "key", "list", "--json"}).json();
  CHECK(revoked["problems"].empty());
  CHECK(revoked["keys"].size() == 3);
  user.folder.write("config/kiln/trust.d/odd.key", "no key\n");
  const Finished odd = user.kiln({"cache", "key", "list"});
  CHECK(odd.status == 1);
  CHECK_THAT(odd.err, Contains("trust.d/odd.key"));
  CHECK_THAT(odd.out, Contains("\nold "));
}

TEST_CASE("verb texts: an empty cache, no remote, nothing tuned and nothing learned") {
  const TextUser user;
  const std::string cpu_only = "plugins.load=[\"cpu\",\"dynamic_shaders\"]";
  CHECK(user.said({"cache", "remote", "status"}) == "no [[cache.remote]] is configured\n");
  CHECK(user.said({"selector", "reset"}) == "0 records removed, 0 kept\n");
  CHECK(user.said({"tune", "audit", "--set", cpu_only}) == "nothing was tuned\n");
  for (const std::string verb : {"push", "pull"}) {
    const Finished without = user.kiln({"tune", verb, "--set", cpu_only});
    CHECK(without.status == 2);
    CHECK(without.err == "kiln: pull: no [[cache.remote]] is configured (expected at least one)\n");
  }
  const std::string file = user.folder / "tuning.tsv";
  CHECK(user.said({"tune", "export", file, "--set", cpu_only}) == file + ": 0 records\n");
  CHECK(user.kiln({"tune", "export", file, "--json", "--set", cpu_only}).json()["records"] == 0);
  CHECK(user.said({"tune", "import", file, "--set", cpu_only}) ==
        "imported 0 records; 0 not newer than the stored ones, 0 damaged\n");
  for (const std::string verb : {"export", "import"}) {
    const Finished without = user.kiln({"tune", verb, file, "--set", "plugins.load=[\"cpu\"]"});
    CHECK(without.status == 1);
    CHECK(without.err == "kiln: no loaded generator stores measurements: name one in plugins.load\n");
  }
  for (const std::string verb : {"push", "pull"}) {
    const Finished without = user.kiln({"tune", verb, "--set", "plugins.load=[\"cpu\"]"});
    CHECK(without.status == 1);
    CHECK(without.err == "kiln: no loaded generator exchanges measurements: name one in plugins.load\n");
  }
  const Finished absent = user.kiln({"tune", "import", user.folder / "absent", "--set", cpu_only});
  CHECK(absent.status == 2);
  CHECK_THAT(absent.err, Contains("absent: ") && Contains("No such file"));
  const Finished closed = user.kiln({"tune", "export", user.folder / "none/file", "--set", cpu_only});
  CHECK(closed.status == 1);
  CHECK_THAT(closed.err, Contains("none/file"));
}

TEST_CASE("verb texts: a program in quarantine is told by list, verify and export, until it is released") {
  const TemporaryFolder folder;
  StoredCache cache(folder);
  cache.build({"one", "two"});
  cache.describe("one", 12.25, 1, std::chrono::hours(2));
  cache.describe("two", 12.25, 1, std::chrono::hours(2));
  const std::string key = cache.key_of("two"), in_short = key.substr(0, 12);
  const std::filesystem::path program = cache.file_of("two");
  std::filesystem::rename(program, std::filesystem::path(program).replace_extension(".quarantined"));

  const Finished list = cache.kiln_cache({"list"});
  CHECK(list.status == 0);
  CHECK_THAT(list.out, Contains("1 program, ") && Contains("\nquarantined: " + in_short) &&
                           Contains(", or until `kiln cache release " + in_short + "`\n"));
  const auto aside = cache.kiln_cache({"list", "--json"}).json()["aside"];
  REQUIRE(aside.size() == 1);
  CHECK(aside[0]["key"] == key);
  CHECK(aside[0]["state"] == "quarantined");
  CHECK(aside[0]["folder"] == program.parent_path().parent_path().filename().string());
  CHECK(aside[0]["since"] > 0);
  CHECK(aside[0]["until"] > aside[0]["since"]);
  CHECK_THAT(cache.kiln_cache({"verify"}).out, Catch::StartsWith("1 program, 1 valid\nquarantined: " + in_short));

  const Finished released = cache.kiln_cache({"release", in_short});
  INFO(released.err);
  CHECK(released.status == 0);
  CHECK_THAT(released.out, Catch::Matches("released " + in_short + "( \\(layer two/direct\\))?\n"));
  CHECK_THAT(cache.kiln_cache({"list"}).out, !Contains("quarantined"));
  CHECK(cache.kiln_cache({"list", "--json"}).json()["aside"].empty());
  const Finished again = cache.kiln_cache({"release", in_short, "--json"});
  CHECK(again.status == 1);
  CHECK_THAT(again.err, Contains("program '" + in_short + "'"));
}

TEST_CASE("verb texts: statistics of one process, of layers and of remotes; a device of which nothing is known") {
  const TemporaryFolder folder;
  StoredCache cache(folder);
  cache.build({"one"});
  std::filesystem::remove(cache.file_of("one").parent_path().parent_path() / "manifest.json");
  std::ofstream(cache.directory / "cache_stats.json")
      << R"({"schema": 1, "since": 1700000000, "updated": 1700000100, "processes": 1, "memory_hits": 1, "timed_out": 4,
             "shared": {"layer_hits": 5, "hits": 6}, "rejected": {"quarantined": 3}})";
  const Finished stats = cache.kiln_cache({"stats"});
  CHECK(stats.status == 0);
  CHECK_THAT(stats.out, Contains("1 process since 2023-11-14 22:13") &&
                            Contains(cache.file_of("one").parent_path().parent_path().filename().string()));
  CHECK_THAT(stats.out, Catch::Matches("(.|\n)*\nnot found +0 \\(4 timed out\\)\n(.|\n)*\nrejected +3 quarantined\n"));
  const auto json = cache.kiln_cache({"stats", "--json"}).json();
  CHECK(json["rejected"]["quarantined"] == 3);
  CHECK(json["processes"] == 1);
}

TEST_CASE("verb texts: a small stack is raised where that is allowed, and refused where it is not") {
  const TextUser user;
  const auto with_stack = [&](const std::string& limit) {
    return user.kiln({"--version"}, {.before = {"sh", "-c", "ulimit " + limit + " && exec \"$@\"", "sh"}});
  };
  const Finished refused = with_stack("-s 255");
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err ==
        "kiln: stack limit of this process is 255 KiB, expected at least 256 KiB. Raise the limit (ulimit -s)\n");
  for (const char* const limit : {"-s 256", "-Ss 128", "-Ss 8192"}) {
    INFO(limit);
    const Finished allowed = with_stack(limit);
    CHECK(allowed.err.empty());
    CHECK_THAT(allowed.out, Contains("kiln "));
  }
}

#include "host/stored_cache.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;
using std::chrono::hours;

namespace {

const std::vector<std::vector<std::string>> whole_cache_verbs = {
    {"stats"}, {"list"}, {"verify"}, {"prune", "--max-age", "1d"}, {"clear"}};

// Three programs of two drivers, described to the byte.
struct Described {
  TemporaryFolder folder;
  StoredCache cache{folder};
  Described() {
    cache.build({"one", "two"});
    cache.build({"one"}, "2.0");
    cache.describe("one", 12.25, 7, hours(3));
    cache.describe("two", 1234.5, 0, hours(24 * 5));
    cache.describe("one", 0.5, 1, hours(50), "2.0");
    std::ofstream(cache.directory / "cache_stats.json")
        << R"({"schema": 1, "since": 1700000000, "updated": 1700000100, "processes": 3, "memory_hits": 120, "disk_hits": 4,
               "misses": 3, "builds": 3, "prepared": 2, "waits": 1, "evictions": 5, "saved_ms": 98765.4,
               "disk_evictions": 6, "lease_waits": 7, "lease_wait_ns": 1250000, "lease_takeovers": 8, "lease_timeouts": 9,
               "negative_hits": 10, "absent": 2, "evicted": 1,
               "rejected": {"corrupt": 2, "refused": 1}})";
  }
};

}  // namespace

TEST_CASE("kiln cache: where there is no cache yet every verb says so, ends with 0 and makes nothing") {
  const TemporaryFolder folder;
  const StoredCache cache(folder);
  for (const auto& words : whole_cache_verbs) {
    INFO(words[0]);
    const Finished finished = cache.kiln_cache(words);
    CHECK(finished.status == 0);
    CHECK(cache.plain(finished.out) == "there is no cache at DIR yet\n");
    CHECK(finished.err == "");
    std::vector<std::string> for_machines = words;
    for_machines.emplace_back("--json");
    CHECK(cache.kiln_cache(for_machines).json().is_object());
  }
  const Finished inspected = cache.kiln_cache({"inspect", "layer"});
  CHECK(inspected.status == 1);
  CHECK_THAT(inspected.err, Contains("'layer'") && Contains("no stored program"));
  CHECK_FALSE(std::filesystem::exists(cache.directory));
}

TEST_CASE("kiln cache stats: the table, its figures for machines, and for Prometheus") {
  const Described described;
  const Finished table = described.cache.kiln_cache({"stats"});
  INFO(table.err);
  CHECK(table.status == 0);
  CHECK(described.cache.plain(table.out) == golden_cache_text("stats.txt"));
  const auto json = described.cache.kiln_cache({"stats", "--json"}).json();
  // What `kiln run --json` calls `cache`, but for the state of the driver's own cache, which is a process's.
  for (const char* name : {"memory_hits", "disk_hits", "misses", "builds", "prepared", "missing", "rejected",
                           "bytes_on_disk", "saved_ms"}) {
    CHECK(json.contains(name));
  }
  CHECK(json["memory_hits"] == 120);
  CHECK(json["disk_evictions"] == 6);
  CHECK(json["lease_waits"] == 7);
  CHECK(json["lease_wait_ms"] == 1.25);
  CHECK(json["lease_takeovers"] == 8);
  CHECK(json["lease_timeouts"] == 9);
  CHECK(json["negative_hits"] == 10);
  CHECK(json["missing"] == nlohmann::json{{"absent", 2}, {"evicted", 1}, {"timed_out", 0}});
  CHECK(json["rejected"]["corrupt"] == 2);
  CHECK_FALSE(json.contains("driver_cache"));
  CHECK(json["programs"] == 3);
  CHECK(json["devices"].size() == 2);
  const Finished scraped = described.cache.kiln_cache({"stats", "--prometheus"});
  CHECK(scraped.status == 0);
  CHECK_THAT(scraped.out, Contains("\nkiln_cache_hits_total{tier=\"memory\"} 120\n"));
  CHECK_THAT(scraped.out, Contains("driver=\"Synthetic 2.0\""));
}

TEST_CASE("kiln cache list: labels first, aligned, with the device where there are several") {
  const Described described;
  const Finished table = described.cache.kiln_cache({"list"});
  CHECK(table.status == 0);
  CHECK(described.cache.plain(table.out) == golden_cache_text("list.txt"));
  const auto json = described.cache.kiln_cache({"list", "--json"}).json();
  REQUIRE(json["programs"].size() == 3);
  CHECK(json["programs"][2]["label"] == "layer two/direct");
  CHECK(json["programs"][2]["key"] == described.cache.key_of("two"));
  CHECK(json["programs"][2]["op"] == "conv2d");
  CHECK(json["programs"][2]["shape"] == "1x8x16x16 k8 3x3");
  CHECK(json["programs"][2]["variant"] == "direct");
  CHECK(json["programs"][2]["build_ms"] == 1234.5);
  CHECK(json["programs"][2]["pending"] == false);
}

TEST_CASE("kiln cache inspect: one program whole, and what is not one program is refused") {
  const Described described;
  const Finished one = described.cache.kiln_cache({"inspect", described.cache.key_of("two").substr(0, 10)});
  INFO(one.err);
  CHECK(one.status == 0);
  CHECK(described.cache.plain(one.out) == golden_cache_text("inspect.txt"));
  const auto json = described.cache.kiln_cache({"inspect", "layer two", "--json"}).json();
  CHECK(json["verdict"] == "authentic");
  CHECK(json["op"] == "conv2d");
  CHECK(json["variant"] == "direct");
  CHECK(json["fields"][2]["text"].get<std::string>().ends_with("work();\n}\n"));  // whole
  const Finished several = described.cache.kiln_cache({"inspect", "layer one"});
  CHECK(several.status == 2);
  CHECK_THAT(several.err, Contains("matches 2 programs") && Contains(described.cache.key_of("one").substr(0, 12)));
  CHECK(described.cache.kiln_cache({"inspect", "nobody"}).status == 1);
}

TEST_CASE("kiln cache verify: 0 where all are sound, 1 with the reason where one is not, and --remove takes it away") {
  const Described described;
  const Finished sound = described.cache.kiln_cache({"verify"});
  CHECK(sound.status == 0);
  CHECK(sound.out == "3 programs, 3 valid\n");
  {
    std::fstream file(described.cache.file_of("two"), std::ios::binary | std::ios::in | std::ios::out);
    const int last = file.seekg(-1, std::ios::end).get();  // of the signature: any byte, as the key is
    file.seekp(-1, std::ios::end).put(static_cast<char>(last ^ 1));
  }
  const Finished bad = described.cache.kiln_cache({"verify"});
  CHECK(bad.status == 1);
  CHECK(bad.out == golden_cache_text("verify.txt"));
  const Finished machine = described.cache.kiln_cache({"verify", "--json"});
  CHECK(machine.status == 1);
  CHECK(machine.json()["entries"] == 3);
  CHECK(machine.json()["ok"] == 2);
  CHECK(machine.json()["rejected"]["tampered"] == 1);
  CHECK(described.cache.kiln_cache({"verify", "--remove"}).status == 1);
  CHECK(described.cache.kiln_cache({"verify"}).out == "2 programs, 2 valid\n");
}

TEST_CASE("kiln cache prune: by age and size, told before and after") {
  const Described described;
  const Finished pretended = described.cache.kiln_cache({"prune", "--max-age", "49h", "--dry-run"});
  CHECK(pretended.status == 0);
  CHECK_THAT(pretended.out, Contains("would remove 2 programs"));
  const Finished pruned = described.cache.kiln_cache({"prune", "--max-age", "4d", "--max-size", "500MiB"});
  CHECK(pruned.status == 0);
  CHECK_THAT(pruned.out, Contains("removed 1 program: ") && Contains("2 programs left"));
  CHECK(described.cache.file_of("two").empty());
  CHECK_THAT(described.cache.kiln_cache({"prune"}).out, Contains("removed nothing; 2 programs left"));
  const auto json = described.cache.kiln_cache({"prune", "--max-size", "0", "--json"}).json();
  CHECK(json["programs"] == 2);
  CHECK(json["bytes_left"] == 0);
  CHECK(json["error"].is_null());
}

TEST_CASE("kiln cache clear: without asking, programs only; with --all what was learned too; never the key") {
  const Described described;
  const Finished cleared = described.cache.kiln_cache({"clear"});
  CHECK(cleared.status == 0);
  CHECK_THAT(cleared.out, Contains("removed 3 programs"));
  CHECK(described.cache.kiln_cache({"list"}).out == "nothing is stored\n");
  CHECK(described.cache.kiln_cache({"stats", "--json"}).json()["memory_hits"] == 120);
  CHECK(described.cache.kiln_cache({"clear", "--all"}).status == 0);
  CHECK(described.cache.kiln_cache({"stats", "--json"}).json()["memory_hits"] == 0);
  CHECK(std::filesystem::exists(described.cache.key_file));
}

TEST_CASE("kiln cache: a label cannot command the terminal") {
  const Described described;
  std::filesystem::path meta = described.cache.file_of("two");
  meta.replace_extension(".meta");
  std::ofstream(meta) << R"({"label": "\u001b[2J\nevil"})";
  const Finished list = described.cache.kiln_cache({"list"});
  CHECK_THAT(list.out, Contains("\\x1b[2J\\nevil"));
  CHECK(list.out.find('\033') == std::string::npos);
}

TEST_CASE("kiln cache: what is not known is null for machines, never 0 or an empty text") {
  const Described described;
  const std::filesystem::path program = described.cache.file_of("two");
  std::filesystem::remove(std::filesystem::path(program).replace_extension(".meta"));
  std::filesystem::remove(program.parent_path().parent_path() / "manifest.json");
  std::filesystem::resize_file(program, 10);
  const std::string key = described.cache.key_of("two");
  const auto listed = described.cache.kiln_cache({"list", "--json"}).json()["programs"];
  const auto two = std::ranges::find_if(listed, [&](const auto& one) { return one["key"] == key; });
  REQUIRE(two != listed.end());
  const auto inspected = described.cache.kiln_cache({"inspect", key, "--json"}).json();
  for (const char* fact : {"label", "op", "shape", "variant"}) {
    INFO(fact);
    CHECK((*two)[fact].is_null());
    CHECK(inspected[fact].is_null());
  }
  for (const char* figure : {"build_ms", "first_dispatch_ms", "gflops"}) {
    INFO(figure);
    CHECK((*two)[figure].is_null());
    CHECK(inspected["meta"][figure].is_null());
  }
  CHECK((*two)["last_used"] > 0);
  CHECK(inspected["entry"].is_null());
  CHECK(inspected["device"]["driver"].is_null());
  CHECK(described.cache.kiln_cache({"verify", "--json"}).json()["bad"][0]["label"].is_null());
  const auto stats = described.cache.kiln_cache({"stats", "--json"}).json();
  CHECK(stats["since"] == 1700000000);
  CHECK(std::ranges::count_if(stats["devices"], [](const auto& one) { return one["device"].is_null(); }) == 1);
  CHECK(described.cache.kiln_cache({"clear", "--all"}).status == 0);
  const auto unused = described.cache.kiln_cache({"stats", "--json"}).json();
  CHECK(unused["processes"] == 0);
  CHECK(unused["since"].is_null());
  CHECK(unused["updated"].is_null());
}

TEST_CASE("kiln cache: usage errors end with 2 and name what was given and what is expected") {
  const struct {
    std::vector<std::string> words;
    std::vector<std::string> says;
  } cases[] = {
      {{}, {"verb 'cache'", "cache stats", "cache prune"}},
      {{"burn"}, {"'cache burn'", "cache clear"}},
      {{"inspect"}, {"kiln cache inspect", "LABEL|KEY"}},
      {{"inspect", ""}, {"no argument given"}},
      {{"inspect", "a", "b"}, {"unexpected argument 'b'"}},
      {{"stats", "x"}, {"unexpected argument 'x' after 'stats'"}},
      {{"stats", "--prometheus", "--json"}, {"--prometheus and --json cannot be used together"}},
      {{"prune", "--max-age", "30"}, {"--max-age", "\"30\"", "a duration", "units"}},
      {{"prune", "--max-age", "-3d"}, {"--max-age", "\"-3d\""}},
      {{"prune", "--max-age", "3 days"}, {"--max-age", "\"3 days\"", "units", "d"}},
      {{"prune", "--max-size", "500MB"}, {"--max-size", "\"500MB\"", "MiB"}},
      {{"prune", "--max-size", "99999999999 TiB"}, {"--max-size", "too large"}},
      {{"prune", "--max-size", "1e9"}, {"--max-size", "\"1e9\""}},
      {{"stats", "--max-size", "1"}, {"kiln cache stats", "--max-size is not supported", "prometheus"}},
      {{"list", "--device", "cpu"}, {"--device is not supported"}},
      {{"clear", "--set", "cache.read_only=true"}, {"read_only"}},
      {{"clear", "--set", "cache.polcy=lru"}, {"polcy", "policy"}},
  };
  const Described described;
  for (const auto& one : cases) {
    INFO((one.words.empty() ? "" : one.words[0] + " " + one.words.back()));
    // Without the option that kiln_cache() adds: the words stand alone.
    std::vector<std::string> words = one.words;
    words.insert(words.begin(), "cache");
    const Finished finished = run_kiln(words, {.environment = {{"KILN_CACHE_DIR", described.cache.directory}}});
    CHECK(finished.status == 2);
    CHECK(finished.out == "");
    for (const std::string& text : one.says) CHECK_THAT(finished.err, Contains(text));
  }
  CHECK_THAT(described.cache.kiln_cache({"list"}).out, Contains("3 programs"));
}

TEST_CASE("kiln cache: another user's cache, and one that may not be written") {
  if (geteuid() != 0) {
    WARN("skipped: needs root to become another user");
    return;
  }
  const Described described;
  const std::vector<std::string> as_nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  std::filesystem::permissions(described.folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(described.cache.directory, std::filesystem::perms(0755));
  // Another user's, who is not root: root's may be read.
  REQUIRE(run_process({"chown", "-R", "4242:4242", described.cache.directory}).status == 0);
  for (const auto& words : whole_cache_verbs) {
    INFO(words[0]);
    const Finished finished = described.cache.kiln_cache(words, {.folder = "/", .before = as_nobody});
    CHECK(finished.status == 1);
    CHECK_THAT(described.cache.plain(finished.err), Contains("folder DIR: belongs to user 4242, expected 65534"));
    CHECK(finished.out == "");
  }
  // Now it is nobody's own, and closed.
  REQUIRE(run_process({"chown", "-R", "65534:65534", described.folder.path()}).status == 0);
  REQUIRE(run_process({"chmod", "-R", "a-w", described.cache.directory}).status == 0);
  const auto reads = [&](std::vector<std::string> words) {
    return described.cache.kiln_cache(std::move(words), {.folder = "/", .before = as_nobody});
  };
  for (const char* verb : {"stats", "list", "verify"}) CHECK(reads({verb}).status == 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"prune", "--max-size", "0"}, {"clear"}}) {
    const Finished refused = reads(words);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains("cannot be removed: Permission denied"));
  }
  CHECK_THAT(reads({"list"}).out, Contains("3 programs"));
}

TEST_CASE("kiln cache: a device's folder that others can write is named, with status 1") {
  const Described described;
  const std::filesystem::path folder = described.cache.file_of("one").parent_path().parent_path();
  std::filesystem::permissions(folder, std::filesystem::perms(0770));
  for (const auto& words : whole_cache_verbs) {
    INFO(words[0]);
    const Finished finished = described.cache.kiln_cache(words);
    CHECK(finished.status == 1);
    CHECK_THAT(finished.err, Contains("folder " + folder.filename().string() + ": has mode 0770"));
  }
  CHECK(std::filesystem::exists(described.cache.file_of("one")));
}

TEST_CASE("kiln cache: each verb has help that names its own options") {
  for (const char* verb : {"stats", "list", "inspect", "verify", "prune", "clear"}) {
    const Finished help = run_kiln({"cache", verb, "--help"});
    INFO(verb);
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Contains("Usage: kiln cache " + std::string(verb)) && Contains("Exit status"));
    CHECK_THAT(help.out, !Contains("--repeat"));
  }
  CHECK_THAT(run_kiln({"cache", "prune", "--help"}).out, Contains("--max-age AGE") && Contains("--dry-run"));
  const Finished group = run_kiln({"cache", "--help"});
  CHECK(group.status == 0);
  CHECK_THAT(group.out, Contains("cache verify") && !Contains("kiln run"));
}

TEST_CASE("kiln cache stats --output: to a file, in a folder with blanks") {
  const Described described;
  const auto file = described.folder / "the stats.json";
  const Finished finished = described.cache.kiln_cache({"stats", "--json", "--output", file});
  CHECK(finished.status == 0);
  CHECK(finished.out == "");
  CHECK(std::filesystem::file_size(file) > 200);
}

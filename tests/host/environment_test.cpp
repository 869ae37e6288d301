// The command in environments without a home, with a cache folder that is a link or a mount, under a limit on the size
// of files, and beside an administrator's cache: it runs with one warning, or refuses with the reason.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

constexpr const char* home_kernel = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { float src[]; };
layout(std430, binding = 1) buffer Out { float dst[]; };
void main() { uint i = gl_GlobalInvocationID.x; dst[i] = 2.0 * src[i]; }
)";

constexpr const char* home_job = R"(
[[job]]
name = "doubling"
op = "kernel"
source = "doubling.comp"
device = "opengl:0"
bindings = [ { input = "src.npy" }, { inout = "dst.npy" } ]
grid = [1]
expect = "want.npy"
verify = true
)";

std::ptrdiff_t warnings_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void write_floats(const fs::path& path, float scale) {
  auto tensor = kiln::HostTensor::create(kiln::DType::f32, {64}).value();
  float next = 0;
  for (float& value : tensor->as<float>()) value = scale * next++;
  REQUIRE(kiln::data::write_npy(path, *tensor).ok());
}

// A job with its files, in a folder with a space in its name, and a home beside it that the job's user owns.
struct HomePlace {
  TemporaryFolder folder{"a place"};
  fs::path file = folder.write("job.toml", home_job);
  fs::path home = folder / "home";

  HomePlace() {
    folder.write("doubling.comp", home_kernel);
    write_floats(folder / "src.npy", 1);
    write_floats(folder / "dst.npy", 0);
    write_floats(folder / "want.npy", 2);
    fs::create_directory(home);
  }

  // Without the test's own variables but those of `environment`.
  Finished kiln(std::vector<std::string> words, const std::map<std::string, std::string>& environment = {},
                const std::vector<std::string>& before = {}) const {
    ProcessOptions options;
    options.environment = environment;
    options.folder = folder.path();
    options.before = {"env"};
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) {
      if (!environment.contains(name)) options.before.insert(options.before.end(), {"-u", name});
    }
    options.before.insert(options.before.end(), before.begin(), before.end());
    return run_kiln(std::move(words), options);
  }

  Finished run(const std::map<std::string, std::string>& environment = {}, const std::vector<std::string>& more = {},
               const std::vector<std::string>& before = {}) const {
    std::vector<std::string> words = {"run", file, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(std::move(words), environment, before);
  }

  std::map<std::string, std::string> at_home() const { return {{"HOME", home}}; }
};

void check_served(const Finished& finished, int builds) {
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["jobs"][0]["verified"] == true);
  CHECK(finished.json()["cache"]["builds"] == builds);
}

// The job ran, nothing of it was kept, and one line says so and why.
void check_one_warning(const Finished& finished, const std::string& why) {
  check_served(finished, 1);
  CHECK_THAT(finished.err, Contains("warning") && Contains(why));
  CHECK(warnings_in(finished.err) == 1);
}

bool is_root(const char* what) {
  if (geteuid() == 0) return true;
  WARN("skipped: " << what << " takes root");
  return false;
}

const std::vector<std::string> as_another = {"setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"};

}  // namespace

TEST_CASE("without a home a job runs, nothing is kept, and one warning says what is missing", "[environment]") {
  const HomePlace place;
  const std::map<std::string, std::string> environments[] = {{},
                                                             {{"HOME", ""}},
                                                             {{"HOME", "home"}},
                                                             {{"HOME", ""}, {"XDG_CACHE_HOME", ""}},
                                                             {{"XDG_CACHE_HOME", "cache"}, {"XDG_STATE_HOME", "state"}},
                                                             {{"HOME", "."}, {"XDG_CACHE_HOME", "./cache"}}};
  for (const auto& environment : environments) {
    for (int process = 0; process < 2; ++process) {
      check_one_warning(place.run(environment), "no cache folder is configured. Set HOME");
    }
  }
  CHECK(fs::is_empty(place.home));
  CHECK_FALSE(fs::exists(place.folder / "cache"));
  CHECK_FALSE(fs::exists(place.folder / "probe_verdicts.json"));
  CHECK_FALSE(fs::exists(place.folder / "selector.model"));
}

TEST_CASE("without a home a folder that is named by \"~\" counts as none", "[environment]") {
  const HomePlace place;
  check_one_warning(place.run({}, {"--set", "cache.directory=\"~/.cache/kiln\""}), "no cache folder is configured");
  check_one_warning(place.run({}, {"--cache-dir", place.folder / "cache"}), "no key file is configured");
  const Finished metrics = place.run({}, {"--set", "metrics.file=\"~/kiln.prom\""});
  CHECK(metrics.status == 2);
  CHECK_THAT(metrics.err,
             Contains("metrics.file") && Contains("but HOME, which \"~\" stands for, is not set to an absolute path"));
}

TEST_CASE("without a home devices, plugins, config check and config show run, and say nothing", "[environment]") {
  const HomePlace place;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"devices"}, {"plugins"}, {"config", "check", place.file}, {"config", "show"}, {"--version"}}) {
    for (const auto& environment :
         std::vector<std::map<std::string, std::string>>{{}, {{"HOME", ""}}, {{"HOME", "home"}}}) {
      const Finished finished = place.kiln(words, environment);
      INFO(words[0] << ": " << finished.err << finished.out);
      CHECK(finished.status == 0);
      CHECK(finished.err == "");
      CHECK_FALSE(finished.out.empty());
    }
  }
}

TEST_CASE("without a home the verbs that are about the cache refuse, and say what to name", "[environment]") {
  const HomePlace place;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"cache", "stats"},
                                                                                     {"cache", "list"},
                                                                                     {"cache", "verify"},
                                                                                     {"cache", "clear"},
                                                                                     {"selector", "show"},
                                                                                     {"selector", "reset"},
                                                                                     {"selector", "replay"}}) {
    const Finished finished = place.kiln(words);
    INFO(words[0] << " " << words[1] << ": " << finished.err << finished.out);
    CHECK(finished.status != 0);
    CHECK_THAT(finished.err, Contains("no cache folder is configured. Set HOME"));
    CHECK(warnings_in(finished.err) == 1);
  }
}

TEST_CASE("a home that is a file, missing, or closed serves with one warning", "[environment]") {
  const HomePlace place;
  SECTION("a file") {
    fs::remove(place.home);
    place.folder.write("home", "no folder");
    check_one_warning(place.run(place.at_home()), place.home.string());
    CHECK(place.kiln({"devices"}, place.at_home()).err == "");
    CHECK(place.kiln({"config", "check", place.file}, place.at_home()).err == "");
  }
  SECTION("below a file") {
    fs::remove(place.home);
    place.folder.write("home", "no folder");
    check_one_warning(place.run({{"HOME", place.home / "below"}}), place.home.string());
  }
  SECTION("missing, and made by a verb that needs no folder, whatever the umask is") {
    fs::remove(place.home);
    CHECK(place.kiln({"plugins"}, place.at_home(), {"sh", "-c", "umask 002; exec \"$@\"", "sh"}).err == "");
    check_served(place.run(place.at_home()), 1);
    check_served(place.run(place.at_home()), 0);
  }
  SECTION("missing: it is made") {
    fs::remove(place.home);
    check_served(place.run(place.at_home()), 1);
    check_served(place.run(place.at_home()), 0);
  }
  SECTION("not to be written, and not to be entered") {
    if (!is_root("becoming another user")) return;
    for (const mode_t mode : {0755u, 0700u}) {
      REQUIRE(chmod(place.home.c_str(), mode) == 0);
      REQUIRE(chown(place.folder.path().c_str(), 12345, 12345) == 0);
      for (const auto& entry : fs::directory_iterator(place.folder.path())) {
        if (entry.path() != place.home) REQUIRE(chown(entry.path().c_str(), 12345, 12345) == 0);
      }
      check_one_warning(place.run(place.at_home(), {}, as_another), "Permission denied");
      const Finished plugins = place.kiln({"plugins"}, place.at_home(), as_another);
      CHECK(plugins.status == 0);
      CHECK(plugins.err == "");
    }
  }
}

TEST_CASE("a cache folder behind links of the same user is used", "[environment]") {
  const HomePlace place;
  const fs::path scratch = place.folder / "scratch", cache = place.folder / "cache";
  fs::path named = cache;
  SECTION("a link to a folder") { fs::create_directory(scratch), fs::create_directory_symlink(scratch, cache); }
  SECTION("a relative link") { fs::create_directory(scratch), fs::create_directory_symlink("scratch", cache); }
  SECTION("a link to a folder that is not there yet") { fs::create_directory_symlink(scratch / "kiln", cache); }
  SECTION("a chain of links") {
    fs::create_directory(scratch);
    fs::create_directory_symlink("scratch", place.folder / "one");
    fs::create_directory_symlink(place.folder / "one", place.folder / "two");
    fs::create_directory_symlink("./../" + place.folder.path().filename().string() + "/two", cache);
  }
  SECTION("a link with a slash behind it") {
    fs::create_directory(scratch), fs::create_directory_symlink(scratch, cache);
    named += "/";
  }
  SECTION("a link above it") {
    fs::create_directory(scratch), fs::create_directory_symlink(scratch, place.folder / "above");
    named = place.folder / "above" / "cache";
  }
  for (const fs::path& made : {scratch}) {
    if (fs::exists(made)) fs::permissions(made, fs::perms::owner_all);
  }
  for (int process = 0; process < 2; ++process) {
    const Finished finished = place.run(place.at_home(), {"--cache-dir", named});
    check_served(finished, process == 0 ? 1 : 0);
    CHECK(finished.err == "");
    CHECK(finished.json()["jobs"][0]["program"]["tier"] == (process == 0 ? "built" : "disk"));
    CHECK(finished.json()["cache"]["driver_cache"] == "adopted");
  }
  const Finished verified =
      place.kiln({"cache", "verify", "--json"}, {{"HOME", place.home}, {"KILN_CACHE_DIR", named}});
  CHECK(verified.status == 0);
  CHECK(verified.json()["entries"] == 1);
}

TEST_CASE("a cache folder behind links that other users can change is refused with the reason", "[environment]") {
  const HomePlace place;
  const fs::path scratch = place.folder / "scratch", cache = place.folder / "cache", open = place.folder / "open";
  fs::create_directory(scratch), fs::permissions(scratch, fs::perms::owner_all);
  fs::create_directory(open), fs::permissions(open, fs::perms(0777));
  std::string why;
  SECTION("the link lies in a folder that all can write") {
    fs::create_directory_symlink(scratch, open / "link");
    fs::create_directory_symlink(open / "link", cache);
    why = "folder " + open.string() + ": has mode 0777";
  }
  SECTION("the folder that it leads to lies in one") {
    fs::create_directory(open / "kiln"), fs::permissions(open / "kiln", fs::perms::owner_all);
    fs::create_directory_symlink(open / "kiln", cache);
    why = "folder " + open.string() + ": has mode 0777";
  }
  SECTION("it leads to a folder that all can write") {
    fs::create_directory_symlink(open, cache);
    why = "has mode 0777";
  }
  SECTION("the link is another user's") {
    if (!is_root("giving a link away")) return;
    fs::create_directory_symlink(scratch, cache);
    REQUIRE(lchown(cache.c_str(), 12345, 12345) == 0);
    why = "symbolic link " + cache.string() + ": belongs to user 12345";
  }
  SECTION("the folder is another user's") {
    if (!is_root("giving a folder away")) return;
    fs::create_directory_symlink(scratch, cache);
    REQUIRE(chown(scratch.c_str(), 12345, 12345) == 0);
    why = "belongs to user 12345";
  }
  SECTION("links in a circle") {
    fs::create_directory_symlink(place.folder / "other", cache);
    fs::create_directory_symlink(cache, place.folder / "other");
    why = "more than 40 symbolic links";
  }
  SECTION("a link to a file") {
    place.folder.write("file", "no folder");
    fs::create_symlink(place.folder / "file", cache);
    why = "is not a folder";
  }
  check_one_warning(place.run(place.at_home(), {"--cache-dir", cache}), why);
  CHECK(fs::is_empty(scratch));
}

TEST_CASE("a cache folder that is a mount point is used", "[environment]") {
  const HomePlace place;
  const fs::path cache = place.folder / "cache";
  fs::create_directory(cache);
  // Both processes in one mount namespace.
  const Finished both = place.kiln({}, place.at_home(),
                                   {"unshare", "-m", "sh", "-c",
                                    "mount -t tmpfs -o size=16m,mode=700 none cache || exit 77\n"
                                    "\"$0\" run job.toml --cache-dir cache --json > first.json && "
                                    "exec \"$0\" run job.toml --cache-dir cache --json"});
  if (both.status == 77 || both.status == 1) {
    WARN("skipped: no file system may be mounted here");
    return;
  }
  check_served(both, 0);
  CHECK(both.err == "");
}

TEST_CASE("a limit on the size of files is as a full disk: one warning, and the result", "[environment]") {
  for (const char* blocks : {"1", "8", "100", "1000"}) {  // of 512 bytes
    const HomePlace place;
    const Finished finished =
        place.run(place.at_home(), {}, {"sh", "-c", std::string("ulimit -f ") + blocks + "; exec \"$@\"", "sh"});
    INFO(blocks);
    check_one_warning(finished, "File too large");
  }
  const HomePlace place;
  const Finished none = place.run(place.at_home(), {}, {"sh", "-c", "ulimit -f 0; exec \"$@\"", "sh"});
  INFO(none.err << none.out);
  CHECK(none.status == 1);  // its result is a file
  CHECK_THAT(none.out, Contains("File too large"));
  check_served(place.run(place.at_home(), {}, {"sh", "-c", "ulimit -f 16384; exec \"$@\"", "sh"}), 1);
  check_served(place.run(place.at_home()), 0);
}

TEST_CASE("a program that `kiln simulate` starts has the signals of a shell", "[environment]") {
  const HomePlace place;
  const Finished finished =
      place.kiln({"simulate", "--", "sh", "-c", "grep -i SigIgn /proc/self/status"}, place.at_home());
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const std::uint64_t ignored = std::stoull(finished.out.substr(finished.out.find(':') + 1), nullptr, 16);
  CHECK((ignored >> (SIGXFSZ - 1) & 1) == 0);
  CHECK((ignored >> (SIGPIPE - 1) & 1) == 0);
}

TEST_CASE("a key that cannot be one is refused: one warning, and it stays as it is", "[environment]") {
  const HomePlace place;
  const fs::path key = place.home / ".local" / "state" / "kiln" / "key";
  check_served(place.run(place.at_home()), 1);
  std::string bytes(32, '\0'), why;
  mode_t mode = 0600;
  SECTION("all zero") { why = "every byte is 0, expected 32 random bytes"; }
  SECTION("short") { bytes = "secret", why = "has 6 bytes, expected 32"; }
  SECTION("long") { bytes = std::string(31, 'a') + "bcdef", why = "has 36 bytes, expected 32"; }
  SECTION("empty") { bytes.clear(), why = "has 0 bytes, expected 32"; }
  SECTION("readable by all") { bytes = "0123456789abcdef0123456789ABCDEF", mode = 0644, why = "has mode 0644"; }
  SECTION("written by a group") { bytes = "0123456789abcdef0123456789ABCDEF", mode = 0660, why = "has mode 0660"; }
  std::ofstream(key, std::ios::binary) << bytes;
  REQUIRE(chmod(key.c_str(), mode) == 0);
  const Finished finished = place.run(place.at_home());
  check_one_warning(finished, why);
  CHECK_THAT(finished.err, Contains(key.string()));
  CHECK(fs::file_size(key) == bytes.size());
}

TEST_CASE("an administrator's cache is read by other users who have its key", "[environment]") {
  if (!is_root("being the administrator")) return;
  const HomePlace place;
  const fs::path cache = place.folder / "shared", key = place.folder / "shared.key";
  check_served(place.run({{"HOME", place.home}, {"KILN_KEY_FILE", key}}, {"--cache-dir", cache}), 1);
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    REQUIRE(chmod(entry.path().c_str(), entry.is_directory() ? 0755 : 0644) == 0);
  }
  REQUIRE(chmod(cache.c_str(), 0755) == 0);
  const fs::path home = place.folder / "theirs";
  fs::create_directory(home);
  for (const char* name : {"theirs", "src.npy", "dst.npy", "want.npy"}) {
    REQUIRE(chown((place.folder / name).c_str(), 12345, 12345) == 0);
  }
  REQUIRE(chown(place.folder.path().c_str(), 12345, 12345) == 0);
  const auto run_as_another = [&](const fs::path& key_file, const char* read_only, int group) {
    std::map<std::string, std::string> environment{{"HOME", home}};
    if (!key_file.empty()) environment["KILN_KEY_FILE"] = key_file;
    return place.run(environment, {"--cache-dir", cache, "--set", std::string("cache.read_only=") + read_only},
                     {"setpriv", "--reuid=12345", "--regid=" + std::to_string(group), "--clear-groups"});
  };
  // A copy of the key, or membership in a group that root lets read it.
  const fs::path copy = home / "key";
  fs::copy_file(key, copy);
  REQUIRE((chmod(copy.c_str(), 0600) == 0 && chown(copy.c_str(), 12345, 12345) == 0));
  Finished finished = run_as_another(copy, "true", 12345);
  check_served(finished, 0);
  CHECK(finished.err == "");
  REQUIRE((chown(key.c_str(), 0, 4242) == 0 && chmod(key.c_str(), 0640) == 0));
  finished = run_as_another(key, "true", 4242);
  check_served(finished, 0);
  CHECK(finished.err == "");
  // Not asked to only read: programs are found all the same, and one warning says that none is stored.
  finished = run_as_another(copy, "false", 12345);
  check_served(finished, 0);
  CHECK_THAT(finished.err, Contains("nothing is stored") && Contains("Permission denied"));
  CHECK(warnings_in(finished.err) == 1);

  // Without the key: one warning that names why.
  check_one_warning(run_as_another(key, "true", 12345), key.string() + ": cannot be opened: Permission denied");
  check_one_warning(run_as_another({}, "true", 12345), "no program is read from disk: key file");
  check_one_warning(run_as_another(key, "false", 12345), "nothing is loaded from it: key file " + key.string());
  // With a key of their own nothing is authentic.
  std::ofstream(copy, std::ios::binary) << "0123456789abcdef0123456789ABCDEF";
  check_served(run_as_another(copy, "true", 12345), 1);
}

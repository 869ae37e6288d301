// The file of remembered verdicts: what is kept, and that nothing bad in it breaks a start.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/plugin/plugin_folder.hpp"
#include "plugin/plugin_probe.hpp"

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

const PluginFileIdentity identity{1, 2, 3, -4};

// Runs `task` where modes are obeyed, which root's are not: in a child with another uid, to whom `folder` is given.
int as_ordinary_user(const std::filesystem::path& folder, const std::function<int()>& task) {
  if (geteuid() != 0) return task();
  constexpr uid_t nobody = 65534;
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (chown(entry.path().c_str(), nobody, nobody) != 0) _exit(100);
    }
    if (chown(folder.c_str(), nobody, nobody) != 0 || setgroups(0, nullptr) != 0 ||
        setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0) {
      _exit(101);
    }
    _exit(task());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 102;
  return WEXITSTATUS(status);
}

ProbeVerdict crashed() { return {VerdictKind::crashed, unsupported("it crashed")}; }

}  // namespace

TEST_CASE("verdicts: kept by path, identity and host") {
  PluginFolder folder;
  VerdictStore store(folder.verdicts(), "host", {});
  store.put("/a.so", identity, crashed());
  store.put("/b.so", identity, {VerdictKind::ok, {}});
  store.save();

  const VerdictStore again(folder.verdicts(), "host", {});
  REQUIRE(again.find("/a.so", identity));
  CHECK(again.find("/a.so", identity)->kind == VerdictKind::crashed);
  CHECK(again.find("/a.so", identity)->status.text() == "unsupported: it crashed");
  CHECK(again.find("/b.so", identity)->status.ok());
  CHECK_FALSE(again.find("/c.so", identity));
  for (const PluginFileIdentity& other : {PluginFileIdentity{9, 2, 3, -4}, PluginFileIdentity{1, 9, 3, -4},
                                          PluginFileIdentity{1, 2, 9, -4}, PluginFileIdentity{1, 2, 3, 9}}) {
    CHECK_FALSE(again.find("/a.so", other));
  }
  CHECK_FALSE(VerdictStore(folder.verdicts(), "another host", {}).find("/a.so", identity));
}

TEST_CASE("verdicts: a failure that may pass is forgotten") {
  PluginFolder folder;
  VerdictStore store(folder.verdicts(), "host", {});
  store.put("/a.so", identity, crashed());
  store.put("/a.so", identity, {VerdictKind::failed, unavailable("a library is missing")});
  CHECK_FALSE(store.find("/a.so", identity));
}

TEST_CASE("verdicts: a plugin that hung is tried again, also where the clock was set back") {
  PluginFolder folder;
  VerdictStore store(folder.verdicts(), "host", {});
  const ProbeVerdict kept = store.put("/a.so", identity, {VerdictKind::hung, timed_out("no answer")});
  store.save();
  CHECK(VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity)->again_at_s == kept.again_at_s);
  std::ifstream in(folder.verdicts());
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::string written = std::to_string(kept.again_at_s);
  const std::size_t at = text.find(written);
  REQUIRE(at != std::string::npos);
  std::ofstream(folder.verdicts()) << text.replace(at, written.size(), std::to_string(kept.again_at_s + 7200));
  CHECK(VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity)->again_at_s == 0);
}

TEST_CASE("verdicts: the file is bounded, the newest stay") {
  PluginFolder folder;
  VerdictStore store(folder.verdicts(), "host", {});
  for (int i = 0; i < 300; ++i) store.put("/" + std::to_string(i), identity, crashed());
  store.save();
  const VerdictStore again(folder.verdicts(), "host", {});
  CHECK(again.find("/299", identity));
  CHECK(again.find("/44", identity));
  CHECK_FALSE(again.find("/43", identity));
}

TEST_CASE("verdicts: nothing is written where nothing changed") {
  PluginFolder folder({"good"});
  CHECK(folder.load_one("good").loaded);
  struct stat before {
  }, after{};
  REQUIRE(stat(folder.verdicts().c_str(), &before) == 0);
  CHECK((before.st_mode & 0777) == 0600);
  CHECK(folder.load_one("good").loaded);
  REQUIRE(stat(folder.verdicts().c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
}

TEST_CASE("verdicts: a damaged file is ignored and written anew") {
  PluginFolder folder({"good"});
  const std::string text =
      GENERATE("", "{", "[]", "null", R"({"schema": 2, "verdicts": []})", R"({"schema": 1})",
               R"({"schema": 1, "verdicts": [7]})", R"({"schema": 1, "verdicts": [{"path": "/a"}]})", "\xff\xfe\x00",
               R"({"schema": "1", "verdicts": []})");
  write_file(folder.verdicts(), text);
  chmod(folder.verdicts().c_str(), 0600);
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
}

TEST_CASE("verdicts: every truncation and many damaged bytes are survived") {
  PluginFolder folder;
  VerdictStore store(folder.verdicts(), "host", {});
  store.put("/a.so", identity, crashed());
  store.save();
  const std::string whole = read_file(folder.verdicts());
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    write_file(folder.verdicts(), whole.substr(0, size));
    CHECK_FALSE(VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    write_file(folder.verdicts(), damaged);
    const auto found = VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity);
    if (found) CHECK(found->kind != VerdictKind::invalid);
  }
}

TEST_CASE("verdicts: a file that others can write is ignored") {
  PluginFolder folder({"good"});
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
  const mode_t mode = GENERATE(0666, 0620, 0602, 0660, 0777);
  CAPTURE(mode);
  chmod(folder.verdicts().c_str(), mode);
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
}

TEST_CASE("verdicts: a file that others can read, and a link to a file, are told apart") {
  PluginFolder folder({"good"});
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  chmod(folder.verdicts().c_str(), 0644);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
  const std::filesystem::path elsewhere = folder.root() / "elsewhere.json";
  std::filesystem::rename(folder.verdicts(), elsewhere);
  std::filesystem::create_symlink(elsewhere, folder.verdicts());
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
}

TEST_CASE("verdicts: a file of somebody else is ignored") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give a file to another user");
    return;
  }
  PluginFolder folder({"good"});
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  REQUIRE(chown(folder.verdicts().c_str(), 12345, 12345) == 0);
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
}

TEST_CASE("verdicts: a place that cannot be written is reported once, and every start probes") {
  PluginFolder folder({"good", "fixture"});
  // A folder in the place of the file cannot be replaced by a file, not even by root.
  std::filesystem::create_directories(folder.verdicts() / "full");
  for (int start = 0; start < 2; ++start) {
    for (const PluginReport& report :
         PluginLoader().load(std::vector<std::string>{"good"}, {}, folder.registry, folder.options)) {
      CHECK(report.trial == PluginTrial::probed);
    }
    folder.registry = Registry();
  }
  const std::string log = folder.sink.text();
  const std::string said = "verdict file " + folder.verdicts().string() + ": cannot be written";
  std::size_t times = 0;
  for (std::size_t at = log.find(said); at != std::string::npos; at = log.find(said, at + 1)) ++times;
  CHECK(times == 2);  // once a start
  for (const auto& entry : std::filesystem::directory_iterator(folder.root())) {
    CHECK_THAT(entry.path().filename().string(), !Contains("verdicts.json."));
  }
}

TEST_CASE("verdicts: a folder that may not be written keeps nothing half-written") {
  PluginFolder folder;
  const std::filesystem::path place = folder.root() / "read-only";
  std::filesystem::create_directory(place);
  const int failed = as_ordinary_user(folder.root(), [&] {
    chmod(place.c_str(), 0555);
    const int fd = open((place / "plain").c_str(), O_CREAT | O_WRONLY, 0600);
    if (fd >= 0) return 1;  // modes mean nothing to this user: the rest would prove nothing
    CollectingSink sink;
    VerdictStore store(place / "verdicts.json", "host", {&sink, LogLevel::warning});
    store.put("/a.so", identity, crashed());
    store.save();
    if (sink.text().find("cannot be written") == std::string::npos) return 2;
    if (!store.find("/a.so", identity)) return 3;
    return std::filesystem::is_empty(place) ? 0 : 4;
  });
  CHECK(failed == 0);
}

TEST_CASE("verdicts: a file that is only read serves, and stays as it is") {
  PluginFolder folder({"good", "aborts"});
  REQUIRE(folder.load_one("good").trial == PluginTrial::probed);
  const std::string before = read_file(folder.verdicts());
  folder.options.verdicts_read_only = true;
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
  for (int start = 1; start <= 2; ++start) CHECK(folder.load_one("aborts").trial == PluginTrial::probed);
  CHECK(read_file(folder.verdicts()) == before);
  const std::string damaged = "{";
  write_file(folder.verdicts(), damaged);
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(read_file(folder.verdicts()) == damaged);
  CHECK_THAT(folder.sink.text(), Contains("damaged or of another version, and is ignored"));
}

TEST_CASE("verdicts: an empty file name remembers nothing") {
  PluginFolder folder({"good"});
  folder.options.verdict_file.clear();
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::probed);
}

TEST_CASE("verdicts: the probe's line is read back as it was written") {
  CHECK(verdict_of_line(to_line({}))->kind == VerdictKind::ok);
  const auto failed = verdict_of_line(to_line(internal_error("a message\nof two lines")));
  REQUIRE(failed);
  CHECK(failed->kind == VerdictKind::failed);
  CHECK(failed->status.text() == "internal: a message of two lines");
  for (const char* line : {"", "\n", "kiln-probe 1 ok", "kiln-probe 2 ok\n", "kiln-probe 1 okay\n",
                           "kiln-probe 1 failed nonsense why\n", "x\nkiln-probe 1 ok\n"}) {
    CHECK_FALSE(verdict_of_line(line));
  }
  CHECK(verdict_of_line(to_line(internal_error(std::string(10'000, 'x')))));
}

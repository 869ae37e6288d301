// The file of remembered verdicts: what is kept, and that nothing bad in it breaks a start.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

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

TEST_CASE("verdicts: the pause before the next trial doubles up to about an hour") {
  const std::pair<std::uint32_t, int> pauses[] = {{0, 0},    {1, 0},    {2, 60},   {3, 120},    {4, 240},
                                                  {7, 1920}, {8, 3840}, {9, 3840}, {1000, 3840}};
  for (const auto& [attempts, seconds] : pauses) {
    INFO(attempts);
    CHECK(pause_after(attempts) == std::chrono::seconds(seconds));
  }
  const std::pair<std::uint32_t, std::uint32_t> patience[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 4}, {1000, 4}};
  for (const auto& [attempts, times] : patience) CHECK(patience_after(attempts) == times);
}

TEST_CASE("verdicts: what lasts is every verdict but a failure that may pass") {
  for (const VerdictKind kind : {VerdictKind::ok, VerdictKind::crashed, VerdictKind::hung}) {
    for (const StatusCode code : {StatusCode::ok, StatusCode::io, StatusCode::timeout}) {
      CHECK(ProbeVerdict{kind, {code, "x"}}.lasting());
    }
  }
  const std::pair<StatusCode, bool> failures[] = {
      {StatusCode::invalid_argument, true}, {StatusCode::not_found, false}, {StatusCode::unsupported, true},
      {StatusCode::unavailable, false},     {StatusCode::corrupt, true},    {StatusCode::io, false},
      {StatusCode::timeout, false},         {StatusCode::internal, true}};
  for (const auto& [code, lasts] : failures) {
    INFO(to_string(code));
    CHECK(ProbeVerdict{VerdictKind::failed, {code, "x"}}.lasting() == lasts);
    CHECK(status_code_of(to_string(code)) == code);
    const auto line = verdict_of_line("kiln-probe 1 failed " + std::string(to_string(code)) + " why it is so\n");
    REQUIRE(line);
    CHECK(line->status.code == code);
    CHECK(line->status.message == "why it is so");
  }
  for (const char* const name : {"ok", "cancelled", "wrong_result", "", "Io"}) {
    CHECK_FALSE(status_code_of(name).has_value());
  }
  const auto short_line = verdict_of_line("kiln-probe 1 failed internal\n");
  REQUIRE(short_line);
  CHECK(short_line->status.message.empty());
  for (const auto& [kind, word] : {std::pair{VerdictKind::ok, "ok"}, std::pair{VerdictKind::failed, "failed"},
                                   std::pair{VerdictKind::crashed, "crashed"}, std::pair{VerdictKind::hung, "hung"}}) {
    CHECK(to_string(kind) == word);
    CHECK(verdict_kind_of(word) == kind);
  }
  CHECK_FALSE(verdict_kind_of("invalid").has_value());
}

TEST_CASE("verdicts: a line of the probe is cut at 2048 bytes") {
  const std::string begin = "kiln-probe 1 failed internal ";
  const std::string fitting(2048 - begin.size(), 'x');
  CHECK(to_line(internal_error(fitting)) == begin + fitting + "\n");
  CHECK(to_line(internal_error(fitting + "y")) == begin + fitting + "\n");
  CHECK(to_line({}) == "kiln-probe 1 ok\n");
}

TEST_CASE("verdicts: a plugin that hangs again and again is counted, and one that ended otherwise begins anew") {
  VerdictStore store(std::filesystem::path(), "host", {});
  CHECK(store.put("/a.so", identity, {VerdictKind::hung, timed_out("x")}).attempts == 1);  // remembered nowhere
  CHECK(store.put("/a.so", identity, {VerdictKind::hung, timed_out("x")}).attempts == 1);
  PluginFolder folder;
  VerdictStore kept(folder.verdicts(), "host", {});
  for (std::uint32_t attempts = 1; attempts <= 3; ++attempts) {
    CHECK(kept.put("/a.so", identity, {VerdictKind::hung, timed_out("x")}).attempts == attempts);
  }
  CHECK(kept.put("/a.so", {9, 2, 3, -4}, {VerdictKind::hung, timed_out("x")}).attempts == 1);
  kept.put("/b.so", identity, {VerdictKind::hung, timed_out("x")});
  kept.put("/b.so", identity, crashed());
  CHECK(kept.put("/b.so", identity, {VerdictKind::hung, timed_out("x")}).attempts == 1);
}

TEST_CASE("verdicts: each host has its own of one plugin") {
  PluginFolder folder;
  VerdictStore first(folder.verdicts(), "host", {});
  first.put("/a.so", identity, crashed());
  first.save();
  VerdictStore second(folder.verdicts(), "another host", {});
  second.put("/a.so", identity, {VerdictKind::ok, {}});
  second.save();
  const auto of_first = VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity);
  REQUIRE(of_first);
  CHECK(of_first->kind == VerdictKind::crashed);
  const auto of_second = VerdictStore(folder.verdicts(), "another host", {}).find("/a.so", identity);
  REQUIRE(of_second);
  CHECK(of_second->kind == VerdictKind::ok);
}

TEST_CASE("verdicts: a file with a member of another type, or too many entries, is of another version") {
  PluginFolder folder;
  const std::string entry = R"({"path": "/a.so", "host": "host", "device": 1, "inode": 2, "size": 3, "mtime_ns": -4, )"
                            R"("verdict": "hung", "code": "timeout", "message": "x", "attempts": 5000, "again_at": 9})";
  const auto found_in = [&](const std::string& entries) {
    write_file(folder.verdicts(), R"({"schema": 1, "verdicts": )" + entries + "}");
    chmod(folder.verdicts().c_str(), 0600);
    return VerdictStore(folder.verdicts(), "host", {}).find("/a.so", identity);
  };
  const auto whole = found_in("[" + entry + "]");
  REQUIRE(whole);
  CHECK(whole->kind == VerdictKind::hung);
  CHECK(whole->attempts == 1000);
  CHECK(whole->again_at_s == 9);
  CHECK(whole->status.text() == "timeout: x");
  const std::pair<std::string, std::string> changes[] = {{"\"/a.so\"", "7"},
                                                         {"\"host\": \"host\"", "\"host\": null"},
                                                         {"\"device\": 1", "\"device\": -1"},
                                                         {"\"inode\": 2", "\"inode\": 2.5"},
                                                         {"\"size\": 3", "\"size\": \"3\""},
                                                         {"-4", "true"},
                                                         {"\"hung\"", "\"sleeps\""},
                                                         {"\"hung\"", "\"invalid\""},
                                                         {"\"timeout\"", "\"late\""},
                                                         {"\"timeout\"", "\"ok\""},
                                                         {"\"x\"", "[]"}};
  for (const auto& [from, to] : changes) {
    INFO(from << " as " << to);
    std::string changed = entry;
    changed.replace(changed.find(from), from.size(), to);
    CHECK_FALSE(found_in("[" + changed + "]").has_value());
  }
  CHECK_FALSE(found_in("{\"0\": " + entry + "}").has_value());
  std::string many = "[" + entry;
  for (int at = 1; at < 256; ++at) many += ", " + entry;
  CHECK(found_in(many + "]").has_value());
  CHECK_FALSE(found_in(many + ", " + entry + "]").has_value());
}

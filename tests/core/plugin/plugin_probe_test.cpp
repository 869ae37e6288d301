// What kiln-probe is for: plugins that crash, hang or misbehave, and verdicts that are remembered.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/plugin/plugin_folder.hpp"
#include "plugin/plugin_probe.hpp"

using namespace kiln;
using namespace kiln::test;
using namespace std::chrono_literals;
using Catch::Contains;

namespace {

PluginReport load_twice(PluginFolder& folder, const std::string& name) {
  const PluginReport first = folder.load_one(name);
  CHECK(first.trial == PluginTrial::probed);
  const PluginReport second = folder.load_one(name);
  CHECK(second.trial == PluginTrial::remembered);
  CHECK(second.loaded == first.loaded);
  CHECK(second.why_not.text() == first.why_not.text());
  return second;
}

void set_mtime(const std::filesystem::path& path, long nanoseconds) {
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, nanoseconds}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

struct Ended {
  int status = -1;
  std::string output;
};

// kiln-probe by hand, as a person calls it: its standard output is a file.
Ended run_probe(const std::vector<std::string>& arguments, const std::filesystem::path& output) {
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    const std::string probe = PluginLoader::default_probe().string();
    std::vector<char*> argv{const_cast<char*>(probe.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(probe.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(output)};
}

// A process that has ended may stay as a zombie where nobody reaps it.
bool ended(pid_t pid) {
  const std::string line = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.substr(name_end, 3) == ") Z" || line.substr(name_end, 3) == ") X";
}

}  // namespace

TEST_CASE("probe: called by hand it answers one line") {
  PluginFolder folder({"good", "throws"});
  const auto output = folder.root() / "output";
  const Ended good = run_probe({"load", folder.file("good").string()}, output);
  CHECK(good.status == 0);
  CHECK(good.output == "kiln-probe 1 ok\n");
  const Ended throws = run_probe({"load", folder.file("throws").string()}, output);
  CHECK(throws.status == 3);
  CHECK(throws.output ==
        "kiln-probe 1 failed internal register function threw an exception: the fixture's own words\n");
  const Ended usage = run_probe({"nonsense"}, output);
  CHECK(usage.status == 2);
  CHECK(usage.output == "usage: kiln-probe load PATH | measure | build\n");
}

TEST_CASE("probe: it dies with its parent") {
  PluginFolder folder({"hangs"});
  int told[2];
  REQUIRE(pipe(told) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    // Only this process reads the probe's answer, as in the loader.
    int answer[2];
    if (pipe(answer) != 0) _exit(1);
    const pid_t probe = fork();
    if (probe == 0) {
      dup2(answer[1], STDOUT_FILENO);
      closefrom(3);
      execl(PluginLoader::default_probe().c_str(), "kiln-probe", "load", folder.file("hangs").c_str(), nullptr);
      _exit(127);
    }
    if (write(told[1], &probe, sizeof probe) != sizeof probe) _exit(1);
    while (true) pause();
  }
  pid_t probe = 0;
  REQUIRE(read(told[0], &probe, sizeof probe) == sizeof probe);
  close(told[0]);
  close(told[1]);
  CHECK_FALSE(ended(probe));
  kill(parent, SIGKILL);
  REQUIRE(waitpid(parent, nullptr, 0) == parent);
  const Deadline deadline = Deadline::after(60s);
  while (!ended(probe) && !deadline.passed()) usleep(1000);
  CHECK(ended(probe));
}

TEST_CASE("probe: a good plugin is tried once") {
  PluginFolder folder({"good", "fixture"});
  for (const char* name : {"good", "fixture"}) CHECK(load_twice(folder, name).loaded);
}

TEST_CASE("probe: one that aborts in a static constructor stays blocked, and no core is left") {
  PluginFolder folder({"aborts", "good"});
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.root());
  const PluginReport report = load_twice(folder, "aborts");
  std::filesystem::current_path(here);
  CHECK(report.why_not.code == StatusCode::unsupported);
  CHECK_THAT(report.why_not.message,
             Contains("crashed with SIGABRT in kiln-probe: blocked until the plugin file changes"));
  CHECK(folder.load_one("good").loaded);
  for (const auto& entry : std::filesystem::directory_iterator(folder.root())) {
    CHECK_THAT(entry.path().filename().string(), !Contains("core"));
  }
}

TEST_CASE("probe: a blocked plugin is tried again when its file changes") {
  PluginFolder folder({"aborts", "good"});
  set_mtime(folder.file("aborts"), 1);
  load_twice(folder, "aborts");
  SECTION("its time, by a nanosecond") {
    set_mtime(folder.file("aborts"), 2);
    CHECK(folder.load_one("aborts").trial == PluginTrial::probed);
  }
  SECTION("its inode, with the same time") {
    std::filesystem::copy_file(folder.file("aborts"), folder.root() / "copy");
    std::filesystem::rename(folder.root() / "copy", folder.file("aborts"));
    set_mtime(folder.file("aborts"), 1);
    CHECK(folder.load_one("aborts").trial == PluginTrial::probed);
  }
  SECTION("its contents, for the better") {
    write_file(folder.file("aborts"), "no longer a plugin");
    CHECK(folder.load_one("aborts").why_not.code == StatusCode::corrupt);
  }
}

TEST_CASE("probe: one that never returns is killed at the deadline and tried again later") {
  PluginFolder folder({"hangs"});
  folder.options.probe_timeout = 100ms;
  const PluginReport first = folder.load_one("hangs");
  CHECK(first.trial == PluginTrial::probed);
  CHECK(first.why_not.code == StatusCode::timeout);
  CHECK_THAT(first.why_not.message, Contains("registration in kiln-probe timed out after 100 ms"));
  CHECK_THAT(first.why_not.message, Contains("1 time in a row. Kiln tries again at the next start"));

  const PluginReport second = folder.load_one("hangs");
  CHECK(second.trial == PluginTrial::probed);
  CHECK_THAT(second.why_not.message, Contains("timed out after 200 ms") && Contains("2 times in a row") &&
                                         Contains("after") && Contains("kiln plugins --retry"));

  const PluginReport third = folder.load_one("hangs");
  CHECK(third.trial == PluginTrial::remembered);
  CHECK_THAT(third.why_not.message, Contains("2 times in a row") && Contains("kiln plugins --retry"));

  // The pause is over: the time that the file names has passed.
  std::string verdicts = read_file(folder.options.verdict_file);
  const std::size_t at = verdicts.find("\"again_at\": ");
  REQUIRE(at != std::string::npos);
  verdicts.insert(at + 12, "1 , \"was\": ");
  write_file(folder.options.verdict_file, verdicts);
  const PluginReport fourth = folder.load_one("hangs");
  CHECK(fourth.trial == PluginTrial::probed);
  CHECK_THAT(fourth.why_not.message, Contains("timed out after 300 ms") && Contains("3 times in a row"));
}

TEST_CASE("probe: a required plugin is tried at every start, however often it was not done in time") {
  PluginFolder folder({"hangs"});
  folder.options.probe_timeout = 50ms;
  const std::vector<std::string> names = {"hangs"};
  for (int start = 1; start <= 4; ++start) {
    Registry registry;
    const auto reports = PluginLoader().load(names, names, registry, folder.options);
    CHECK(reports.at(0).trial == PluginTrial::probed);
    CHECK_THAT(reports.at(0).why_not.message, Contains(std::to_string(start) + " time"));
  }
}

// What an earlier start wrote: a plugin that hung, without a count, is tried at once.
TEST_CASE("probe: a good plugin that was once not done in time serves again") {
  PluginFolder folder({"good"});
  REQUIRE(folder.load_one("good").loaded);
  std::string verdicts = read_file(folder.options.verdict_file);
  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE(verdicts.find(from) != std::string::npos);
    verdicts.replace(verdicts.find(from), from.size(), to);
  };
  replace("\"verdict\": \"ok\"", "\"verdict\": \"hung\"");
  replace("\"code\": \"ok\"", "\"code\": \"timeout\"");
  write_file(folder.options.verdict_file, verdicts);
  const PluginReport again = folder.load_one("good");
  CHECK(again.loaded);
  CHECK(again.trial == PluginTrial::probed);
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
}

TEST_CASE("probe: pauses and patience grow with the attempts, within bounds") {
  CHECK(pause_after(0) == 0s);
  CHECK(pause_after(1) == 0s);
  CHECK(pause_after(2) == 60s);
  CHECK(pause_after(3) == 120s);
  CHECK(pause_after(8) == 3840s);
  CHECK(pause_after(1000) == 3840s);
  CHECK(patience_after(1) == 2);
  CHECK(patience_after(1000) == 4);
}

TEST_CASE("probe: one that never returns keeps no plugin beside it from working") {
  PluginFolder folder({"hangs", "fixture"});
  folder.options.probe_timeout = 2s;
  for (const PluginTrial trial : {PluginTrial::probed, PluginTrial::probed, PluginTrial::remembered}) {
    folder.registry = Registry();
    const std::vector<PluginReport> reports = folder.load({"hangs", "fixture"});
    REQUIRE(reports.size() == 2);
    CHECK(reports[0].why_not.code == StatusCode::timeout);
    CHECK(reports[0].trial == trial);
    INFO(reports[1].why_not.text());
    REQUIRE(reports[1].loaded);
    REQUIRE(folder.registry.drivers().size() == 1);
    const auto driver = folder.registry.drivers().at("fixture").make({});
    REQUIRE(driver);
    const auto device = (*driver)->open("fixture:0");
    REQUIRE(device);
    CHECK((*device)->create_buffer({64, BufferUsage::storage, {}, -1}));
  }
}

TEST_CASE("probe: one that ends the process is no success, whatever it writes") {
  PluginFolder folder({"exits"});
  const PluginReport report = load_twice(folder, "exits");
  CHECK(report.why_not.code == StatusCode::unsupported);
  CHECK_THAT(report.why_not.message, Contains("ended the process with status 0 in kiln-probe"));
}

TEST_CASE("probe: one that aborts while the process exits") {
  PluginFolder folder({"aborts_at_exit"});
  CHECK_THAT(load_twice(folder, "aborts_at_exit").why_not.message,
             Contains("crashed with SIGABRT while the process was exiting"));
}

TEST_CASE("probe: one that closes descriptors that are not its own") {
  PluginFolder folder({"closes_descriptors"});
  CHECK_THAT(load_twice(folder, "closes_descriptors").why_not.message,
             Contains("closed file descriptors that the plugin did not open"));
}

TEST_CASE("probe: what a plugin writes is not taken for an answer") {
  PluginFolder folder({"talks"});
  const auto verdict = probe_plugin(PluginLoader::default_probe(), folder.file("talks"), 60s);
  REQUIRE(verdict);
  INFO(verdict->status.text());
  CHECK(verdict->kind == VerdictKind::ok);
}

TEST_CASE("probe: failures that lie in the file are remembered, those of its surroundings are not") {
  PluginFolder folder({"throws", "differs", "no_symbol", "refuses", "missing_library", "undefined_symbol"});
  for (const char* name : {"throws", "differs", "no_symbol", "refuses"}) load_twice(folder, name);
  for (const char* name : {"missing_library", "undefined_symbol"}) {
    CHECK(folder.load_one(name).trial == PluginTrial::probed);
    CHECK(folder.load_one(name).trial == PluginTrial::probed);
  }
}

TEST_CASE("probe: without kiln-probe an unknown plugin is not loaded, a known one is") {
  PluginFolder folder({"good", "fixture"});
  CHECK(folder.load_one("good").loaded);
  folder.options.probe = folder.root() / "no-such-probe";
  CHECK(folder.load_one("good").trial == PluginTrial::remembered);
  const PluginReport report = folder.load_one("fixture");
  CHECK(report.why_not.code == StatusCode::unavailable);
  CHECK_THAT(report.why_not.message, Contains((folder.root() / "no-such-probe").string() + " cannot be started"));
}

TEST_CASE("probe: a program that is no kiln-probe is not believed") {
  PluginFolder folder({"good"});
  folder.options.probe = "/bin/true";
  CHECK_FALSE(folder.load_one("good").loaded);
}

TEST_CASE("probe: an application that ignores SIGCHLD gets its answer too") {
  PluginFolder folder({"good", "aborts"});
  void (*before)(int) = std::signal(SIGCHLD, SIG_IGN);
  const PluginReport good = folder.load_one("good");
  const PluginReport aborts = folder.load_one("aborts");
  std::signal(SIGCHLD, before);
  INFO(good.why_not.text());
  CHECK(good.loaded);
  CHECK_FALSE(aborts.loaded);
  CHECK_THAT(aborts.why_not.message, Contains("ended without an answer"));
}

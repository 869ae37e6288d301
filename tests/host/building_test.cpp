// New programs are built in a child: what a compiler does there costs its own job.
#include "host/build_place.hpp"
#include "support/test_length.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// The job named `bad` fails with words that name it, and all others are right.
void check_only_fails(const Finished& finished, const std::string& bad, const std::string& words) {
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto json = finished.json();
  for (const auto& job : json["jobs"]) {
    CAPTURE(job["name"]);
    if (job["name"] != bad) {
      CHECK(job["verified"] == true);
      continue;
    }
    CHECK(job["status"] != "ok");
    CHECK_THAT(job["error"].get<std::string>(), Contains(bad) && Contains(words));
  }
}

}  // namespace

TEST_CASE("building: a kernel that the compiler crashes on fails alone, in each run") {
  BuildPlace place;
  place.add("first", good_kernel(2), 2);
  place.add("deep", crashing_kernel());
  place.add("second", good_kernel(3), 3);
  for (int run = 0; run < 2; ++run) {
    const Finished finished = place.run();
    if (!has_opengl(finished)) return;
    check_only_fails(finished, "deep", "the compiler crashed");
  }
}

// One limit is near and the other one far away, so that it is known which one ends the compile.
TEST_CASE("building: an endless compile ends at its limit of time, one that takes all memory at that of memory",
          "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves more memory than the limit, and slows the compiler down");
    return;
  }
  struct Limits {
    const char* bad;
    int levels;
    const char *timeout, *memory, *words;
  };
  for (const Limits& limits : {Limits{"endless", 4, "5 s", "64 GiB", "did not finish within 5 s"},
                               Limits{"large", 7, "150 s", "512 MiB", "build_memory = 512 MiB"}}) {
    BuildPlace place;
    place.add("first", good_kernel(2), 2);
    place.add(limits.bad, grown_kernel(limits.levels));
    place.add("second", good_kernel(3), 3);
    const Finished finished = place.run({"--set", "cache.build_timeout=\"" + std::string(limits.timeout) + "\"",
                                         "--set", "cache.build_memory=\"" + std::string(limits.memory) + "\""});
    if (!has_opengl(finished)) return;
    check_only_fails(finished, limits.bad, limits.words);
  }
}

TEST_CASE("building: a compiler crash beside an endless compile and one of gigabytes among twenty good jobs",
          "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves more memory than the limit, and slows the compiler down");
    return;
  }
  BuildPlace place;
  for (int factor = 2; factor < 12; ++factor) place.add("before" + std::to_string(factor), good_kernel(factor), factor);
  place.add("deep", crashing_kernel());
  place.add("endless", grown_kernel(4));  // 4,096 statements: minutes
  place.add("large", grown_kernel(7));    // 2,097,152 statements: more than 8 GB
  for (int factor = 12; factor < 22; ++factor) place.add("after" + std::to_string(factor), good_kernel(factor), factor);
  const Finished finished = place.run({"--jobs", "8", "--set", "cache.build_timeout=\"20 s\"", "--set",
                                       is_long() ? "cache.build_memory=\"4 GiB\"" : "cache.build_memory=\"512 MiB\""});
  if (!has_opengl(finished)) return;
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  std::map<std::string, std::string> errors;
  std::size_t good = 0;
  const auto report = finished.json();
  for (const auto& job : report["jobs"]) {
    if (job["verified"] == true) ++good;
    if (job["status"] != "ok") errors[job["name"]] = job["error"];
  }
  CHECK(good == 20);
  CHECK(errors.size() == 3);
  CHECK_THAT(errors["deep"], Contains("deep") && Contains("the compiler crashed"));
  // Which limit is met first depends on how fast the compiler is.
  CHECK_THAT(errors["endless"],
             Contains("endless") && (Contains("did not finish within 20 s") || Contains("build_memory")));
  CHECK_THAT(errors["large"], Contains("large") && (Contains("build_memory") || Contains("did not finish")));
}

TEST_CASE("building: a variant that the compiler needs gigabytes for is rejected, and the others are tuned",
          "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves more memory than the limit");
    return;
  }
  BuildPlace place;
  const std::string large = grown_kernel(7);  // more than 8 GB
  const std::size_t body = large.find("void main()");
  place.add(
      "tuned",
      large.substr(0, body) + "#if LEVEL > 1\n" + large.substr(body) +
          "#else\nvoid main() { y[gl_GlobalInvocationID.x] = float(gl_GlobalInvocationID.x) * 2.0 + 1.0; }\n#endif\n",
      2);
  place.jobs += "tune = { LEVEL = [0, 1, 2] }\n";
  if (!has_opengl(place.run())) return;
  const Finished tuned =
      place.verb({"tune", (place.folder / "jobs.toml").string(), "--json", "--set",
                  is_long() ? "cache.build_memory=\"4 GiB\"" : "cache.build_memory=\"512 MiB\"", "--budget", "60 s"});
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  const auto job = tuned.json()["jobs"][0];
  CHECK(job["candidates"] == 3);
  REQUIRE(job["rejected"].size() == 1);
  CHECK_THAT(job["rejected"][0].get<std::string>(), Contains("LEVEL=2") && Contains("build_memory"));
}

namespace {

struct ProcessFacts {
  pid_t pid = 0, parent = 0;
  long ticks = 0;  // of processor time
  std::string command;
};

std::vector<ProcessFacts> processes() {
  std::vector<ProcessFacts> all;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    ProcessFacts facts;
    facts.pid = std::atoi(at->path().filename().c_str());
    std::ifstream stat(at->path() / "stat"), command(at->path() / "cmdline");
    std::string text;
    std::getline(stat, text);  // nothing where the process is gone
    if (facts.pid == 0 || text.rfind(')') == std::string::npos) continue;
    std::istringstream rest(text.substr(text.rfind(')') + 1));
    std::vector<std::string> words;
    for (std::string word; rest >> word;) words.push_back(word);
    if (words.size() < 13) continue;
    facts.parent = std::stoi(words[1]);
    facts.ticks = std::stol(words[11]) + std::stol(words[12]);
    std::getline(command, facts.command);
    all.push_back(std::move(facts));
  }
  return all;
}

// The child that compiles for the command that works in this folder, once it has used that much processor time.
pid_t busy_compiler(const fs::path& folder, long ticks) {
  const auto all = processes();
  for (const ProcessFacts& command : all) {
    if (command.command.find(folder.string()) == std::string::npos) continue;
    for (const ProcessFacts& child : all) {
      const bool builds = child.parent == command.pid && child.command.find("kiln-probe") != std::string::npos;
      if (builds && child.ticks >= ticks) return child.pid;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("building: a compiler's process that somebody kills is replaced") {
  BuildPlace place;
  place.add("long", grown_kernel(3));
  Finished finished;
  std::atomic<bool> ended{false};
  std::jthread run([&] {
    finished = place.run();
    ended = true;
  });
  pid_t compiler = 0;
  while (!ended && compiler == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    compiler = busy_compiler(place.folder.path(), 60);
  }
  if (compiler != 0) kill(compiler, SIGKILL);
  run.join();
  INFO(finished.err << finished.out);
  CHECK(finished.status == 0);
  if (has_opengl(finished)) CHECK(compiler != 0);
}

TEST_CASE("building: Ctrl-C ends `kiln run` in the middle of an endless compile") {
  BuildPlace place;
  place.add("endless", grown_kernel(4));
  if (!has_opengl(place.run({"--set", "cache.build_timeout=\"1 s\""}))) return;
  ProcessOptions options;
  options.interrupt_when = "endless";
  const auto begun = std::chrono::steady_clock::now();
  const Finished ended = place.run({"--progress", "plain", "--set", "cache.build_timeout=\"300 s\""}, options);
  INFO(ended.err);
  CHECK(ended.status == -SIGINT);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));
}

TEST_CASE("building: Ctrl-C ends the command also where the compiler runs in its process", "[unsanitized]") {
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"run"}, {"cache", "warm"}}) {
    if (is_sanitized && verb.front() == "cache") continue;
    BuildPlace place;
    place.add("other", good_kernel(2), 2);
    place.add("endless", grown_kernel(6));  // 262,144 statements
    const std::string jobs = place.folder.write("jobs.toml", place.jobs);
    ProcessOptions options;
    options.environment = {{"KILN_KEY_FILE", place.key}, {"XDG_RUNTIME_DIR", place.runtime}};
    // Ctrl-C after five seconds; whoever does not end by it is killed a minute later.
    options.before = {"timeout", "--preserve-status", "-s", "INT", "-k", "60", "5"};
    std::vector<std::string> words = verb;
    words.insert(words.end(), {jobs, "--set", "cache.build_in=process", "--cache-dir", place.cache});
    const Finished ended = run_kiln(words, options);
    INFO(verb.front() << ": " << ended.err);
    CHECK(ended.status == 128 + SIGINT);
  }
}

TEST_CASE("building: Ctrl-C ends `kiln cache warm` in the middle of an endless compile") {
  BuildPlace place;
  place.add("endless", grown_kernel(6));
  place.add("other", good_kernel(2), 2);
  const std::string jobs = place.folder.write("jobs.toml", place.jobs);
  if (!has_opengl(place.run({"--set", "cache.build_timeout=\"1 s\""}))) return;
  ProcessOptions options;
  options.environment = {{"KILN_KEY_FILE", place.key}, {"XDG_RUNTIME_DIR", place.runtime}};
  options.interrupt_when = "other";  // the second program is ready; the first never is
  const auto begun = std::chrono::steady_clock::now();
  const Finished warmed = run_kiln(
      {"cache", "warm", jobs, "--log", "debug", "--set", "cache.build_timeout=\"300 s\"", "--cache-dir", place.cache},
      options);
  INFO(warmed.err);
  CHECK(warmed.status == -SIGINT);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));
}

TEST_CASE("building: in this process, where that is asked for, a program has its driver files too") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  const Finished finished = place.run({"--set", "cache.build_in=process"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["cache"]["builds"] == 1);
  if (!has_opengl(finished)) return;
  REQUIRE(place.entries().size() == 1);
  CHECK_FALSE(stored_program(place.entries()[0], entry_key(place.key)).driver_files.empty());
  const Finished warm = place.run();
  CHECK(warm.status == 0);
  CHECK(warm.json()["cache"]["disk_hits"] == 1);
}

namespace {

// A process of the user that does nothing.
class Victim {
 public:
  Victim() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// What a build of the fixture `intruder` got, by the name of the attempt: "done", or the error of the system.
std::map<std::string, std::string> intrude(const BuildPlace& place, const fs::path& folder, const std::string& build_in,
                                           std::string& log) {
  fs::create_directories(folder);
  for (const char* name : {"secret", "spare"}) put(folder / name, "text");
  const int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(end, 1) == 0);
  const Victim victim;
  const std::string config = place.folder.write(
      "intruder.toml", "[plugins]\nload = [\"intruder\", \"dynamic_shaders\"]\n[plugin.intruder]\nfolder = \"" +
                           folder.string() + "\"\nvictim = " + std::to_string(victim.pid()) +
                           "\n[[job]]\nname = \"bad\"\nop = \"kernel\"\nsource = \"good.comp\"\ngrid = [1, 1, 1]\n"
                           "device = \"intruder:0\"\nbindings = [{ output = \"bad.npy\", shape = [64] }]\n");
  place.folder.write("good.comp", good_kernel(2));
  ProcessOptions options;
  options.environment = {{"KILN_KEY_FILE", place.key}, {"XDG_RUNTIME_DIR", place.runtime}};
  const Finished finished =
      run_kiln({"run", config, "--json", "--log", "info", "--plugin-path", KILN_PLUGIN_DIR ":" KILN_FIXTURE_DIR,
                "--cache-dir", place.cache, "--set", "cache.build_in=" + build_in},
               options);
  close(end);
  log = finished.err;
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 1);
  const std::string error = finished.json()["jobs"][0]["error"];
  const std::size_t begin = error.find("read=");
  REQUIRE(begin != std::string::npos);
  std::map<std::string, std::string> answers;
  std::istringstream words(error.substr(begin));
  for (std::string word; words >> word;) {
    while (word.ends_with(',')) word.pop_back();
    answers[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return answers;
}

const char* const attempts_on_files[] = {"read", "write",  "create", "list",     "rename",
                                         "link", "remove", "passwd", "truncate", "environment"};
const char* const attempts_on_others[] = {"mode",   "times",  "tcp",   "udp",     "local", "shared", "signal",
                                          "memory", "limits", "trace", "session", "fork",  "execute"};

}  // namespace

TEST_CASE("building: a child reaches none of the user's files, no network and no other process") {
  BuildPlace place;
  std::string log;
  // The control: with the rights of the user everything works. The shared parts of it need none of them.
  auto answers = intrude(place, place.folder / "open", "process", log);
  for (const char* name : {"read", "write", "create", "list", "passwd", "udp", "local", "signal", "fork", "execute"}) {
    CAPTURE(name);
    CHECK(answers[name] == "done");
  }
  const fs::path folder = place.folder / "closed";
  answers = intrude(place, folder, "child", log);
  const auto is_enforced = [&](const char* what) {
    if (log.find(std::string("not isolated from ") + what) == std::string::npos) return true;
    WARN("skipped: this kernel does not isolate a process from " << what);
    return false;
  };
  if (is_enforced("the user's files")) {
    for (const char* name : attempts_on_files) {
      CAPTURE(name);
      CHECK((answers[name] == "EACCES" || answers[name] == "EPERM" || answers[name] == "EXDEV"));
    }
    CHECK(bytes_in(folder / "secret") == "text");
    CHECK(fs::exists(folder / "spare"));
    CHECK_FALSE(fs::exists(folder / "new"));
  }
  if (is_enforced("network")) {
    for (const char* name : attempts_on_others) {
      CAPTURE(name);
      CHECK(answers[name] == "EPERM");
    }
  }
}

// What a driver needs is within its reach where its user's home is a folder of the system too.
TEST_CASE("building: a child that is cut off opens the driver, wherever the home and the key are", "[unsanitized]") {
  for (const char* home : {"/", "/usr", "/usr/games", "/nowhere", ""}) {
    CAPTURE(home);
    BuildPlace place;
    place.add("one", good_kernel(2), 2);
    const Finished finished = place.run({"--log", "info"}, {.environment = {{"HOME", home}}});
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    if (!has_opengl(finished)) return;
    CHECK_THAT(finished.err, !Contains("without a child process"));
    if (is_sanitized) return;
  }
}

// New programs are built in a child: what a compiler does there costs its own job. And the files of the driver's own
// cache that the child finds are stored with the program: altered ones are refused.
#include "host/kiln_process.hpp"
#include "host/stored_programs.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <sstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const std::string shader_head =
    "#version 430\nlayout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) buffer Y { float y[]; };\n";

// y[i] = i * factor + 1
std::string good_kernel(int factor) {
  return shader_head + "void main() { uint i = gl_GlobalInvocationID.x; y[i] = float(i) * " + std::to_string(factor) +
         ".0 + 1.0; }\n";
}

// A statement or a term, eight to the power of `levels` times.
std::string grown(const std::string& name, const std::string& one, const std::string& between, int levels) {
  std::string text = "#define " + name + "0 " + one + "\n";
  for (int level = 1; level <= levels; ++level) {
    const std::string inner = name + std::to_string(level - 1);
    text += "#define " + name + std::to_string(level) + " " + inner;
    for (int i = 1; i < 8; ++i) text += between + inner;
    text += "\n";
  }
  return text;
}

// An expression of 65,536 terms: Mesa's compiler overflows its stack.
std::string crashing_kernel() {
  return "#version 430\n" + grown("A", "1.0+1.0", "+", 5) + shader_head.substr(shader_head.find('\n') + 1) +
         "void main() { y[0] = A5; }\n";
}

// Eight to the power of `levels` statements.
std::string grown_kernel(int levels) {
  return "#version 430\n" + grown("A", "a = sin(a) * 1.5 + y[int(a)];", " ", levels) +
         shader_head.substr(shader_head.find('\n') + 1) + "void main() { float a = y[0]; A" + std::to_string(levels) +
         " y[0] = a; }\n";
}

struct BuildPlace {
  TemporaryFolder folder;
  fs::path cache = folder / "cache", runtime = folder / "runtime", key = folder / "key";
  std::string jobs;

  BuildPlace() { fs::create_directory(runtime), fs::permissions(runtime, fs::perms::owner_all); }

  void add(const std::string& name, const std::string& text, int factor = 0) {
    folder.write(name + ".comp", text);
    jobs += "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + name +
            ".comp\"\ngrid = [1, 1, 1]\ndevice = \"opengl:0\"\nbindings = [{ output = \"" + name +
            ".npy\", shape = [64], dtype = \"float32\"" +
            (factor != 0 ? ", expect = \"" + expected(factor) + "\"" : std::string()) + " }]\n" +
            (factor != 0 ? "verify = true\n" : "");
  }

  std::string expected(int factor) {
    const std::string name = "expected-" + std::to_string(factor) + ".npy";
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }";
    head += std::string(64 - (11 + head.size()) % 64, ' ') + "\n";
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(head.size() & 0xff);
    text += static_cast<char>(head.size() >> 8);
    text += head;
    for (int i = 0; i < 64; ++i) {
      const float value = static_cast<float>(i * factor + 1);
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::ofstream(folder / name, std::ios::binary) << text;
    return name;
  }

  Finished run(const std::vector<std::string>& more = {}, ProcessOptions options = {}) const {
    options.environment.emplace("KILN_KEY_FILE", key);
    options.environment.emplace("XDG_RUNTIME_DIR", runtime);
    std::vector<std::string> words = {"run", folder.write("jobs.toml", jobs), "--json", "--cache-dir", cache};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(std::move(words), options);
  }
  Finished verb(std::vector<std::string> words) const {
    words.insert(words.end(), {"--cache-dir", cache});
    return run_kiln(std::move(words), {.environment = {{"KILN_KEY_FILE", key}}});
  }

  std::vector<fs::path> entries() const { return entry_files(cache); }
};

void check_verified(const Finished& finished, bool expected) {
  const auto json = finished.json();
  for (const auto& job : json["jobs"]) CHECK(job["verified"] == expected);
}

bool has_opengl(const Finished& finished) { return finished.json()["jobs"][0]["device"]["id"] == "opengl:0"; }

int rejected_in(const nlohmann::json& cache) {
  int sum = 0;
  for (const auto& count : cache["rejected"]) sum += count.get<int>();
  return sum;
}

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
  // A fast compiler meets the limit of memory before that of time.
  CHECK_THAT(errors["endless"],
             Contains("endless") && (Contains("did not finish within 20 s") || Contains("build_memory")));
  CHECK_THAT(errors["large"], Contains("large") && (Contains("build_memory") || Contains("did not finish")));
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

TEST_CASE("driver files: the child's list is in the entry, and nothing is left outside of entries") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  place.add("two", good_kernel(3), 3);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  if (!has_opengl(cold) || cold.json()["cache"]["driver_cache"] != "adopted") return;
  const kiln::EntryKey key = entry_key(place.key);
  REQUIRE(place.entries().size() == 2);
  for (const fs::path& path : place.entries()) {
    const kiln::ProgramBinary program = stored_program(path, key);
    CHECK(program.driver_setting.size() == 64);
    REQUIRE_FALSE(program.driver_files.empty());
    for (const auto& file : program.driver_files) CHECK_FALSE(file.bytes.empty());
  }
  CHECK_FALSE(fs::exists(place.cache / "driver"));
  CHECK(fs::is_empty(place.runtime / "kiln" / "driver"));
}

// A driver may compile once more for what is bound at the first dispatch, as llvmpipe does for the formats of images.
TEST_CASE("driver files: what the first dispatch compiles is stored too, once") {
  BuildPlace place;
  place.jobs =
      "[[job]]\nname = \"layer\"\nop = \"conv2d\"\nc = 16\nh = 28\nw = 28\nk = 16\nr = 3\ns = 3\npad = 1\n"
      "input = \"random:1\"\nweights = \"random:2\"\nverify = true\ndevice = \"opengl:0\"\n";
  const auto files = [&] {
    std::size_t count = 0;
    for (const fs::path& path : place.entries()) {
      count += stored_program(path, entry_key(place.key)).driver_files.size();
    }
    return count;
  };
  const std::vector<std::string> warm = {"cache", "warm", place.folder.write("jobs.toml", place.jobs)};
  const Finished built = place.verb(warm);
  INFO(built.err);
  REQUIRE(built.status == 0);
  const std::size_t of_builds = files();
  const Finished first = place.run();
  INFO(first.err);
  REQUIRE(first.status == 0);
  if (!has_opengl(first) || first.json()["cache"]["driver_cache"] != "adopted") return;
  const std::size_t of_dispatches = files();
  CHECK(of_builds > 0);
  CHECK(of_dispatches > of_builds);
  const Finished second = place.run();
  CHECK(second.json()["cache"]["builds"] == 0);
  check_verified(second, true);
  CHECK(files() == of_dispatches);
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
    if (log.find(std::string("not cut off from ") + what) == std::string::npos) return true;
    WARN("skipped: this kernel does not cut a process off from " << what);
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
    CHECK_THAT(finished.err, !Contains("no child process builds"));
    if (is_sanitized) return;
  }
}

// Whoever holds the key can make the driver run other code: what an entry holds is what runs.
TEST_CASE("driver files: the driver runs what a signed entry holds") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  place.add("two", good_kernel(3), 3);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  if (!has_opengl(cold) || cold.json()["cache"]["driver_cache"] != "adopted") return;
  const kiln::EntryKey key = entry_key(place.key);
  const std::vector<fs::path> files = place.entries();
  REQUIRE(files.size() == 2);
  kiln::ProgramBinary programs[] = {stored_program(files[0], key), stored_program(files[1], key)};
  REQUIRE(programs[0].driver_files.size() == programs[1].driver_files.size());
  const auto larger = [](const auto& a, const auto& b) { return a.bytes.size() < b.bytes.size(); };
  // The machine code is the largest.
  auto& first = *std::ranges::max_element(programs[0].driver_files, larger);
  auto& second = *std::ranges::max_element(programs[1].driver_files, larger);
  REQUIRE(first.name != second.name);
  std::swap(first.bytes, second.bytes);
  store_program(files[0], key, programs[0]);
  store_program(files[1], key, programs[1]);
  const Finished warm = place.run();
  INFO(warm.err << warm.out);
  CHECK(warm.json()["cache"]["disk_hits"] == 2);
  check_verified(warm, false);
}

TEST_CASE("driver files: whatever is altered in an entry is refused, counted and built anew", "[unsanitized]") {
  BuildPlace place;
  place.add("one", good_kernel(2), 2);
  place.add("two", good_kernel(3), 3);
  const Finished cold = place.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  if (!has_opengl(cold)) return;
  const std::vector<fs::path> files = place.entries();
  REQUIRE(files.size() == 2);
  const std::string good[] = {bytes_in(files[0]), bytes_in(files[1])};
  const auto check_refused = [&](int builds) {
    const Finished finished = place.run();
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    check_verified(finished, true);
    CHECK(finished.json()["cache"]["builds"] == builds);
    CHECK(rejected_in(finished.json()["cache"]) == builds);
    for (int i = 0; i < 2; ++i) put(files[static_cast<std::size_t>(i)], good[i]);
  };
  SECTION("bits") {
    // The long form flips every bit of the entry, machine code included.
    const std::size_t bits = good[0].size() * 8, step = is_long() ? 1 : bits / (is_sanitized ? 3 : 8) + 1;
    for (std::size_t bit = 5; bit < bits; bit += step) {
      CAPTURE(bit);
      std::string altered = good[0];
      altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << (bit % 8)));
      put(files[0], altered);
      check_refused(1);
    }
  }
  SECTION("exchanged") {
    put(files[0], good[1]), put(files[1], good[0]);
    CHECK(place.verb({"cache", "verify"}).status == 1);
    check_refused(2);
  }
  SECTION("cut") {
    put(files[0], good[0].substr(0, good[0].size() / 2));
    check_refused(1);
  }
  SECTION("longer") {
    put(files[0], good[0] + "more");
    check_refused(1);
  }
  SECTION("empty") {
    put(files[0], "");
    check_refused(1);
  }
  SECTION("of schema 1") {
    std::string old = good[0];
    old[8] = 1;
    put(files[0], old);
    check_refused(1);
  }
  SECTION("a FIFO") {
    fs::remove(files[0]);
    REQUIRE(mkfifo(files[0].c_str(), 0600) == 0);
    const Finished finished = place.run();
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["builds"] == 1);
  }
  SECTION("a link") {
    fs::rename(files[0], place.folder / "aside");
    fs::create_symlink(place.folder / "aside", files[0]);
    check_refused(1);
    CHECK(bytes_in(place.folder / "aside") == good[0]);
  }
}

TEST_CASE("driver files: two processes at once, and a folder that a killed process left") {
  BuildPlace place;
  BuildPlace beside;  // results of its own
  for (int factor = 2; factor < 6; ++factor) {
    place.add("k" + std::to_string(factor), good_kernel(factor), factor);
    beside.add("k" + std::to_string(factor), good_kernel(factor), factor);
  }
  beside.cache = place.cache, beside.runtime = place.runtime, beside.key = place.key;
  const fs::path left = place.runtime / "kiln" / "driver" / (std::string(64, 'a') + ".1.0123456789abcdef");
  fs::create_directories(left / "mesa_shader_cache" / "aa");
  put(left / "mesa_shader_cache" / "aa" / "file", "code");
  for (fs::path each = left; each != place.runtime; each = each.parent_path()) {
    fs::permissions(each, fs::perms::owner_all);
  }
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  auto other = std::async(std::launch::async, [&] { return beside.run(); });
  const Finished one = place.run(), two = other.get();
  for (const Finished& finished : {one, two}) {
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    check_verified(finished, true);
  }
  if (!has_opengl(one)) return;
  CHECK(place.entries().size() == 4);
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::is_empty(place.runtime / "kiln" / "driver"));
}

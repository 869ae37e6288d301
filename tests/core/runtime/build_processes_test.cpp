// BuildProcesses on a child that is a few lines of shell: how many it starts, and what it makes of their ends.
#include "runtime/build_processes.hpp"

#include "runtime/child_protocols.hpp"

#include "core/cache/copied_bytes.hpp"
#include "core/runtime/runtime_fixture.hpp"
#include "support/happens.hpp"

#include <catch2/catch.hpp>

#include <kiln/digest.hpp>
#include <kiln/stop_scope.hpp>

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;
using support::FixtureDevice;
using support::FixtureOptions;

namespace {

class Notes final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override { all.emplace_back(message); }
  std::vector<std::string> all;
};

// A child that adds a line to "starts", answers the set-up with the file "opened", and goes on as `body` says: take
// reads a request to its end and fails at the end of the input; the file "built" is the answer with a program.
struct ShellBuilders {
  RuntimeFixture place;  // for its folder
  std::filesystem::path folder = place.folder();
  Notes notes;
  FixtureDevice device;
  CacheConfig config;
  ProgramKey key;
  std::unique_ptr<BuildProcesses> builders;

  explicit ShellBuilders(const std::string& body) : device(compiled_apart()) {
    write("opened", to_frame(Result<BuildOpened>(BuildOpened{})));
    write("built", to_frame(Result<ProgramBinary>(ProgramBinary{"text", {std::byte{'p'}}})));
    write("refused", to_frame(Result<ProgramBinary>(invalid_argument("line 3"))));
    write("lost", to_frame(Result<ProgramBinary>(device_lost("gone"))));
    write("child", "#!/bin/sh\ncd '" + folder.string() +
                       "'\ntake() { n=$(head -c 4 | od -An -tu4); [ -n \"$n\" ] && head -c $n > request; }\n"
                       "echo start >> starts\necho $$ > pid\ntake\ncat opened\n" +
                       body + "\n");
    std::filesystem::permissions(folder / "child", std::filesystem::perms::owner_all);
    config.build_timeout = std::chrono::seconds(60);
    key.label = "label";
    make("child");
  }
  void make(const std::string& program) {
    const auto locate = [](const std::string& id) {
      BuildSetup setup;
      setup.plugin = "/plugins/fixture.so";
      setup.device = id;
      return std::optional(setup);
    };
    builders = std::make_unique<BuildProcesses>(config, folder / program, locate, Log{&notes, LogLevel::info});
  }
  static FixtureOptions compiled_apart() {
    FixtureOptions options;
    options.info.builds_apart = true;
    return options;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string text(const std::string& name) const {
    std::ifstream in(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  // What the child kept of its first frame as "setup", see `keeps`.
  BuildSetup setup() const {
    const auto told = build_setup_of(text("setup"));
    REQUIRE(told);
    return *told;
  }
  std::size_t starts() const {
    std::ifstream in(folder / "starts");
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
  }
  // Whether the last child ends: its input is closed then.
  bool await_end() const {
    int pid = 0;
    std::ifstream(folder / "pid") >> pid;
    return happens([&] {
      std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
      std::string text;
      std::getline(in, text);
      const std::size_t at = text.rfind(')');
      return at == std::string::npos || text[at + 2] == 'Z';
    });
  }
  std::optional<Result<ProgramBinary>> build() {
    KernelSource source;
    source.dialect = Dialect::glsl;
    return builders->build(key, source, device);
  }
  void check_built() {
    const auto built = build();
    REQUIRE(built);
    REQUIRE(*built);
    CHECK((*built)->format == "text");
    CHECK(copied_text((*built)->bytes) == "p");
  }
  std::string failure(StatusCode code) {
    const auto built = build();
    REQUIRE(built);
    REQUIRE_FALSE(*built);
    CHECK(built->error().code == code);
    return built->error().message;
  }
};

constexpr const char* serves = "while take; do cat built; done";
// Keeps what it was told: the set-up, and its variables one a line.
constexpr const char* keeps =
    "cp request setup; tr '\\0' '\\n' < /proc/$$/environ > variables\nwhile take; do cat built; done";
// Its first process says what is in the file "bad", and another one serves.
constexpr const char* says_something_bad =
    "[ -e second ] || { touch second; take; cat bad; sleep 600; }\nwhile take; do cat built; done";

// A variable of this process while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

// A folder for the cache of a driver in this process, as the runtime names it.
std::filesystem::path driver_folder_in(const std::filesystem::path& parent) {
  return parent / "driver" / (std::string(64, 'a') + ".1.0123456789abcdef");
}

}  // namespace

TEST_CASE("runtime::build_processes: one child builds one program after another", "[runtime]") {
  ShellBuilders shell(serves);
  for (int i = 0; i < 4; ++i) shell.check_built();
  CHECK(shell.starts() == 1);
}

TEST_CASE("runtime::build_processes: at most two children, however many threads build", "[runtime]") {
  ShellBuilders shell("while take; do sleep 0.02; cat built; done");
  std::atomic<int> built{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto one = shell.build();
        if (one && *one) ++built;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(built == 20);
  CHECK(shell.starts() >= 1);
  CHECK(shell.starts() <= 2);
}

TEST_CASE("runtime::build_processes: a child that ended while it was idle is replaced", "[runtime]") {
  ShellBuilders shell("take && cat built");
  for (std::size_t i = 1; i <= 3; ++i) {
    shell.check_built();
    CHECK(shell.starts() == i);
    REQUIRE(shell.await_end());
  }
}

TEST_CASE("runtime::build_processes: what the compiler refuses leaves its process as it is", "[runtime]") {
  ShellBuilders shell("take && cat refused; while take; do cat built; done");
  CHECK(shell.failure(StatusCode::invalid_argument) == "line 3");
  shell.check_built();
  CHECK(shell.starts() == 1);
}

TEST_CASE("runtime::build_processes: a compiler that crashes or hangs fails its program alone", "[runtime]") {
  SECTION("crashes") {
    ShellBuilders shell("[ -e second ] || { touch second; take; kill -SEGV $$; }\nwhile take; do cat built; done");
    CHECK_THAT(shell.failure(StatusCode::invalid_argument),
               Contains("program 'label': the compiler crashed: its process ended by SIGSEGV ([cache] build_memory = "
                        "4 GiB limits its memory)"));
    shell.check_built();
    CHECK(shell.starts() == 2);
  }
  SECTION("hangs") {
    ShellBuilders shell("[ -e second ] || { touch second; take; sleep 1000; }\nwhile take; do cat built; done");
    shell.config.build_timeout = std::chrono::milliseconds(300);
    shell.make("child");
    CHECK_THAT(shell.failure(StatusCode::invalid_argument),
               Contains("program 'label': the compiler did not finish within 300 ms"));
    shell.config.build_timeout = std::chrono::seconds(60);
    shell.make("child");
    shell.check_built();
    CHECK(shell.starts() == 2);
  }
}

TEST_CASE("runtime::build_processes: a compiler that needs more memory than its limit is told with the limit",
          "[runtime]") {
  ShellBuilders shell("take && cat starved; while take; do cat built; done");
  shell.write("starved", to_frame(Result<ProgramBinary>(unavailable("out of memory"))));
  shell.config.build_memory = 256 << 20;
  shell.make("child");
  CHECK(shell.failure(StatusCode::unavailable) ==
        "program 'label' ([cache] build_memory = 256 MiB limits its memory): out of memory");
  shell.check_built();
  CHECK(shell.starts() == 1);
}

TEST_CASE("runtime::build_processes: a program whose compiler is killed is given to a second child", "[runtime]") {
  SECTION("which builds it") {
    ShellBuilders shell("[ -e second ] || { touch second; take; kill -KILL $$; }\nwhile take; do cat built; done");
    shell.check_built();
    CHECK(shell.starts() == 2);
  }
  SECTION("which is killed too") {
    ShellBuilders shell("take; kill -KILL $$");
    CHECK_THAT(shell.failure(StatusCode::unavailable), Contains("the compiler's process was killed (SIGKILL)"));
    CHECK(shell.starts() == 2);
  }
}

TEST_CASE("runtime::build_processes: where no child can be started it is said once, and not tried again", "[runtime]") {
  ShellBuilders shell(serves);
  SECTION("no such program") { shell.make("no_such_program"); }
  SECTION("a child that ends") {
    shell.write("child", "#!/bin/sh\necho start >> '" + (shell.folder / "starts").string() + "'\nexit 3\n");
  }
  SECTION("a child that has another device") {
    shell.write("opened", to_frame(Result<BuildOpened>(not_found("another driver"))));
  }
  for (int i = 0; i < 3; ++i) CHECK_FALSE(shell.build());
  CHECK(shell.starts() <= 1);
  REQUIRE(shell.notes.all.size() == 1);
  CHECK_THAT(shell.notes.all[0], Contains("fixture:0: programs are built without a child process: "));
}

TEST_CASE("runtime::build_processes: a device that is lost is opened anew by one more child", "[runtime]") {
  ShellBuilders shell("take && cat lost; while take; do cat built; done");
  CHECK_FALSE(shell.build());  // gone in the second child too
  CHECK(shell.starts() == 2);
}

TEST_CASE("runtime::build_processes: devices that compile in this process, and libraries, have no child", "[runtime]") {
  ShellBuilders shell(serves);
  KernelSource source;
  source.dialect = Dialect::library;
  CHECK_FALSE(shell.builders->build(shell.key, source, shell.device));
  source.dialect = Dialect::glsl;
  const FixtureDevice within{FixtureOptions{}};
  CHECK_FALSE(shell.builders->build(shell.key, source, within));
  CHECK(shell.starts() == 0);
}

TEST_CASE("runtime::build_processes: a stored program is at fault where a signal of its own ends the child",
          "[runtime]") {
  struct Trial {
    std::string body;
    TrialVerdict verdict;
    std::string why;
    std::size_t starts;
  };
  const std::string ended = "the compiler's process ended: the process ended ";
  const std::vector<Trial> trials = {{serves, TrialVerdict::good, "", 1},
                                     {"while take; do cat refused; done", TrialVerdict::unknown, "line 3", 1},
                                     {"take; kill -SEGV $$", TrialVerdict::died, "SIGSEGV", 1},
                                     {"take; kill -ABRT $$", TrialVerdict::died, "SIGABRT", 1},
                                     {"take; kill -BUS $$", TrialVerdict::died, "SIGBUS", 1},
                                     {"take; kill -ILL $$", TrialVerdict::died, "SIGILL", 1},
                                     {"take; kill -TERM $$", TrialVerdict::unknown, ended + "by SIGTERM", 1},
                                     {"take; kill -KILL $$", TrialVerdict::unknown, ended + "by SIGKILL", 2},
                                     {"take; exit 3", TrialVerdict::unknown, ended + "with status 3", 1}};
  const ProgramBinary stored{"text", {std::byte{'p'}, std::byte{0}}};
  for (const Trial& trial : trials) {
    INFO(trial.body);
    ShellBuilders shell(trial.body);
    shell.key.material = "material";
    const TrialOutcome outcome = shell.builders->try_stored(shell.key, stored, shell.device.info());
    CHECK((outcome.verdict == trial.verdict));
    CHECK(outcome.why == trial.why);
    CHECK(shell.starts() == trial.starts);
    const auto asked = build_request_of(shell.text("request"));
    REQUIRE(asked);
    CHECK(asked->material == "material");
    REQUIRE(asked->stored.has_value());
    CHECK(asked->stored->format == "text");
    CHECK((asked->stored->bytes == stored.bytes));
  }
  ShellBuilders none(serves);
  none.make("no_such_program");
  const TrialOutcome outcome = none.builders->try_stored(none.key, stored, none.device.info());
  CHECK((outcome.verdict == TrialVerdict::unknown));
  CHECK(outcome.why == "no child process can be used for fixture:0");
}

TEST_CASE("runtime::build_processes: a child is told its limits and what is hidden, and not the user's variables",
          "[runtime]") {
  ShellBuilders shell(keeps);
  const Variable variables[] = {{"KILN_TEST_HIDDEN", "1"}, {"KILN_SIM_TEST", "2"},
                                {"XDG_TEST_HOME", "3"},    {"TEST_OF_KILN", "4"},
                                {"HOME", "/home/user"},    {"PWD", "/home/user/now"},
                                {"OLDPWD", "/home/user"},  {"MESA_SHADER_CACHE_DIR", "/mine"}};
  shell.config.directory = "/cache";
  shell.config.key_file = "/state/key";
  shell.config.build_memory = std::uint64_t{123} << 20;
  shell.make("child");
  shell.check_built();
  const BuildSetup told = shell.setup();
  CHECK(told.plugin == "/plugins/fixture.so");
  CHECK(told.device == "fixture:0");
  CHECK(told.memory == shell.config.build_memory);
  CHECK(told.driver_folder.empty());
  CHECK(told.hidden == std::vector<std::string>{"/cache", "/state/key", "/state/key.bundle", "/home/user"});
  std::size_t of_core = 0;
  for (const std::string& library : told.libraries) {
    CHECK(library.front() == '/');
    of_core += library.find("libkiln_core.so") != std::string::npos ? 1 : 0;
  }
  CHECK(of_core == 1);

  std::vector<std::string> kept;
  std::istringstream lines(shell.text("variables"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("KILN_SIM") && line != "KILN_SIM_TEST=2") continue;  // of whoever runs the tests
    for (const char* name : {"KILN_", "HOME=", "XDG_", "PWD=", "OLDPWD=", "TEST_OF_KILN=", "MESA_SHADER_CACHE_DIR"}) {
      if (line.starts_with(name)) kept.push_back(line);
    }
  }
  std::sort(kept.begin(), kept.end());
  CHECK(kept == std::vector<std::string>{"KILN_SIM_TEST=2", "MESA_SHADER_CACHE_DIR=/proc/self/exe/", "TEST_OF_KILN=4"});
}

TEST_CASE("runtime::build_processes: each child has a folder for the driver's cache, which goes with it", "[runtime]") {
  ShellBuilders shell(std::string("[ -e second ] || { touch second; take; kill -SEGV $$; }\n") + keeps);
  const std::filesystem::path own = driver_folder_in(shell.folder);
  const Variable variable("MESA_SHADER_CACHE_DIR", own.string());
  CHECK_THAT(shell.failure(StatusCode::invalid_argument), Contains("the compiler crashed"));
  CHECK_FALSE(std::filesystem::exists(own / ".build-0"));
  shell.check_built();
  CHECK(shell.setup().driver_folder == own / ".build-1");
  CHECK_THAT(shell.text("variables"), Contains("MESA_SHADER_CACHE_DIR=" + (own / ".build-1").string() + "\n"));
  CHECK(std::filesystem::exists(own / ".build-1" / "mesa_shader_cache" / "index"));
  shell.builders.reset();
  CHECK_FALSE(std::filesystem::exists(own / ".build-1"));
  CHECK(std::filesystem::exists(own));
}

TEST_CASE("runtime::build_processes: a child whose folder for the driver cannot be made has none", "[runtime]") {
  ShellBuilders shell(keeps);
  const Variable variable("MESA_SHADER_CACHE_DIR", driver_folder_in("/proc/none").string());
  shell.check_built();
  CHECK(shell.setup().driver_folder.empty());
  CHECK_THAT(shell.text("variables"), Contains("MESA_SHADER_CACHE_DIR=/proc/self/exe/\n"));
  REQUIRE(shell.notes.all.size() == 1);
  CHECK_THAT(shell.notes.all[0], Contains("a compiler process has no driver folder: ") && Contains("/proc/none"));
}

TEST_CASE("runtime::build_processes: what a child is not isolated from is logged once", "[runtime]") {
  ShellBuilders shell("[ -e second ] || { touch second; take; kill -SEGV $$; }\nwhile take; do cat built; done");
  BuildOpened opened;
  opened.gaps = {"files: no Landlock", "network: no filter"};
  shell.write("opened", to_frame(Result<BuildOpened>(opened)));
  (void)shell.failure(StatusCode::invalid_argument);
  shell.check_built();
  CHECK(shell.starts() == 2);
  CHECK(shell.notes.all == std::vector<std::string>{"the compiler process is not isolated from files: no Landlock",
                                                    "the compiler process is not isolated from network: no filter"});
}

TEST_CASE("runtime::build_processes: a stop ends the wait for a child, and the next program has another one",
          "[runtime]") {
  ShellBuilders shell(
      "[ -e second ] || { touch second; take; touch asked; sleep 600; }\nwhile take; do cat built; done");
  std::atomic<bool> stop{false};
  {
    const StopScope scope(&stop);
    std::jthread stopping([&] {
      (void)happens([&] { return std::filesystem::exists(shell.folder / "asked"); });
      stop = true;
    });
    const auto built = shell.build();
    stopping.join();
    REQUIRE(built);
    REQUIRE_FALSE(*built);
    CHECK(built->error().text() == "cancelled: stopped on request");
    CHECK(shell.starts() == 1);
    CHECK(shell.failure(StatusCode::cancelled) == "stopped on request");  // before another child is there
  }
  shell.check_built();
  CHECK(shell.notes.all.empty());
}

TEST_CASE("runtime::build_processes: an invalid answer ends its child, and fails its program alone", "[runtime]") {
  ShellBuilders shell(says_something_bad);
  std::string why;
  SECTION("bytes behind it") {
    shell.write("bad", to_frame(Result<ProgramBinary>(ProgramBinary{"text", {std::byte{'p'}}})) + "x");
    why = "the compiler's process sent bytes after the end of the answer";
  }
  SECTION("no frame") {
    shell.write("bad", std::string("\4\0\0\0abcd", 8));
    why = "a frame of another process is not a valid answer";
  }
  SECTION("too long") {
    shell.write("bad", "\xff\xff\xff\xff");
    why = "the answer of the compiler's process is too long";
  }
  CHECK(shell.failure(StatusCode::invalid_argument) == "program 'label': " + why);
  shell.check_built();
  CHECK(shell.starts() == 2);
}

TEST_CASE("runtime::build_processes: a child that has lost the parent's driver is asked no more", "[runtime]") {
  ShellBuilders shell("take && cat other; while take; do cat built; done");
  shell.write("other", to_frame(Result<ProgramBinary>(not_found("another driver"))));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(shell.build());
  CHECK(shell.starts() == 1);
  CHECK(shell.notes.all ==
        std::vector<std::string>{"fixture:0: programs are built without a child process: another driver"});
  const auto nowhere = [](const std::string&) { return std::optional<BuildSetup>(); };
  shell.builders = std::make_unique<BuildProcesses>(shell.config, shell.folder / "child", nowhere,
                                                    Log{&shell.notes, LogLevel::info});
  CHECK_FALSE(shell.build());
  CHECK(shell.starts() == 1);
}

// BuildProcesses on a child that is a few lines of shell: how many it starts, and what it makes of their ends. The
// frames between the two.
#include "runtime/build_processes.hpp"

#include "runtime/child_protocols.hpp"

#include "core/runtime/runtime_fixture.hpp"

#include <catch2/catch.hpp>

#include <kiln/digest.hpp>

#include <fstream>
#include <sstream>
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

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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
    write("child", "#!/bin/sh\ncd " + folder.string() +
                       "\ntake() { n=$(head -c 4 | od -An -tu4); [ -n \"$n\" ] && head -c $n > request; }\n"
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
  std::size_t starts() const {
    std::ifstream in(folder / "starts");
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
  }
  // Whether the last child ends within ten seconds: its input is closed then.
  bool await_end() const {
    int pid = 0;
    std::ifstream(folder / "pid") >> pid;
    for (int i = 0; i < 10'000; ++i) {
      std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
      std::string text;
      std::getline(in, text);
      const std::size_t at = text.rfind(')');
      if (at == std::string::npos || text[at + 2] == 'Z') return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
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
    CHECK(text_of((*built)->bytes) == "p");
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

// What the other side takes: without the length.
template <class What>
std::string frame_of(const What& what) {
  return to_frame(what).substr(sizeof(std::uint32_t));
}

}  // namespace

TEST_CASE("runtime::build_frames: a setup is equal after sending, with settings of every type", "[runtime]") {
  BuildSetup setup;
  setup.plugin = "/plugins/opengl.so";
  setup.driver = "opengl";
  setup.device = "opengl:0";
  setup.cache_directory = "/cache";
  setup.driver_folder = "/cache/driver/name";
  setup.memory = 0x123456789abcdef0;
  setup.libraries = {"/lib/one.so", "/lib/two.so"};
  setup.hidden = {"/home/user", "/key"};
  setup.settings["yes"] = true;
  setup.settings["no"] = false;
  setup.settings["number"] = std::int64_t{-7};
  setup.settings["share"] = 0.25;
  setup.settings["text"] = std::string("two words");
  setup.settings["no text"] = std::string();
  setup.settings["list"] = std::vector<std::string>{"a", "", "b"};
  setup.settings["no list"] = std::vector<std::string>();
  const std::string frame = to_frame(setup);
  REQUIRE(frame.size() > 4);
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length += std::size_t{static_cast<unsigned char>(frame[i])} << (8 * i);
  CHECK(length == frame.size() - 4);
  const auto arrived = build_setup_of(std::string_view(frame).substr(4));
  REQUIRE(arrived);
  CHECK(arrived->plugin == setup.plugin);
  CHECK(arrived->driver == "opengl");
  CHECK(arrived->device == "opengl:0");
  CHECK(arrived->cache_directory == setup.cache_directory);
  CHECK(arrived->driver_folder == setup.driver_folder);
  CHECK(arrived->memory == 0x123456789abcdef0);
  CHECK(arrived->libraries == setup.libraries);
  CHECK(arrived->hidden == setup.hidden);
  REQUIRE(arrived->settings.size() == setup.settings.size());
  for (const auto& [name, value] : setup.settings) {
    INFO(name);
    REQUIRE(arrived->settings.contains(name));
    CHECK((arrived->settings.at(name) == value));
  }
  CHECK(build_setup_of(std::string_view(frame).substr(4, length - 1)).error().code == StatusCode::internal);
}

TEST_CASE("runtime::build_frames: a setup with unreadable fields is rejected", "[runtime]") {
  const auto refused = [](std::string_view name, std::string_view value) {
    KeyEncoder fields;
    fields.field("plugin", "/plugins/opengl.so");
    fields.field("device", "opengl:0");
    fields.field(name, value);
    const auto setup = build_setup_of(fields.material());
    return !setup && setup.error().code == StatusCode::internal;
  };
  for (const char* good : {"b0", "b1", "i12345678", "n12345678", "t", "ttext", "l"}) {
    INFO(good);
    CHECK_FALSE(refused("setting.x", good));
  }
  for (const char* bad : {"", "i", "i1234567", "i123456789", "n", "n1234567", "n123456789", "+", "+a", "z", "L"}) {
    INFO(bad);
    CHECK(refused("setting.x", bad));
  }
  CHECK_FALSE(refused("memory", "12345678"));
  CHECK(refused("memory", "1234567"));
  CHECK(refused("memory", ""));
  CHECK(refused("plugin", ""));
  CHECK(refused("device", ""));
}

TEST_CASE("runtime::build_frames: requests, programs and gaps are equal after sending", "[runtime]") {
  BuildRequest request;
  request.material = "material";
  request.files = {"a.h", "b.h"};
  const auto plain = build_request_of(frame_of(request));
  REQUIRE(plain);
  CHECK(plain->material == "material");
  CHECK(plain->files == request.files);
  CHECK_FALSE(plain->stored.has_value());
  request.stored = ProgramBinary{"text", {std::byte{'p'}, std::byte{0}}};
  const auto stored = build_request_of(frame_of(request));
  REQUIRE(stored);
  CHECK(stored->files == request.files);
  REQUIRE(stored->stored.has_value());
  CHECK(stored->stored->format == "text");
  CHECK((stored->stored->bytes == request.stored->bytes));
  const auto program = built_program_of(frame_of(Result<ProgramBinary>(*request.stored)));
  REQUIRE(program);
  CHECK(program->format == "text");
  CHECK((program->bytes == request.stored->bytes));
  BuildOpened opened;
  opened.gaps = {"the network", "files"};
  const auto told = build_opened_of(frame_of(Result<BuildOpened>(opened)));
  REQUIRE(told);
  CHECK(told->gaps == opened.gaps);

  const std::string other = frame_of(Result<BuildOpened>(opened));
  CHECK(build_request_of(other).error().code == StatusCode::internal);
  CHECK(built_program_of(other).error().code == StatusCode::internal);
  CHECK(build_opened_of(frame_of(request)).error().code == StatusCode::internal);
}

TEST_CASE("runtime::build_frames: a failure keeps its message, and its code if compilers can return it", "[runtime]") {
  const std::pair<StatusCode, StatusCode> codes[] = {
      {StatusCode::invalid_argument, StatusCode::invalid_argument},
      {StatusCode::not_found, StatusCode::not_found},
      {StatusCode::unsupported, StatusCode::unsupported},
      {StatusCode::unavailable, StatusCode::unavailable},
      {StatusCode::device_lost, StatusCode::device_lost},
      {StatusCode::internal, StatusCode::internal},
      {StatusCode::corrupt, StatusCode::unavailable},
      {StatusCode::io, StatusCode::unavailable},
      {StatusCode::timeout, StatusCode::unavailable},
      {StatusCode::cancelled, StatusCode::unavailable},
      {StatusCode::wrong_result, StatusCode::unavailable},
  };
  for (const auto& [sent, expected] : codes) {
    const Status failure{sent, "line 3"};
    INFO(failure.text());
    const auto program = built_program_of(frame_of(Result<ProgramBinary>(failure)));
    REQUIRE_FALSE(program);
    CHECK(program.error().code == expected);
    CHECK(program.error().message == "line 3");
    const auto opened = build_opened_of(frame_of(Result<BuildOpened>(failure)));
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == expected);
    CHECK(opened.error().message == "line 3");
  }
}

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
    shell.write("child", "#!/bin/sh\necho start >> " + (shell.folder / "starts").string() + "\nexit 3\n");
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

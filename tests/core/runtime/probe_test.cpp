// kiln-probe as a process: its answers to wrong arguments, what its streams are for, and what it builds for a parent.
#include "base/os/child_process.hpp"
#include "runtime/child_protocols.hpp"

#include "core/cache/copied_bytes.hpp"
#include "core/cache/workplace.hpp"
#include "support/copied_fixture.hpp"
#include "support/fixture_device.hpp"
#include "support/happens.hpp"

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/program.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// kiln-probe as a person calls it, with files as its streams.
struct ProbeByHand {
  CacheTestFolder temporary;
  fs::path input = temporary.path() / "input";
  fs::path output = temporary.path() / "output";

  explicit ProbeByHand(const std::string& given = {}) { std::ofstream(input, std::ios::binary) << given; }

  // Its exit status; -1: a signal ended it.
  int status(const std::vector<std::string>& arguments) const {
    const UniqueFd told(open(output.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
    return status(arguments, told.get());
  }
  int status(std::vector<std::string> words, int told) const {
    const std::string program = PluginLoader::default_probe().string();
    words.insert(words.begin(), program);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const UniqueFd given(open(input.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(given.get() >= 0);
    REQUIRE(told >= 0);
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);  // it may end its group
      dup2(given.get(), STDIN_FILENO);
      dup2(told, STDOUT_FILENO);
      dup2(told, STDERR_FILENO);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    REQUIRE(child > 0);
    int how = 0;
    pid_t ended = 0;
    for (const Deadline deadline = Deadline::after(std::chrono::seconds(60)); ended == 0 && !deadline.passed();) {
      ended = waitpid(child, &how, WNOHANG);
      if (ended == 0) usleep(1000);
    }
    if (ended == 0) {
      kill(child, SIGKILL);
      waitpid(child, &how, 0);
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  }
  // Both streams of the last call.
  std::string said() const {
    std::ifstream in(output, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

std::string as_frame(std::string_view contents) {
  const auto length = static_cast<std::uint32_t>(contents.size());
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  return frame.append(contents);
}

BuildRequest request_for(const KernelSource& source, const DeviceInfo& device = support::fixture_info("fixture:0")) {
  return {key_of(source, device, "label").material, {}};
}

// A child that builds with the fixture's driver.
struct BuildingProbe {
  CacheTestFolder temporary;
  BuildSetup setup;
  std::vector<std::string> variables;
  std::optional<ChildProcess> child;
  std::string unread;

  BuildingProbe() {
    setup.plugin = copied_fixture("fixture", temporary.path());
    setup.driver = "fixture";
    setup.device = "fixture:0";
    setup.cache_directory = temporary.path() / "cache";
    for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  }
  // A folder for the driver's own cache, named as the runtime names it.
  fs::path use_driver_folder() {
    const std::string own = std::string(64, 'a') + ".1.0123456789abcdef";
    setup.driver_folder = temporary.path() / "driver" / own / ".build-0";
    fs::create_directories(setup.driver_folder);
    const std::string name = "MESA_SHADER_CACHE_DIR=";
    std::erase_if(variables, [&](const std::string& variable) { return variable.starts_with(name); });
    variables.push_back(name + setup.driver_folder.string());
    return setup.driver_folder;
  }
  Result<BuildOpened> open() { return open(to_frame(setup)); }
  Result<BuildOpened> open(const std::string& first_frame) {
    auto started = ChildProcess::start({PluginLoader::default_probe(), {"build"}, variables});
    REQUIRE(started);
    child.emplace(std::move(*started));
    send(first_frame);
    return build_opened_of(receive());
  }
  void send(const std::string& frame) { REQUIRE(child->send(frame, Deadline::after(std::chrono::seconds(60))).ok()); }
  // The next frame without its length; empty: the child ended, or said nothing for a minute.
  std::string receive() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    std::uint32_t length = 0;
    for (;;) {
      if (unread.size() >= sizeof length) std::memcpy(&length, unread.data(), sizeof length);
      if (unread.size() >= sizeof length + length) break;
      if (deadline.passed()) return {};
      pollfd waited{child->output(), POLLIN, 0};
      if (poll(&waited, 1, 100) <= 0) continue;
      char part[4096];
      const ssize_t count = read(child->output(), part, sizeof part);
      if (count <= 0) return {};
      unread.append(part, static_cast<std::size_t>(count));
    }
    std::string frame = unread.substr(sizeof length, length);
    unread.erase(0, sizeof length + length);
    return frame;
  }
  Result<ProgramBinary> ask(const BuildRequest& request) {
    send(to_frame(request));
    return built_program_of(receive());
  }
  Result<ProgramBinary> build(const std::string& text) { return ask(request_for(source_of(text))); }
};

// "1 1": soft and hard limit.
std::string core_limits_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/limits");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Max core file size")) continue;
    std::istringstream words(line.substr(std::string_view("Max core file size").size()));
    std::string soft, hard;
    words >> soft >> hard;
    return soft + " " + hard;
  }
  return {};
}

std::string stream_of(pid_t pid, int number) {
  std::error_code error;
  return fs::read_symlink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number), error).string();
}

}  // namespace

TEST_CASE("runtime::probe: wrong arguments are answered with the usage", "[runtime]") {
  const ProbeByHand probe;
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"nonsense"},
                                                       {"load"},
                                                       {"nonsense", "x"},
                                                       {"measure", "x"},
                                                       {"build", "x"},
                                                       {"x", "load"},
                                                       {"x", "measure"},
                                                       {"x", "build"},
                                                       {"load", "x", "y"},
                                                       {"measure", "x", "y"},
                                                       {"build", "x", "y"}};
  for (const std::vector<std::string>& arguments : wrong) {
    INFO(arguments.size() << " arguments, first '" << (arguments.empty() ? std::string() : arguments[0]) << "'");
    CHECK(probe.status(arguments) == 2);
    CHECK(probe.said() == "usage: kiln-probe load PATH | measure | build\n");
  }
}

TEST_CASE("runtime::probe: load answers one line, on a channel that is not the plugin's", "[runtime]") {
  const ProbeByHand probe;
  const auto load = [&](const fs::path& plugin) { return probe.status({"load", plugin.string()}); };
  const fs::path& folder = probe.temporary.path();
  const fs::path good = copied_fixture("good", folder);
  CHECK(load(good) == 0);
  CHECK(probe.said() == "kiln-probe 1 ok\n");
  CHECK(load(copied_fixture("talks", folder)) == 0);
  CHECK(probe.said() == "nor is this\nkiln-probe 1 ok\n");  // what it wrote to standard output is gone
  CHECK(load(copied_fixture("closes_descriptors", folder)) == 4);
  CHECK(probe.said() == "");
  CHECK(load(folder / "plugins" / "absent.so") == 3);
  CHECK_THAT(probe.said(), StartsWith("kiln-probe 1 failed not_found "));
  std::ofstream(folder / "plugins" / "text.so") << "text";
  fs::permissions(folder / "plugins" / "text.so", fs::perms(0644));
  CHECK(load(folder / "plugins" / "text.so") == 3);
  CHECK_THAT(probe.said(), StartsWith("kiln-probe 1 failed corrupt ") && Contains("not an ELF file"));

  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd nobody_reads(ends[0]);
  const UniqueFd told(ends[1]);
  nobody_reads = UniqueFd();
  CHECK(probe.status({"load", good.string()}, told.get()) == 3);
  CHECK(probe.status({"measure"}, told.get()) == 3);
}

TEST_CASE("runtime::probe: measure and build end with a status that tells what was wrong", "[runtime]") {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.get() >= 0);
  const ProbeByHand nothing;
  CHECK(nothing.status({"measure"}) == 2);
  CHECK(nothing.status({"build"}) == 2);
  CHECK(nothing.said() == "");

  const ProbeByHand no_setup("no JSON\nvariant\t1\nvariant\t2\n");
  CHECK(no_setup.status({"measure"}) == 3);
  std::istringstream answers(no_setup.said());
  int count = 0;
  for (std::string line; std::getline(answers, line); ++count) {
    const auto answer = kiln::answer_of(line);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == StatusCode::unavailable);
    CHECK_THAT(answer.error().message, StartsWith("bench: bench: the set-up cannot be read: "));
  }
  CHECK(count == 2);
  CHECK(no_setup.status({"measure"}, full.get()) == 4);

  const std::string frame = as_frame("nonsense");
  CHECK(ProbeByHand(frame).status({"build"}, full.get()) == 4);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4}, frame.size() - 1}) {
    CAPTURE(bytes);
    const ProbeByHand cut(frame.substr(0, bytes));
    CHECK(cut.status({"build"}) == 2);
    CHECK(cut.said() == "");
  }
}

TEST_CASE("runtime::probe: leaves no core, and its driver's streams lead nowhere", "[runtime]") {
  BuildingProbe probe;
  SECTION("build") { REQUIRE(probe.open()); }
  SECTION("measure") {
    auto started = ChildProcess::start({PluginLoader::default_probe(), {"measure"}, probe.variables});
    REQUIRE(started);
    probe.child.emplace(std::move(*started));
  }
  const pid_t pid = probe.child->pid();
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    CAPTURE(stream);
    CHECK(happens([&] { return stream_of(pid, stream) == "/dev/null"; }));
  }
  rlimit own{};
  REQUIRE(getrlimit(RLIMIT_CORE, &own) == 0);
  if (own.rlim_max >= 1) CHECK(core_limits_of(pid) == "1 1");
}

TEST_CASE("runtime::build_child: builds one program after another, and answers errors", "[runtime]") {
  BuildingProbe probe;
  REQUIRE(probe.open());
  for (const char* function : {"add_one", "copy", "add_one"}) {
    const auto built = probe.build(function);
    REQUIRE(built);
    CHECK(built->format == "fixture:1");
    CHECK(copied_text(built->bytes) == "function " + std::string(function) + "\n");
    CHECK(built->driver_files.empty());
  }
  const auto failure = [&](const BuildRequest& request, StatusCode code) {
    const auto built = probe.ask(request);
    REQUIRE_FALSE(built);
    CHECK(built.error().code == code);
    return built.error().message;
  };
  CHECK(failure(request_for(source_of("no_function")), StatusCode::invalid_argument) ==
        "fixture:0: fixture compiler: 1:1: error: no function named 'no_function'");
  CHECK(failure({"no material", {}}, StatusCode::not_found) == "the key of the program contains no source");
  DeviceInfo other = support::fixture_info("fixture:0");
  other.driver_identity = {{"version", "2"}};
  CHECK(failure(request_for(source_of("add_one"), other), StatusCode::not_found) ==
        "the device or the driver differs from that of the parent process: fixture device fixture:0, fixture driver 1");
  probe.send(as_frame("nonsense"));
  const auto answered = built_program_of(probe.receive());
  REQUIRE_FALSE(answered);
  CHECK(answered.error().code == StatusCode::internal);
  CHECK_THAT(answered.error().message, Contains("not a valid request"));

  KernelSource large = source_of("add_one");  // more than a pipe holds, there and back
  large.constants.push_back({"PADDING", std::string(1 << 20, '7')});
  const auto built = probe.ask(request_for(large));
  REQUIRE(built);
  const std::string expected = "function add_one\ndefine PADDING " + std::string(1 << 20, '7') + "\n";
  CHECK((copied_text(built->bytes) == expected));
}

TEST_CASE("runtime::build_child: a program is built with the settings of the parent, and none without its device",
          "[runtime]") {
  BuildingProbe probe;
  StatusCode code = StatusCode::not_found;
  std::string why;
  bool opens = false;
  SECTION("no plugin") {
    probe.setup.plugin = probe.temporary.path() / "plugins" / "absent.so";
    why = "absent.so";
  }
  SECTION("no plugin's file") {
    std::ofstream(probe.setup.plugin, std::ios::trunc) << "text";
    code = StatusCode::unavailable;
    why = "not an ELF file";
  }
  SECTION("another driver") {
    probe.setup.driver = "other";
    why = "plugin " + probe.setup.plugin.string() + " has no driver other";
  }
  SECTION("another device") {
    probe.setup.device = "fixture:1";
    why = "device 'fixture:1': the fixture driver has no such device";
  }
  SECTION("a setting that refuses") {
    probe.setup.settings["serializes"] = false;
    code = StatusCode::unsupported;
    why = "fixture:0: keeps no program binaries";
    opens = true;
  }
  const auto opened = probe.open();
  CHECK(opened.has_value() == opens);
  if (!opened) {
    CHECK(opened.error().code == code);
    CHECK_THAT(opened.error().message, Contains(why));
  }
  for (int request = 0; request < 2; ++request) {
    const auto built = probe.build("add_one");
    REQUIRE_FALSE(built);
    CHECK(built.error().code == code);
    CHECK_THAT(built.error().message, Contains(why));
  }
}

TEST_CASE("runtime::build_child: an unreadable setup fails every request", "[runtime]") {
  BuildingProbe probe;
  const auto opened = probe.open(as_frame("nonsense"));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == StatusCode::internal);
  CHECK_THAT(opened.error().message, Contains("not a valid setup"));
  const auto built = probe.build("add_one");
  REQUIRE_FALSE(built);
  CHECK(built.error().message == opened.error().message);
}

TEST_CASE("runtime::build_child: a compiler that never returns ends with the pipe of its parent", "[runtime]") {
  BuildingProbe probe;
  probe.setup.settings["build_ms"] = std::int64_t{600'000};
  REQUIRE(probe.open());
  probe.send(to_frame(request_for(source_of("add_one"))));
  CHECK(probe.child->stop(std::chrono::seconds(60)) == "ended by SIGKILL");
}

TEST_CASE("runtime::build_child: a build answers with what the driver wrote to its own cache, which is emptied",
          "[runtime]") {
  BuildingProbe probe;
  const fs::path folder = probe.use_driver_folder();
  std::ofstream(folder / "left") << "by an earlier process";
  SECTION("a driver with a cache") {
    probe.setup.settings["driver_cache"] = std::string("adopted");
    REQUIRE(probe.open());
    CHECK(fs::is_empty(folder));
    for (int build = 0; build < 2; ++build) {
      const auto built = probe.build("add_one");
      REQUIRE(built);
      REQUIRE(built->driver_files.size() == 1);
      CHECK(built->driver_files[0].name == "code");
      CHECK(copied_text(built->driver_files[0].bytes) == "machine code");
      CHECK(built->driver_setting == std::string(64, 'a'));
      CHECK(fs::is_empty(folder));
    }
  }
  SECTION("a driver without one") {
    REQUIRE(probe.open());
    const auto built = probe.build("add_one");
    REQUIRE(built);
    CHECK(built->driver_files.empty());
    CHECK(fs::exists(folder / "left"));
  }
}

TEST_CASE("runtime::build_child: a stored program is tried with the driver files of its setting", "[runtime]") {
  BuildingProbe probe;
  const fs::path folder = probe.use_driver_folder();
  probe.setup.settings["driver_cache"] = std::string("adopted");
  REQUIRE(probe.open());
  const auto built = probe.build("add_one");
  REQUIRE(built);
  BuildRequest request = request_for(source_of("add_one"));
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  const auto is_tried = [&] {
    fs::last_write_time(folder, yesterday);
    const auto tried = probe.ask(request);
    return tried && tried->format.empty() && tried->bytes.empty() && tried->driver_files.empty();
  };
  ProgramBinary stored = *built;
  stored.driver_files = {{"placed", {std::byte{1}}}};
  request.stored = stored;
  const auto is_untouched = [&] { return fs::last_write_time(folder) < yesterday + std::chrono::hours(1); };
  CHECK(is_tried());
  CHECK_FALSE(is_untouched());
  CHECK(fs::is_empty(folder));

  stored.driver_setting = std::string(64, 'b');
  request.stored = stored;
  CHECK(is_tried());
  CHECK(is_untouched());

  stored.bytes.clear();  // a driver that refuses it has answered too
  request.stored = stored;
  CHECK(is_tried());
  const auto after = probe.build("copy");
  REQUIRE(after);
  CHECK(copied_text(after->bytes) == "function copy\n");
}

}  // namespace kiln::test

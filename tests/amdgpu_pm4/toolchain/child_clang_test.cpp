// Compilers that answer, refuse, crash, hang or lie: each has its own error.

#include <fstream>
#include <iterator>
#include <map>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::StartsWith;

Result<Compiled> compile_with(const std::string& script, Deadline deadline = soon()) {
  const FakeCompiler scripts;
  ChildClang clang(stamp_of(scripts.write("clang", script)), "a clang version", {});
  return compile_kernel(clang, opencl("__kernel void kiln_kernel() {}"), "k.cl", Target::gfx1100, deadline);
}

}  // namespace

TEST_CASE("clang: a compiler that refuses is quoted whole") {
  CHECK(compile_with("echo 'k.cl:3:1: error: no' >&2; exit 1").error().text() ==
        "invalid_argument: k.cl:3:1: error: no\n");
  CHECK_THAT(compile_with("exit 1").error().text(), Contains("rejected the text without a message"));
}

TEST_CASE("clang: a compiler that crashes is unavailable, and its last words are told") {
  const Status crashed = compile_with("echo stack dump >&2; kill -SEGV $$").error();
  CHECK_THAT(crashed.text(), StartsWith("unavailable: ") &&
                                 Contains("was terminated by signal 11 (Segmentation fault)") &&
                                 Contains("; output: stack dump"));
  CHECK_THAT(compile_with("echo LLVM ERROR >&2; exit 70").error().text(),
             StartsWith("unavailable: ") && Contains("exited with 70; output: LLVM ERROR"));
}

TEST_CASE("clang: a compiler that hangs is ended at the deadline") {
  const Status late = compile_with("sleep 600", Deadline::after(std::chrono::milliseconds(300))).error();
  CHECK(late.text() == "timeout: clang timed out after 0 s while compiling k.cl ([plugin.amdgpu_pm4] compile_timeout)");
  const auto words = compile_with("echo working >&2; sleep 600", Deadline::after(std::chrono::milliseconds(300)));
  CHECK_THAT(words.error().text(), Contains("compile_timeout); output: working"));
  const FakeCompiler scripts;
  const auto version = version_of(stamp_of(scripts.write("clang", "sleep 60; echo clang version 9")), nullptr,
                                  Deadline::after(std::chrono::milliseconds(300)));
  REQUIRE_FALSE(version);
  CHECK(version.error().code == StatusCode::timeout);
}

TEST_CASE("clang: what it writes is looked at") {
  CHECK_THAT(compile_with("exit 0").error().text(), Contains("wrote no code"));
  CHECK_THAT(compile_with("echo some text").error().text(),
             StartsWith("corrupt: output of the compiler for k.cl: ") && Contains("bytes"));
  const std::string cat = "cat '" KILN_SOURCE_DIR "/tests/corpus/code_object/";
  CHECK_THAT(compile_with(cat + "readable-gfx1030'").error().text(),
             StartsWith("internal: the compiler wrote code for gfx1030, expected gfx1100"));
  CHECK(compile_with(cat + "readable-gfx1100'").error().text() ==
        "invalid_argument: entry 'kiln_kernel' is not a kernel of the text: expected one of saxpy");
}

TEST_CASE("clang: gets the arguments and the text") {
  const FakeCompiler scripts;
  ChildClang clang(stamp_of(scripts.write("clang", "echo \"$@\" >&2; exit 1")), "a clang version", {});
  const auto refused = clang.compile({"text"}, Target::gfx1101, soon());
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message,
             Contains("-mcpu=gfx1101") && Contains("-nogpulib") && Contains("-ffp-contract=on") && Contains("-o - -"));
  CHECK_THAT(clang.compile({"text"}, Target::invalid, soon()).error().text(),
             Contains("no target is set, expected one of gfx1030"));
  CHECK_THAT(identity_of(clang), StartsWith("a clang version, recipe "));
}

// Where compilers are looked for, what is remembered of them, and which compiler the settings mean.

namespace {

using Catch::Contains;

class MapNotes final : public DriverNotes {
 public:
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override {
    const auto at = notes.find(std::string(name));
    if (at == notes.end()) return std::nullopt;
    return at->second;
  }
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override {
    notes[std::string(name)].assign(bytes.begin(), bytes.end());
  }
  std::map<std::string, std::vector<std::byte>> notes;
};

constexpr const char* counts_and_answers = "echo x >> \"$0.count\"; echo 'Some clang version 19.9'; echo more";

std::size_t starts_of(const std::string& script) {
  std::ifstream file(script + ".count");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.size() / 2;
}

}  // namespace

TEST_CASE("compiler: is found by name in the folders of PATH, never in a relative one") {
  const FakeCompiler scripts;
  const std::string path = scripts.write("some-clang", "exit 0");
  const std::string folder = scripts.folder().string();
  CHECK(find_compiler("some-clang", "/nowhere:" + folder)->path == path);
  CHECK(find_compiler(path, "")->path == path);
  CHECK(find_compiler("other-clang", "/nowhere::.:" + folder).error().text() ==
        "unavailable: OpenCL C compiler 'other-clang' was not found in /nowhere, " + folder);
  CHECK_THAT(find_compiler("some-clang", "").error().text(), Contains("PATH, which names no folder"));
  CHECK(find_compiler("/nowhere/clang", folder).error().text() ==
        "unavailable: OpenCL C compiler /nowhere/clang: not found, or not executable");
  CHECK_THAT(find_compiler(folder + "/", "").error().text(), Contains(folder + "/: not found, or not executable"));
}

TEST_CASE("compiler: a file's stamp has its path and size, a missing file's stamp is empty") {
  const FakeCompiler scripts;
  const std::string path = scripts.write("some-clang", "exit 0");
  CHECK(stamp_of(path).path == path);
  CHECK_THAT(stamp_of(path).text, StartsWith(path + " 17 "));
  for (const std::string& missing : {std::string(), path + "-19", std::string("/nowhere/clang")}) {
    INFO(missing);
    CHECK(stamp_of(missing).path == "");
    CHECK(stamp_of(missing).text == "");
  }
}

TEST_CASE("compiler: its version is asked once, and again when the file is another") {
  const FakeCompiler scripts;
  MapNotes notes;
  const std::string path = scripts.write("some-clang", counts_and_answers);
  CHECK(*version_of(stamp_of(path), &notes, soon()) == "Some clang version 19.9");
  CHECK(*version_of(stamp_of(path), &notes, soon()) == "Some clang version 19.9");
  CHECK(starts_of(path) == 1);
  scripts.write("some-clang", "echo 'Some clang version 20.1'");
  CHECK(*version_of(stamp_of(path), &notes, soon()) == "Some clang version 20.1");
  CHECK(*version_of(stamp_of(path), nullptr, soon()) == "Some clang version 20.1");
  scripts.write("some-clang", "echo cc 12; exit 0");
  CHECK_THAT(version_of(stamp_of(path), nullptr, soon()).error().text(),
             Contains("printed 'cc 12', expected a clang version"));
}

TEST_CASE("compiler: a missing one is unavailable, with all that was looked for") {
  ToolchainSettings settings;
  settings.program = "no-such-clang-at-all";
  settings.module = "/nowhere/libkiln_clang.so";
  const auto none = open_toolchain(settings, nullptr, {});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == StatusCode::unavailable);
  CHECK_THAT(none.error().message, Contains("'no-such-clang-at-all' was not found in /") &&
                                       Contains("module /nowhere/libkiln_clang.so was not found"));
  settings.place = CompilerPlace::in_process;
  CHECK_THAT(open_toolchain(settings, nullptr, {}).error().text(), !Contains("no-such-clang"));
}

TEST_CASE("compiler: the settings are read and checked") {
  PluginSettings section;
  CHECK(read_toolchain_settings(section)->place == CompilerPlace::automatic);
  for (const ConfigKey& key : toolchain_keys()) section[key.name] = key.fallback;
  const auto usual = read_toolchain_settings(section);
  REQUIRE(usual.has_value());
  CHECK(usual->program == "clang-19");
  CHECK(usual->deadline == std::chrono::seconds(60));
  section["compiler"] = std::string("child");
  section["compile_timeout"] = std::int64_t{5};
  CHECK(read_toolchain_settings(section)->place == CompilerPlace::child);
  CHECK(read_toolchain_settings(section)->deadline == std::chrono::seconds(5));
  section["compiler"] = std::string("elsewhere");
  CHECK_THAT(read_toolchain_settings(section).error().text(), Contains("compiler: found 'elsewhere', expected auto"));
  section["compiler"] = std::string("auto");
  section["compile_timeout"] = std::int64_t{0};
  CHECK_THAT(read_toolchain_settings(section).error().text(), Contains("compile_timeout"));
}

TEST_CASE("compiler: accepts each setting of the right type that is not empty") {
  PluginSettings section;
  section["compiler"] = std::string("in_process");
  section["clang"] = std::string("/opt/clang");
  section["device_library"] = std::string("/opt/library");
  section["compile_timeout"] = std::int64_t{1};
  const auto settings = read_toolchain_settings(section);
  REQUIRE(settings.has_value());
  CHECK(settings->place == CompilerPlace::in_process);
  CHECK(settings->program == "/opt/clang");
  CHECK(settings->library == "/opt/library");
  CHECK(settings->deadline == std::chrono::seconds(1));
  struct Refused {
    const char* key;
    ConfigValue value;
    const char* why;
  };
  const Refused all[] = {
      {"compiler", true, "compiler: found no text, expected auto, in_process or child"},
      {"compiler", std::string(), "compiler: found '', expected auto, in_process or child"},
      {"clang", true, "clang: expected a path or a name"},
      {"clang", std::string(), "clang: expected a path or a name"},
      {"device_library", std::int64_t{1}, "device_library: expected a folder or 'auto'"},
      {"device_library", std::string(), "device_library: expected a folder or 'auto'"},
      {"compile_timeout", std::string("5"), "compile_timeout: expected at least 1 second"},
      {"compile_timeout", std::int64_t{0}, "compile_timeout: expected at least 1 second"},
  };
  for (const Refused& each : all) {
    INFO(each.why);
    PluginSettings changed = section;
    changed[each.key] = each.value;
    const auto refused = read_toolchain_settings(changed);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text() == std::string("invalid_argument: ") + each.why);
  }
}

TEST_CASE("device library: its identity follows each of its files, and is remembered while they stay the same") {
  const FakeCompiler scripts;
  const DeviceLibrary named{scripts.folder(), {}, {}};
  std::vector<std::string> paths = named.files(Target::gfx1030);
  CHECK(paths.size() == 10);
  CHECK_THAT(paths.back(), Catch::EndsWith("/oclc_isa_version_1030.bc"));
  for (const Target later : {Target::gfx1100, Target::gfx1103, Target::gfx1201}) {
    CHECK_THAT(named.files(later).back(), Catch::EndsWith("/oclc_isa_version_1036.bc"));
  }
  paths.push_back(named.files(Target::gfx1100).back());
  const std::string folder = scripts.folder().string();
  const auto find = [&folder](DriverNotes* notes) { return find_device_library(folder, notes); };
  CHECK_FALSE(find(nullptr).present());
  CHECK(find(nullptr).why_not == "not found in " + folder);
  for (const std::string& path : paths) std::ofstream(path) << "code";
  const std::string first = find(nullptr).identity;
  CHECK(find(nullptr).present());
  CHECK(find(nullptr).folder == scripts.folder());
  CHECK_FALSE(first.empty());
  MapNotes notes;
  CHECK(find(&notes).identity == first);
  CHECK(notes.notes.size() == 1);
  CHECK(find(&notes).identity == first);
  CHECK(notes.notes.size() == 1);
  for (const std::string& path : paths) {
    INFO(path);
    const std::string before = find(&notes).identity;
    std::ofstream(path) << "longer code";
    const std::string after = find(&notes).identity;
    CHECK(after != before);
    CHECK(after == find(nullptr).identity);
  }
  CHECK(notes.notes.size() == 1 + paths.size());
  const std::string last = find(&notes).identity;
  for (auto& [name, note] : notes.notes) note.clear();  // damaged
  CHECK(find(&notes).identity == last);
  std::ofstream(paths.front()).close();
  CHECK_FALSE(find(nullptr).present());  // an empty file is none
  std::filesystem::remove(paths.front());
  CHECK_FALSE(find(&notes).present());
}

}  // namespace kiln::amdgpu_pm4

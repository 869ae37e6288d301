// Each broken fixture: its own typed message, and the good plugin loads beside it.
#include <catch2/catch.hpp>

#include <kiln/plugin.hpp>

#include <thread>

#include "core/plugin/plugin_folder.hpp"

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

// Loads the broken one between the good and the fixture driver; both of those must be there afterwards.
PluginReport load_beside_good(PluginFolder& folder, const std::string& broken) {
  const auto reports = folder.load({"good", broken, "fixture"});
  REQUIRE(reports.size() == 3);
  INFO(reports[0].why_not.text() << "\n" << reports[1].why_not.text() << "\n" << reports[2].why_not.text());
  CHECK(reports[0].loaded);
  CHECK(reports[2].loaded);
  CHECK(folder.registry.drivers().contains("fixture"));
  CHECK_FALSE(reports[1].loaded);
  CHECK_FALSE(reports[1].why_not.ok());
  CHECK_THAT(reports[1].why_not.message, Contains("plugin '" + broken + "'"));
  return reports[1];
}

PluginReport load_broken(const std::string& broken) {
  PluginFolder folder({"good", broken.c_str(), "fixture"});
  PluginReport report = load_beside_good(folder, broken);
  CHECK_THAT(report.why_not.message, Contains(folder.file(broken).string()));
  return report;
}

}  // namespace

TEST_CASE("plugin: a good one loads") {
  PluginFolder folder({"good"});
  const auto reports = folder.load({"good"});
  REQUIRE(reports.size() == 1);
  INFO(reports[0].why_not.text());
  CHECK(reports[0].loaded);
  CHECK(reports[0].why_not.ok());
  CHECK(reports[0].version == "1.0");
  CHECK(reports[0].path == folder.file("good"));
  CHECK(reports[0].trial == PluginTrial::probed);
  CHECK_FALSE(reports[0].required);
}

TEST_CASE("plugin: an older ABI") {
  const Status status = load_broken("older_abi").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("built for plugin ABI " + std::to_string(plugin_abi - 1) + ", expected " +
                                      std::to_string(plugin_abi) + ". Rebuild the plugin"));
}

TEST_CASE("plugin: a newer ABI") {
  const Status status = load_broken("newer_abi").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("built for plugin ABI " + std::to_string(plugin_abi + 1) + ", expected " +
                                      std::to_string(plugin_abi) + ". Install a newer Kiln"));
}

TEST_CASE("plugin: another build fingerprint") {
  const PluginReport report = load_broken("wrong_fingerprint");
  CHECK(report.why_not.code == StatusCode::unsupported);
  CHECK(report.trial == PluginTrial::none);
  CHECK_THAT(report.why_not.message, Contains("build fingerprint 'gcc cxxabi=1 stdlib=0 std=199711 sanitizer=none'"));
  CHECK_THAT(report.why_not.message, Contains(std::string("expected '") + build_fingerprint + "' as of this Kiln"));
}

TEST_CASE("plugin: no note") {
  const Status status = load_broken("no_note").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("not a Kiln plugin: found no Kiln note"));
}

TEST_CASE("plugin: no entry object") {
  const Status status = load_broken("no_symbol").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("does not export the symbol kiln_plugin_entry"));
}

TEST_CASE("plugin: note and object differ") {
  const Status status = load_broken("differs").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("differ in version: '1.0' in the file, '2.0' in memory"));
}

TEST_CASE("plugin: a name that is not its file's") {
  const Status status = load_broken("wrong_name").why_not;
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Contains("name in the Kiln note is 'good', expected 'wrong_name' as in the file name"));
}

TEST_CASE("plugin: it throws while registering, and leaves nothing behind") {
  PluginFolder folder({"good", "throws", "fixture"});
  const Status status = load_beside_good(folder, "throws").why_not;
  CHECK(status.code == StatusCode::internal);
  CHECK_THAT(status.message, Contains("register function threw an exception: the fixture's own words"));
  CHECK_FALSE(folder.registry.drivers().contains("half"));
}

TEST_CASE("plugin: it throws something that is no exception") {
  const Status status = load_broken("throws_number").why_not;
  CHECK(status.code == StatusCode::internal);
  CHECK_THAT(status.message, Contains("register function threw an object that is not a std::exception"));
}

TEST_CASE("plugin: it answers a failed Status while registering") {
  const Status status = load_broken("refuses").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("register function failed: the fixture's own reason"));
}

TEST_CASE("plugin: an undefined symbol is reported with the dynamic linker's message") {
  const Status status = load_broken("undefined_symbol").why_not;
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Contains("undefined symbol: kiln_fixture_function_that_nobody_defines"));
  CHECK_THAT(status.message, !Contains("dlerror"));
}

TEST_CASE("plugin: a missing library is reported with the dynamic linker's message") {
  const Status status = load_broken("missing_library").why_not;
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Contains("libkiln_fixture_absent.so: cannot open shared object file"));
}

TEST_CASE("plugin: not an ELF file") {
  const Status status = load_broken("not_elf").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("not an ELF file"));
}

TEST_CASE("plugin: an empty file") {
  PluginFolder folder({"good", "fixture"});
  write_file(folder.file("empty"), "");
  const Status status = load_beside_good(folder, "empty").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("not an ELF file: 0 bytes"));
}

TEST_CASE("plugin: a truncated file") {
  const Status status = load_broken("truncated").why_not;
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("truncated: file has "));
  CHECK_THAT(status.message, Contains(" bytes at offset "));
}

TEST_CASE("plugin: built for another machine") {
  const Status status = load_broken("wrong_machine").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("built for AArch64, expected x86-64"));
}

TEST_CASE("plugin: built for another word size") {
  const Status status = load_broken("wrong_class").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("built for 32-bit, expected 64-bit"));
}

TEST_CASE("plugin: the error for a duplicate driver name names both plugins") {
  PluginFolder folder({"fixture", "duplicate", "good"});
  const auto reports = folder.load({"fixture", "duplicate", "good"});
  CHECK(reports[0].loaded);
  CHECK(reports[2].loaded);
  CHECK_FALSE(reports[1].loaded);
  CHECK(reports[1].why_not.code == StatusCode::invalid_argument);
  CHECK_THAT(reports[1].why_not.message,
             Contains("driver 'fixture' of plugin 'duplicate': already registered by plugin 'fixture'"));
  CHECK(folder.registry.drivers().at("fixture").plugin == "fixture");
}

TEST_CASE("plugin: one that no folder has") {
  PluginFolder folder({"good"});
  folder.options.path.push_back(folder.root() / "nowhere");
  const PluginReport report = folder.load({"good", "absent"})[1];
  CHECK(report.why_not.code == StatusCode::not_found);
  CHECK_THAT(report.why_not.message,
             Contains("plugin 'absent': file absent.so: not found in: " + folder.plugins().string()));
  CHECK_THAT(report.why_not.message, Contains((folder.root() / "nowhere").string() + ", which does not exist"));
  CHECK(report.path.empty());
}

TEST_CASE("plugin: a name that leaves the folder is refused") {
  PluginFolder folder({"good"});
  for (const char* name : {"../plugins/good", "", ".", "a b", "good.so"}) {
    const PluginReport report = folder.load_one(name);
    CHECK(report.why_not.code == StatusCode::invalid_argument);
    CHECK_THAT(report.why_not.message, Contains(std::string("'") + name + "': invalid name"));
  }
  CHECK(folder.load_one(std::string(64, 'a')).why_not.code == StatusCode::invalid_argument);
}

TEST_CASE("plugin: the first folder of the path wins, also where its file is bad") {
  PluginFolder first({"not_elf"});
  PluginFolder second({"good"});
  std::filesystem::rename(first.file("not_elf"), first.file("good"));
  second.options.path = {first.plugins(), second.plugins()};
  CHECK(second.load_one("good").why_not.code == StatusCode::corrupt);
  second.options.path = {second.plugins(), first.plugins()};
  CHECK(second.load_one("good").loaded);
}

TEST_CASE("plugin: required ones are marked, and loaded also where the list lacks them") {
  PluginFolder folder({"good", "fixture"});
  folder.required = {"fixture", "absent", "good"};
  const auto reports = folder.load({"good", "good"});
  REQUIRE(reports.size() == 3);
  CHECK((reports[0].name == "good" && reports[0].loaded && reports[0].required));
  CHECK((reports[1].name == "fixture" && reports[1].loaded && reports[1].required));
  CHECK((reports[2].name == "absent" && !reports[2].loaded && reports[2].required));
}

TEST_CASE("plugin: the default places follow libkiln_core.so") {
  REQUIRE(PluginLoader::default_path().size() == 1);
  const std::filesystem::path built = std::filesystem::canonical(KILN_BINARY_DIR);
  CHECK(PluginLoader::default_path()[0] == built / "lib/kiln/plugins");
  CHECK(PluginLoader::default_probe() == built / "libexec/kiln/kiln-probe");
  CHECK(std::filesystem::exists(PluginLoader::default_probe()));
}

TEST_CASE("plugin: loading what is shipped opens no heavy library") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_PLUGIN_DIR)) {
    if (entry.path().extension() == ".so") names.push_back(entry.path().stem().string());
  }
  REQUIRE_FALSE(names.empty());
  PluginFolder folder;
  folder.options.path = {KILN_PLUGIN_DIR};
  for (const PluginReport& report : folder.load(names)) {
    INFO(report.why_not.text());
    CHECK(report.loaded);
  }
  const std::string maps = read_file("/proc/self/maps");
  CHECK_THAT(maps, Contains(".so"));
  for (const char* heavy : {"libEGL", "libGL", "libLLVM", "libdnnl", "libgomp", "libclang-cpp", "libgallium"}) {
    CHECK_THAT(maps, !Contains(heavy));
  }
}

TEST_CASE("plugin: its code stays after the loader and the registry are gone") {
  std::unique_ptr<Driver> driver;
  {
    PluginFolder folder({"fixture"});
    REQUIRE(folder.load({"fixture"})[0].loaded);
    driver = folder.registry.drivers().at("fixture").make({}).value();
  }
  CHECK(driver->enumerate().at(0).id == "fixture:0");
}

TEST_CASE("plugin: loading into a process with threads") {
  PluginFolder folder({"good", "fixture"});
  std::jthread busy([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  for (const PluginReport& report : folder.load({"good", "fixture"})) CHECK(report.loaded);
}

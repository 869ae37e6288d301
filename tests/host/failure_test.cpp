#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> as_nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};

}  // namespace

TEST_CASE("EGL hidden: the CPU serves and the report says so") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", wide_layer + "[plugin.opengl]\negl_library = \"libEGL-hidden.so\"\n");
  const Finished finished = run_kiln({"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 0);
  const auto job = finished.json()["jobs"][0];
  CHECK(job["device"]["id"] == "cpu");
  CHECK(job["verified"] == true);
  CHECK_THAT(job["notes"].dump(), Contains("libEGL-hidden.so"));
}

TEST_CASE("EGL hidden and fallback forbidden: status 3 and one clear message") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", wide_layer + "[plugin.opengl]\negl_library = \"libEGL-hidden.so\"\n");
  const Finished finished = run_kiln(
      {"run", file, "--device", "opengl:0", "--set", "device.fallback=never", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 3);
  CHECK_THAT(finished.out, Contains("libEGL-hidden.so") && Contains("fallback"));
}

TEST_CASE("a job that the only device allowed cannot do: status 3, as where none can") {
  const TemporaryFolder folder;
  folder.write("none.comp", "#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
  REQUIRE(kiln::data::write_npy(folder / "x.npy", **kiln::HostTensor::create(kiln::DType::f32, {4})).ok());
  const auto file = folder.write("k.toml", R"(
[[job]]
name = "mine"
op = "kernel"
source = "none.comp"
bindings = [ { input = "x.npy" } ]
grid = [1, 1, 1]
)");
  for (const char* fallback : {"never", "report"}) {
    const Finished finished =
        run_kiln({"run", file, "--json", "--device", "cpu", "--set", std::string("device.fallback=") + fallback,
                  "--set", "plugins.load=[\"cpu\", \"dynamic_shaders\"]", "--cache-dir", folder / "cache"});
    INFO(fallback << finished.err << finished.out);
    CHECK(finished.status == 3);
    CHECK_THAT(finished.json()["jobs"][0]["error"].get<std::string>(), Contains("cpu"));
  }
  const Finished told = run_kiln({"run", file, "--device", "cpu", "--set",
                                  "plugins.load=[\"cpu\", \"dynamic_shaders\"]", "--cache-dir", folder / "cache"});
  INFO(told.out);
  const std::string reason = "device cpu cannot run kernel none.comp";
  const std::size_t first = told.out.find(reason);
  CHECK(first != std::string::npos);
  CHECK(told.out.find(reason, first + 1) == std::string::npos);  // it is a note of the job, too
}

TEST_CASE("a required plugin that no folder has: status 3, naming it and the folders") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {
      "run",   folder.write("l.toml", wide_layer), "--cache-dir", folder / "cache", "--plugin-path", folder / "nowhere",
      "--set", "plugins.required=[\"absent\"]"};
  const Finished finished = run_kiln(words);
  CHECK(finished.status == 3);
  CHECK_THAT(finished.err, Contains("'absent'") && Contains("nowhere") && Contains(KILN_PLUGIN_DIR));
  CHECK(finished.out == "");

  std::vector<std::string> for_machines = words;
  for_machines.emplace_back("--json");
  const Finished told = run_kiln(for_machines);
  CHECK(told.status == 3);
  const auto json = told.json();
  CHECK(json["jobs"].empty());
  CHECK(json["plugins"].back()["name"] == "absent");
  CHECK_THAT(json["plugins"].back()["why_not"].get<std::string>(), Contains("nowhere"));
}

TEST_CASE("a command without its folder of plugins: status 3, naming the plugin and the folder") {
  const TemporaryFolder folder("a tree");
  const std::filesystem::path plugins = KILN_PLUGIN_DIR, tree = plugins.parent_path().parent_path().parent_path();
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_directories(folder / "lib");
  std::filesystem::copy(tree / "bin/kiln", folder / "bin/kiln");
  for (const auto& entry : std::filesystem::directory_iterator(tree / "lib")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("libkiln_core")) continue;
    std::filesystem::copy(entry, folder / "lib" / name, std::filesystem::copy_options::copy_symlinks);
  }
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), folder / "bin/kiln");
    words.insert(words.end(), {"--cache-dir", folder / "cache"});
    return run_process(words, {.environment = {{"KILN_KEY_FILE", folder / "key"}}});
  };
  const Finished finished = run({"run", folder.write("l.toml", wide_layer)});
  INFO(finished.err);
  CHECK(finished.status == 3);
  CHECK_THAT(finished.err, Contains("'cpu'") && Contains(folder / "lib/kiln/plugins"));
  CHECK(finished.out == "");
  const auto listed = run({"plugins", "--json"}).json()["plugins"];
  REQUIRE(listed.size() == 4);
  for (const auto& plugin : listed) CHECK(plugin["loaded"] == false);
}

TEST_CASE("a folder of plugins is searched before the installed one, which is still there") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "mine");
  const auto file = folder.write("l.toml", wide_layer);
  const std::vector<std::string> mine = {"--cache-dir", folder / "cache", "--plugin-path", folder / "mine"};
  std::vector<std::string> words = {"run", file, "--device", "cpu"};
  words.insert(words.end(), mine.begin(), mine.end());
  const Finished served = run_kiln(words);
  INFO(served.err);
  CHECK(served.status == 0);

  folder.write("mine/cpu.so", "no plugin");
  words = {"plugins", "--json"};
  words.insert(words.end(), mine.begin(), mine.end());
  const auto plugins = run_kiln(words).json()["plugins"];
  CHECK(plugins[0]["path"] == (folder / "mine/cpu.so").string());
  CHECK(plugins[0]["loaded"] == false);
  CHECK(plugins[1]["loaded"] == true);
}

TEST_CASE("a plugin that crashed once is checked again by --retry alone") {
  const TemporaryFolder folder;
  const auto why_not = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plugins", "--json", "--plugin-path", KILN_FIXTURE_DIR, "--set",
                               "plugins.load=[\"aborts\"]", "--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(more);
    INFO(finished.err << finished.out);
    return finished.json()["plugins"].at(0)["why_not"].get<std::string>();
  };
  CHECK_THAT(why_not({}),
             Contains("SIGABRT") && Contains("until the plugin file changes or `kiln plugins --retry` is run"));
  std::ifstream stored(folder / "cache/probe_verdicts.json");
  std::string text{std::istreambuf_iterator<char>(stored), {}};
  REQUIRE(text.find("SIGABRT") != std::string::npos);
  text.replace(text.find("SIGABRT"), 7, "earlier");
  folder.write("cache/probe_verdicts.json", text);
  CHECK_THAT(why_not({}), Contains("earlier"));
  CHECK_THAT(why_not({"--retry"}), Contains("SIGABRT"));
  CHECK_THAT(why_not({}), Contains("SIGABRT"));
}

TEST_CASE("a missing input stops before anything runs; nothing is written") {
  const TemporaryFolder folder;
  std::string broken = wide_layer;
  broken.replace(broken.find("random:1"), 8, "absent.npy");
  std::string good = wide_layer;
  good.replace(good.find("\"layer\""), 7, "\"other\"");
  const auto file = folder.write("l.toml", broken + "output = \"never.npy\"\n" + good);
  const Finished finished =
      run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "cache"}, {.folder = folder.path()});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 2);
  CHECK(finished.json()["jobs"].empty());
  CHECK_THAT(finished.json()["problems"].dump(), Contains("absent.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "never.npy"));
}

TEST_CASE("a wrong key stops before anything runs") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", wide_layer + "stirde = 2\n");
  const Finished finished = run_kiln({"run", file, "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("stirde") && Contains("stride"));
  const Finished told = run_kiln({"run", file, "--json", "--cache-dir", folder / "cache"});
  CHECK(told.status == 2);
  CHECK(told.json()["jobs"].empty());
  CHECK(told.json()["problems"][0]["line"] == 15);
  CHECK_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST_CASE("an input of the wrong shape names file, found and expected") {
  const TemporaryFolder folder;
  std::string png = wide_layer;
  png.replace(png.find("random:1"), 8, std::string(KILN_SOURCE_DIR) + "/configs/quickstart/photo.png");
  const Finished finished =
      run_kiln({"run", folder.write("l.toml", png), "--json", "--device", "cpu", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.json()["problems"][0]["message"].get<std::string>(),
             Contains("photo.png") && Contains("[1, 3, 384, 512]") && Contains("[1, 8, 40, 40]"));
}

TEST_CASE("a read-only cache folder costs nobody a result") {
  if (geteuid() != 0) {
    WARN("skipped: needs root to become another user");
    return;
  }
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "cache");
  std::filesystem::permissions(folder / "cache", std::filesystem::perms(0555));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const auto file = folder.write("l.toml", wide_layer);
  // The test is only worth something where a plain write there fails.
  const Finished plain = run_process({"touch", folder / "cache/file"}, {.folder = {}, .before = as_nobody});
  REQUIRE(plain.status != 0);
  for (const char* device : {"cpu", "opengl:0"}) {
    const Finished finished =
        run_kiln({"run", file, "--json", "--device", device, "--cache-dir", folder / "cache"},
                 {.environment = {{"HOME", folder / "no-home"}, {"XDG_STATE_HOME", folder / "no-state"}},
                  .folder = "/",
                  .before = as_nobody});
    INFO(device << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
    CHECK_THAT(finished.err, Contains("nothing is stored") && Contains((folder / "cache").string()));
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  }
  CHECK(std::filesystem::is_empty(folder / "cache"));
}

TEST_CASE("a full disk fails the job that writes, and leaves no half-written file") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", wide_layer + "output = \"out.npy\"\n");
  const Finished finished = run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "cache"},
                                     {.folder = folder.path(), .most_file_bytes = 16384});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto job = finished.json()["jobs"][0];
  CHECK_THAT(job["error"].get<std::string>(), Contains("out.npy"));
  CHECK(job["output"].is_null());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK_THAT(entry.path().filename().string(), !Contains("out.npy"));
  }
}

TEST_CASE("a full disk under the cache costs nobody a result") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln(
      {"run", folder.write("l.toml", wide_layer), "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"},
      {.folder = {}, .most_file_bytes = 1});
  INFO(finished.err << finished.out);
  // Standard output is a pipe: the limit on file sizes does not touch it.
  CHECK(finished.status == 0);
  CHECK(finished.json()["jobs"][0]["verified"] == true);
}

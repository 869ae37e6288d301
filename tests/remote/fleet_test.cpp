// Machines as processes: several that start cold with one Redis, and a container with a read-only root and a layer. The
// programs are llvmpipe's. The long form has the numbers of docs/measurements/sharing.md.
#include "cache/corpus.hpp"
#include "host/kiln_process.hpp"
#include "remote/servers.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// A machine with a cache, a key and a configuration of its own; `jobs` kernels, none like another.
struct FleetMachine {
  TemporaryFolder folder{"machine"};

  void put_jobs(const std::string& head, int jobs) const {
    std::string text = head;
    const auto sources = bench::corpus(is_long() ? "large" : "simple", jobs);
    for (int i = 0; i < jobs; ++i) {
      const std::string number = std::to_string(i);
      folder.write("k" + number + ".comp", "#version 430 core\n" + sources[static_cast<std::size_t>(i)].text);
      text += "[[job]]\nname = \"k" + number + "\"\nop = \"kernel\"\nsource = \"k" + number +
              ".comp\"\ndevice = \"opengl:0\"\ngrid = [1]\nbindings = [ { input = \"zeros:\", shape = [4096], dtype = "
              "\"float32\" }, { output = \"y" +
              number + ".npy\", shape = [4096], dtype = \"float32\" } ]\n";
    }
    folder.write("jobs.toml", text);
  }
  Finished kiln(std::vector<std::string> words, std::vector<std::string> before = {}) const {
    return run_kiln(std::move(words), {.environment = {{"KILN_CACHE_DIR", folder / "cache"},
                                                       {"KILN_KEY_FILE", folder / "state/key"},
                                                       {"XDG_CONFIG_HOME", folder / "config"}},
                                       .folder = folder.path(),
                                       .before = std::move(before)});
  }
};

TEST_CASE("fleet: machines with llvmpipe that start cold together build each program about once") {
  const RedisServer redis;
  const std::string head = "[[cache.remote]]\nurl = \"" + redis.url() +
                           "\"\nmode = \"read_write\"\nwriters = [\"ci\"]\nsign_with = \"ci\"\n";
  const std::size_t machines = is_long() ? 8 : 2;
  const int jobs = is_long() ? 100 : 4;
  const FleetMachine first;
  REQUIRE(first.kiln({"cache", "key", "create", "ci"}).status == 0);
  std::vector<std::unique_ptr<FleetMachine>> fleet;
  for (std::size_t i = 0; i < machines; ++i) {
    fleet.push_back(std::make_unique<FleetMachine>());
    fleet.back()->put_jobs(head, jobs);
    fs::copy(first.folder / "config", fleet.back()->folder / "config", fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(fleet.back()->folder / "config")) {
      fs::permissions(entry.path(), entry.is_directory() ? fs::perms::owner_all
                                                         : fs::perms::owner_read | fs::perms::owner_write);
    }
  }
  std::vector<Finished> ran(machines);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < machines; ++i) {
    threads.emplace_back([&, i] { ran[i] = fleet[i]->kiln({"run", "jobs.toml", "--json", "--progress", "plain"}); });
  }
  for (std::thread& thread : threads) thread.join();
  int builds = 0, hits = 0;
  for (const Finished& one : ran) {
    INFO(one.err);
    REQUIRE(one.status == 0);
    const auto json = one.json();
    for (const auto& job : json["jobs"]) CHECK(job["status"] == "ok");
    builds += json["cache"]["builds"].get<int>();
    hits += json["cache"]["shared"]["hits"].get<int>();
  }
  if (is_long()) {
    std::printf("%zu machines with llvmpipe: %.3f builds a program, %d remote hits\n", machines,
                static_cast<double>(builds) / jobs, hits);
  }
  CHECK(builds >= jobs);
  // Without leases there would be `machines` builds of each.
  if (is_long()) CHECK(builds <= 2 * jobs);
}

TEST_CASE("fleet: a container with a read-only root loads a layer, compiles nothing and writes nothing") {
  if (geteuid() != 0) {
    WARN("skipped: only root can mount");
    return;
  }
  const std::string enter =
      "mount --make-rprivate / && mount -o remount,bind,ro / && mount -t tmpfs -o size=8m,mode=1777 tmpfs /dev/shm && "
      "touch /tmp/kiln-is-writable 2>/dev/null; test ! -e /tmp/kiln-is-writable && "
      "setpriv --reuid=65534 --regid=65534 --clear-groups env -u XDG_RUNTIME_DIR HOME=/nonexistent \"$0\" \"$@\"; "
      "status=$?; find /dev/shm ! -type d >&2; exit $status";
  if (run_process({"unshare", "--mount", "sh", "-c", enter, "true"}).status != 0) {
    WARN("skipped: no mount namespace can be made here");
    return;
  }
  const int jobs = is_long() ? 100 : 4;
  const FleetMachine image;
  image.put_jobs("", jobs);
  REQUIRE(image.kiln({"cache", "key", "create", "app"}).status == 0);
  const std::string layer = image.folder / "layer";
  const Finished baked = image.kiln({"cache", "bake", "jobs.toml", "--for", "opengl:0", "--sign-with", "app",
                                     "--output", layer, "--progress", "plain"});
  INFO(baked.err << baked.out);
  REQUIRE(baked.status == 0);
  fs::remove_all(image.folder / "cache");
  image.put_jobs("[cache]\nlayers = [\"" + layer + "\"]\nlayer_writers = [\"app\"]\n", jobs);
  // Another user reads it.
  run_shell("chmod -R go+rX '" + image.folder.path().parent_path().string() + "' && rm -rf '" +
            (image.folder / "config/kiln/keys.d").string() + "'");
  const Finished warmed = image.kiln({"cache", "warm", "jobs.toml", "--json", "--device", "opengl:0"},
                                     {"unshare", "--mount", "sh", "-c", enter});
  INFO(warmed.err << warmed.out);
  REQUIRE(warmed.status == 0);
  const auto device = warmed.json()["devices"][0];
  CHECK(device["ready"] == jobs);
  CHECK(device["built"] == 0);
  CHECK(device["failed"] == 0);
  CHECK_THAT(warmed.err, !Catch::Contains("/dev/shm/"));  // the private driver folder is empty again
  CHECK_FALSE(fs::exists(image.folder / "cache"));
  if (is_long()) {
    std::printf("container: %d large programs linked in %.1f ms, ready in %.1f ms\n", jobs,
                device["link_ms"].get<double>(), device["ready_ms"].get<double>());
  }
}

}  // namespace
}  // namespace kiln::test

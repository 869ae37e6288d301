// One remote as the cache sees it: what is asked, counted and believed, and how long an answer is waited for.
#include "cache/remote_endpoint.hpp"
#include "cache/bundle_format.hpp"
#include "cache/manifest.hpp"
#include "cache/signing_keys.hpp"
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t ms = 1'000'000;

RemoteLimits some_limits() { return {.deadline = Deadline::after(20s)}; }

// The endpoint of a machine's only remote.
struct Endpoint {
  explicit Endpoint(SharingMachine& machine)
      : of({&machine.log, LogLevel::info}, machine.config.remotes.at(0), machine.config,
           std::make_shared<CurrentKeys>(machine.config.trust_folders), machine.stores) {}
  RemoteEndpoint of;
};

SharingMachine& without_folder(SharingMachine& machine) {
  machine.config.directory.clear();
  machine.config.remotes = {{url, false, {}, "", "", "plain", {}}};
  return machine;
}

TEST_CASE("remote endpoint: how long an answer is waited for follows from the answers before and from the build") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  Endpoint fresh(without_folder(machine));
  RemoteEndpoint& remote = fresh.of;
  CHECK_FALSE(remote.has_answered());
  CHECK(remote.round_trip_ns() == 0);
  CHECK(remote.slow_answer_ns() == 20 * ms);  // without any history
  const std::pair<std::uint64_t, std::uint64_t> patience[] = {
      {0, 5 * ms},         {8 * ms, 5 * ms},    {12 * ms, 6 * ms},     {40 * ms, 20 * ms},
      {100 * ms, 20 * ms}, {400 * ms, 40 * ms}, {2400 * ms, 240 * ms}, {3000 * ms, 250 * ms}};
  for (const auto& [build_ns, expected] : patience) {
    CAPTURE(build_ns);
    CHECK(remote.patience_ns(build_ns) == expected);
  }
  remote.answered(8 * ms);
  CHECK(remote.has_answered());
  CHECK(remote.round_trip_ns() == 8 * ms);
  CHECK(remote.slow_answer_ns() == 10 * ms);  // a quarter more
  remote.answered(4 * ms);
  CHECK(remote.round_trip_ns() == 4 * ms);
  CHECK(remote.slow_answer_ns() == 10 * ms);
  remote.answered(0);
  CHECK(remote.round_trip_ns() == 1);
}

TEST_CASE("remote endpoint: the latest 64 answers count, and a slow answer is one of twenty") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  Endpoint fresh(without_folder(machine));
  for (std::uint64_t i = 1; i <= 64; ++i) fresh.of.answered(i * ms);
  CHECK(fresh.of.round_trip_ns() == ms);
  CHECK(fresh.of.slow_answer_ns() == 61 * ms + 61 * ms / 4);
  for (std::uint64_t i = 0; i < 63; ++i) fresh.of.answered(100 * ms);
  CHECK(fresh.of.round_trip_ns() == 64 * ms);
  fresh.of.answered(100 * ms);
  CHECK(fresh.of.round_trip_ns() == 100 * ms);
  CHECK(fresh.of.slow_answer_ns() == 125 * ms);
  Endpoint quick(machine), slow(machine);
  quick.of.answered(1000);
  CHECK(quick.of.slow_answer_ns() == 5 * ms);
  slow.of.answered(10'000 * ms);
  CHECK(slow.of.slow_answer_ns() == 250 * ms);
}

TEST_CASE("remote endpoint: the next process begins with the times of the one before") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.config.remotes = {{url, false, {}, "", "", "plain", {}}};
  std::filesystem::create_directories(machine.config.directory);
  std::filesystem::permissions(machine.config.directory, std::filesystem::perms::owner_all);
  {
    Endpoint first(machine);
    first.of.save();  // nothing to tell
    CHECK(first.of.breaker().state().round_trip_us == 0);
    first.of.answered(16 * ms);
    first.of.save();
  }
  Endpoint next(machine);
  CHECK_FALSE(next.of.has_answered());
  CHECK(next.of.round_trip_ns() == 16 * ms);
  CHECK(next.of.slow_answer_ns() == 20 * ms);
  next.of.answered(8 * ms);
  CHECK(next.of.round_trip_ns() == 8 * ms);
}

TEST_CASE("remote endpoint: what an index says of a program") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  Endpoint opened(without_folder(machine));
  RemoteEndpoint& remote = opened.of;
  using Known = RemoteEndpoint::Known;
  const Digest one = sha256("1"), two = sha256("2"), three = sha256("3");
  std::uint64_t build_ns = 7;
  CHECK(remote.look_up("f", one, build_ns) == Known::unknown);
  CHECK(remote.wants_index("f"));
  CHECK_FALSE(remote.wants_index("f"));  // one caller fetches it
  CHECK(remote.wants_index("g"));
  CHECK(remote.look_up("f", one, build_ns) == Known::unknown);
  CHECK(remote.refresh_index("f", some_limits()).ok());
  CHECK(remote.look_up("f", one, build_ns) == Known::unknown);  // the store has none
  server->objects["f/index"] = encode_remote_index(merged_index({}, {{one, 50}, {two, 0}}));
  CHECK(remote.refresh_index("f", some_limits()).ok());
  CHECK_FALSE(remote.wants_index("f"));
  CHECK(remote.look_up("f", three, build_ns) == Known::absent);
  CHECK(remote.look_up("g", one, build_ns) == Known::unknown);
  CHECK(build_ns == 7);
  CHECK(remote.look_up("f", one, build_ns) == Known::present);
  CHECK(build_ns == 50);
  CHECK(remote.look_up("f", two, build_ns) == Known::present);
  CHECK(build_ns == 50);  // its own is not known
  CHECK(remote.has_answered());
  // A damaged index is none, and says nothing about the server.
  server->objects["f/index"].resize(20);
  CHECK(remote.refresh_index("f", some_limits()).code == StatusCode::corrupt);
  CHECK_FALSE(remote.breaker().has_failed());
  CHECK(remote.look_up("f", one, build_ns) == Known::present);
  server->fails = true;
  CHECK(remote.refresh_index("f", some_limits()).code == StatusCode::unavailable);
  CHECK(remote.breaker().has_failed());
}

TEST_CASE("remote endpoint: a server that takes no writes is not asked again, one that refuses an object is") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  std::filesystem::create_directories(machine.config.directory);
  std::filesystem::permissions(machine.config.directory, std::filesystem::perms::owner_all);
  Endpoint opened(machine);
  RemoteEndpoint& remote = opened.of;
  REQUIRE(remote.writes());
  CHECK(remote.signer());
  const std::vector<std::byte> object(100), large(1000);
  CHECK(remote.put("f/a", object, some_limits()).ok());
  server->most_bytes_taken = 500;
  CHECK(remote.put("f/b", large, some_limits()).code == StatusCode::invalid_argument);
  CHECK_FALSE(remote.breaker().has_failed());
  CHECK(remote.put("f/c", object, some_limits()).ok());
  server->fails = true;
  CHECK(remote.put("f/d", object, some_limits()).code == StatusCode::unavailable);
  CHECK(remote.breaker().has_failed());
  server->fails = false;
  server->refuses_writes = true;
  CHECK(remote.put("f/e", object, some_limits()).text() == "unsupported: the server takes no writes");
  CHECK_FALSE(remote.breaker().has_failed());  // it answers
  CHECK(machine.log.said("does not accept programs from this process: the server takes no writes") == 1);
  server->refuses_writes = false;
  CHECK(remote.put("f/f", object, some_limits()).text() == "unsupported: the server takes no writes");
  CHECK(server->puts == 5);
  remote.save();
  remote.save();  // once
  RemoteTotals expected;
  expected.written = 2;
  expected.write_failed = 3;
  expected.bytes_written = 200;
  CHECK(read_remote_totals(machine.config.directory, url) == expected);
}

TEST_CASE("remote endpoint: programs are counted as found, absent, refused or failed") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), machine(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  machine.read_from(url, writer);
  std::filesystem::create_directories(machine.config.directory);
  std::filesystem::permissions(machine.config.directory, std::filesystem::perms::owner_all);
  Endpoint opened(machine);
  RemoteEndpoint& remote = opened.of;
  REQUIRE(remote.reads());
  SharedCounters counters;
  const std::string folder = device_folder_name(machine.device.info());
  const ProgramKey one = key_for("one", machine.device), two = key_for("two", machine.device);
  const AskedProgram first{folder, one.digest, one.material}, second{folder, two.digest, two.material};
  const std::size_t bytes = server->objects.at(first.name()).size();
  auto fetched = remote.fetch(first, some_limits(), counters);
  REQUIRE(fetched.program);
  CHECK(fetched.program->key == one.digest);
  CHECK_FALSE(fetched.is_absent);
  fetched = remote.fetch({folder, sha256("other"), {}}, some_limits(), counters);
  CHECK_FALSE(fetched.program);
  CHECK(fetched.is_absent);
  server->fails = true;
  fetched = remote.fetch(first, some_limits(), counters);
  CHECK_FALSE(fetched.program);
  CHECK_FALSE(fetched.is_absent);
  CHECK(remote.breaker().has_failed());
  server->fails = false;
  // Authentic, and not what lies under this name.
  server->objects[second.name()] = server->objects.at(first.name());
  CHECK_FALSE(remote.fetch({folder, two.digest, {}}, some_limits(), counters).program);
  CHECK_FALSE(remote.breaker().has_failed());  // it answered
  const std::string other_folder = "w-0123456789abcdef-0123456789abcdef";
  server->objects[other_folder + "/" + one.digest.hex()] = server->objects.at(first.name());
  CHECK_FALSE(remote.fetch({other_folder, one.digest, {}}, some_limits(), counters).program);
  CHECK(counters.counts().asked == 5);
  CHECK(counters.counts().failed == 1);
  CHECK(counters.counts().other_program == 2);
  CHECK(machine.log.warnings().size() == 1);  // of the first object that is not used
  CHECK(machine.log.said(" is not used: other_program: the object holds program " + one.digest.hex() + " of " +
                         folder) == 2);
  std::vector<std::size_t> places;
  const std::vector<AskedProgram> asked{{folder, sha256("other"), {}}, first, second};
  const auto on_program = [&](std::size_t place, const SharedProgram&) { places.push_back(place); };
  CHECK(remote.fetch_many(asked, some_limits(), counters, on_program).ok());
  CHECK(places == std::vector<std::size_t>{1});
  CHECK(counters.counts().asked == 8);
  server->fails = true;
  CHECK(remote.fetch_many(asked, some_limits(), counters, on_program).code == StatusCode::unavailable);
  CHECK(counters.counts().failed == 2);
  remote.save();
  RemoteTotals expected;
  expected.found = 2;
  expected.absent = 2;
  expected.refused = 3;
  expected.failed = 2;
  expected.bytes_read = 5 * bytes;
  CHECK(read_remote_totals(machine.config.directory, url) == expected);
}

TEST_CASE("remote endpoint: a server that sends garbage four times in a row is treated as one that fails") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), machine(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  machine.read_from(url, writer);
  machine.config.directory.clear();
  Endpoint opened(machine);
  SharedCounters counters;
  const std::string folder = device_folder_name(machine.device.info());
  const ProgramKey key = key_for("one", machine.device);
  const AskedProgram good{folder, key.digest, key.material}, bad{folder, sha256("bad"), {}};
  server->objects[bad.name()] = {std::byte{1}};
  const auto fetch = [&](const AskedProgram& asked) {
    return opened.of.fetch(asked, some_limits(), counters).program.has_value();
  };
  for (int i = 0; i < 3; ++i) CHECK_FALSE(fetch(bad));
  CHECK(fetch(good));  // the row begins anew
  for (int i = 0; i < 3; ++i) CHECK_FALSE(fetch(bad));
  CHECK_FALSE(opened.of.breaker().has_failed());
  CHECK_FALSE(fetch(bad));
  CHECK(opened.of.breaker().has_failed());
  CHECK(counters.counts().bad_length == 7);
}

TEST_CASE("remote endpoint: a probe opens and closes the remote") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  Endpoint opened(without_folder(machine));
  server->fails = true;
  CHECK(opened.of.probe(some_limits()).code == StatusCode::unavailable);
  CHECK(opened.of.breaker().state().failures == 1);
  CHECK(opened.of.probe(some_limits()).code == StatusCode::unavailable);
  CHECK(opened.of.breaker().state().failures == 2);  // a probe counts also in the pause
  std::atomic<bool> stop{true};
  server->hangs = true;
  RemoteLimits limits = some_limits();
  limits.stop = &stop;
  CHECK(opened.of.probe(limits).code == StatusCode::cancelled);
  CHECK(opened.of.breaker().state().failures == 2);  // nothing was learned
  server->fails = server->hangs = false;
  CHECK(opened.of.probe(some_limits()).ok());
  CHECK(opened.of.breaker().state().failures == 0);
  CHECK(opened.of.has_answered());
}

TEST_CASE("remote endpoint: what of a configuration has no effect is told") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.config.remotes = {{"gopher://cache.example", true, {}, "nobody", "", "plain", {}}};
  Endpoint opened(machine);
  RemoteEndpoint& remote = opened.of;
  CHECK_FALSE(remote.reads());
  CHECK_FALSE(remote.writes());
  CHECK(remote.accepted().empty());
  REQUIRE(remote.problems().size() == 1);
  CHECK_THAT(remote.problems()[0], Catch::Contains("nobody"));
  const std::string none =
      "unsupported: remote gopher://cache.example: no loaded plugin has a store for gopher://. Add the plugin to "
      "[plugins] load";
  for (int i = 0; i < 2; ++i) {
    const auto store = remote.store();
    REQUIRE_FALSE(store);
    CHECK(store.error().text() == none);
  }
  CHECK(machine.log.said("remote is not used: ") == 1);
  CHECK(remote.leases() == nullptr);
  SharedCounters counters;
  CHECK_FALSE(remote.fetch({"f", sha256("1"), {}}, some_limits(), counters).program);
  CHECK(counters.counts().asked == 0);
  CHECK(remote.put("f/a", {}, some_limits()).text() == none);
  CHECK(remote.probe(some_limits()).text() == none);
  CHECK(remote.refresh_index("f", some_limits()).text() == none);
  CHECK(remote.fetch_many({}, some_limits(), counters, {}).text() == none);
}

TEST_CASE("remote endpoint: a store gets the credentials that its remote names") {
  SharingMachine machine;
  std::vector<RemoteContext> opened;
  machine.stores["http"] = [&](const RemoteContext& context) -> Result<std::unique_ptr<RemoteStore>> {
    opened.push_back(context);
    return std::unique_ptr<RemoteStore>(std::make_unique<MemoryStore>(std::make_shared<SharedServer>()));
  };
  const auto folder = machine.config.trust_folders.back() / "credentials.d";
  std::filesystem::create_directories(folder);
  for (const auto& each : {folder.parent_path(), folder}) {
    std::filesystem::permissions(each, std::filesystem::perms::owner_all);
  }
  overwrite(folder / "server", copied_bytes("url " + url + "\nuser u\n"));
  std::filesystem::permissions(folder / "server",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  machine.config.directory.clear();
  machine.config.remotes = {{url, false, {}, "", "server", "bazel", {}}};
  Endpoint named(machine);
  for (int i = 0; i < 2; ++i) CHECK(named.of.store());
  REQUIRE(opened.size() == 1);  // once
  CHECK(opened[0].url == url);
  CHECK(opened[0].layout == "bazel");
  CHECK(opened[0].credentials == std::map<std::string, std::string>{{"user", "u"}});
  machine.config.remotes[0].credentials = "none";
  Endpoint missing(machine);
  for (int i = 0; i < 2; ++i) {
    const auto store = missing.of.store();
    REQUIRE_FALSE(store);
    CHECK(store.error().text() == "not_found: credentials 'none': not in credentials.d");
  }
  CHECK(opened.size() == 1);
  CHECK(machine.log.said("remote is not used: credentials 'none': not in credentials.d") == 1);
}

TEST_CASE("layers: an object that is not used is told once, and the next layer is tried") {
  SharingMachine writer, reader;
  writer.write_to("file:///nowhere");
  writer.build({"one", "two"});
  const auto damaged = writer.temporary.path() / "damaged", whole = writer.temporary.path() / "whole";
  for (const auto& folder : {damaged, whole}) REQUIRE(create_layer(writer.config, {folder, "ci", {}, {}, {}}));
  REQUIRE(trust_sharing_key(reader.config, "ci", writer.key(), "", KeyFolder::user));
  reader.config.layers = {reader.temporary.path() / "none", damaged, whole};
  const std::string folder = device_folder_name(reader.device.info());
  const auto asked = [&](const std::string& text) {
    const ProgramKey key = key_for(text, reader.device);
    return AskedProgram{folder, key.digest, key.material};
  };
  for (const char* text : {"one", "two"}) overwrite(damaged / asked(text).name(), copied_bytes("short"));
  Layers layers({&reader.log, LogLevel::info}, reader.config,
                std::make_shared<CurrentKeys>(reader.config.trust_folders));
  CHECK(layers.exist());
  SharedCounters counters;
  for (const char* text : {"one", "two"}) {
    CHECK(layers.holds(asked(text)));
    CHECK(layers.find(asked(text), counters));
  }
  CHECK_FALSE(layers.holds(asked("three")));
  CHECK_FALSE(layers.find(asked("three"), counters));
  CHECK(counters.counts().bad_length == 2);
  CHECK(reader.log.said("is not used: bad_length: the object has 5 bytes, expected at least 120") == 2);
  CHECK(reader.log.warnings().size() == 1);
}

}  // namespace
}  // namespace kiln::test

// Programs that machines share: found, written, refused, and never a reason for a job to fail or to wait long.
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

TEST_CASE("sharing: a program of another machine is loaded, not built, and stored under this user's key") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  const PushOutcome pushed = writer.push();
  CHECK(pushed.failure.text() == "ok");
  CHECK(pushed.written == 2);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  {
    const auto cache = reader.open();
    const auto acquired = acquire(*cache, "one", reader.device);
    REQUIRE(acquired);
    CHECK(acquired->tier == Tier::remote);
    CHECK(text_of(*acquired) == "one");
    CHECK(acquire(*cache, "one", reader.device)->tier == Tier::memory);
    CHECK(cache->stats().shared.hits == 1);
    CHECK(cache->stats().builds == 0);
    CHECK(reader.files(".bin").size() == 1);
    CHECK(reader.files(".meta").empty());  // no hit waits for it
  }
  CHECK(reader.files(".meta").size() == 1);
  CHECK(reader.device.builds == 0);
  CHECK(reader.device.false_bytes == 0);
  reader.config.remotes.clear();
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::disk);
}

TEST_CASE("sharing: a process that did nothing but load programs of a remote counts in the cache's totals") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::remote);
  const auto totals = cache_totals(reader.config);
  REQUIRE(totals);
  CHECK(totals->processes == 1);
  CHECK(totals->counts.shared.hits == 1);

  // The remote's own totals: one program found, then one that the index has and the server lacks.
  const RemoteTotals first = remote_status(reader.config, reader.stores).at(0).totals;
  CHECK(first.found == 1);
  CHECK(first.absent == 0);
  const std::string folder = device_folder_name(writer.device.info()) + "/";
  SharingMachine other(server);
  other.read_from(url, writer);
  other.expect_slow_answers(url);
  server->objects.erase(folder + key_for("one", writer.device).digest.hex());
  CHECK(acquire(*other.open(), "one", other.device)->tier == Tier::built);
  const RemoteTotals second = remote_status(other.config, other.stores).at(0).totals;
  CHECK(second.found == 0);
  CHECK(second.absent == 1);
}

TEST_CASE("sharing: what the index lacks is not asked for") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  const auto cache = reader.open();
  REQUIRE(acquire(*cache, "one", reader.device)->tier == Tier::remote);
  REQUIRE(becomes_true([&] { return server->indexes > 1; }));  // the push read it once
  std::this_thread::sleep_for(20ms);
  const int before = server->gets;
  for (int i = 0; i < 20; ++i) {
    CHECK(acquire(*cache, "absent " + std::to_string(i), reader.device)->tier == Tier::built);
  }
  CHECK(server->gets <= before + 1);  // the index
  CHECK(cache->stats().shared.absent >= 19);
}

TEST_CASE("sharing: a batch is fetched in one request") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("program " + std::to_string(i));
  writer.write_to(url);
  writer.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(2ms); };  // worth a request
  writer.build(texts);
  REQUIRE(writer.push().written == 100);
  reader.read_from(url, writer);
  server->delay_ms = 30;
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  for (const std::string& text : texts) {
    sources.push_back(source_of(text));
    keys.push_back(key_for(text, reader.device));
  }
  std::vector<ProgramRequest> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) requests.push_back({&keys[i], &sources[i], &reader.device});
  const auto cache = reader.open();
  int remote = 0;
  cache->get_or_build_all(requests, 2, [&](std::size_t, Result<Acquired> answer) {
    remote += answer && answer->tier == Tier::remote;
    return true;
  });
  CHECK(remote == 100);
  CHECK(reader.device.builds == 0);
  CHECK(server->batches == 1);
}

TEST_CASE("sharing: a program whose build costs less than three round trips is not asked for") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.device.on_build = {};
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  server->delay_ms = 10;
  const auto cache = reader.open();
  REQUIRE(acquire(*cache, "one", reader.device)->tier == Tier::remote);  // nothing is known yet
  REQUIRE(becomes_true([&] { return server->gets >= 3; }));
  std::this_thread::sleep_for(50ms);
  CHECK(acquire(*cache, "two", reader.device)->tier == Tier::built);
  CHECK(cache->stats().shared.skipped == 1);
}

TEST_CASE("sharing: a program is waited for as long as a tenth of its build takes") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.write_to(url);
  writer.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(2s); };
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  Tier tier = Tier::built;
  for (int attempt = 0; attempt < 10 && tier != Tier::remote; ++attempt) {  // a busy machine needs more than 200 ms
    SharingMachine reader(server);
    reader.read_from(url, writer);
    const auto cache = reader.open();
    server->delay_ms = 0;
    REQUIRE(acquire(*cache, "absent", reader.device)->tier == Tier::built);  // reads the index, which is fast
    server->delay_ms = 20;
    tier = acquire(*cache, "one", reader.device)->tier;
  }
  CHECK(tier == Tier::remote);
}

TEST_CASE("sharing: nothing is accepted without a trusted writer") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  SECTION("no writers are named") { reader.config.remotes = {{url, false, {}, "", "", "plain", {}}}; }
  SECTION("the name is not in trust.d") { reader.config.remotes = {{url, false, {"ci"}, "", "", "plain", {}}}; }
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::built);
  CHECK(reader.device.loads == 0);
}

TEST_CASE("sharing: an object that is altered, foreign, expired, revoked or of another program is counted and built") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  std::string expected;
  SECTION("altered") {
    reader.read_from(url, writer);
    only_program(*server).back() ^= std::byte{1};
    expected = "bad_signature";
  }
  SECTION("cut off") {
    reader.read_from(url, writer);
    only_program(*server).resize(40);
    expected = "bad_length";
  }
  SECTION("foreign: the trusted key of that name is another one") {
    SharingMachine other;
    other.write_to(url);
    reader.read_from(url, other);
    expected = "unknown_key";
  }
  SECTION("expired") {
    reader.read_from(url, writer, "2020-01-01");
    expected = "expired";
  }
  SECTION("revoked") {
    reader.read_from(url, writer);
    REQUIRE(revoke_sharing_key(reader.config, "ci", KeyFolder::user));
    expected = "revoked";
  }
  SECTION("swapped: another program under this name") {
    writer.build({"two"});
    REQUIRE(writer.push().written == 1);
    const std::string folder = device_folder_name(writer.device.info()) + "/";
    const std::string one = folder + key_for("one", writer.device).digest.hex();
    server->objects[one] = server->objects[folder + key_for("two", writer.device).digest.hex()];
    reader.read_from(url, writer);
    expected = "other_program";
  }
  const auto cache = reader.open();
  CHECK(acquire(*cache, "one", reader.device)->tier == Tier::built);
  CHECK(reader.device.loads == 0);
  for (const auto& [name, count] : shared_count_names()) {
    const auto member = count;  // the answer may be late
    if (name == expected) CHECK(becomes_true([&] { return cache->stats().shared.*member == 1; }));
  }
  CHECK(cache->stats().shared.hits == 0);
  CHECK(cache->stats().shared.absent == 0);
}

TEST_CASE("sharing: a key that is revoked while caches are open serves neither their reads nor their writes") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  const auto writing = writer.open();
  const auto reading = reader.open();
  REQUIRE(acquire(*reading, "one", reader.device)->tier == Tier::remote);
  REQUIRE(revoke_sharing_key(reader.config, "ci", KeyFolder::user));
  REQUIRE(revoke_sharing_key(writer.config, "ci", KeyFolder::user));
  std::this_thread::sleep_for(1100ms);  // trust.d is read once a second
  CHECK(acquire(*reading, "two", reader.device)->tier == Tier::built);
  CHECK(becomes_true([&] { return reading->stats().shared.revoked == 1; }));
  const int puts = server->puts;
  writer.build_and_run(*writing, "three");
  CHECK(becomes_true([&] { return writing->stats().shared.write_failed == 1; }));
  CHECK(server->puts == puts);
}

TEST_CASE("sharing: a stored file is never overwritten by a remote") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.device.build_number = 5;
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  reader.build({"one"});
  const auto before = contents(reader.files(".bin").at(0));
  reader.read_from(url, writer);
  CHECK(reader.pull().stored.programs_already == 1);
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::disk);
  CHECK(contents(reader.files(".bin").at(0)) == before);
}

TEST_CASE("sharing: a memory hit makes no system call, with a remote and a layer configured", "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer makes system calls of its own");
    return;
  }
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"a"});
  REQUIRE(writer.push().written == 1);
  const std::filesystem::path layer = reader.temporary.path() / "layer";
  REQUIRE(create_layer(writer.config, {layer, "ci", {}, {}, {}, {}}));
  reader.read_from(url, writer);
  reader.config.layers = {layer};
  constexpr int hit = 0, other_tier = 3, not_arranged = 4;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto cache = reader.open();
    const ProgramKey key = key_for("a", reader.device);
    const KernelSource source = source_of("a");
    const auto first = cache->get_or_build(key, source, reader.device);
    if (!first || first->tier == Tier::built) _exit(other_tier);
    if (!end_at_next_call()) _exit(not_arranged);
    for (int i = 0; i < 10'000; ++i) {
      const auto again = cache->get_or_build(key, source, reader.device);
      if (!again || again->tier != Tier::memory) _exit(other_tier);
    }
    _exit(hit);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  if (WIFEXITED(state) && WEXITSTATUS(state) == not_arranged) {
    WARN("skipped: seccomp is not permitted here");
    return;
  }
  CHECK_FALSE(WIFSIGNALED(state));  // SIGSYS: a system call
  CHECK(WEXITSTATUS(state) == hit);
}

TEST_CASE("sharing: a server that fails, hangs or is slow costs a job little, and every job ends") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i) texts.push_back("program " + std::to_string(i));
  writer.write_to(url);
  writer.build(texts);
  REQUIRE(writer.push().written == 30);
  reader.read_from(url, writer);
  SECTION("it fails") { server->fails = true; }
  SECTION("it hangs") { server->hangs = true; }
  SECTION("it takes two seconds") { server->delay_ms = 2000; }
  const auto start = Clock::now();
  {
    const auto cache = reader.open();
    for (const std::string& text : texts) CHECK(acquire(*cache, text, reader.device)->tier == Tier::built);
    const SharedCounts counts = cache->stats().shared;
    CHECK(counts.closed >= 20);
    CHECK(counts.late + counts.failed >= 1);
  }
  // 20 ms, and the builds of the synthetic device; generous for a busy machine.
  CHECK(ms_since(start) < 1500);
  // The next process does not send a request either.
  const int before = server->gets;
  const auto next = reader.open();
  CHECK(acquire(*next, "another", reader.device)->tier == Tier::built);
  CHECK(server->gets == before);
}

TEST_CASE("sharing: a server that takes no writes is read as before, and asked to store once a process") {
  const auto server = std::make_shared<SharedServer>();
  server->refuses_writes = true;
  SharingMachine machine(server);
  machine.write_to(url);
  {
    const auto cache = machine.open();
    for (const char* text : {"one", "two", "three"}) machine.build_and_run(*cache, text);
    REQUIRE(becomes_true([&] { return server->puts > 0; }));
  }
  CHECK(server->puts == 1);
  const auto cache = machine.open();
  CHECK(acquire(*cache, "another", machine.device)->tier == Tier::built);
  CHECK(cache->stats().shared.closed == 0);
}

TEST_CASE("sharing: a server that is back is found by a probe, outside of jobs") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  reader.read_from(url, writer);
  server->fails = true;
  const auto cache = reader.open();
  REQUIRE(acquire(*cache, "other", reader.device)->tier == Tier::built);
  REQUIRE(becomes_true([&] { return !reader.named(sha256(url).hex().substr(0, 16) + ".state").empty(); }));
  REQUIRE(becomes_true([&] {
    const auto text = contents(reader.named(sha256(url).hex().substr(0, 16) + ".state").at(0));
    return decode_remote_state({reinterpret_cast<const char*>(text.data()), text.size()}).failures == 1;
  }));
  server->fails = false;
  CHECK(acquire(*cache, "second", reader.device)->tier == Tier::built);
  // As if the pause had ended.
  RemoteState over;
  over.failures = 1;
  over.closed_until_ms = 1;
  over.slow_us = 250'000;  // for a busy machine
  const std::string text = encode_remote_state(over);
  overwrite(reader.named(sha256(url).hex().substr(0, 16) + ".state").at(0), std::as_bytes(std::span(text)));
  std::this_thread::sleep_for(50ms);
  CHECK(acquire(*cache, "third", reader.device)->tier == Tier::built);  // starts the probe, and does not wait for it
  REQUIRE(becomes_true([&] {
    const auto bytes = contents(reader.named(sha256(url).hex().substr(0, 16) + ".state").at(0));
    return decode_remote_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).failures == 0;
  }));
  std::this_thread::sleep_for(50ms);
  CHECK(acquire(*cache, "one", reader.device)->tier == Tier::remote);
}

TEST_CASE("sharing: a cache without threads asks on the caller's thread, a bounded time") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(10ms); };
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  reader.read_from(url, writer);
  CHECK(acquire(*reader.open({}, OwnThreads::no), "one", reader.device)->tier == Tier::remote);
  server->hangs = true;
  const auto start = Clock::now();
  CHECK(acquire(*reader.open({}, OwnThreads::no), "two", reader.device)->tier == Tier::built);
  CHECK(ms_since(start) < 1000);
}

TEST_CASE("sharing: a cache without threads asks a server again once its pause is over") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two", "three"});
  REQUIRE(writer.push().written == 3);
  reader.read_from(url, writer);
  server->fails = true;
  CHECK(acquire(*reader.open({}, OwnThreads::no), "one", reader.device)->tier == Tier::built);
  server->fails = false;
  CHECK(acquire(*reader.open({}, OwnThreads::no), "two", reader.device)->tier == Tier::built);  // it is left alone
  RemoteState over;
  over.failures = 1;
  over.closed_until_ms = 1;
  over.slow_us = 250'000;  // for a busy machine
  const std::string text = encode_remote_state(over);
  overwrite(reader.named(sha256(url).hex().substr(0, 16) + ".state").at(0), std::as_bytes(std::span(text)));
  CHECK(acquire(*reader.open({}, OwnThreads::no), "three", reader.device)->tier == Tier::remote);
}

TEST_CASE("sharing: file:// keeps programs in a folder") {
  SharingMachine writer, reader;
  const auto share = writer.temporary.path() / "share";
  std::filesystem::create_directory(share);
  const std::string file_url = "file://" + share.string();
  writer.write_to(file_url);
  writer.build({"one", "two"});
  const auto objects = share / device_folder_name(writer.device.info());
  std::filesystem::create_directory(objects);
  // What writers left: one was killed two hours ago, the other may be writing still.
  const auto dead = objects / ".1-aaaaaa.tmp", writing = objects / ".1-bbbbbb.tmp";
  for (const auto& file : {dead, writing}) std::ofstream(file) << "half";
  std::filesystem::last_write_time(dead, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  CHECK(writer.push().written == 2);
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK(std::filesystem::exists(writing));
  CHECK(writer.push().already == 2);
  reader.read_from(file_url, writer);
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::remote);
  std::filesystem::remove_all(share);
  const auto cache = reader.open();
  CHECK(acquire(*cache, "two", reader.device)->tier == Tier::built);
  CHECK(becomes_true([&] { return cache->stats().shared.failed >= 1; }));
}

TEST_CASE("sharing: a symbolic link in a shared folder leads no writer elsewhere") {
  SharingMachine writer;
  const auto share = writer.temporary.path() / "share", elsewhere = writer.temporary.path() / "elsewhere";
  std::filesystem::create_directory(share);
  std::filesystem::create_directory(elsewhere);
  std::ofstream(elsewhere / "index") << "of somebody";
  const auto objects = share / device_folder_name(writer.device.info());
  SECTION("in place of the device folder") { std::filesystem::create_directory_symlink(elsewhere, objects); }
  SECTION("in place of the index") {
    std::filesystem::create_directory(objects);
    std::filesystem::create_symlink(elsewhere / "index", objects / "index");
  }
  writer.write_to("file://" + share.string());
  writer.build({"one"});
  CHECK_THAT(writer.push().failure.message, Catch::Contains("symbolic link"));
  CHECK(contents(elsewhere / "index").size() == std::string("of somebody").size());
  CHECK(std::distance(std::filesystem::directory_iterator(elsewhere), {}) == 1);
}

TEST_CASE("remote status: what answers, and which keys are accepted") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  machine.config.remotes[0].writers.push_back("unknown");
  auto status = remote_status(machine.config, machine.stores).at(0);
  CHECK(status.answer.ok());
  REQUIRE(status.accepted.size() == 1);
  CHECK(status.accepted[0].name == "ci");
  CHECK(status.problems.size() == 1);
  server->fails = true;
  status = remote_status(machine.config, machine.stores).at(0);
  CHECK(!status.answer.ok());
  machine.config.remotes[0].url = "redis://host";
  CHECK(remote_status(machine.config, machine.stores).at(0).answer.code == StatusCode::unsupported);
}

}  // namespace
}  // namespace kiln::test

// Programs that are written to a remote: by push, pull and the write-back behind a job.
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("sharing: pull stores what fits, and repeats without work") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two", "three"});
  const PushOutcome first = writer.push();
  REQUIRE(first.written == 3);
  CHECK(first.replaced == 0);
  CHECK(writer.push().already == 3);
  reader.read_from(url, writer);
  only_program(*server)[60] ^= std::byte{1};
  const PullOutcome pulled = reader.pull();
  CHECK(pulled.failure.text() == "ok");
  CHECK(pulled.stored.programs == 2);
  CHECK(pulled.refused.size() == 1);
  std::uint64_t bytes = 0;
  for (const char* extension : {".bin", ".meta"}) {
    for (const auto& path : reader.files(extension)) bytes += std::filesystem::file_size(path);
  }
  CHECK(pulled.stored.bytes == bytes);
  const auto stored = cache_inventory(reader.config, Detail::programs);
  REQUIRE(stored->programs.size() == 2);
  for (const CachedProgram& one : stored->programs) {
    CHECK_THAT(one.label, Catch::StartsWith("the label of "));
    const auto whole = inspect_program(reader.config, one.key.hex());
    REQUIRE(whole);
    CHECK(whole->verdict == "authentic");
    CHECK(whole->build_ms >= 100);  // as long as the writer's builds
    CHECK(whole->build_ms < 60'000);
  }
  const PullOutcome again = reader.pull();
  CHECK(again.stored.programs == 0);
  CHECK(again.stored.programs_already == 2);
  // Only the altered one is asked for.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const DeviceInfo info = reader.device.info();
  REQUIRE(pull_cache(reader.config, reader.stores, std::span(&info, 1),
                     [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); }));
  CHECK(told == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}});
}

// A line that carries some objects of each batch until the deadline, however far away that is.
struct SlowStore final : MemoryStore {
  using MemoryStore::MemoryStore;
  std::size_t carries = 0;
  std::chrono::nanoseconds* time = nullptr;

  Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                  const OnObject& on_object) noexcept override {
    *time = limits.deadline.left();
    const Status status = MemoryStore::get_many(names.first(std::min(carries, names.size())), limits, on_object);
    return carries < names.size() ? timed_out("a slow line") : status;
  }
};

TEST_CASE("sharing: push over a slow line finds out what is there, and writes what is new") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.device.on_build = [](const KernelSource&) {};
  writer.write_to(url);
  std::vector<std::string> texts;
  for (int i = 0; i < 64; ++i) texts.push_back(std::to_string(i));
  writer.build(texts);
  REQUIRE(writer.push().written == 64);
  writer.build({"new"});
  std::size_t carries = 25;
  std::chrono::nanoseconds time{};
  writer.stores["http"] = [&](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
    auto store = std::make_unique<SlowStore>(server);
    store->carries = carries;
    store->time = &time;
    return std::unique_ptr<RemoteStore>(std::move(store));
  };
  const int batches = server->batches;
  const PushOutcome pushed = writer.push();
  CHECK(pushed.failure.text() == "ok");
  CHECK(pushed.already == 64);
  CHECK(pushed.written == 1);
  CHECK(server->batches == batches + 3);
  carries = 0;
  CHECK(writer.push().failure.code == StatusCode::timeout);
  CHECK(time > 120s);  // for 64 objects
}

TEST_CASE("sharing: push replaces an object that no reader would use") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two", "three"});
  REQUIRE(writer.push().written == 3);
  only_program(*server)[60] ^= std::byte{1};
  PushOutcome pushed = writer.push();
  CHECK(pushed.failure.text() == "ok");
  CHECK(pushed.written == 1);
  CHECK(pushed.replaced == 1);
  CHECK(pushed.already == 2);
  // Another key takes over.
  REQUIRE(revoke_sharing_key(writer.config, "ci", KeyFolder::user));
  const auto next = create_sharing_key(writer.config, "next", "", KeyFolder::user);
  REQUIRE(next);
  writer.config.remotes = {{url, true, {"ci", "next"}, "next", "", "plain", {}}};
  pushed = writer.push();
  CHECK(pushed.written == 3);
  CHECK(pushed.replaced == 3);
  CHECK(pushed.already == 0);
  REQUIRE(trust_sharing_key(reader.config, "next", next->public_key, "", KeyFolder::user));
  reader.config.remotes = {{url, false, {"next"}, "", "", "plain", {}}};
  CHECK(acquire(*reader.open({}, OwnThreads::no), "one", reader.device)->tier == Tier::remote);
}

TEST_CASE("sharing: push skips a program that is too large, and writes the others") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.write_to(url);
  writer.config.compression = "none";
  writer.build({"one", "two"});
  writer.device.driver_setting = std::string(64, 'a');
  std::string reason, words;
  SECTION("for the server") {
    writer.device.driver_files = {{mesa_name, std::vector<std::byte>(64 << 10)}};
    server->most_bytes_taken = 64 << 10;
    reason = "refused";
    words = "too large for the server";
  }
  SECTION("for every reader") {
    writer.device.driver_files = {{mesa_name, std::vector<std::byte>(most_object_bytes)}};
    reason = "too_large";
    words = "expected at most 67108864 in the whole object";
  }
  writer.build({"large"});
  const PushOutcome pushed = writer.push();
  CHECK(pushed.failure.text() == "ok");
  CHECK(pushed.written == 2);
  REQUIRE(pushed.bad.size() == 1);
  CHECK(pushed.bad[0].key == key_for("large", writer.device).digest);
  CHECK(pushed.bad[0].reason == reason);
  CHECK_THAT(pushed.bad[0].why, Catch::Contains(words));
  CHECK(RemoteBreaker(writer.config.directory, true, url).state().failures == 0);
}

TEST_CASE("sharing: a program is written after its first dispatch, and never before") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.write_to(url);
  const auto cache = writer.open();
  REQUIRE(acquire(*cache, "one", writer.device));
  std::this_thread::sleep_for(30ms);
  CHECK(server->puts == 0);
  writer.build_and_run(*cache, "one");
  CHECK(becomes_true([&] { return cache->stats().shared.written == 1; }));
  SharingMachine reader(server);
  reader.read_from(url, writer);
  CHECK(acquire(*reader.open({}, OwnThreads::no), "one", reader.device)->tier == Tier::remote);
}

TEST_CASE("sharing: what is written at the end of a process is listed") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.device.on_build = [](const KernelSource&) {};
  writer.write_to(url);
  constexpr int programs = 60;
  {
    const auto cache = writer.open();
    for (int i = 0; i < programs; ++i) REQUIRE(acquire(*cache, std::to_string(i), writer.device));
    server->delay_ms = 5;  // too slow for all
    for (int i = 0; i < programs; ++i) writer.build_and_run(*cache, std::to_string(i));
  }
  const std::string index = remote_index_name(device_folder_name(writer.device.info()));
  REQUIRE(server->objects.contains(index));
  CHECK(server->objects.size() < programs + 1);
  CHECK(decode_remote_index(server->objects[index])->size() == server->objects.size() - 1);
}

TEST_CASE("sharing: a write behind a damaged index hides no program of others, and push replaces it") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two", "three"});
  REQUIRE(writer.push().written == 3);
  auto& index = server->objects.at(remote_index_name(device_folder_name(writer.device.info())));
  index.resize(index.size() / 2);
  {
    const auto cache = writer.open();
    writer.build_and_run(*cache, "four");
    CHECK(becomes_true([&] { return cache->stats().shared.written == 1; }));
  }
  CHECK_FALSE(decode_remote_index(index));
  reader.read_from(url, writer);
  CHECK(acquire(*reader.open({}, OwnThreads::no), "one", reader.device)->tier == Tier::remote);
  const PushOutcome pushed = writer.push();
  CHECK(pushed.failure.text() == "ok");
  CHECK(pushed.written == 4);
  CHECK(decode_remote_index(index)->size() == 4);
}

TEST_CASE("sharing: a folder's damaged or lost index is made anew from its files") {
  SharingMachine writer, reader;
  const auto share = writer.temporary.path() / "share";
  std::filesystem::create_directory(share);
  const std::string file_url = "file://" + share.string();
  writer.write_to(file_url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  REQUIRE(push_tuning(writer.config, writer.stores, writer.device.info(), "records")->at(0).failure.ok());
  const auto index = share / device_folder_name(writer.device.info()) / "index";
  SECTION("damaged") { std::filesystem::resize_file(index, 30); }
  SECTION("lost") { std::filesystem::remove(index); }
  {
    const auto cache = writer.open();
    writer.build_and_run(*cache, "three");
    CHECK(becomes_true([&] { return cache->stats().shared.written == 1; }));
  }
  CHECK(decode_remote_index(contents(index))->size() == 4);  // and the tuning records, which are no program
  reader.read_from(file_url, writer);
  const PullOutcome pulled = reader.pull();
  CHECK(pulled.failure.text() == "ok");
  CHECK(pulled.stored.programs == 3);
  CHECK(pulled.refused.empty());
}

TEST_CASE("sharing: a program that failed to build, or came from elsewhere, is not written") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), second(server);
  writer.write_to(url);
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  const int before = server->puts;
  writer.device.fail_builds = true;
  CHECK(!acquire(*writer.open(), "bad", writer.device));
  second.read_from(url, writer);
  {
    const auto cache = second.open();
    second.build_and_run(*cache, "one");
  }
  CHECK(server->puts == before);
}

TEST_CASE("sharing: push leaves out remotes that are only read, wherever they are named") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server);
  writer.write_to(url);
  writer.build({"one"});
  const RemoteConfig writes = writer.config.remotes.at(0), reads{"http://reads", false, {"ci"}, "", "", "plain", {}};
  writer.config.remotes = {reads, writes, reads};
  const auto outcomes = push_cache(writer.config, writer.stores, {});
  REQUIRE(outcomes);
  REQUIRE(outcomes->size() == 1);
  CHECK(outcomes->at(0).url == url);
  CHECK(outcomes->at(0).written == 1);
  CHECK(outcomes->at(0).bytes == only_program(*server).size());
  const auto tuned = push_tuning(writer.config, writer.stores, writer.device.info(), "records");
  REQUIRE(tuned);
  CHECK(tuned->size() == 1);
}

TEST_CASE("sharing: what pull finds is counted for its remote, programs and tuning records") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  REQUIRE(push_tuning(writer.config, writer.stores, writer.device.info(), "records"));
  CHECK(known_remotes(writer.config).at(0).totals.written == 3);
  reader.read_from(url, writer);
  CHECK(reader.pull().stored.programs == 2);
  CHECK(known_remotes(reader.config).at(0).totals.found == 2);
  REQUIRE(pull_tuning(reader.config, reader.stores, reader.device.info()));
  CHECK(known_remotes(reader.config).at(0).totals.found == 3);
}

}  // namespace
}  // namespace kiln::test

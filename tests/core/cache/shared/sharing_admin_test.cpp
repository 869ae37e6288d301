// push, pull, status, tuning records and layers where something is missing, fails or is not for this machine; and the
// named keys behind them.
#include "cache/bundle_format.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

#include <functional>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Told = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// A store whose index answers, or takes, nothing.
struct FailingIndex final : MemoryStore {
  using MemoryStore::MemoryStore;
  bool reads = true, writes = true;

  Result<std::optional<RemoteIndex>> index(const std::string& folder, const RemoteLimits& limits) noexcept override {
    if (!reads) return unavailable("the index fails");
    return MemoryStore::index(folder, limits);
  }
  Status add_to_index(const std::string& folder, const RemoteIndex& more,
                      const RemoteLimits& limits) noexcept override {
    if (!writes) return unavailable("the index takes nothing");
    return MemoryStore::add_to_index(folder, more, limits);
  }
};

template <class Outcome>
std::string error_of(const Result<Outcome>& result) {
  return result ? "none" : result.error().text();
}

TEST_CASE("sharing administration: what push needs") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  const auto pushed = [&] { return error_of(push_cache(machine.config, machine.stores, {})); };
  const std::string none =
      "invalid_argument: push: no [[cache.remote]] has mode = \"read_write\" (expected at least one)";
  CHECK(pushed() == none);
  machine.config.remotes = {{url, false, {}, "", "", "plain", {}}};
  CHECK(pushed() == none);
  machine.config.remotes = {{url, true, {}, "nobody", "", "plain", {}}};
  CHECK_THAT(pushed(), Catch::StartsWith("not_found: remote " + url + ": ") && Catch::Contains("nobody"));
  machine.write_to(url);
  CHECK(pushed() == "not_found: cache " + machine.config.directory.string() + ": does not exist yet");
  machine.build({"one"});
  const std::vector<std::string> which{"nobody's"};
  CHECK(error_of(push_cache(machine.config, machine.stores, which)) ==
        "not_found: program 'nobody's': no stored program has this label or key prefix in " +
            machine.config.directory.string());
  std::filesystem::rename(machine.config.key_file, machine.config.key_file.string() + ".away");
  CHECK_THAT(pushed(), Catch::Contains(": programs cannot be authenticated: "));
  std::filesystem::rename(machine.config.key_file.string() + ".away", machine.config.key_file);
  CHECK(pushed() == "none");
}

TEST_CASE("sharing administration: push tells each program of each remote, and what failed") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  machine.config.remotes.push_back(machine.config.remotes[0]);
  machine.config.remotes[1].url = "http://other.example/kiln";
  machine.config.remotes.push_back({"http://third.example", false, {"ci"}, "", "", "plain", {}});
  machine.build({"one", "two"});
  bool reads = true, writes = true;
  machine.stores["http"] = [&](const RemoteContext& context) -> Result<std::unique_ptr<RemoteStore>> {
    auto store = std::make_unique<FailingIndex>(server);
    store->reads = reads || context.url == url;
    store->writes = writes || context.url == url;
    return std::unique_ptr<RemoteStore>(std::move(store));
  };
  Told told;
  const auto push = [&] {
    told.clear();
    return push_cache(machine.config, machine.stores, {},
                      [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); });
  };
  reads = false;
  auto outcomes = push();
  REQUIRE(outcomes);
  REQUIRE(outcomes->size() == 2);
  CHECK(told == Told{{1, 4}, {2, 4}, {3, 4}, {4, 4}});
  CHECK((*outcomes)[0].url == url);
  CHECK((*outcomes)[0].failure.ok());
  CHECK((*outcomes)[0].written == 2);
  CHECK((*outcomes)[1].url == "http://other.example/kiln");
  CHECK((*outcomes)[1].failure.text() == "unavailable: remote http://other.example/kiln: the index fails");
  CHECK((*outcomes)[1].written == 0);
  reads = true;
  writes = false;
  server->objects.clear();
  outcomes = push();
  REQUIRE(outcomes);
  CHECK((*outcomes)[0].failure.ok());
  // The first has listed them, in the same store.
  CHECK((*outcomes)[1].already == 2);
  server->objects.clear();
  machine.config.remotes.erase(machine.config.remotes.begin());
  outcomes = push();
  REQUIRE(outcomes);
  CHECK((*outcomes)[0].written == 2);
  CHECK((*outcomes)[0].failure.text() ==
        "unavailable: remote http://other.example/kiln: index: the index takes nothing");
  server->refuses_writes = true;
  server->objects.clear();
  outcomes = push();
  REQUIRE(outcomes);
  CHECK((*outcomes)[0].failure.text() == "unsupported: remote http://other.example/kiln: the server takes no writes");
  CHECK((*outcomes)[0].written == 0);
  CHECK((*outcomes)[0].bytes == 0);
}

TEST_CASE("sharing administration: push takes a remote for what its index says where it has no key to check it") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  machine.build({"one", "two"});
  REQUIRE(machine.push().written == 2);
  machine.config.remotes[0].writers.clear();
  server->batches = 0;
  const PushOutcome again = machine.push();
  CHECK(again.failure.ok());
  CHECK(again.already == 2);
  CHECK(again.written == 0);
  CHECK(server->batches == 0);
}

TEST_CASE("sharing administration: push leaves out what is damaged, with the reason") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  machine.build({"one", "two"});
  const ProgramKey key = key_for("two", machine.device);
  const auto file = machine.named(key.digest.hex() + ".bin").at(0);
  auto bytes = contents(file);
  bytes[70] ^= std::byte{1};
  overwrite(file, bytes);
  const PushOutcome pushed = machine.push();
  CHECK(pushed.failure.ok());
  CHECK(pushed.written == 1);
  REQUIRE(pushed.bad.size() == 1);
  CHECK(pushed.bad[0].key == key.digest);
  CHECK(pushed.bad[0].reason == "corrupt");
  CHECK_FALSE(pushed.bad[0].removed);
  CHECK(pushed.bad[0].why == "corrupt: the checksum does not match the content");
  CHECK(pushed.bad[0].label == "the label of two");
}

TEST_CASE("sharing administration: what pull needs") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  const DeviceInfo device = machine.device.info();
  CHECK(error_of(pull_cache(machine.config, machine.stores, std::span(&device, 1))) ==
        "invalid_argument: pull: no [[cache.remote]] is configured (expected at least one)");
  CHECK(error_of(pull_tuning(machine.config, machine.stores, device)) ==
        "invalid_argument: pull: no [[cache.remote]] is configured (expected at least one)");
  machine.config.remotes = {{url, false, {}, "", "", "plain", {}},
                            {"gopher://x", false, {"none"}, "", "", "plain", {}}};
  const auto outcomes = pull_cache(machine.config, machine.stores, std::span(&device, 1));
  REQUIRE(outcomes);
  REQUIRE(outcomes->size() == 2);
  CHECK((*outcomes)[0].url == url);
  CHECK((*outcomes)[0].failure.text() ==
        "not_found: remote " + url + ": no writers are configured, expected at least one");
  CHECK_THAT((*outcomes)[1].failure.text(),
             Catch::StartsWith("not_found: remote gopher://x: ") && Catch::Contains("none"));
  CHECK(server->indexes == 0);
}

TEST_CASE("sharing administration: pull tells its progress, and what failed") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  std::vector<std::string> texts;
  writer.device.on_build = [](const KernelSource&) {};
  for (int i = 0; i < 70; ++i) texts.push_back(std::to_string(i));
  writer.build(texts);
  REQUIRE(writer.push().written == 70);
  reader.read_from(url, writer);
  const DeviceInfo device = reader.device.info();
  Told told;
  const auto pull = [&] {
    told.clear();
    auto outcomes = pull_cache(reader.config, reader.stores, std::span(&device, 1),
                               [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); });
    if (!outcomes) throw std::runtime_error(outcomes.error().text());
    return outcomes->at(0);
  };
  server->fails = true;
  CHECK(pull().failure.text() == "unavailable: remote " + url + ": index: the server fails");
  CHECK(told.empty());
  server->fails = false;
  const PullOutcome pulled = pull();
  CHECK(pulled.failure.ok());
  CHECK(pulled.stored.programs == 70);
  CHECK(pulled.refused.empty());
  CHECK(told == Told{{64, 70}, {70, 70}});
  reader.stores["http"] = [](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
    return unsupported("no store today");
  };
  CHECK(pull().failure.text() == "unsupported: no store today");
}

TEST_CASE("sharing administration: pull stores no program of another device, and counts what it refuses") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  reader.read_from(url, writer);
  // Signed by a trusted key for this folder, and of another driver by its key.
  SyntheticDevice other;
  other.facts().driver_identity.front().second = "0.9";
  const ProgramKey key = key_for("three", other);
  const auto signer = read_signing_key(writer.config.trust_folders, "ci");
  REQUIRE(signer);
  const auto payload = encode_payload(*other.serialize(SyntheticProgram("three", 1, other.live)));
  EntryView entry;
  entry.format = "synthetic:2";
  entry.material = key.material;
  entry.stored = payload;
  entry.compression = Compression::none;
  entry.inflated_bytes = payload.size();
  const std::string folder = device_folder_name(reader.device.info());
  const auto object = make_object({folder, key.digest, entry, "{}"}, *signer);
  REQUIRE(object);
  server->objects[object_name(folder, key.digest)] = *object;
  auto& index = server->objects.at(remote_index_name(folder));
  index = encode_remote_index(merged_index(*decode_remote_index(index), {{key.digest, 5}}));
  auto& damaged = server->objects.at(object_name(folder, key_for("two", reader.device).digest));
  damaged.back() ^= std::byte{1};
  const PullOutcome pulled = reader.pull();
  CHECK(pulled.failure.ok());
  CHECK(pulled.stored.programs == 1);
  CHECK(pulled.stored.programs_of_others == 1);
  CHECK(pulled.refused == std::map<std::string, std::uint64_t>{{"bad_signature", 1}});
}

TEST_CASE("sharing administration: tuning records go to the machines with the same device, driver and speed") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  DeviceInfo device = writer.device.info();
  device.speed_identity = {{"clock", "1000"}};
  CHECK(error_of(push_tuning(writer.config, writer.stores, device, "records")) ==
        "invalid_argument: push: no [[cache.remote]] has mode = \"read_write\" (expected at least one)");
  writer.write_to(url);
  auto pushed = push_tuning(writer.config, writer.stores, device, "records");
  REQUIRE(pushed);
  REQUIRE(pushed->size() == 1);
  CHECK((*pushed)[0].url == url);
  CHECK((*pushed)[0].text == "records");
  CHECK((*pushed)[0].failure.ok());
  CHECK(server->puts == 1);
  reader.read_from(url, writer);
  const auto pull = [&](const DeviceInfo& of) {
    const auto pulled = pull_tuning(reader.config, reader.stores, of);
    if (!pulled || pulled->size() != 1) throw std::runtime_error("not pulled");
    return pulled->at(0);
  };
  CHECK(pull(device).text == "records");
  CHECK(pull(device).failure.ok());
  CHECK(pull(device).refused.empty());
  CHECK(pull(device).url == url);
  for (auto* identity : {&device.device_identity, &device.driver_identity, &device.speed_identity}) {
    const std::string before = std::exchange(identity->front().second, "another");
    CHECK(pull(device).text.empty());
    CHECK(pull(device).failure.ok());
    identity->front().second = before;
  }
  device.simd_lanes += 1;
  CHECK(pull(device).text.empty());
  device.simd_lanes -= 1;
  // Later ones replace them.
  REQUIRE(push_tuning(writer.config, writer.stores, device, "newer"));
  CHECK(pull(device).text == "newer");
  only_program(*server).back() ^= std::byte{1};
  CHECK(pull(device).text.empty());
  CHECK(pull(device).refused == std::map<std::string, std::uint64_t>{{"bad_signature", 1}});
  server->fails = true;
  CHECK(pull(device).failure.text() == "unavailable: remote " + url + ": the server fails");
  pushed = push_tuning(writer.config, writer.stores, device, "records");
  REQUIRE(pushed);
  CHECK((*pushed)[0].failure.text() == "unavailable: remote " + url + ": the server fails");
  CHECK((*pushed)[0].text.empty());
  reader.config.remotes[0].writers.clear();
  CHECK(pull(device).failure.text() ==
        "not_found: remote " + url + ": no writers are configured, expected at least one");
}

TEST_CASE("sharing administration: the status of a remote, as it was left and as it answers now") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  REQUIRE(create_sharing_key(writer.config, "other", "", KeyFolder::user));
  writer.build({"one"});
  REQUIRE(writer.push().written == 1);
  auto all = known_remotes(writer.config);
  REQUIRE(all.size() == 1);
  CHECK(all[0].url == url);
  CHECK(all[0].writes);
  REQUIRE(all[0].accepted.size() == 1);
  CHECK(all[0].accepted[0].name == "ci");
  CHECK(all[0].problems.empty());
  CHECK(all[0].failures == 0);
  CHECK(all[0].closed_for_ms == 0);
  CHECK(all[0].totals.written == 1);
  CHECK(all[0].answer_ms == 0);
  server->fails = true;
  all = remote_status(writer.config, writer.stores);
  REQUIRE(all.size() == 1);
  CHECK(all[0].answer.text() == "unavailable: the server fails");
  all = known_remotes(writer.config);
  CHECK(all[0].failures == 1);
  CHECK(all[0].closed_for_ms > 0);
  CHECK(all[0].closed_for_ms <= 10'000);
  server->fails = false;
  all = remote_status(writer.config, writer.stores);
  CHECK(all[0].answer.ok());
  CHECK(all[0].answer_ms > 0);
  CHECK(all[0].answer_ms < 60'000);
  CHECK(known_remotes(writer.config)[0].closed_for_ms == 0);
  RemoteBreaker(writer.config.directory, true, url).measured(2500, 0);
  CHECK(known_remotes(writer.config)[0].round_trip_ms == 2.5);
  // What does nothing is told, and a look creates nothing.
  reader.config.remotes = {{url, false, {}, "", "", "plain", {}}};
  all = known_remotes(reader.config);
  REQUIRE(all.size() == 1);
  CHECK_FALSE(all[0].writes);
  CHECK(all[0].accepted.empty());
  CHECK(all[0].problems == std::vector<std::string>{"no writer is accepted, so nothing is read"});
  CHECK_FALSE(std::filesystem::exists(reader.config.directory));
}

TEST_CASE("sharing administration: what a layer is made of") {
  SharingMachine machine;
  machine.write_to("file:///nowhere");
  const auto layer = machine.temporary.path() / "layer";
  const auto made = [&](const LayerRequest& request) { return error_of(create_layer(machine.config, request)); };
  CHECK_THAT(made({layer, "nobody", {}, {}, {}}), Catch::Contains("nobody"));
  CHECK(made({layer, "ci", {}, {}, {}}) ==
        "not_found: layer " + layer.string() + ": cache " + machine.config.directory.string() + ": does not exist yet");
  machine.build({"one", "two", "three"});
  const auto bundle = machine.temporary.path() / "bundle";
  REQUIRE(export_cache(machine.config, bundle, {}));
  const std::string trust = *bundle_public_key(machine.config);
  CHECK(made({layer, "ci", {"one"}, bundle, trust}) ==
        "invalid_argument: layer " + layer.string() +
            ": found 'one' together with a bundle, expected no label or key (a layer contains the whole bundle)");
  CHECK_THAT(made({layer, "ci", {}, bundle, "nowhere"}), Catch::Contains("'nowhere'"));
  CHECK_THAT(made({layer, "ci", {}, machine.temporary.path() / "none", trust}),
             Catch::StartsWith("not_found: layer " + layer.string() + ": bundle: "));
  CHECK_THAT(made({layer, "ci", {}, bundle, machine.key()}),
             Catch::Contains(": bundle " + bundle.string() + ": is signed by key "));
  std::ofstream(machine.temporary.path() / "file") << "in the way";
  const auto blocked = machine.temporary.path() / "file" / "layer";
  CHECK(made({blocked, "ci", {}, {}, {}}) == "io: layer " + blocked.string() + ": cannot be created: Not a directory");

  Told told;
  const auto progress = [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); };
  const auto file = machine.named(key_for("two", machine.device).digest.hex() + ".bin").at(0);
  auto bytes = contents(file);
  bytes[70] ^= std::byte{1};
  overwrite(file, bytes);
  auto outcome = create_layer(machine.config, {layer, "ci", {}, {}, {}, progress});
  REQUIRE(outcome);
  CHECK(outcome->programs == 2);
  REQUIRE(outcome->bad.size() == 1);
  CHECK(outcome->bad[0].key == key_for("two", machine.device).digest);
  CHECK(told == Told{{1, 3}, {2, 3}, {3, 3}});
  told.clear();
  const auto whole = machine.temporary.path() / "whole";
  outcome = create_layer(machine.config, {whole, "ci", {}, bundle, trust, progress});
  REQUIRE(outcome);
  CHECK(outcome->programs == 3);
  CHECK(outcome->bad.empty());
  CHECK(told == Told{{1, 3}, {2, 3}, {3, 3}});
  machine.build({"two"});  // again
  outcome = create_layer(machine.config, {machine.temporary.path() / "one", "ci", {"the label of one"}, {}, {}});
  REQUIRE(outcome);
  CHECK(outcome->programs == 1);
}

TEST_CASE("sharing administration: a program of a bundle that no reader takes is left out of a layer") {
  SharingMachine machine;
  machine.write_to("file:///nowhere");
  const ProgramKey key = key_for("one", machine.device);
  ProgramBinary binary = *machine.device.serialize(SyntheticProgram("one", 1, machine.device.live));
  binary.driver_files = {{"index", {}}};
  const auto payload = encode_payload(binary);
  EntryView entry;
  entry.format = binary.format;
  entry.material = key.material;
  entry.stored = payload;
  entry.compression = Compression::none;
  entry.inflated_bytes = payload.size();
  EntryMeta meta;
  meta.label = "a label";
  const std::string text = encode_meta(meta), folder = device_folder_name(machine.device.info());
  BundleWriter writer;
  writer.add(BundledProgram{folder, key.digest, entry, text});
  const auto trust = *bundle_public_key(machine.config);
  const auto secret = *read_bundle_key(machine.config, IfMissing::fail);
  const auto bundle = machine.temporary.path() / "bundle";
  overwrite(bundle, *std::move(writer).finish(secret));
  const auto outcome = create_layer(machine.config, {machine.temporary.path() / "layer", "ci", {}, bundle, trust});
  REQUIRE(outcome);
  CHECK(outcome->programs == 0);
  CHECK(outcome->bytes == 0);
  REQUIRE(outcome->bad.size() == 1);
  CHECK(outcome->bad[0].key == key.digest);
  CHECK(outcome->bad[0].folder == folder);
  CHECK(outcome->bad[0].label == "a label");
  CHECK(outcome->bad[0].reason == "corrupt");
  CHECK(outcome->bad[0].why ==
        "driver file 'index': expected a name of Mesa's cache (2 hexadecimal digits, '/', 38 hexadecimal digits)");
}

TEST_CASE("sharing administration: what a named key needs") {
  SharingMachine machine;
  const std::string hex(64, 'a');
  CHECK(error_of(create_sharing_key(machine.config, "ci", "2026-02-30", KeyFolder::user)) ==
        "invalid_argument: date '2026-02-30': expected year, month and day, such as 2027-01-31");
  CHECK(error_of(trust_sharing_key(machine.config, "ci", hex, "soon", KeyFolder::user)) ==
        "invalid_argument: date 'soon': expected year, month and day, such as 2027-01-31");
  CHECK(error_of(trust_sharing_key(machine.config, "-x", hex, "", KeyFolder::user)) ==
        "invalid_argument: key name '-x': expected 1 to 64 letters, digits and ._-, beginning with a letter or digit");
  const auto user = machine.config.trust_folders.back();
  REQUIRE(create_sharing_key(machine.config, "ci", "2020-01-01", KeyFolder::user));
  const SharingKey key = sharing_keys(machine.config).keys.at(0);
  CHECK(key.expired);
  CHECK(key.until == "2020-01-01");
  CHECK(key.signs);
  CHECK(key.file == user / "trust.d" / "ci.key");
  // Another secret key under the name signs nothing for it.
  overwrite(user / "keys.d" / "ci.secret", std::vector<std::byte>(32, std::byte{1}));
  CHECK_FALSE(sharing_keys(machine.config).keys.at(0).signs);
  std::filesystem::remove(user / "trust.d" / "ci.key");
  CHECK(error_of(create_sharing_key(machine.config, "ci", "", KeyFolder::user)) ==
        "invalid_argument: key 'ci': the secret key " + (user / "keys.d" / "ci.secret").string() +
            " exists. Choose another name");
  CHECK(error_of(revoke_sharing_key(machine.config, "ci", KeyFolder::user)) ==
        "not_found: key 'ci': not in trust.d. `kiln cache key list` prints the names");
  REQUIRE(trust_sharing_key(machine.config, "system", hex, "", KeyFolder::system));
  CHECK(std::filesystem::exists(machine.config.trust_folders.front() / "trust.d" / "system.key"));
  machine.config.trust_folders.clear();
  const std::string none = "not_found: no key folder is configured. Set HOME or XDG_CONFIG_HOME to an absolute path";
  CHECK(error_of(create_sharing_key(machine.config, "ci", "", KeyFolder::user)) == none);
  CHECK(error_of(trust_sharing_key(machine.config, "ci", hex, "", KeyFolder::system)) == none);
  CHECK(error_of(revoke_sharing_key(machine.config, "ci", KeyFolder::user)) == none);
}

}  // namespace
}  // namespace kiln::test

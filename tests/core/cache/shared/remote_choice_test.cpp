// Which remote is asked for what: of several, for a batch, and where a program is there already or not accepted.
#include "base/secret_key.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

// Asks for all texts at one time, and returns where each came from.
std::map<std::string, Tier> tiers_of(TieredCache& cache, SyntheticDevice& device,
                                     const std::vector<std::string>& texts) {
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  for (const std::string& text : texts) {
    sources.push_back(source_of(text));
    keys.push_back(key_for(text, device));
  }
  std::vector<ProgramRequest> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) requests.push_back({&keys[i], &sources[i], &device});
  std::map<std::string, Tier> tiers;
  cache.get_or_build_all(requests, 1, [&](std::size_t place, Result<Acquired> answer) {
    if (answer) tiers[texts[place]] = answer->tier;
    return true;
  });
  return tiers;
}

struct Pushed {
  std::shared_ptr<SharedServer> server = std::make_shared<SharedServer>();
  SharingMachine writer{server}, reader{server};

  explicit Pushed(const std::vector<std::string>& texts, const std::string& until = "") {
    writer.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };  // worth a request
    writer.write_to(url);
    writer.build(texts);
    REQUIRE(writer.push().written == texts.size());
    reader.read_from(url, writer, until);
    reader.expect_slow_answers(url);
  }
};

TEST_CASE("sharing: of a batch only what is not there is fetched, also by a key that ends one day") {
  Pushed of({"one", "two", "three"}, "2199-12-31");
  const auto cache = of.reader.open();
  REQUIRE(acquire(*cache, "one", of.reader.device)->tier == Tier::remote);
  const int gets = of.server->gets, batches = of.server->batches;
  CHECK(tiers_of(*cache, of.reader.device, {"one", "two", "three"}) ==
        std::map<std::string, Tier>{{"one", Tier::memory}, {"two", Tier::remote}, {"three", Tier::remote}});
  CHECK(of.server->batches == batches + 1);
  CHECK(of.server->gets == gets);
  CHECK(cache->stats().shared.hits == 3);
  CHECK(cache->stats().shared.revoked == 0);
  CHECK(cache->stats().shared.late == 0);
  // One that was fetched ahead is handed out once: after its removal it is asked for again.
  REQUIRE(cache->remove(key_for("two", of.reader.device), of.reader.device).ok());
  const auto again = acquire(*cache, "two", of.reader.device);
  REQUIRE(again);
  CHECK(again->tier == Tier::remote);
  CHECK(text_of(*again) == "two");
  CHECK(of.server->gets == gets + 1);
  CHECK(of.reader.device.false_bytes == 0);
  // All of them are there: nobody is asked.
  CHECK(tiers_of(*of.reader.open(), of.reader.device, {"one", "two", "three"}) ==
        std::map<std::string, Tier>{{"one", Tier::disk}, {"two", Tier::disk}, {"three", Tier::disk}});
  CHECK(of.server->batches == batches + 1);
}

TEST_CASE("sharing: a process that begins with a batch asks the index first, and then for nothing that it lacks") {
  Pushed of({"one", "two"});
  const int indexes = of.server->indexes;
  const auto cache = of.reader.open();
  CHECK(tiers_of(*cache, of.reader.device, {"one", "two", "three"}) ==
        std::map<std::string, Tier>{{"one", Tier::remote}, {"two", Tier::remote}, {"three", Tier::built}});
  CHECK(of.server->indexes == indexes + 1);
  CHECK(of.server->batches == 1);
  CHECK(cache->stats().shared.asked == 2);
  CHECK(cache->stats().shared.absent == 1);
}

TEST_CASE("sharing: a server that does not answer is late once, and the next process leaves it alone") {
  const bool as_batch = GENERATE(true, false);
  CAPTURE(as_batch);
  Pushed of({"one", "two", "three"});
  of.server->hangs = true;
  const std::vector<std::string> texts{"one", "two", "three"};
  const std::string expected = as_batch ? "3 built, late 1, closed 3, hits 0, failures 1, closed"
                                        : "3 built, late 1, closed 2, hits 0, failures 1, closed";
  std::string found;
  for (int attempt = 0; attempt < 5 && found != expected; ++attempt) {  // on a busy machine the waits may be longer
    std::filesystem::remove_all(of.reader.config.directory);
    std::size_t built = 0;
    {
      const auto cache = of.reader.open();
      if (as_batch) {
        for (const auto& [text, tier] : tiers_of(*cache, of.reader.device, texts)) built += tier == Tier::built;
      } else {
        for (const std::string& text : texts) built += acquire(*cache, text, of.reader.device)->tier == Tier::built;
      }
      const SharedCounts counts = cache->stats().shared;
      found = std::to_string(built) + " built, late " + std::to_string(counts.late) + ", closed " +
              std::to_string(counts.closed) + ", hits " + std::to_string(counts.hits);
    }
    const auto known = known_remotes(of.reader.config);
    REQUIRE(known.size() == 1);
    found += ", failures " + std::to_string(known[0].failures) + (known[0].closed_for_ms > 0 ? ", closed" : "");
  }
  CHECK(found == expected);
}

TEST_CASE("sharing: a program is held by a remote whose index lists it, while its server answers") {
  Pushed of({"one", "two"});
  const auto cache = of.reader.open({}, OwnThreads::no);
  const auto holds = [&](const std::string& text) {
    return cache->holds(key_for(text, of.reader.device), of.reader.device);
  };
  REQUIRE(acquire(*cache, "one", of.reader.device));
  CHECK(holds("two"));
  CHECK_FALSE(holds("three"));
  of.server->fails = true;
  REQUIRE(of.server->objects.erase(device_folder_name(of.reader.device.info()) + "/" +
                                   key_for("one", of.reader.device).digest.hex()) == 1);
  REQUIRE(cache->remove(key_for("one", of.reader.device), of.reader.device).ok());
  CHECK(acquire(*cache, "one", of.reader.device)->tier == Tier::built);
  CHECK_FALSE(holds("two"));  // the server failed
  CHECK(holds("one"));        // in this machine
}

TEST_CASE("sharing: what arrived with a batch that was ended is held and handed out without the server") {
  Pushed of({"one", "two", "three"});
  const auto cache = of.reader.open();
  const std::vector<std::string> texts{"one", "two"};
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  for (const std::string& text : texts) {
    sources.push_back(source_of(text));
    keys.push_back(key_for(text, of.reader.device));
  }
  const ProgramRequest requests[] = {{&keys[0], &sources[0], &of.reader.device},
                                     {&keys[1], &sources[1], &of.reader.device}};
  cache->get_or_build_all(requests, 1, [](std::size_t, const Result<Acquired>&) { return false; });
  RemoteBreaker(of.reader.config.directory, true, url).failed();
  const auto holds = [&](const std::string& text) {
    return cache->holds(key_for(text, of.reader.device), of.reader.device);
  };
  CHECK(becomes_true([&] { return !holds("three"); }));
  CHECK(holds("two"));
  CHECK(acquire(*cache, "two", of.reader.device)->tier == Tier::remote);
  CHECK(acquire(*cache, "three", of.reader.device)->tier == Tier::built);
}

TEST_CASE("sharing: of several remotes the one whose index lists a program is asked, unless its build is short") {
  const std::string urls[] = {"http://first.example/kiln", "http://second.example/kiln"};
  const std::shared_ptr<SharedServer> servers[] = {std::make_shared<SharedServer>(), std::make_shared<SharedServer>()};
  SharingMachine writer, reader;
  for (SharingMachine* machine : {&writer, &reader}) {
    machine->stores["http"] = [&](const RemoteContext& context) -> Result<std::unique_ptr<RemoteStore>> {
      return std::unique_ptr<RemoteStore>(std::make_unique<MemoryStore>(servers[context.url == urls[1] ? 1 : 0]));
    };
  }
  writer.write_to(urls[1]);
  writer.build({"one", "two", "three"});
  REQUIRE(writer.push().written == 3);
  // The first server says that the second program takes a nanosecond to build, and has no other.
  const std::string folder = device_folder_name(reader.device.info());
  const ProgramKey two = key_for("two", reader.device), three = key_for("three", reader.device);
  servers[0]->objects[remote_index_name(folder)] = encode_remote_index({{two.digest, 1}});
  reader.read_from(urls[0], writer);
  reader.config.remotes.push_back({urls[1], false, {"ci"}, "", "", "plain", {}});
  for (const std::string& one : urls) reader.expect_slow_answers(one);
  const auto cache = reader.open({}, OwnThreads::no);
  CHECK(acquire(*cache, "one", reader.device)->tier == Tier::remote);
  CHECK(cache->holds(two, reader.device));
  CHECK(cache->holds(three, reader.device));
  const int gets = servers[0]->gets;
  CHECK(acquire(*cache, "three", reader.device)->tier == Tier::remote);
  CHECK(acquire(*cache, "two", reader.device)->tier == Tier::remote);
  CHECK(servers[0]->gets == gets);
  CHECK(cache->stats().shared.hits == 3);
  CHECK(cache->stats().shared.skipped == 0);
  CHECK(cache->stats().shared.absent == 0);
}

TEST_CASE("sharing: a remote without accepted writers is not read, and the one after it is") {
  Pushed of({"one", "two"});
  of.reader.write_to("http://other.example/kiln");  // with a key of its own
  RemoteConfig& first = of.reader.config.remotes.at(0);
  first.writers = {"nobody"};
  of.reader.config.remotes.push_back({url, false, {"ci"}, "", "", "plain", {}});
  const auto cache = of.reader.open();
  CHECK(acquire(*cache, "one", of.reader.device)->tier == Tier::remote);
  CHECK(tiers_of(*cache, of.reader.device, {"two"}) == std::map<std::string, Tier>{{"two", Tier::remote}});
  CHECK(cache->stats().shared.unknown_key == 0);
  CHECK(cache->stats().shared.asked == 2);
  CHECK(
      of.reader.log.said("remote http://other.example/kiln: key 'nobody': not in trust.d. Add it with `kiln cache key "
                         "trust nobody KEY`") == 1);
}

TEST_CASE("sharing: only a remote that is read and written is asked for a lease") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server, true), reader(server, true);
  writer.write_to(url);
  reader.read_from(url, writer);
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::built);
  CHECK(server->leases_asked == 0);
  writer.config.remotes.at(0).writers = {"nobody"};
  {
    const auto cache = writer.open();
    CHECK(acquire(*cache, "one", writer.device)->tier == Tier::built);
    CHECK(cache->stats().shared.unleased_builds == 1);
  }
  CHECK(server->leases_asked == 0);
  writer.config.remotes.at(0).writers = {"ci"};
  writer.config.remotes.insert(writer.config.remotes.begin(), {url, false, {"ci"}, "", "", "plain", {}});
  CHECK(acquire(*writer.open(), "two", writer.device)->tier == Tier::built);
  CHECK(server->leases_asked == 1);
}

TEST_CASE("sharing: a program that ran is written once, and its index says how long the build took") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };
  const ProgramKey key = key_for("one", machine.device);
  const std::string folder = device_folder_name(machine.device.info());
  std::uint64_t took_ns = 0;
  {
    const auto cache = machine.open();
    const auto built = acquire(*cache, "one", machine.device);
    REQUIRE(built);
    took_ns = built->build_ns;
    Measurement ran;
    ran.first_run = true;
    for (int i = 0; i < 3; ++i) cache->record(key, machine.device, ran, 0);
    const std::string name = remote_index_name(folder);
    REQUIRE(becomes_true([&] {
      const std::lock_guard lock(server->mutex);
      return server->objects.contains(name);
    }));
    CHECK(cache->stats().shared.written == 1);
    CHECK(cache->stats().shared.dropped == 0);
  }
  CHECK(took_ns >= 20'000'000);
  CHECK(server->puts == 2);  // the program and the index
  const auto index = decode_remote_index(server->objects.at(remote_index_name(folder)));
  REQUIRE(index);
  CHECK(*index == RemoteIndex{{key.digest, took_ns}});
}

TEST_CASE("sharing: a hit in a layer or a remote saves the build that its object tells of") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };  // worth a request
  writer.write_to(url);
  writer.build({"one"});
  const auto file = writer.files(".bin").at(0);
  const auto own = read_secret_key(writer.config.key_file, IfMissing::fail);
  REQUIRE(own);
  const auto bytes = contents(file);
  auto view = view_entry(bytes);
  REQUIRE(view);
  view->build_ns = 3'600'000'000'000;  // an hour
  const auto longer = encode_entry(*view, EntryKey(*own));
  REQUIRE(longer);
  overwrite(file, *longer);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  const bool in_layer = GENERATE(true, false);
  CAPTURE(in_layer);
  if (in_layer) {
    const auto layer = writer.temporary.path() / "layer";
    REQUIRE(create_layer(writer.config, {layer, "ci", {}, {}, {}}));
    reader.config.layers = {layer};
  } else {
    REQUIRE(writer.push().written == 1);
  }
  const auto cache = reader.open({}, OwnThreads::no);
  const auto hit = acquire(*cache, "one", reader.device);
  REQUIRE(hit);
  CHECK(hit->tier == (in_layer ? Tier::layer : Tier::remote));
  CHECK(cache->stats().saved_ms <= 3'600'000);
  CHECK(cache->stats().saved_ms > 3'000'000);
}

TEST_CASE("sharing: what cannot be written back is counted as dropped") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.device.on_build = [](const KernelSource&) {};
  machine.write_to(url);
  {
    const auto cache = machine.open({}, OwnThreads::no);  // nobody could write it
    for (const char* text : {"one", "two"}) machine.build_and_run(*cache, text);
    CHECK(cache->stats().shared.dropped == 2);
    CHECK(cache->stats().shared.written == 0);
  }
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "three", machine.device));
  std::filesystem::remove(machine.named(key_for("three", machine.device).digest.hex() + ".bin").at(0));
  machine.build_and_run(*cache, "three");
  CHECK(cache->stats().shared.dropped == 1);
  REQUIRE(acquire(*cache, "four", machine.device));
  std::filesystem::remove_all(machine.config.directory);
  machine.build_and_run(*cache, "four");
  CHECK(cache->stats().shared.dropped == 2);
  CHECK(server->puts == 0);
}

TEST_CASE("sharing: what waits behind a hanging write when a process ends is dropped, and counted in the totals") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.device.on_build = [](const KernelSource&) {};
  machine.write_to(url);
  {
    const auto cache = machine.open();
    REQUIRE(acquire(*cache, "zero", machine.device));
    server->hangs = true;
    machine.build_and_run(*cache, "zero");
    REQUIRE(becomes_true([&] { return server->puts == 1; }));
    for (const char* text : {"one", "two"}) machine.build_and_run(*cache, text);
  }
  const auto totals = cache_totals(machine.config);
  REQUIRE(totals);
  CHECK(totals->counts.shared.dropped == 2);
  CHECK(totals->counts.shared.written == 0);
}

TEST_CASE("sharing: a program that the driver refuses is counted, wherever it came from, and built") {
  Pushed of({"one"});
  SECTION("from a remote") {
    of.reader.device.load_answers = StatusCode::corrupt;
    const auto cache = of.reader.open({}, OwnThreads::no);
    CHECK(acquire(*cache, "one", of.reader.device)->tier == Tier::built);
    CHECK(cache->stats().shared.refused == 1);
    CHECK(cache->stats().shared.hits == 0);
    CHECK(cache->stats().rejected.refused == 1);
    CHECK(cache->stats().absent == 0);
  }
  SECTION("from a layer, and from a remote after it") {
    const auto layer = of.writer.temporary.path() / "layer";
    REQUIRE(create_layer(of.writer.config, {layer, "ci", {}, {}, {}}));
    of.reader.config.layers = {layer};
    of.reader.device.load_answers = StatusCode::corrupt;
    const auto cache = of.reader.open({}, OwnThreads::no);
    CHECK(acquire(*cache, "one", of.reader.device)->tier == Tier::built);
    CHECK(cache->stats().shared.refused == 2);
    CHECK(cache->stats().shared.layer_hits == 0);
  }
  SECTION("a lost device is no refusal") {
    of.reader.device.load_answers = StatusCode::unavailable;
    const auto cache = of.reader.open({}, OwnThreads::no);
    CHECK(acquire(*cache, "one", of.reader.device)->tier == Tier::built);
    CHECK(cache->stats().rejected.refused == 0);
  }
}

}  // namespace
}  // namespace kiln::test

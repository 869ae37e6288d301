// What is written for people and tools: .meta files, manifests, and the time that hits saved.
#include "base/secret_key.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <sys/stat.h>
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace kiln::test {
namespace {

nlohmann::json json_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TEST_CASE("cache::entry_meta: what was written is read; what is no meta is nothing; a false member costs itself only") {
  const EntryMeta meta{.key = "ab",
                       .label = "a \"label\" with \xff no text",
                       .operation = "conv2d",
                       .shape = "1x8 k8",
                       .variant = "direct",
                       .build_ms = 1.5,
                       .first_dispatch_ms = 2.5,
                       .load_ms = 0.25,
                       .warm_dispatch_ms = 0.5,
                       .gflops = 30.25,
                       .times_used = 7,
                       .last_used = 1700000000,
                       .runs = 5,
                       .first_use_ms = 12.5};
  const auto read = decode_meta(encode_meta(meta));
  REQUIRE(read);
  CHECK(read->key == "ab");
  CHECK(read->label.starts_with("a \"label\" with "));
  CHECK(read->operation == "conv2d");
  CHECK(read->shape == "1x8 k8");
  CHECK(read->variant == "direct");
  CHECK(read->build_ms == 1.5);
  CHECK(read->first_dispatch_ms == 2.5);
  CHECK(read->gflops == 30.25);
  CHECK(read->times_used == 7);
  CHECK(read->last_used == 1700000000);
  CHECK(read->load_ms == 0.25);
  CHECK(read->warm_dispatch_ms == 0.5);
  CHECK(read->runs == 5);
  CHECK(read->first_use_ms == 12.5);
  CHECK_FALSE(decode_meta(""));
  CHECK_FALSE(decode_meta("[]"));
  CHECK(decode_meta(R"({"label": 3, "times_used": -1, "gflops": 2})")->gflops == 2);
  CHECK(decode_meta(R"({"label": 3, "times_used": -1})")->times_used == 0);
  const auto older = decode_meta(R"({"schema": 1, "key": "ab", "label": "one", "build_ms": 1.5, "times_used": 3})");
  REQUIRE(older);
  CHECK(older->label == "one");
  CHECK(older->times_used == 3);
  CHECK(older->load_ms == 0);
  CHECK(older->runs == 0);
  CHECK(older->operation.empty());
  CHECK(older->shape.empty());
  CHECK(older->variant.empty());
}

TEST_CASE(
    "cache::stored_facts: what a program is for is told, kept with those set aside, and lost to nobody who says "
    "nothing") {
  Workplace place;
  SyntheticDevice device;
  place.config.auto_save = GENERATE(true, false);
  ProgramKey key = key_for("one", device);
  key.purpose = {"conv2d", "1x3x32x32 k16 3x3", "direct/plain"};
  {
    const auto cache = place.open();
    REQUIRE(cache->get_or_build(key, source_of("one"), device));
    CHECK(json_of(place.files(".meta").at(0))["shape"] == "1x3x32x32 k16 3x3");
    REQUIRE(cache->persist());
  }
  REQUIRE(place.open()->kept(device, 9).size() == 1);
  CHECK(place.open()->kept(device, 9)[0].key.purpose.variant == "direct/plain");
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "one", device));  // by a key that does not say
    REQUIRE(cache->persist());
  }
  const auto meta = json_of(place.files(".meta").at(0));
  CHECK(meta["times_used"] == 2);
  CHECK(meta["op"] == "conv2d");
  CHECK(meta["shape"] == "1x3x32x32 k16 3x3");
  CHECK(meta["variant"] == "direct/plain");
}

TEST_CASE("cache::stored_facts: the .meta beside a program says what it is and what it did, over several processes") {
  Workplace place;
  SyntheticDevice device;
  Measurement first_run;
  first_run.first_run = true;
  first_run.wall_ns = 10'000'000;
  first_run.queue_ns = first_run.upload_ns = first_run.readback_ns = first_run.build_ns = 1'000'000;
  {
    const auto cache = place.open();
    const auto key = key_for("one", device);
    REQUIRE(acquire(*cache, "one", device));
    REQUIRE(acquire(*cache, "one", device));
    cache->record(key, device, first_run, 3.0);  // a first run's rate is not the program's
    cache->record(key, device, Measurement{}, 0.5);
    cache->record(key, device, Measurement{}, 0);  // not known
    cache->record(key_for("unknown", device), device, Measurement{}, 1.0);
    const auto meta = json_of(place.files(".meta").at(0));  // at once, though the rest waits
    CHECK(meta["label"] == "the label of one");
    CHECK(meta["key"] == key.digest.hex());
    CHECK(meta["build_ms"] > 0.0);
    CHECK(meta["gflops"] == 0.0);
  }
  auto meta = json_of(place.files(".meta").at(0));
  CHECK(meta["first_dispatch_ms"] == 6.0);
  CHECK(meta["gflops"] == 0.5);
  CHECK(meta["times_used"] == 2);
  CHECK(meta["last_used"] > 1'600'000'000);
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "one", device));
    first_run.wall_ns = 5'000'000;  // the driver kept its own product: it says less of what a new machine pays
    cache->record(key_for("one", device), device, first_run, 3.0);
    REQUIRE(cache->persist());
    CHECK(json_of(place.files(".meta").at(0))["times_used"] == 3);
  }
  meta = json_of(place.files(".meta").at(0));
  CHECK(meta["times_used"] == 3);
  CHECK(meta["first_dispatch_ms"] == 6.0);
}

TEST_CASE("cache::stored_facts: the .meta says what a run waits for the program, in how many runs, and when") {
  Workplace place;
  SyntheticDevice device;
  const auto dispatched_first = [&](ProgramCache& cache, std::uint64_t ns) {
    Measurement first_run;
    first_run.first_run = true;
    first_run.wall_ns = ns;
    cache.record(key_for("one", device), device, first_run, 0);
  };
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "one", device));
    dispatched_first(*cache, 8'000'000);
  }
  auto meta = json_of(place.files(".meta").at(0));
  CHECK(meta["runs"] == 1);
  CHECK(meta["load_ms"] == 0.0);  // it was built
  CHECK(meta["warm_dispatch_ms"] == 8.0);
  const double first_use_ms = meta["first_use_ms"];
  CHECK(first_use_ms > 0);
  {
    const auto cache = place.open();
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    for (int i = 0; i < 3; ++i) REQUIRE(acquire(*cache, "one", device));
    dispatched_first(*cache, 3'000'000);
    REQUIRE(cache->persist());
    REQUIRE(acquire(*cache, "one", device));  // the same run
  }
  meta = json_of(place.files(".meta").at(0));
  CHECK(meta["runs"] == 2);
  CHECK(meta["load_ms"] > 0.0);
  CHECK(meta["warm_dispatch_ms"] == 3.0);
  CHECK(meta["first_use_ms"] >= first_use_ms * 0.75 + 10);
}

TEST_CASE("cache::stored_facts: what is taken in ahead is no use of a program, and says nothing of when it is needed") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto before = json_of(place.files(".meta").at(0));
  const ProgramKey key = key_for("one", device);
  const KernelSource source = source_of("one");
  const ProgramRequest request{&key, &source, &device, true};
  const auto take_in = [&](TieredCache& cache) {
    cache.get_or_build_all({&request, 1}, 1,
                           [](std::size_t, Result<Acquired> acquired) { return static_cast<bool>(acquired); });
  };
  take_in(*place.open());
  auto meta = json_of(place.files(".meta").at(0));
  CHECK(meta["runs"] == before["runs"]);
  CHECK(meta["times_used"] == before["times_used"]);
  CHECK(meta["first_use_ms"] == before["first_use_ms"]);
  {
    const auto cache = place.open();
    take_in(*cache);
    CHECK(acquire(*cache, "one", device)->tier == Tier::memory);
  }
  meta = json_of(place.files(".meta").at(0));
  CHECK(meta["runs"] == 2);
  CHECK(meta["times_used"] == 2);
  CHECK(meta["first_use_ms"] == before["first_use_ms"]);
}

TEST_CASE("cache::stored_facts: a .meta is rewritten in its place, and never through another name of its file") {
  Workplace place;
  SyntheticDevice device;
  const auto use = [&](int times) {
    const auto cache = place.open();
    for (int i = 0; i < times; ++i) REQUIRE(acquire(*cache, "one", device));
    REQUIRE(cache->persist());  // a use is counted once between two of these
  };
  use(1);
  const std::filesystem::path meta = place.files(".meta").at(0);
  struct stat before {
  }, after{};
  REQUIRE(stat(meta.c_str(), &before) == 0);
  for (int i = 0; i < 20; ++i) use(1);
  REQUIRE(stat(meta.c_str(), &after) == 0);
  CHECK(json_of(meta)["times_used"] == 21);
  CHECK(after.st_ino == before.st_ino);
  CHECK(after.st_size == before.st_size);

  const std::filesystem::path elsewhere = place.temporary.path() / "elsewhere";
  std::filesystem::create_hard_link(meta, elsewhere);
  use(1);
  CHECK(json_of(meta)["times_used"] == 22);
  CHECK(json_of(elsewhere)["times_used"] == 21);
  std::filesystem::remove(elsewhere);

  std::ofstream(meta) << "{\"times_used\": 5";  // damaged, and shorter
  use(1);
  CHECK(json_of(meta)["times_used"] == 1);
  CHECK(json_of(meta)["label"] == "the label of one");
}

TEST_CASE("cache::stored_facts: the manifest says in words whose folder it is") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  REQUIRE(place.named("manifest.json").size() == 1);
  const auto manifest = json_of(place.named("manifest.json").front());
  CHECK(manifest["device"] == "Synthetic (test, 1 lane)");
  CHECK(manifest["driver"] == "Synthetic 1.0");
  CHECK(manifest["kind"] == "software");
  CHECK(manifest["driver_identity"][0] == nlohmann::json::array({"version", "1.0"}));
}

TEST_CASE("cache::stored_facts: a manifest that a power cut damaged is written anew, another version's stays") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.named("manifest.json").at(0);
  const auto manifest = contents(file);
  for (const std::size_t zeros : {std::size_t{0}, manifest.size()}) {
    overwrite(file, std::vector<std::byte>(zeros));
    REQUIRE(acquire(*place.open(), "after " + std::to_string(zeros) + " zeros", device)->tier == Tier::built);
    CHECK(contents(file) == manifest);
  }
  const std::string_view other = R"({"driver_fields": "00", "schema": 9})";
  overwrite(file, std::as_bytes(std::span(other)));
  REQUIRE(acquire(*place.open(), "two", device));
  CHECK(std::ranges::equal(contents(file), std::as_bytes(std::span(other))));
}

TEST_CASE("cache::stored_facts: files and folders are their owner's alone") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  using std::filesystem::perms;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place.config.directory)) {
    CAPTURE(entry.path().string());
    const perms expected = entry.is_directory() ? perms::owner_all : perms::owner_read | perms::owner_write;
    CHECK((entry.status().permissions() & perms::mask) == expected);
  }
  CHECK((std::filesystem::status(place.config.directory).permissions() & perms::mask) == perms::owner_all);
}

TEST_CASE("cache::stored_facts: saved time is the recorded build's less what the hit cost, also in a later process") {
  Workplace place;
  SyntheticDevice device;
  device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  {
    const auto cache = place.open();
    const auto built = acquire(*cache, "one", device);
    CHECK(built->build_ns >= 50'000'000);
    CHECK(cache->stats().saved_ms == 0);
  }
  const auto cache = place.open();
  const auto hit = acquire(*cache, "one", device);
  REQUIRE(hit->tier == Tier::disk);
  const double after_one = cache->stats().saved_ms;
  CHECK(after_one <= 50.0 + 1000.0);
  REQUIRE(acquire(*cache, "one", device));
  CHECK(cache->stats().saved_ms > after_one);
}

TEST_CASE("cache::stored_facts: a hit saves the build that its file tells of, less its own time, once for each hit") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.files(".bin").at(0);
  const auto own = read_secret_key(place.config.key_file, IfMissing::fail);
  REQUIRE(own);
  const auto bytes = contents(file);
  auto view = view_entry(bytes);
  REQUIRE(view);
  view->build_ns = 3'600'000'000'000;  // an hour
  const auto longer = encode_entry(*view, EntryKey(*own));
  REQUIRE(longer);
  overwrite(file, *longer);
  const auto cache = place.open();
  const auto hit = acquire(*cache, "one", device);
  REQUIRE(hit);
  REQUIRE(hit->tier == Tier::disk);
  CHECK(cache->stats().disk_hits == 1);
  CHECK(cache->stats().saved_ms <= 3'600'000);
  CHECK(cache->stats().saved_ms > 3'000'000);
  REQUIRE(acquire(*cache, "one", device));
  CHECK(cache->stats().saved_ms > 6'000'000);
  CHECK(cache->stats().saved_ms <= 7'200'000);
}

TEST_CASE("cache::stored_facts: programs that cannot be used are left out of those that are kept, wherever they come") {
  Workplace place;
  SyntheticDevice device;
  const std::vector<std::string> texts{"one", "two", "three"};
  for (const std::string& text : texts) REQUIRE(acquire(*place.open(), text, device));
  CHECK(place.open()->kept(device, 0).empty());
  CHECK(place.open()->kept(device, 2).size() == 2);
  const auto all = place.open()->kept(device, 9);
  REQUIRE(all.size() == 3);
  for (const KeptProgram& one : all) {
    CHECK(one.key.label == "the label of " + one.source.text);
    CHECK(one.key.material == key_for(one.source.text, device).material);
  }
  const auto file_of = [&](const std::string& text) {
    return place.config.directory / device_folder_name(device.info()) /
           key_for(text, device).digest.hex().substr(0, 2) / (key_for(text, device).digest.hex() + ".bin");
  };
  for (const std::string& bad : texts) {
    const auto file = file_of(bad), other = file_of(bad == "one" ? "two" : "one");
    const auto before = contents(file);
    auto altered = before;
    altered.back() ^= std::byte{1};
    for (const bool is_link : {false, true}) {
      for (const auto& bytes : {copied_bytes("x"), contents(other), altered}) {  // none, and another's
        CAPTURE(bad, bytes.size(), is_link);
        std::filesystem::remove(file);
        if (is_link) {
          std::filesystem::create_symlink(other, file);
        } else {
          overwrite(file, bytes);
        }
        const auto kept = place.open()->kept(device, 9);
        REQUIRE(kept.size() == 2);
        CHECK(kept[0].source.text != bad);
        CHECK(kept[1].source.text != bad);
        CHECK(kept[0].source.text != kept[1].source.text);
      }
    }
    std::filesystem::remove(file);
    overwrite(file, before);
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  // Neither in another's folder nor under what is no key.
  const auto one = file_of("one"), elsewhere = file_of("two").parent_path();
  std::filesystem::copy_file(one, elsewhere / one.filename());
  std::filesystem::copy_file(one, elsewhere / "no key.bin");
  std::filesystem::copy_file(one, std::filesystem::path(one).replace_extension(".old"));
  CHECK(place.open()->kept(device, 9).size() == 3);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::all);
  const auto refused = place.open();
  CHECK(refused->kept(device, 9).empty());
  CHECK(refused->stats().bytes_on_disk == 0);
  CHECK_FALSE(refused->holds(key_for("one", device), device));
  CHECK_THAT(refused->persist().error().message, Catch::StartsWith("nothing can be persisted: folder "));
}

}  // namespace
}  // namespace kiln::test

// Read-only layers of programs.
#include "cache/driver_scratch.hpp"
#include "core/cache/shared/sharing.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <kiln/cache_admin.hpp>
#include <kiln/driver_cache.hpp>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("layers: programs come from a read-only folder, below the cache and before any remote") {
  SharingMachine writer, reader;
  writer.write_to("file:///nowhere");
  writer.build({"one", "two"});
  const auto layer = writer.temporary.path() / "layer";
  const auto made = create_layer(writer.config, {layer, "ci", {}, {}, {}});
  REQUIRE(made);
  CHECK(made->programs == 2);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(layer)) {
    if (entry.is_regular_file() && entry.path().filename().string().size() >= 64) bytes += entry.file_size();
  }
  CHECK(made->bytes == bytes);
  REQUIRE(trust_sharing_key(reader.config, "another", std::string(64, 'a'), "", KeyFolder::system));
  REQUIRE(trust_sharing_key(reader.config, "image", writer.key(), "", KeyFolder::system));
  reader.config.layers = {layer};
  SECTION("with a writable cache: nothing is copied") {
    CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::layer);
    CHECK(reader.files(".bin").empty());
    CHECK(reader.log.said("layers: ") == 0);
  }
  SECTION("without any") {
    reader.config.directory.clear();
    CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::layer);
  }
  SECTION("what a layer has is said to be there, without a load, and nothing else is") {
    const auto cache = reader.open();
    CHECK(cache->holds(key_for("one", reader.device), reader.device));
    CHECK(cache->holds(key_for("two", reader.device), reader.device));
    CHECK_FALSE(cache->holds(key_for("three", reader.device), reader.device));
    CHECK(reader.device.loads == 0);
    CHECK(cache->stats().shared.layer_hits == 0);
  }
  SECTION("only of the writers that are named") {
    reader.config.layer_writers = {"other"};
    CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::built);
    CHECK(reader.log.said("layers: key 'other': not in trust.d") == 1);
    CHECK(reader.log.said("layers: no key is trusted, so no program of a layer is used") == 1);
  }
  SECTION("only of keys that are trusted") {
    REQUIRE(revoke_sharing_key(reader.config, "image", KeyFolder::system));
    const auto cache = reader.open();
    CHECK(acquire(*cache, "one", reader.device)->tier == Tier::built);
    CHECK(cache->stats().shared.revoked == 1);
  }
  SECTION("altered objects are built") {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(layer)) {
      if (!entry.is_regular_file()) continue;
      auto altered = contents(entry.path());
      altered[altered.size() / 2] ^= std::byte{1};
      overwrite(entry.path(), altered);
    }
    CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::built);
    CHECK(reader.device.loads == 0);
  }
  CHECK(reader.device.false_bytes == 0);
}

TEST_CASE("layers: what one layer does not have, or has damaged, is taken from the next one") {
  SharingMachine writer;
  writer.write_to("file:///nowhere");
  writer.build({"one"});
  const auto good = writer.temporary.path() / "good", bad = writer.temporary.path() / "bad";
  REQUIRE(create_layer(writer.config, {good, "ci", {}, {}, {}}));
  const std::string faults[] = {"missing", "a folder", "altered", "too large"};
  for (const std::string& fault : faults) {
    INFO(fault);
    std::filesystem::remove_all(bad);
    std::filesystem::copy(good, bad, std::filesystem::copy_options::recursive);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(bad)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    REQUIRE_FALSE(files.empty());
    for (const std::filesystem::path& file : files) {
      if (fault == "missing" || fault == "a folder") std::filesystem::remove(file);
      if (fault == "a folder") std::filesystem::create_directory(file);
      if (fault == "too large") std::filesystem::resize_file(file, most_object_bytes + 1);
      if (fault != "altered") continue;
      auto bytes = contents(file);
      bytes[bytes.size() / 2] ^= std::byte{1};
      overwrite(file, bytes);
    }
    SharingMachine reader;
    REQUIRE(trust_sharing_key(reader.config, "image", writer.key(), "", KeyFolder::system));
    reader.config.layers = {bad, good};
    const auto cache = reader.open();
    const auto got = acquire(*cache, "one", reader.device);
    REQUIRE(got);
    CHECK(got->tier == Tier::layer);
    CHECK(text_of(*got) == "one");
    CHECK(reader.device.builds == 0);
    CHECK(cache->stats().shared.layer_hits == 1);
    CHECK(reader.device.false_bytes == 0);
  }
}

TEST_CASE("layers: one is made from a bundle") {
  SharingMachine writer, reader;
  writer.write_to("file:///nowhere");
  writer.build({"one"});
  const auto bundle = writer.temporary.path() / "bundle";
  REQUIRE(export_cache(writer.config, bundle, {}));
  const auto layer = writer.temporary.path() / "layer";
  REQUIRE(create_layer(writer.config, {layer, "ci", {}, bundle, *bundle_public_key(writer.config)}));
  CHECK(!create_layer(writer.config, {layer, "ci", {}, bundle, std::string(64, 'a')}));
  const auto chosen = create_layer(writer.config, {layer, "ci", {"one"}, bundle, *bundle_public_key(writer.config)});
  REQUIRE(!chosen);
  CHECK_THAT(chosen.error().message, Catch::Contains("'one'") && Catch::Contains("expected no label or key"));
  REQUIRE(trust_sharing_key(reader.config, "image", writer.key(), "", KeyFolder::user));
  reader.config.layers = {layer};
  CHECK(acquire(*reader.open(), "one", reader.device)->tier == Tier::layer);
}

TEST_CASE("layers: what no reader would accept of a bundle is told as bad and left out") {
  SharingMachine writer;
  writer.write_to("file:///nowhere");
  writer.config.compression = "none";
  writer.build({"one"});
  writer.device.driver_setting = std::string(64, 'a');
  writer.device.driver_files = {{"index", {std::byte{1}}}};
  writer.build({"named"});
  writer.device.driver_files = {{mesa_name, std::vector<std::byte>(most_object_bytes)}};
  writer.build({"large"});
  const auto bundle = writer.temporary.path() / "bundle";
  REQUIRE(export_cache(writer.config, bundle, {})->programs == 3);
  const auto layer = writer.temporary.path() / "layer";
  const auto made = create_layer(writer.config, {layer, "ci", {}, bundle, *bundle_public_key(writer.config)});
  REQUIRE(made);
  CHECK(made->programs == 1);
  CHECK(made->bad.size() == 2);
  for (const BadEntry& bad : made->bad) {
    const bool large = bad.key == key_for("large", writer.device).digest;
    CHECK(bad.reason == (large ? "too_large" : "corrupt"));
    CHECK_FALSE(bad.removed);
    CHECK(bad.label == (large ? "the label of large" : "the label of named"));
    CHECK_THAT(bad.why, Catch::Contains(large ? "67108864" : "driver file 'index'"));
  }
}

TEST_CASE("layers: parent folders are made, and a key that ended signs none") {
  SharingMachine writer;
  writer.write_to("file:///nowhere");
  writer.build({"one"});
  const auto layer = writer.temporary.path() / "share" / "app" / "layer";
  REQUIRE(create_sharing_key(writer.config, "old", "2020-01-01", KeyFolder::user));
  const auto refused = create_layer(writer.config, {layer, "old", {}, {}, {}});
  REQUIRE(!refused);
  CHECK_THAT(refused.error().message, Catch::Contains("'old'") && Catch::Contains("expired on 2020-01-01"));
  CHECK(!std::filesystem::exists(layer));
  CHECK(create_layer(writer.config, {layer, "ci", {}, {}, {}})->programs == 1);
  const auto unknown = create_layer(writer.config, {layer, "ci", {"nobody"}, {}, {}});
  REQUIRE(!unknown);
  CHECK_THAT(unknown.error().message, Catch::Contains("'nobody'"));
}

// Programs with driver files are dispatched once where they are loaded, if the process has a private folder for them.
TEST_CASE("layers: a program of a layer or remote that hangs is used once, and this machine builds its own") {
  const CacheTestFolder around;
  const std::string setting(64, 'a'), share = "file://" + around.path().string();
  const auto folder = around.path() / "driver" / DriverScratch::new_name(setting);
  REQUIRE(prepare_driver_cache(folder).ok());
  setenv("MESA_SHADER_CACHE_DIR", folder.c_str(), 1);
  const auto kept = DriverScratch::of_process();
  unsetenv("MESA_SHADER_CACHE_DIR");
  REQUIRE(kept != nullptr);
  SharingMachine writer, reader;
  writer.device.driver_setting = setting;
  writer.device.driver_files = {{mesa_name, {std::byte{1}}}};
  writer.write_to(share);
  writer.build({"one"});
  const bool remote = GENERATE(false, true), read_only = GENERATE(false, true);
  if (remote) {
    REQUIRE(writer.push().written == 1);
    reader.read_from(share, writer);
    reader.expect_slow_answers(share);
  } else {
    const auto layer = writer.temporary.path() / "layer";
    REQUIRE(create_layer(writer.config, {layer, "ci", {}, {}, {}}));
    REQUIRE(trust_sharing_key(reader.config, "image", writer.key(), "", KeyFolder::system));
    reader.config.layers = {layer};
  }
  reader.config.read_only = read_only;
  reader.device.hangs_after = 0;
  ProcessSharing sharing;
  sharing.dispatch_patience = 5ms;
  const auto open = [&] {
    setenv("MESA_SHADER_CACHE_DIR", folder.c_str(), 1);
    auto cache = reader.open(sharing);
    unsetenv("MESA_SHADER_CACHE_DIR");
    return cache;
  };
  {
    const auto cache = open();
    const auto hung = acquire(*cache, "one", reader.device);
    REQUIRE(!hung);
    CHECK(hung.error().code == StatusCode::device_lost);
    CHECK(reader.files(".bin").empty());
    CHECK(acquire(*cache, "one", reader.device)->tier == Tier::built);
    CHECK(reader.device.loads == 1);
  }
  CHECK(reader.files(".quarantined").empty());
  if (!read_only) CHECK(acquire(*open(), "one", reader.device)->tier == Tier::disk);
}

TEST_CASE("layers: a program of a layer that a driver dies of is used once, and this machine builds its own") {
  SharingMachine writer, reader;
  writer.write_to("file:///nowhere");
  writer.build({"one"});
  const auto layer = writer.temporary.path() / "layer";
  REQUIRE(create_layer(writer.config, {layer, "ci", {}, {}, {}}));
  REQUIRE(trust_sharing_key(reader.config, "image", writer.key(), "", KeyFolder::system));
  reader.config.layers = {layer};
  reader.device.on_load = [](const KernelSource&) {
    std::signal(SIGSEGV, SIG_DFL);  // not the test framework's
    raise(SIGSEGV);
  };
  const auto ask = [&] {
    return in_child([&]() -> std::string {
      const auto got = acquire(*reader.open(), "one", reader.device);
      return got ? std::string(to_string(got->tier)) : got.error().text();
    });
  };
  CHECK(ask().signal == SIGSEGV);
  CHECK(ask().said == "built");
  CHECK(reader.files(".bin").size() == 1);
  CHECK(reader.files(".quarantined").empty());
}

TEST_CASE("layers: the quarantine of a program that hung can be ended, and leaves no entry") {
  SharingMachine reader;
  {
    CacheCounters counters;
    DiskTier disk({}, reader.config, counters);
    disk.keep_out_shared(key_for("one", reader.device), reader.device);
    CHECK(disk.is_set_aside(key_for("one", reader.device), reader.device));
  }
  REQUIRE(reader.files(".quarantined").size() == 1);
  CHECK(release_programs(reader.config, key_for("one", reader.device).digest.hex())->size() == 1);
  CHECK(reader.files(".quarantined").empty());
  CHECK(reader.files(".bin").empty());
}

}  // namespace
}  // namespace kiln::test

// What is listed of a cache, what is told of one program, and what is told of a cache that is not there.
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

std::string label_of(const std::string& text) { return "the label of " + text; }

std::string field_text(const ProgramInspection& one, const std::string& name) {
  const auto at = std::ranges::find(one.fields, name, &KeyFieldText::name);
  return at == one.fields.end() ? "absent" : at->text;
}

TEST_CASE("cache::inventory: where there is no folder everything is empty, and nothing is made") {
  Workplace place;
  CHECK_FALSE(*cache_exists(place.config));
  CHECK(cache_inventory(place.config, Detail::programs)->programs.empty());
  CHECK(verify_cache(place.config, BadEntries::remove)->entries == 0);
  CHECK(prune_cache(place.config, {std::chrono::nanoseconds(0), 0}, Removal::perform)->programs == 0);
  CHECK(clear_cache(place.config, ClearScope::everything)->programs == 0);
  CHECK(cache_totals(place.config)->processes == 0);
  CHECK(inspect_program(place.config, "one").error().code == StatusCode::not_found);
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
}

TEST_CASE("cache::inventory: programs with their labels and figures, by label, under the words of their device") {
  Workplace place;
  SyntheticDevice device, newer;
  newer.facts().driver_identity.front().second = "2.0";
  newer.facts().driver = "Synthetic 2.0";
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "two", device));
    REQUIRE(acquire(*cache, "one", device));
    REQUIRE(acquire(*cache, "one", device));
    REQUIRE(acquire(*cache, "one", newer));
  }
  const auto stored = cache_inventory(place.config, Detail::programs);
  REQUIRE(stored);
  REQUIRE(stored->programs.size() == 3);
  CHECK(stored->programs[0].label == label_of("one"));
  CHECK(stored->programs[2].label == label_of("two"));
  CHECK(stored->programs[2].key == key_for("two", device).digest);
  CHECK(stored->programs[0].build_ms > 0);
  CHECK(stored->programs[0].last_used_s > 1'600'000'000);
  CHECK(stored->programs[0].times_used + stored->programs[1].times_used == 3);
  CHECK(stored->programs_stored == 3);
  REQUIRE(stored->devices.size() == 2);
  CHECK(stored->devices[0].device == "Synthetic (test, 1 lane)");
  CHECK(stored->devices[0].kind == "software");
  CHECK(stored->devices[0].programs + stored->devices[1].programs == 3);
  CHECK(stored->devices[0].driver != stored->devices[1].driver);
  std::uint64_t bytes = 0;
  for (const char* extension : {".bin", ".meta"}) {
    for (const auto& path : place.files(extension)) bytes += std::filesystem::file_size(path);
  }
  CHECK(stored->bytes_stored == bytes);
  CHECK(stored->devices[0].bytes + stored->devices[1].bytes == bytes);
  CHECK(stored->devices[0].folder < stored->devices[1].folder);
  const auto figures = cache_inventory(place.config, Detail::figures);
  CHECK(figures->programs.empty());
  CHECK(figures->bytes_stored == bytes);
}

TEST_CASE(
    "cache::inventory: a lost .meta costs the label, a lost program is none, and strangers' files are not listed") {
  Workplace place;
  SyntheticDevice device;
  for (const char* text : {"one", "two"}) REQUIRE(acquire(*place.open(), text, device));
  const auto folder = place.files(".bin").front().parent_path();
  const auto keyless = place.files(".bin").front();
  std::filesystem::remove(std::filesystem::path(keyless).replace_extension(".meta"));
  std::filesystem::remove(place.files(".bin").back());
  overwrite(folder / "notes.bin", {});
  overwrite(place.config.directory / "a person's notes", {});
  const auto stored = cache_inventory(place.config, Detail::programs);
  REQUIRE(stored->programs.size() == 1);
  CHECK(stored->programs[0].label.empty());
  CHECK(stored->programs[0].key.hex() == keyless.stem());
  CHECK(stored->programs_stored == 1);
}

TEST_CASE("cache::inspection: a program by its label, its key, or the beginning of either") {
  Workplace place;
  SyntheticDevice device;
  const KernelSource source = [] {
    KernelSource made = source_of("void main() {}\n");
    made.constants = {{"TILE", "16"}};
    made.bindings = {Access::read, Access::read_write};
    made.workgroup = {64, 2, 1};
    return made;
  }();
  const ProgramKey key = key_of(source, device.info(), "layer/direct/plain");
  REQUIRE(place.open()->get_or_build(key, source, device));
  const std::string hex = key.digest.hex();
  for (const std::string& which : {hex, hex.substr(0, 4), std::string("layer/direct/plain"), std::string("layer")}) {
    CAPTURE(which);
    const auto one = inspect_program(place.config, which);
    REQUIRE(one);
    CHECK(one->program.key == key.digest);
    CHECK(one->program.label == "layer/direct/plain");
    CHECK(one->verdict == "authentic");
    CHECK(one->path == place.files(".bin").at(0).string());
    CHECK(one->schema == 2);
    CHECK(one->format == "synthetic:2");
    CHECK(one->signed_by.size() == 32);
    CHECK(one->material_bytes == key.material.size());
    CHECK(one->build_ms > 0);
    CHECK(one->build_ms < 60'000);
    CHECK(one->device.device == "Synthetic (test, 1 lane)");
    CHECK(field_text(*one, "dialect") == "glsl");
    CHECK(field_text(*one, "source") == "void main() {}\n");
    CHECK(field_text(*one, "constant.TILE") == "16");
    CHECK(field_text(*one, "binding") == "read");
    CHECK(field_text(*one, "workgroup") == "64");
    CHECK(field_text(*one, "driver.version") == "1.0");
    CHECK(field_text(*one, "driver.sha") == "00ff807a");  // no text
  }
  for (const std::string& which : {hex.substr(0, 3), std::string("lay"), std::string("layer/"), std::string()}) {
    CAPTURE(which);
    CHECK(inspect_program(place.config, which).error().code == StatusCode::not_found);
  }
}

TEST_CASE("cache::inspection: what stands for several is refused with their keys") {
  Workplace place;
  SyntheticDevice device, newer;
  newer.facts().driver_identity.front().second = "2.0";
  REQUIRE(acquire(*place.open(), "one", device));
  REQUIRE(acquire(*place.open(), "one", newer));
  const auto refused = inspect_program(place.config, label_of("one"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Contains("matches 2 programs"));
  for (const SyntheticDevice* one : {&device, &newer}) {
    CHECK_THAT(refused.error().message, Contains(key_for("one", *one).digest.hex().substr(0, 12)));
  }
}

TEST_CASE("cache::inspection: the verdict of one that was altered, and of one that cannot be checked") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.files(".bin").at(0);
  const auto good = contents(file);
  auto bad = good;
  bad.back() ^= std::byte{1};
  overwrite(file, bad);
  const auto tampered = inspect_program(place.config, label_of("one"));
  CHECK(tampered->verdict == "tampered");
  CHECK_FALSE(tampered->why.empty());
  CHECK(field_text(*tampered, "source") == "one");  // still told, not believed
  overwrite(file, std::span(good).first(40));
  const auto cut = inspect_program(place.config, label_of("one"));
  CHECK(cut->verdict == "corrupt");
  CHECK(cut->schema == 0);
  CHECK(cut->fields.empty());
  overwrite(file, good);
  std::filesystem::remove(place.config.key_file);
  const auto unchecked = inspect_program(place.config, label_of("one"));
  CHECK(unchecked->verdict == "not checked");
  CHECK_THAT(unchecked->why, Contains("does not exist"));
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
}

TEST_CASE("cache::inventory: a folder that is not this user's alone is refused in words") {
  Workplace place;
  if (geteuid() == 0) {
    std::filesystem::create_directory(place.config.directory);
    REQUIRE(chown(place.config.directory.c_str(), 65534, 65534) == 0);
    CHECK_THAT(cache_inventory(place.config, Detail::figures).error().message,
               Contains("folder " + place.config.directory.string() + ": belongs to user 65534"));
  }
  place.config.directory = place.temporary.path() / "open";
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::all);
  CHECK_THAT(cache_inventory(place.config, Detail::figures).error().message, Contains("has mode 0777"));
  place.config.directory.clear();
  CHECK(cache_exists(place.config).error().code == StatusCode::invalid_argument);
}

TEST_CASE("cache::inventory: no question reads or changes a folder that others can write") {
  Workplace place;
  const CacheConfig& config = place.config;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  std::filesystem::permissions(config.directory, std::filesystem::perms::all);
  const auto said = [](const auto& result) { return result ? std::string("nothing") : result.error().message; };
  const auto bundle = place.temporary.path() / "bundle";
  const std::pair<const char*, std::string> questions[] = {
      {"exists", said(cache_exists(config))},
      {"totals", said(cache_totals(config))},
      {"inspect", said(inspect_program(config, "one"))},
      {"explain", said(explain_misses(config, "one"))},
      {"verify", said(verify_cache(config, BadEntries::keep))},
      {"release", said(release_programs(config, "one"))},
      {"persist", said(persist_cache(config, {}))},
      {"prune", said(prune_cache(config, {{}, 0}, Removal::pretend))},
      {"clear", said(clear_cache(config, ClearScope::everything))},
      {"export", said(export_cache(config, bundle, {}))},
      {"import", said(import_cache(config, {bundle, "trust", {device.info()}}))},
  };
  const std::string expected = "folder " + config.directory.string() + ": has mode 0777";
  for (const auto& [name, message] : questions) {
    CAPTURE(name);
    CHECK_THAT(message, Contains(expected));
  }
  CHECK(place.files(".bin").size() == 1);
  CHECK_FALSE(std::filesystem::exists(bundle));
}

TEST_CASE("cache::inspection: a program that waits, or is set aside, is told with its place and its device") {
  Workplace place;
  SyntheticDevice device, newer;
  place.config.auto_save = false;
  place.config.compression = GENERATE("none", "zstd");
  REQUIRE(acquire(*place.open(), std::string(500, 'x'), device));
  const std::string hex = key_for(std::string(500, 'x'), device).digest.hex();
  const auto pending = inspect_program(place.config, hex);
  REQUIRE(pending);
  CHECK(pending->path == place.files(".bin").at(0).string());
  CHECK(pending->program.pending);
  CHECK(pending->verdict == "authentic");
  CHECK(pending->compression == place.config.compression);
  CHECK(pending->inflated_bytes > 500);
  CHECK((pending->stored_bytes < pending->inflated_bytes) == (place.config.compression == "zstd"));
  CHECK((pending->stored_bytes == pending->inflated_bytes) == (place.config.compression == "none"));

  place.config.auto_save = true;
  newer.facts().driver_identity.front().second = "2.0";
  for (SyntheticDevice* each : {&device, &newer}) REQUIRE(acquire(*place.open(), "one", *each));
  const std::string one = key_for("one", device).digest.hex(), other = key_for("one", newer).digest.hex();
  const auto set_aside = [&](const std::string& which, const char* suffix) {
    const auto file = place.named(which + ".bin").at(0);
    std::filesystem::rename(file, std::filesystem::path(file).replace_extension(suffix));
    return std::filesystem::path(file).replace_extension(suffix).string();
  };
  const std::string path = set_aside(one, ".quarantined");
  const auto aside = inspect_program(place.config, one);
  REQUIRE(aside);
  CHECK(aside->verdict == "quarantined");
  CHECK(aside->path == path);
  CHECK(aside->program.key.hex() == one);
  CHECK(aside->program.label == label_of("one"));
  CHECK(aside->device.device == "Synthetic (test, 1 lane)");
  CHECK(aside->program.folder == aside->device.folder);
  CHECK(aside->schema == 2);
  CHECK(field_text(*aside, "source") == "one");
  CHECK(inspect_program(place.config, label_of("one"))->program.key.hex() == other);  // the one that is stored
  set_aside(other, ".suspect");
  CHECK(inspect_program(place.config, label_of("one")).error().text() ==
        "invalid_argument: program 'the label of one' matches 2 suspect or quarantined programs. Give more digits of "
        "the key");
  const auto suspect = inspect_program(place.config, other);
  REQUIRE(suspect);
  CHECK(suspect->verdict == "suspect");
  CHECK(suspect->why == "the program was being loaded when a process died; the next use tries it in a child process");
}

}  // namespace
}  // namespace kiln::test

// Programs that are taken out of a cache again, one by one or those of a device; and programs that a child built.
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

TEST_CASE("cache::removal: a removed program is gone from memory and disk, and the others stay") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  for (const char* text : {"one", "two"}) REQUIRE(acquire(*cache, text, device));
  const ProgramKey one = key_for("one", device), two = key_for("two", device);
  const std::uint64_t bytes = cache->stats().bytes_on_disk;
  CHECK(device.live == 2);
  REQUIRE(cache->remove(one, device).ok());
  CHECK(place.named(one.digest.hex() + ".bin").empty());
  CHECK(place.named(one.digest.hex() + ".meta").empty());
  CHECK(place.named(two.digest.hex() + ".bin").size() == 1);
  CHECK_FALSE(cache->holds(one, device));
  CHECK(cache->holds(two, device));
  CHECK(cache->stats().programs_in_memory == 1);
  CHECK(cache->stats().bytes_on_disk < bytes);
  CHECK(cache->stats().bytes_on_disk > 0);
  CHECK(device.live == 1);
  CHECK(cache->remove(one, device).ok());  // nothing is there
  CHECK(acquire(*cache, "two", device)->tier == Tier::memory);
  CHECK(acquire(*cache, "one", device)->tier == Tier::built);
  CHECK(device.builds == 3);
}

TEST_CASE("cache::removal: a program that waits to be persisted is removed too") {
  Workplace place;
  SyntheticDevice device;
  place.config.auto_save = false;
  const auto cache = place.open();
  for (const char* text : {"one", "two"}) REQUIRE(acquire(*cache, text, device));
  CHECK(place.files(".bin").size() == 2);  // aside
  REQUIRE(cache->remove(key_for("one", device), device).ok());
  CHECK(place.files(".bin").size() == 1);
  CHECK(place.files(".meta").size() == 1);
  const auto stored = cache->persist();
  REQUIRE(stored);
  CHECK(*stored == 1);
  CHECK(place.files(".meta").size() == 1);
  const auto inventory = cache_inventory(place.config, Detail::programs);
  REQUIRE(inventory);
  REQUIRE(inventory->programs.size() == 1);
  CHECK(inventory->programs[0].label == "the label of two");
}

TEST_CASE("cache::removal: of a cache that only reads nothing is removed") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  place.config.read_only = true;
  const auto cache = place.open();
  const ProgramKey key = key_for("one", device);
  const Status status = cache->remove(key, device);
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::EndsWith(": cannot be removed because the cache is read-only"));
  CHECK(place.named(key.digest.hex() + ".bin").size() == 1);
  place.config.read_only = false;
  place.config.directory.clear();
  CHECK(place.open()->remove(key, device).ok());  // it has no folder
}

TEST_CASE("cache::removal: the programs of a device leave the memory, those of others stay") {
  Workplace place;
  SyntheticDevice device, other;
  other.facts().id = "synthetic:1";
  const auto cache = place.open();
  for (const char* text : {"one", "two"}) {
    REQUIRE(acquire(*cache, text, device));
    REQUIRE(acquire(*cache, text, other));
  }
  CHECK(device.live == 2);
  CHECK(cache->stats().programs_in_memory == 4);
  cache->forget(device);
  CHECK(cache->stats().programs_in_memory == 2);
  CHECK(device.live == 0);
  CHECK(other.live == 2);
  CHECK(acquire(*cache, "one", other)->tier == Tier::memory);
  CHECK(acquire(*cache, "one", device)->tier == Tier::disk);
  CHECK(place.files(".bin").size() == 2);
}

// A cache whose programs are built elsewhere, by `apart`.
std::unique_ptr<TieredCache> open_with(Workplace& place, BuildApart apart) {
  const std::filesystem::path none = place.temporary.path() / "none";
  CacheContext context{{&place.log, LogLevel::info}, place.config, OwnThreads::yes, nullptr, {}};
  context.build_apart = std::move(apart);
  auto cache = TieredCache::create(context, {}, {none, none, none});
  if (!cache) throw std::runtime_error(cache.error().text());
  return std::move(cache).value();
}

TEST_CASE("cache::apart: a program that a child built is loaded, stored and not built here") {
  Workplace place;
  SyntheticDevice device, child;
  int asked = 0;
  const auto cache = open_with(
      place,
      [&](const ProgramKey& key, const KernelSource& source, const Device& of) -> std::optional<Result<ProgramBinary>> {
        ++asked;
        CHECK(key.digest == key_for(source.text, device).digest);
        CHECK(&of == &device);
        return child.serialize(SyntheticProgram(source.text, 1, child.live));
      });
  const auto got = acquire(*cache, "one", device);
  REQUIRE(got);
  CHECK(got->tier == Tier::built);
  CHECK(text_of(*got) == "one");
  CHECK(asked == 1);
  CHECK(device.builds == 0);
  CHECK(device.loads == 1);
  CHECK(cache->stats().builds == 1);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  device.facts().serializes = false;
  REQUIRE(acquire(*cache, "two", device));  // it has to be built where it is used
  CHECK(asked == 1);
  CHECK(device.builds == 1);
  CHECK(cache->stats().prepared == 1);
}

TEST_CASE("cache::apart: where the child has no program, or none that can be loaded, it is built here") {
  Workplace place;
  SyntheticDevice device, child;
  bool answers = false;
  const auto cache = open_with(
      place, [&](const ProgramKey&, const KernelSource& source, const Device&) -> std::optional<Result<ProgramBinary>> {
        if (!answers) return std::nullopt;
        return child.serialize(SyntheticProgram(source.text, 1, child.live));
      });
  REQUIRE(acquire(*cache, "one", device));
  CHECK(device.builds == 1);
  CHECK(device.loads == 0);
  CHECK(place.log.said("cannot be loaded from the child process") == 0);
  answers = true;
  device.load_answers = StatusCode::corrupt;
  REQUIRE(acquire(*cache, "two", device));
  CHECK(device.builds == 2);
  CHECK(device.loads == 1);
  CHECK(place.log.said("program 'the label of two': cannot be loaded from the child process and is built again: "
                       "synthetic: told to refuse") == 1);
}

TEST_CASE("cache::apart: what a child refuses is refused here, and is not built again") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = open_with(
      place, [](const ProgramKey&, const KernelSource&, const Device&) -> std::optional<Result<ProgramBinary>> {
        return Result<ProgramBinary>(invalid_argument("line 1: no"));
      });
  const auto got = acquire(*cache, "one", device);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == StatusCode::invalid_argument);
  CHECK_THAT(got.error().message, Catch::Contains("line 1: no"));
  CHECK(device.builds == 0);
  CHECK(cache->stats().failed_builds == 1);
}

TEST_CASE("cache::build: a program that cannot be serialized serves, and is not stored") {
  struct Unserialized final : Device {
    SyntheticDevice& of;
    explicit Unserialized(SyntheticDevice& device) : of(device) {}
    const DeviceInfo& info() const noexcept override { return of.info(); }
    Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override {
      return of.create_buffer(desc);
    }
    Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override { return of.build(source); }
    Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
      return of.load(source, binary);
    }
    Result<ProgramBinary> serialize(const Program&) noexcept override { return unavailable("no bytes today"); }
    Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override { return of.submit(dispatch); }
    Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override {
      return of.wait(value, deadline);
    }
  };
  Workplace place;
  SyntheticDevice synthetic;
  Unserialized device(synthetic);
  const auto cache = place.open();
  const ProgramKey key = key_for("one", synthetic);
  CHECK(cache->get_or_build(key, source_of("one"), device));
  CHECK(place.files(".bin").empty());
  CHECK(place.log.said("program 'the label of one' is not stored: no bytes today") == 1);
  CHECK(cache->get_or_build(key, source_of("one"), device)->tier == Tier::memory);
}

TEST_CASE("cache::folder: what a cache needs to be used") {
  Workplace place;
  CHECK_FALSE(check_cache_key(place.config).ok());
  place.config.read_only = true;
  CHECK_FALSE(*cache_exists(place.config));
  CHECK_FALSE(holds_programs(place.config));
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
  CHECK(check_cache_folder(place.config).ok());  // nothing is written to it
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
  place.config.read_only = false;
  CHECK(check_cache_folder(place.config).ok());
  CHECK(std::filesystem::is_empty(place.config.directory));  // what was tried is gone
  CHECK(*cache_exists(place.config));
  CHECK_FALSE(holds_programs(place.config));
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  CHECK(holds_programs(place.config));
  CHECK(check_cache_key(place.config).ok());
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::all);
  CHECK_FALSE(check_cache_folder(place.config).ok());  // others can write to it
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  CHECK(check_cache_folder(place.config).ok());
  CacheConfig none;
  none.directory.clear();
  none.key_file.clear();
  CHECK(check_cache_folder(none).text() ==
        "not_found: no cache folder is configured. Set HOME or XDG_CACHE_HOME to an absolute path, or set "
        "KILN_CACHE_DIR or [cache] directory");
  CHECK(check_cache_key(none).code == StatusCode::not_found);
  std::ofstream(place.temporary.path() / "file") << "in the way";
  none.directory = place.temporary.path() / "file";
  CHECK_FALSE(check_cache_folder(none).ok());
}

TEST_CASE("cache::folder: one that this user cannot write is told") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    Workplace place;
    std::filesystem::create_directory(place.config.directory);
    using std::filesystem::perms;
    std::filesystem::permissions(place.config.directory, perms::owner_read | perms::owner_exec);
    const std::string said = check_cache_folder(place.config).text();
    std::filesystem::permissions(place.config.directory, perms::owner_all);
    const std::string folder = "folder " + place.config.directory.string();
    return said == "io: " + folder + ": cannot be written: Permission denied" ? "" : said;
  });
  CHECK(end.said == "");
}

}  // namespace
}  // namespace kiln::test

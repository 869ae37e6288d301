// The bound on disk, the walk that keeps it, and what it sweeps on the way.
#include "cache/disk_bound.hpp"
#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

constexpr std::uint64_t bound = 40'000;

// 800 bytes that no other program has.
std::string program_text(int number) { return std::string(800, 'x') + std::to_string(number); }

void set_age(const std::filesystem::path& path, std::chrono::seconds age) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
}

std::uint64_t bytes_below(const Workplace& place) {
  std::uint64_t bytes = 0;
  for (const char* extension : {".bin", ".meta"}) {
    for (const auto& path : place.files(extension)) bytes += std::filesystem::file_size(path);
  }
  return bytes;
}

struct Bounded : Workplace {
  SyntheticDevice device;
  Bounded() {
    config.max_disk = bound;
    config.max_programs = 0;
    config.compression = "none";
  }
};

TEST_CASE("cache::disk_bound: the disk never holds more than its bound, whatever is published") {
  Bounded place;
  const auto cache = place.open();
  for (int i = 0; i < 120; ++i) {
    REQUIRE(acquire(*cache, program_text(i), place.device));
    if (bytes_below(place) > bound) FAIL("after program " << i << ": " << bytes_below(place) << " bytes");
  }
  CHECK(bytes_below(place) > bound / 2);
  CHECK(cache->stats().bytes_on_disk == bytes_below(place));
  CHECK(cache->stats().disk_evictions == 120 - place.files(".bin").size());
}

TEST_CASE("cache::disk_bound: the least recently used go first, program and .meta together") {
  Bounded place;
  const auto cache = place.open();
  for (int i = 0; i < 10; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
  for (const char* extension : {".bin", ".meta"}) {
    for (const auto& path : place.files(extension)) set_age(path, std::chrono::hours(2));
  }
  const std::string kept = key_for(program_text(3), place.device).digest.hex();
  for (const auto& path : place.files(".meta")) {
    if (path.stem() == kept) set_age(path, std::chrono::seconds(0));  // used since: as a flush leaves it
  }
  int i = 10;
  while (place.files(".bin").size() > static_cast<std::size_t>(i) - 1)
    REQUIRE(acquire(*cache, program_text(++i), place.device));
  CHECK(place.files(".bin").size() == place.files(".meta").size());
  const int builds = place.device.builds;
  CHECK(acquire(*cache, program_text(3), place.device)->tier == Tier::disk);
  CHECK(acquire(*cache, program_text(i), place.device)->tier == Tier::disk);
  CHECK(place.device.builds == builds);
}

TEST_CASE("cache::disk_bound: what another process wrote is seen before long") {
  Bounded place;
  const auto one = place.open();
  const auto other = place.open();  // as another process: neither knows what the other writes
  for (int i = 0; i < 100; ++i) {
    REQUIRE(acquire(i % 2 == 0 ? *one : *other, program_text(i), place.device));
    if (bytes_below(place) > bound + bound / 4) FAIL("after program " << i << ": " << bytes_below(place) << " bytes");
  }
  SUCCEED();
}

TEST_CASE("cache::disk_bound: a program larger than the bound is not stored, and said once") {
  Bounded place;
  const auto cache = place.open();
  const std::string large(bound, 'x');
  CHECK(acquire(*cache, large + "1", place.device)->tier == Tier::built);
  CHECK(acquire(*cache, large + "2", place.device)->tier == Tier::built);
  CHECK(place.files(".bin").empty());
  REQUIRE(place.log.warnings().size() == 1);
  CHECK(place.log.warnings().front().ends_with("expected at most 40000 (max_disk)"));
}

TEST_CASE("cache::disk_bound: opening and hitting walk nothing: a file that is no entry costs nothing and stays") {
  Bounded place;
  REQUIRE(acquire(*place.open(), "one", place.device));
  const auto folder = place.files(".bin").at(0).parent_path();
  // Of a program, of a manifest, of statistics.
  for (const auto& left : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
    overwrite(left / ".1-0.tmp", {});
    set_age(left / ".1-0.tmp", std::chrono::hours(1));
  }
  overwrite(folder / "a person's notes", {});
  {
    const auto cache = place.open();
    CHECK(acquire(*cache, "one", place.device)->tier == Tier::disk);
    CHECK(std::filesystem::exists(folder / ".1-0.tmp"));  // a walk would have swept it
    overwrite(folder / ".2-0.tmp", {});
    REQUIRE(acquire(*cache, "two", place.device));  // the first publication walks
  }
  CHECK(place.named(".1-0.tmp").empty());
  CHECK(std::filesystem::exists(folder / ".2-0.tmp"));  // too young to be a dead process's
  CHECK(std::filesystem::exists(folder / "a person's notes"));
}

TEST_CASE("cache::disk_bound: it is the programs' alone: what a driver's folder takes counts nothing") {
  Bounded place;
  const auto folder = place.config.directory / "driver" / (std::string(64, 'a') + ".1.0123456789abcdef");
  std::filesystem::create_directories(folder);
  for (const auto& each : {place.config.directory, folder.parent_path(), folder}) {
    std::filesystem::permissions(each, std::filesystem::perms::owner_all);
  }
  overwrite(folder / "large", std::vector<std::byte>(2 * bound));
  const auto cache = place.open();
  while (bytes_below(place) < bound / 4 * 3) {
    const auto before = bytes_below(place);
    REQUIRE(acquire(*cache, program_text(place.device.builds), place.device));
    REQUIRE(bytes_below(place) > before);
  }
  CHECK(cache->stats().disk_evictions == 0);
  CHECK(cache->stats().bytes_on_disk == bytes_below(place));
  CHECK(std::filesystem::exists(folder / "large"));
}

TEST_CASE("cache::disk_bound: what another process removed does not come back as a .meta when this one ends") {
  Bounded place;
  place.config.max_programs = 8;
  {
    const auto cache = place.open();
    for (int i = 0; i < 3; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
    for (int i = 0; i < 3; ++i) REQUIRE(acquire(*cache, program_text(i), place.device)->tier == Tier::memory);
    const auto root = open_folder(place.config.directory, Create::no);
    Survey found = survey(root->get(), Sweep::no);
    REQUIRE(prune(root->get(), found, found.bytes / 2) == 2);
  }
  CHECK(place.files(".bin").size() == 1);
  CHECK(place.files(".meta").size() == 1);
}

TEST_CASE("cache::survey: what somebody else removed between a walk's two halves counts as room") {
  Bounded place;
  const auto cache = place.open();
  for (int i = 0; i < 8; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
  const auto root = open_folder(place.config.directory, Create::no);
  Survey mine = survey(root->get(), Sweep::no), others = mine;
  const std::uint64_t half = mine.bytes / 2;
  CHECK(prune(root->get(), others, half) == 4);
  CHECK(prune(root->get(), mine, half) == 0);
  CHECK(mine.bytes == bytes_below(place));
  CHECK(place.files(".bin").size() == 4);
}

TEST_CASE("cache::survey: folders and links that are named like programs count nothing") {
  Bounded place;
  REQUIRE(acquire(*place.open(), "one", place.device));
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  const Survey before = survey(root->get(), Sweep::no);
  REQUIRE(before.entries.size() == 1);
  const auto program = place.files(".bin").at(0);
  const auto folder = program.parent_path();
  std::filesystem::create_directory(folder / (std::string(64, 'a') + ".bin"));
  std::filesystem::create_directory(folder / (std::string(64, 'b') + ".quarantined"));
  std::filesystem::create_directory(folder / "other");
  std::filesystem::create_symlink(program, folder / (std::string(64, 'c') + ".bin"));
  std::filesystem::create_symlink(program, folder / (std::string(64, 'd') + ".suspect"));
  for (const Sweep sweep : {Sweep::no, Sweep::yes}) {
    const Survey found = survey(root->get(), sweep);
    CHECK(found.failure.text() == "ok");
    CHECK(found.bytes == before.bytes);
    REQUIRE(found.entries.size() == 1);
    CHECK(found.entries[0].digest.hex() == before.entries[0].digest.hex());
    CHECK(found.aside.empty());
  }
}

TEST_CASE("cache::disk_use: the figure that processes share is what there is, and one that is damaged is made anew") {
  Bounded place;
  const auto told = [&] {
    const auto root = open_folder(place.config.directory, Create::no);
    const auto file = DiskUseFile::take(root->get());
    REQUIRE(file);
    return file->read();
  };
  const auto one = place.open();
  const auto other = place.open();  // as another process
  for (int i = 0; i < 6; ++i) REQUIRE(acquire(i % 2 == 0 ? *one : *other, program_text(i), place.device));
  REQUIRE(told());
  CHECK(told()->programs == bytes_below(place));
  CHECK(one->stats().bytes_on_disk < bytes_below(place));  // told with its next publication
  overwrite(place.config.directory / disk_use_name, std::as_bytes(std::span("12 monkeys")));
  CHECK_FALSE(told());
  REQUIRE(acquire(*one, program_text(6), place.device));
  REQUIRE(told());
  CHECK(told()->programs == bytes_below(place));
  CHECK(told()->since_walk() == 0);
  CHECK(one->stats().bytes_on_disk == bytes_below(place));
}

TEST_CASE("cache::disk_use: who has not surveyed says what the processes counted, or surveys if there is no count") {
  Bounded place;
  for (int i = 0; i < 3; ++i) REQUIRE(acquire(*place.open(), program_text(i), place.device));
  const auto told = [&] {
    const auto cache = place.open();
    CHECK(acquire(*cache, program_text(0), place.device)->tier == Tier::disk);
    return cache->stats().bytes_on_disk;
  };
  CHECK(told() == bytes_below(place));
  const std::string counted = "00000000000000012345 00000000000000012345 00000000000000000000\n";
  overwrite(place.config.directory / disk_use_name, std::as_bytes(std::span(counted)));
  CHECK(told() == 12345);
  overwrite(place.config.directory / disk_use_name, std::as_bytes(std::span("12 monkeys")));
  CHECK(told() == bytes_below(place));
  std::filesystem::remove(place.config.directory / disk_use_name);
  CHECK(told() == bytes_below(place));
  CHECK_FALSE(std::filesystem::exists(place.config.directory / disk_use_name));  // nothing is written to tell
}

TEST_CASE("cache::disk_use: the next publication adds published bytes and subtracts removed bytes") {
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  const auto told = [&] {
    const auto file = DiskUseFile::take(root->get());
    REQUIRE(file);
    const auto use = file->read();
    REQUIRE(use);
    return use->programs;
  };
  DiskBound one(root->get(), bound), other(root->get(), bound);  // as two processes
  CHECK(one.published(100) == 0);
  CHECK(other.published(100) == 0);
  CHECK(told() == 0);  // the first publication of each surveyed: there is no file
  CHECK(one.published(300) == 0);
  CHECK(told() == 300);
  CHECK(other.published(50) == 0);
  CHECK(told() == 350);
  one.removed(120);
  CHECK(one.bytes() == 180);
  CHECK(told() == 350);
  CHECK(one.published(10) == 0);
  CHECK(told() == 240);
  CHECK(one.bytes() == 240);
  CHECK(other.published(1) == 0);
  CHECK(told() == 241);
  CHECK(other.bytes() == 241);
  CHECK(one.bytes() == 240);
  other.removed(1000);  // more than there is
  CHECK(other.bytes() == 0);
  CHECK(other.published(5) == 0);
  CHECK(told() == 0);  // the published bytes come first
}

TEST_CASE("cache::disk_use: a walk comes after an eighth of the bound is written, and above it after a sixty-fourth") {
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  DiskBound one(root->get(), 6400);
  CHECK(one.published(0) == 0);  // its first walk
  struct Case {
    std::uint64_t programs, since_walk;
    bool walks, while_another_does = false;
  };
  for (const Case& each :
       {Case{0, 800, false}, Case{0, 801, true}, Case{6400, 101, false}, Case{6401, 100, false}, Case{6401, 101, true},
        Case{0, 1600, false, true}, Case{0, 1601, true, true}, Case{6401, 1600, false, true}}) {
    CAPTURE(each.programs, each.since_walk, each.while_another_does);
    const auto file = [&] { return DiskUseFile::take(root->get()).value(); };
    file().write({each.programs, 10'000 + each.since_walk, 10'000});
    const auto walker = each.while_another_does
                            ? BriefLock::take(root->get(), disk_walk_name, std::chrono::milliseconds(0))
                            : std::nullopt;
    CHECK(walker.has_value() == each.while_another_does);
    CHECK(one.published(0) == 0);
    const auto use = file().read();
    REQUIRE(use);
    CHECK(use->since_walk() == (each.walks ? 0 : each.since_walk));
    CHECK(use->programs == (each.walks ? 0 : each.programs));
  }
}

TEST_CASE("cache::disk_use: the file of a version that wrote a fourth number costs a walk, and is cut") {
  Bounded place;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, program_text(0), place.device));
  const std::string number = "00000000000000000007";
  const std::string old = number + " " + number + " " + number + " " + number + "\n";
  const auto file = place.config.directory / disk_use_name;
  overwrite(file, std::as_bytes(std::span(old)));
  const auto told = [&] {
    const auto root = open_folder(place.config.directory, Create::no);
    return DiskUseFile::take(root->get())->read();
  };
  CHECK_FALSE(told());
  REQUIRE(acquire(*cache, program_text(1), place.device));
  REQUIRE(told());
  CHECK(told()->programs == bytes_below(place));
  CHECK(std::filesystem::file_size(file) == 3 * (number.size() + 1));
}

TEST_CASE("cache::disk_use: who cannot have the figure goes on without, and tells what it wrote as soon as it can") {
  Bounded place;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, program_text(0), place.device));
  const auto root = open_folder(place.config.directory, Create::no);
  {
    const auto held = DiskUseFile::take(root->get());
    REQUIRE(held);
    const std::uint64_t before = held->read()->programs;
    REQUIRE(acquire(*cache, program_text(1), place.device));
    CHECK(held->read()->programs == before);
  }
  REQUIRE(acquire(*cache, program_text(2), place.device));
  CHECK(DiskUseFile::take(root->get())->read()->programs == bytes_below(place));
}

TEST_CASE("cache::disk_use: a file with another name is not written, and the bound holds all the same") {
  Bounded place;
  const auto file = place.config.directory / disk_use_name, other = place.temporary.path() / "other";
  REQUIRE(acquire(*place.open(), program_text(0), place.device));
  std::filesystem::remove(file);
  overwrite(other, std::vector<std::byte>(100, std::byte{'x'}));
  std::filesystem::create_hard_link(other, file);
  const auto cache = place.open();
  for (int i = 1; i < 100; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
  CHECK(contents(other) == std::vector<std::byte>(100, std::byte{'x'}));
  CHECK(bytes_below(place) <= bound);
}

TEST_CASE("cache::disk_bound: while another process walks nobody else does, and what he then wrote is not lost") {
  Bounded place;
  const auto cache = place.open();
  const auto root = [&] { return open_folder(place.config.directory, Create::no); };
  REQUIRE(acquire(*cache, program_text(0), place.device));
  const std::uint64_t entry = bytes_below(place);
  const int over = static_cast<int>(bound / entry) + 2;
  {
    const auto walker = BriefLock::take(root()->get(), disk_walk_name, std::chrono::milliseconds(0));
    REQUIRE(walker);
    DiskUseFile::take(root()->get())->write({});  // as his last walk left it
    int i = 1;
    for (; bytes_below(place) < bound / 4; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
    CHECK(DiskUseFile::take(root()->get())->read()->since_walk() == bytes_below(place) - entry);
    CHECK(cache->stats().disk_evictions == 0);
    SECTION("he ends: the next that is over the bound walks") {}
    SECTION("he was stopped: over a quarter of the bound is waited for nobody") {
      for (; i < over; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
      CHECK(cache->stats().disk_evictions > 0);
      CHECK(bytes_below(place) <= bound);
    }
  }
  for (int i = over; i < 2 * over; ++i) REQUIRE(acquire(*cache, program_text(i), place.device));
  CHECK(cache->stats().disk_evictions > 0);
  CHECK(bytes_below(place) <= bound);
  CHECK(DiskUseFile::take(root()->get())->read()->programs == bytes_below(place));
}

TEST_CASE("cache::survey: only folders of devices are walked, and links are not followed") {
  Bounded place;
  REQUIRE(acquire(*place.open(), "one", place.device));
  const auto device_folder = place.files(".bin").at(0).parent_path().parent_path();
  std::filesystem::create_directories(place.config.directory / "driver" / "ab");
  overwrite(place.config.directory / "driver" / "ab" / "large.bin", std::vector<std::byte>(10000));
  std::filesystem::create_symlink(
      device_folder, place.config.directory / ("link" + std::string("-0123456789abcdef") + "-0123456789abcdef"));
  const auto root = open_folder(place.config.directory, Create::no);
  REQUIRE(root);
  Survey found = survey(root->get(), Sweep::no);
  CHECK(found.folders == std::vector<std::string>{device_folder.filename().string()});
  CHECK(found.entries.size() == 1);
  CHECK(found.bytes == bytes_below(place) - 10000);  // the driver's own cache is not Kiln's programs
  CHECK(prune(root->get(), found, 0) == 1);
  CHECK(bytes_below(place) == 10000);
  CHECK(found.bytes == 0);
}

}  // namespace
}  // namespace kiln::test

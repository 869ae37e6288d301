// Several processes on one folder, and one that dies at the worst moment.
#include "base/os/private_folder.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <csignal>

namespace kiln::test {
namespace {

TEST_CASE("cache::processes: killed between writing and renaming: no bad entry, and the rest is swept later") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto file = place.files(".bin").at(0);
  const auto good = contents(file);
  std::filesystem::remove(file);
  const ChildEnd end = in_child([&]() -> std::string {
    const auto folder = open_folder(file.parent_path(), Create::no);
    auto unfinished = NewFile::create(folder->get(), file.filename());
    if (!unfinished->write(good).ok()) return "could not write";
    kill(getpid(), SIGKILL);
    return unfinished->commit().text();
  });
  REQUIRE(end.signal == SIGKILL);
  REQUIRE(place.files(".tmp").size() == 1);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  CHECK(place.files(".tmp").size() == 1);  // it could still be alive
  const auto left = place.files(".tmp").front();
  std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  REQUIRE(acquire(*place.open(), "two", device));
  CHECK(place.files(".tmp").empty());
}

TEST_CASE("cache::processes: two that publish one key over and over: every reader sees a whole entry or none") {
  Workplace place;
  SyntheticDevice device;
  const auto key = key_for("one", device);
  const auto binary = *device.serialize(SyntheticProgram("one", 1, device.live));
  const auto publisher = [&]() -> std::string {
    CacheCounters counters;
    DiskTier tier({}, place.config, counters);
    for (int i = 0; i < 300; ++i) tier.store(key, device, binary, 1);
    return {};
  };
  Child first(publisher);
  Child second(publisher);
  CacheCounters counters;
  DiskTier reader({&place.log, LogLevel::warning}, place.config, counters);
  int found = 0;
  for (int i = 0; i < 300 || found == 0; ++i) {
    const auto stored = reader.find(key, device).stored;
    if (stored && stored->binary.bytes == binary.bytes) ++found;
  }
  CHECK(first.wait().said == "");
  CHECK(second.wait().said == "");
  const RejectedCounts rejected = counters.rejected();
  CHECK(rejected.corrupt + rejected.tampered + rejected.foreign == 0);
  CHECK(place.log.warnings().empty());
  CHECK(place.files(".bin").size() == 1);
  CHECK(place.files(".tmp").empty());
}

TEST_CASE("cache::processes: several that start on nothing end with one key and one device folder") {
  Workplace place;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<Child>([&, i]() -> std::string {
      SyntheticDevice device;
      const auto cache = place.open();
      for (int program = 0; program < 20; ++program) {
        if (!acquire(*cache, std::to_string((program + 5 * i) % 20), device)) return "a program was not served";
      }
      const RejectedCounts rejected = cache->stats().rejected;
      if (rejected.foreign + rejected.corrupt + rejected.tampered != 0) return "an entry was rejected";
      return place.log.warnings().empty() ? "" : place.log.warnings().front();
    }));
  }
  for (auto& child : children) CHECK(child->wait().said == "");
  SyntheticDevice device;
  const auto cache = place.open();
  for (int program = 0; program < 20; ++program) {
    CHECK(acquire(*cache, std::to_string(program), device)->tier == Tier::disk);
  }
  CHECK(place.named("manifest.json").size() == 1);
}

}  // namespace
}  // namespace kiln::test

// Leases: of processes that want one program, one builds it; the others get it, or go on without it in the end.
#include "core/cache/process/shared.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <kiln/clock.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <thread>

namespace kiln::test {
namespace {

constexpr FilesystemMagic nfs = 0x6969;
// Longer than any test may take: what waits that long hangs, instead of passing by chance.
constexpr std::chrono::hours for_ever{1};

std::unique_ptr<TieredCache> open(Workplace& place, ProcessSharing sharing) { return place.open(std::move(sharing)); }

// A cache with its own device, as another process has them: its descriptors are its own.
struct Party {
  SyntheticDevice device;
  std::unique_ptr<TieredCache> cache;

  explicit Party(Workplace& place, ProcessSharing sharing = {for_ever}) : cache(open(place, std::move(sharing))) {}
};

// Someone who has begun to build `text` and finishes when told to.
struct Builder : Party {
  std::latch begun{1}, finish{1};
  std::thread thread;

  Builder(Workplace& place, const std::string& text, ProcessSharing sharing = {for_ever})
      : Party(place, std::move(sharing)) {
    device.on_build = [this](const KernelSource&) {
      begun.count_down();
      finish.wait();
    };
    thread = std::thread([this, text] { static_cast<void>(acquire(*cache, text, device)); });
    begun.wait();
  }
  void end() {
    finish.count_down();
    thread.join();
  }
};

void wait_until(const char* event, const std::function<bool()>& holds) {
  INFO("waited for this: " << event);
  const Deadline end = Deadline::after(std::chrono::minutes(1));
  while (!holds() && !end.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(holds());
}

// Whether any byte of the file is locked by anybody.
bool locked(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock all {};
  all.l_type = F_WRLCK;
  return file && fcntl(file.get(), F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}

TEST_CASE("cache::lease: one builds, the other waits and takes it from disk") {
  Workplace place;
  Builder first(place, "one");
  Party second(place);
  Result<Acquired> got = internal_error("nothing yet");
  const auto begun = Clock::now();
  std::thread waiting([&] { got = acquire(*second.cache, "one", second.device); });
  wait_until("somebody waits for the lease", [&] { return second.cache->stats().lease_waits == 1; });
  first.end();
  waiting.join();
  const std::chrono::nanoseconds took = Clock::now() - begun;
  REQUIRE(got);
  CHECK(got->tier == Tier::disk);
  CHECK(text_of(*got) == "one");
  CHECK(first.device.builds == 1);
  CHECK(second.device.builds == 0);
  const CacheStats stats = second.cache->stats();
  CHECK(stats.lease_waits == 1);
  CHECK(stats.lease_wait_ns > 0);
  CHECK(stats.lease_wait_ns < static_cast<std::uint64_t>(took.count()));
  CHECK(stats.lease_takeovers == 0);
  CHECK(stats.lease_timeouts == 0);
  CHECK(stats.disk_hits == 1);
  CHECK(first.cache->stats().lease_waits == 0);
}

TEST_CASE("cache::lease: other programs are not waited for") {
  Workplace place;
  Builder first(place, "one");
  Party second(place);
  CHECK(acquire(*second.cache, "two", second.device)->tier == Tier::built);
  CHECK(second.cache->stats().lease_waits == 0);
  first.end();
}

TEST_CASE("cache::lease: try_get_or_build() does not wait, neither for a process nor for a thread") {
  Workplace place;
  Builder first(place, "one");
  const auto key = key_for("one", first.device);
  const auto source = source_of("one");
  const auto in_same_cache = first.cache->try_get_or_build({&key, &source, &first.device});
  REQUIRE(in_same_cache);
  CHECK_FALSE(in_same_cache->has_value());
  Party second(place);
  const auto refused = second.cache->try_get_or_build({&key, &source, &second.device});
  REQUIRE(refused);
  CHECK_FALSE(refused->has_value());
  CHECK(second.cache->stats().misses == 0);
  first.end();
  const auto found = second.cache->try_get_or_build({&key, &source, &second.device});
  REQUIRE(found);
  REQUIRE(found->has_value());
  CHECK((*found)->tier == Tier::disk);
  CHECK(second.device.builds == 0);
  const auto held = second.cache->try_get_or_build({&key, &source, &second.device});
  REQUIRE(held);
  REQUIRE(held->has_value());
  CHECK((*held)->tier == Tier::memory);
  CHECK((*held)->build_ns == 0);
}

TEST_CASE("cache::lease: who waits for somebody that would not wait does not get nothing") {
  Workplace place;
  Builder first(place, "one");
  Party second(place);
  const auto key = key_for("one", second.device);
  const auto source = source_of("one");
  std::atomic<bool> stop{false};
  std::thread trying([&] {
    while (!stop) static_cast<void>(second.cache->try_get_or_build({&key, &source, &second.device}));
  });
  Result<Acquired> got = internal_error("nothing yet");
  std::thread waiting([&] { got = acquire(*second.cache, "one", second.device); });
  wait_until("somebody waits for the lease", [&] { return second.cache->stats().lease_waits == 1; });
  first.end();
  waiting.join();
  stop = true;
  trying.join();
  REQUIRE(got);
  CHECK(text_of(*got) == "one");
  CHECK(second.device.builds == 0);
}

TEST_CASE("cache::lease: its holder is killed: taken over at once") {
  Workplace place;
  Shared<std::atomic<bool>> building;
  Child dies([&]() -> std::string {
    Party party(place);
    party.device.on_build = [&](const KernelSource&) {
      *building = true;
      pause();
    };
    static_cast<void>(acquire(*party.cache, "one", party.device));
    return "was not killed";
  });
  wait_until("the child builds", [&] { return building->load(); });
  Party other(place);  // would wait for ever
  Result<Acquired> got = internal_error("nothing yet");
  std::thread waiting([&] { got = acquire(*other.cache, "one", other.device); });
  wait_until("somebody waits for the lease", [&] { return other.cache->stats().lease_waits == 1; });
  CHECK(other.device.builds == 0);
  dies.kill(SIGKILL);
  waiting.join();
  REQUIRE(got);
  CHECK(got->tier == Tier::built);
  CHECK(other.cache->stats().lease_takeovers == 1);
  CHECK(other.cache->stats().lease_timeouts == 0);
  CHECK(dies.wait().signal == SIGKILL);
}

TEST_CASE("cache::lease: its holder is stopped: the others go on when their patience ends") {
  Workplace place;
  Child stopped([&]() -> std::string {
    Party party(place);
    party.device.on_build = [](const KernelSource&) { raise(SIGSTOP); };
    const auto got = acquire(*party.cache, "one", party.device);
    return got && text_of(*got) == "one" ? "" : "was not served";
  });
  wait_until("the child is stopped while it builds", [&] { return stopped.is_stopped(); });
  Party other(place, {std::chrono::milliseconds(20)});
  const auto got = acquire(*other.cache, "one", other.device);
  REQUIRE(got);
  CHECK(got->tier == Tier::built);
  CHECK(other.cache->stats().lease_timeouts == 1);
  CHECK(other.cache->stats().lease_takeovers == 0);
  stopped.kill(SIGCONT);
  CHECK(stopped.wait().said == "");
  CHECK(acquire(*place.open(), "one", other.device)->tier == Tier::disk);
  CHECK(place.files(".tmp").empty());
}

TEST_CASE("cache::lease: a build that fails lets the next one try") {
  Workplace place;
  Builder first(place, "one");
  Party second(place);
  first.device.fail_builds = true;
  Result<Acquired> got = internal_error("nothing yet");
  std::thread waiting([&] { got = acquire(*second.cache, "one", second.device); });
  wait_until("somebody waits for the lease", [&] { return second.cache->stats().lease_waits == 1; });
  first.end();
  waiting.join();
  REQUIRE(got);
  CHECK(got->tier == Tier::built);
  CHECK(second.cache->stats().lease_takeovers == 1);
}

TEST_CASE(
    "cache::lease: on a filesystem whose locks cannot be trusted no lock is taken, which is said, and not warned of") {
  Workplace place;
  const auto on_nfs = [] { return ProcessSharing{for_ever, [](int) -> Result<FilesystemMagic> { return nfs; }}; };
  Builder first(place, "one", on_nfs());
  Party second(place, on_nfs());
  CHECK(acquire(*second.cache, "one", second.device)->tier == Tier::built);  // though the first is at it
  CHECK(place.files("").empty());                                            // no file to lock
  first.end();
  CHECK(second.cache->stats().lease_waits == 0);
  CHECK(place.log.warnings().empty());
  CHECK(place.log.said("the folder is on nfs, whose locks are not reliable") == 2);  // once each
}

TEST_CASE("cache::lease: a lock is held while a program is built, and none when nobody is there") {
  Workplace place;
  {
    Builder first(place, "one");
    REQUIRE(place.files("").size() == 1);
    CHECK(place.files("").front().filename() == "processes");
    CHECK(locked(place.files("").front()));
    first.end();
  }
  CHECK_FALSE(locked(place.files("").front()));
}

TEST_CASE("cache::lease: who publishes nothing holds no lease") {
  Workplace place;
  SECTION("read_only") {
    Party before(place);
    REQUIRE(acquire(*before.cache, "something", before.device));
    place.config.read_only = true;
  }
  SECTION("auto_save = false") { place.config.auto_save = false; }
  Builder first(place, "one");
  Party second(place);
  CHECK(acquire(*second.cache, "one", second.device)->tier == Tier::built);
  first.end();
}

TEST_CASE("cache::lease: who could not publish holds no lease from then on") {
  Workplace place;
  Party failing(place);
  const std::string subfolder = key_for("one", failing.device).digest.hex().substr(0, 2);
  REQUIRE(acquire(*failing.cache, "zero", failing.device));
  const auto device_folder = place.files(".json").front().parent_path();
  overwrite(device_folder / subfolder, {});  // a file where a folder must be
  REQUIRE(acquire(*failing.cache, "one", failing.device));
  REQUIRE(place.log.warnings().size() == 1);
  std::latch begun(1), finish(1);
  failing.device.on_build = [&](const KernelSource&) {
    begun.count_down();
    finish.wait();
  };
  std::thread building([&] { static_cast<void>(acquire(*failing.cache, "two", failing.device)); });
  begun.wait();
  Party other(place);
  CHECK(acquire(*other.cache, "two", other.device)->tier == Tier::built);
  finish.count_down();
  building.join();
}

}  // namespace
}  // namespace kiln::test

// auto_save = false: what is built is set aside, signed, bounded, invisible to every lookup, and stored by persist.
#include "base/os/private_folder.hpp"
#include "base/secret_key.hpp"
#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

struct Waiting : Workplace {
  SyntheticDevice device;
  Waiting() { config.auto_save = false; }

  void build(const std::vector<std::string>& texts) {
    const auto cache = open();
    for (const std::string& text : texts) REQUIRE(acquire(*cache, text, device));
  }
  Tier tier_of(const std::string& text) { return acquire(*open(), text, device)->tier; }
  std::filesystem::path file_of(const std::string& text, const std::string& suffix = ".bin") {
    const auto found = named(key_for(text, device).digest.hex() + suffix);
    return found.size() == 1 ? found.front() : std::filesystem::path();
  }
};

bool lies_pending(const std::filesystem::path& path) { return path.string().find("/pending/") != std::string::npos; }

TEST_CASE("cache::pending: what is built is set aside whole, and no later process finds it") {
  Waiting place;
  place.build({"one", "two"});
  CHECK(lies_pending(place.file_of("one")));
  CHECK(lies_pending(place.file_of("one", ".meta")));
  const auto stored = cache_inventory(place.config, Detail::programs);
  CHECK(stored->programs_stored == 0);
  CHECK(stored->bytes_stored == 0);
  CHECK(stored->programs_pending == 2);
  CHECK(stored->bytes_pending > 0);
  REQUIRE(stored->programs.size() == 2);
  CHECK(stored->programs[0].pending);
  CHECK(stored->programs[0].label == "the label of one");
  CHECK(verify_cache(place.config, BadEntries::keep)->ok == 2);
  CHECK(place.tier_of("one") == Tier::built);
  place.config.auto_save = true;
  CHECK(place.tier_of("one") == Tier::built);
  const auto again = cache_inventory(place.config, Detail::figures);
  CHECK(again->programs_stored == 1);
  CHECK(again->programs_pending == 2);
}

TEST_CASE("cache::pending: persist stores all of it, authentic and with its figures, and leaves nothing behind") {
  Waiting place;
  place.build({"one", "two"});
  const auto outcome = persist_cache(place.config, {});
  REQUIRE(outcome);
  CHECK(outcome->failure.ok());
  CHECK(outcome->stored == 2);
  CHECK(outcome->left == 0);
  CHECK(outcome->bytes ==
        std::filesystem::file_size(place.file_of("one")) + std::filesystem::file_size(place.file_of("two")));
  CHECK_FALSE(lies_pending(place.file_of("one")));
  CHECK_FALSE(std::filesystem::exists(place.config.directory / "pending"));
  const auto stored = cache_inventory(place.config, Detail::programs);
  CHECK(stored->programs_stored == 2);
  CHECK(stored->programs[0].label == "the label of one");
  CHECK(stored->programs[0].build_ms > 0);
  CHECK(stored->devices.at(0).device == "Synthetic (test, 1 lane)");  // the manifest went along
  CHECK(place.tier_of("one") == Tier::disk);
  CHECK(place.tier_of("two") == Tier::disk);
  CHECK(persist_cache(place.config, {})->stored == 0);
}

TEST_CASE("cache::pending: persist of what is named, by its label or its key, and of what is not there") {
  Waiting place;
  const std::vector<std::string> nothing = {"the label of one"};
  CHECK(persist_cache(place.config, nothing).error().text() == "not_found: program 'the label of one': is not pending");
  place.build({"one", "two", "three"});
  const std::vector<std::string> named = {"the label of two", key_for("three", place.device).digest.hex().substr(0, 6)};
  const auto outcome = persist_cache(place.config, named);
  CHECK(outcome->stored == 2);
  CHECK(outcome->left == 1);
  CHECK(lies_pending(place.file_of("one")));
  CHECK_FALSE(lies_pending(place.file_of("two")));
  const std::vector<std::string> wrong = {"the label of one", "nobody"};
  const auto refused = persist_cache(place.config, wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::not_found);
  CHECK_THAT(refused.error().message, Contains("'nobody'") && Contains("the label of one"));
  CHECK(lies_pending(place.file_of("one")));  // nothing was done
}

TEST_CASE("cache::pending: what is not sound is not stored") {
  Waiting place;
  place.build({"one", "two", "three", "four"});
  auto damaged = contents(place.file_of("one"));
  damaged[90] ^= std::byte{4};
  overwrite(place.file_of("one"), damaged);
  overwrite(place.file_of("two"), contents(place.file_of("three")));  // a good entry under another's name
  const auto link = place.file_of("four");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(place.file_of("three"), link);
  const auto outcome = persist_cache(place.config, {});
  REQUIRE(outcome);
  CHECK(outcome->stored == 1);
  REQUIRE(outcome->bad.size() == 2);  // a link is no file of ours and is not listed
  std::vector<std::string> reasons = {outcome->bad[0].reason, outcome->bad[1].reason};
  std::ranges::sort(reasons);
  CHECK(reasons == std::vector<std::string>{"corrupt", "tampered"});
  for (const BadEntry& bad : outcome->bad) CHECK(bad.removed);
  CHECK(place.tier_of("one") == Tier::built);
  CHECK(place.tier_of("three") == Tier::disk);
}

TEST_CASE("cache::pending: another user's key authenticates nothing of it") {
  Waiting place;
  place.build({"one"});
  std::filesystem::remove(place.config.key_file);
  const auto without = persist_cache(place.config, {});
  REQUIRE_FALSE(without);
  CHECK_THAT(without.error().message, Catch::StartsWith("pending programs cannot be authenticated: "));
  overwrite(place.config.key_file, std::vector<std::byte>(32, std::byte{9}));
  std::filesystem::permissions(place.config.key_file, std::filesystem::perms(0600));
  const auto outcome = persist_cache(place.config, {});
  REQUIRE(outcome);
  CHECK(outcome->stored == 0);
  REQUIRE(outcome->bad.size() == 1);
  CHECK(outcome->bad[0].reason == "foreign");
}

TEST_CASE("cache::pending: what somebody stored in the meantime stays, and a bad one is replaced") {
  Waiting place;
  place.build({"one", "two"});
  place.config.auto_save = true;
  REQUIRE(acquire(*place.open(), "one", place.device));
  REQUIRE(acquire(*place.open(), "two", place.device));
  const auto stored = place.named(key_for("two", place.device).digest.hex() + ".bin");
  for (const auto& path : stored) {
    if (!lies_pending(path)) overwrite(path, std::vector<std::byte>(200));
  }
  std::filesystem::path facts;  // what is known of the one that was stored
  for (const auto& path : place.named(key_for("two", place.device).digest.hex() + ".meta")) {
    if (!lies_pending(path)) overwrite(facts = path, std::vector<std::byte>(5));
  }
  const auto outcome = persist_cache(place.config, {});
  CHECK(outcome->already == 1);
  CHECK(outcome->stored == 1);
  CHECK(outcome->left == 0);
  CHECK(std::filesystem::file_size(facts) == 5);
  CHECK_FALSE(std::filesystem::exists(place.config.directory / "pending"));
  CHECK(place.tier_of("two") == Tier::disk);
}

TEST_CASE("cache::pending: publishing returns the outcome and the stored bytes of each program") {
  Waiting place;
  place.build({"new", "stored before", "bad"});
  place.config.auto_save = true;
  REQUIRE(acquire(*place.open(), "stored before", place.device));
  auto damaged = contents(place.file_of("bad"));
  REQUIRE(damaged.size() > 90);
  damaged[90] ^= std::byte{4};
  overwrite(place.file_of("bad"), damaged);
  const std::uint64_t bytes = std::filesystem::file_size(place.file_of("new"));
  const auto secret = read_secret_key(place.config.key_file, IfMissing::fail);
  REQUIRE(secret);
  const EntryKey key(*secret);
  const auto root = CacheRoot::open(place.config);
  REQUIRE(root);
  struct Case {
    const char* text;
    Publication outcome;
    std::uint64_t bytes;
    Rejection reason;
  };
  for (const Case& each :
       {Case{"new", Publication::stored, bytes, Rejection::none},
        Case{"new", Publication::gone, 0, Rejection::none},  // moved by the first call
        Case{"stored before", Publication::already, 0, Rejection::none},
        Case{"stored before", Publication::gone, 0, Rejection::none},
        Case{"bad", Publication::rejected, 0, Rejection::corrupt}, Case{"bad", Publication::gone, 0, Rejection::none},
        Case{"never built", Publication::gone, 0, Rejection::none}}) {
    CAPTURE(each.text);
    const auto published =
        publish_pending(*root, device_folder_name(place.device.info()), key_for(each.text, place.device).digest, key);
    REQUIRE(published);
    CHECK(published->outcome == each.outcome);
    CHECK(published->bytes == each.bytes);
    CHECK(published->reason == each.reason);
    CHECK(published->why.empty() == (each.reason == Rejection::none));
  }
  CHECK(std::filesystem::file_size(place.file_of("new")) == bytes);
}

TEST_CASE("cache::pending: read_only stores nothing, and where there is no cache there is nothing to store") {
  Waiting place;
  CHECK(persist_cache(place.config, {})->stored == 0);
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
  place.build({"one"});
  place.config.read_only = true;
  const auto refused = persist_cache(place.config, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Contains("read_only"));
  CHECK(lies_pending(place.file_of("one")));
}

TEST_CASE("cache::pending: bounded by max_disk while it waits, and when it is stored") {
  Waiting place;
  place.config.compression = "none";
  place.config.max_disk = 20'000;
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(std::string(1500, 'x') + std::to_string(i));
  place.build(texts);
  const auto waiting = cache_inventory(place.config, Detail::figures);
  CHECK(waiting->programs_pending > 0);
  CHECK(waiting->programs_pending < 12);
  CHECK(waiting->bytes_pending <= place.config.max_disk + 4000);
  place.config.max_disk = 8'000;
  const auto outcome = persist_cache(place.config, {});
  CHECK(outcome->stored == waiting->programs_pending);
  CHECK(outcome->pruned > 0);
  const auto stored = [&] { return cache_inventory(place.config, Detail::figures)->programs_stored; };
  CHECK(cache_inventory(place.config, Detail::figures)->bytes_stored <= 8'000);
  CHECK(outcome->pruned == outcome->stored - stored());
  const auto cache = place.open();
  const std::uint64_t before = stored();
  for (char c = 'a'; c < 'd'; ++c) REQUIRE(acquire(*cache, std::string(1500, c), place.device));
  const auto persisted = cache->persist();
  REQUIRE(persisted);
  CHECK(cache->stats().disk_evictions > 0);
  CHECK(cache->stats().disk_evictions == before + *persisted - stored());
}

TEST_CASE("cache::pending: what waited for more than thirty days goes when the next process sets something aside") {
  Waiting place;
  place.build({"old", "young"});
  for (const char* suffix : {".bin", ".meta"}) {
    std::filesystem::last_write_time(place.file_of("old", suffix),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  }
  place.build({"new"});
  CHECK(place.file_of("old").empty());
  CHECK_FALSE(place.file_of("young").empty());
}

TEST_CASE("cache::pending: a cache persists what it set aside itself, with what it learned since") {
  Waiting place;
  place.build({"of another process"});
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "one", place.device));
  Measurement first;
  first.first_run = true;
  first.device_ns = 3'000'000;
  first.wall_ns = 3'000'000;
  cache->record(key_for("one", place.device), place.device, first, 0);
  CHECK(*cache->persist() == 1);
  CHECK_FALSE(lies_pending(place.file_of("one")));
  CHECK(lies_pending(place.file_of("of another process")));
  const auto text = contents(place.file_of("one", ".meta"));
  const auto meta = decode_meta({reinterpret_cast<const char*>(text.data()), text.size()});
  REQUIRE(meta);
  CHECK(meta->first_dispatch_ms > 0);
  CHECK(meta->times_used == 1);
}

TEST_CASE("cache::pending: a process goes on setting aside after another one stored what there was") {
  Waiting place;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "one", place.device));
  CHECK(persist_cache(place.config, {})->stored == 1);
  REQUIRE(acquire(*cache, "two", place.device));
  CHECK(lies_pending(place.file_of("two")));
  CHECK(place.log.warnings().empty());
  CHECK(*cache->persist() == 1);  // the first is gone from there already
  CHECK(place.tier_of("two") == Tier::disk);
}

TEST_CASE("cache::pending: prune and clear count and remove what waits") {
  Waiting place;
  place.build({"one", "two"});
  const auto pruned = prune_cache(place.config, {std::nullopt, 0}, Removal::perform);
  CHECK(pruned->pending == 2);
  place.build({"one", "two"});
  CHECK(clear_cache(place.config, ClearScope::programs)->pending == 2);
  CHECK_FALSE(std::filesystem::exists(place.config.directory / "pending"));
}

TEST_CASE("cache::pending: a program that cannot be stored is told, and the others are stored") {
  Waiting place;
  const std::vector<std::string> texts{"one", "two", "three", "four"};
  place.build(texts);
  const auto device_folder = place.config.directory / device_folder_name(place.device.info());
  const auto part_of = [&](const std::string& text) { return key_for(text, place.device).digest.hex().substr(0, 2); };
  std::filesystem::create_directory(device_folder);
  std::filesystem::permissions(device_folder, std::filesystem::perms::owner_all);
  std::set<std::string> parts;
  for (const std::string& text : texts) parts.insert(part_of(text));
  REQUIRE(parts.size() == 4);
  for (const char* text : {"one", "two"}) {  // others can write there
    std::filesystem::create_directory(device_folder / part_of(text));
    std::filesystem::permissions(device_folder / part_of(text), std::filesystem::perms::all);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const auto outcome =
      persist_cache(place.config, {}, [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); });
  REQUIRE(outcome);
  CHECK(told == decltype(told){{1, 4}, {2, 4}, {3, 4}, {4, 4}});
  CHECK(outcome->stored == 2);
  CHECK(outcome->left == 2);
  CHECK_THAT(outcome->failure.message, Catch::StartsWith("program ") && Contains("has mode 0777"));
  CHECK(lies_pending(place.file_of("one")));
  CHECK_FALSE(lies_pending(place.file_of("three")));
}

TEST_CASE("cache::pending: a cache persists the others where one that it set aside was damaged") {
  const std::vector<std::string> texts{"one", "two", "three"};
  for (const std::string& bad : texts) {
    CAPTURE(bad);
    Waiting place;
    const auto cache = place.open();
    for (const std::string& text : texts) REQUIRE(acquire(*cache, text, place.device));
    overwrite(place.file_of(bad), copied_bytes("x"));
    const auto stored = cache->persist();
    REQUIRE(stored);
    CHECK(*stored == 2);
    CHECK(place.file_of(bad).empty());
    REQUIRE(place.log.warnings().size() == 1);
    CHECK_THAT(place.log.warnings()[0],
               Contains("program " + key_for(bad, place.device).digest.hex() + " in pending: "));
  }
}

}  // namespace
}  // namespace kiln::test

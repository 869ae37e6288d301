// verify: each kind of damage is told with its reason, nothing is removed unasked, and only what is bad is removed.
#include "cache/cache_root.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

struct Damaged : Workplace {
  SyntheticDevice device;
  std::filesystem::path path_of(const std::string& text) {
    return named(key_for(text, device).digest.hex() + ".bin").at(0);
  }
  Damaged() {
    const auto cache = open();
    for (const char* text : {"good", "flipped", "cut", "resigned", "renamed", "also good"}) {
      if (!acquire(*cache, text, device)) throw std::runtime_error("was not built");
    }
    auto bytes = contents(path_of("flipped"));
    bytes[70] ^= std::byte{1};
    overwrite(path_of("flipped"), bytes);
    const auto whole = contents(path_of("cut"));
    overwrite(path_of("cut"), std::span(whole).first(100));
    auto forged = contents(path_of("resigned"));
    forged.back() ^= std::byte{1};
    overwrite(path_of("resigned"), forged);
    overwrite(path_of("renamed"), contents(path_of("good")));
  }
  std::string reason_of(const CacheVerdict& verdict, const std::string& text) {
    const auto at = std::ranges::find(verdict.bad, key_for(text, device).digest, &BadEntry::key);
    return at == verdict.bad.end() ? "sound" : at->reason;
  }
};

TEST_CASE("cache::verification: each kind of damage has its reason, and nothing is removed unasked") {
  Damaged place;
  const auto verdict = verify_cache(place.config, BadEntries::keep);
  REQUIRE(verdict);
  CHECK(verdict->entries == 6);
  CHECK(verdict->ok == 2);
  CHECK(verdict->rejected.corrupt == 2);
  CHECK(verdict->rejected.tampered == 2);
  CHECK(place.reason_of(*verdict, "flipped") == "corrupt");
  CHECK(place.reason_of(*verdict, "cut") == "corrupt");
  CHECK(place.reason_of(*verdict, "resigned") == "tampered");
  CHECK(place.reason_of(*verdict, "renamed") == "tampered");
  CHECK(place.reason_of(*verdict, "good") == "sound");
  for (const BadEntry& one : verdict->bad) {
    CHECK_FALSE(one.why.empty());
    CHECK_THAT(one.label, Contains("the label of"));
    CHECK_FALSE(one.removed);
  }
  CHECK(place.files(".bin").size() == 6);
}

TEST_CASE("cache::verification: asked to, it removes what is bad and only that") {
  Damaged place;
  const auto verdict = verify_cache(place.config, BadEntries::remove);
  REQUIRE(verdict);
  CHECK(verdict->removal.ok());
  CHECK(std::ranges::all_of(verdict->bad, &BadEntry::removed));
  CHECK(place.files(".bin").size() == 2);
  CHECK(place.files(".meta").size() == 2);
  CHECK(verify_cache(place.config, BadEntries::keep)->ok == 2);
  CHECK(acquire(*place.open(), "good", place.device)->tier == Tier::disk);
}

TEST_CASE("cache::verification: another user's key makes everything foreign; without a key nothing can be said") {
  Damaged place;
  overwrite(place.config.key_file, std::vector<std::byte>(32, std::byte{9}));
  const auto foreign = verify_cache(place.config, BadEntries::keep);
  CHECK(foreign->rejected.foreign == 4);  // what is corrupt is told first
  CHECK(foreign->ok == 0);
  std::filesystem::remove(place.config.key_file);
  CHECK_THAT(verify_cache(place.config, BadEntries::keep).error().message,
             Contains("cannot be authenticated") && Contains("does not exist"));
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
}

TEST_CASE("cache::verification: a folder that is not opened is named, and what is in it stays") {
  Damaged place;
  std::filesystem::path folder = place.path_of("good").parent_path();
  std::string name = folder.parent_path().filename().string();
  SECTION("of a device") { folder = folder.parent_path(); }
  SECTION("in it") { name += "/" + folder.filename().string(); }
  std::filesystem::permissions(folder, std::filesystem::perms::group_write, std::filesystem::perm_options::add);
  const auto names_it = Contains("folder " + name + ": has mode 0720");
  const auto verdict = verify_cache(place.config, BadEntries::keep);
  REQUIRE(verdict);
  CHECK(verdict->entries < 6);
  CHECK_THAT(verdict->unread.message, names_it);
  CHECK_THAT(cache_inventory(place.config, Detail::programs)->unread.message, names_it);
  CHECK_THAT(prune_cache(place.config, {{}, 0}, Removal::pretend)->failure.message, names_it);
  CHECK_THAT(clear_cache(place.config, ClearScope::programs)->failure.message, names_it);
  const auto root = CacheRoot::open(place.config);
  REQUIRE(root);
  const auto read_good = [&] {
    return root->read_program(Area::stored, device_folder_name(place.device.info()),
                              key_for("good", place.device).digest);
  };
  CHECK(read_good().state == FileState::unreadable);
  CHECK_THAT(read_good().why, names_it);
  CHECK(read_good().bytes.empty());
  std::filesystem::permissions(folder, std::filesystem::perms::group_write, std::filesystem::perm_options::remove);
  CHECK(read_good().state == FileState::read);
  CHECK(verify_cache(place.config, BadEntries::keep)->unread.ok());
  CHECK(clear_cache(place.config, ClearScope::programs)->failure.ok());
}

TEST_CASE("cache::verification: read_only forbids removing and nothing else") {
  Damaged place;
  place.config.read_only = true;
  CHECK(verify_cache(place.config, BadEntries::keep)->entries == 6);
  const auto refused = verify_cache(place.config, BadEntries::remove);
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Contains("read_only"));
  CHECK(clear_cache(place.config, ClearScope::programs).error().code == StatusCode::invalid_argument);
  CHECK(prune_cache(place.config, {{}, 0}, Removal::perform).error().code == StatusCode::invalid_argument);
  CHECK(prune_cache(place.config, {{}, 0}, Removal::pretend)->programs == 6);
  CHECK(place.files(".bin").size() == 6);
}

TEST_CASE("cache::verification: a .meta that lost its program is no program, wherever it comes in the walk") {
  Workplace place;
  SyntheticDevice device;
  const std::vector<std::string> texts{"one", "two", "three"};
  for (const std::string& text : texts) REQUIRE(acquire(*place.open(), text, device));
  const auto away = place.temporary.path() / "away", bundle = place.temporary.path() / "bundle";
  for (const std::string& lost : texts) {
    CAPTURE(lost);
    const auto file = place.named(key_for(lost, device).digest.hex() + ".bin").at(0);
    std::filesystem::rename(file, away);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
    const auto progress = [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); };
    const decltype(told) twice{{1, 2}, {2, 2}};
    const auto verdict = verify_cache(place.config, BadEntries::keep, progress);
    REQUIRE(verdict);
    CHECK(verdict->entries == 2);
    CHECK(verdict->ok == 2);
    CHECK(std::exchange(told, {}) == twice);
    const auto stored = cache_inventory(place.config, Detail::programs);
    REQUIRE(stored);
    CHECK(stored->programs_stored == 2);
    CHECK(stored->programs.size() == 2);
    const auto made = export_cache(place.config, bundle, {}, progress);
    REQUIRE(made);
    CHECK(made->programs == 2);
    CHECK(std::exchange(told, {}) == twice);
    for (const std::string& text : texts) {
      CHECK(inspect_program(place.config, "the label of " + text).has_value() == (text != lost));
    }
    const auto pruned = prune_cache(place.config, {}, Removal::pretend, progress);
    REQUIRE(pruned);
    CHECK(pruned->programs_left == 2);
    CHECK(told == decltype(told){{1, 3}, {2, 3}, {3, 3}});  // the .meta counts as well
    std::filesystem::rename(away, file);
  }
}

}  // namespace
}  // namespace kiln::test

// cache_stats.json and missed_keys: added up over processes, never in anybody's way.
#include "cache/history.hpp"
#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <thread>

namespace kiln::test {
namespace {

CacheStats some_counts() {
  CacheStats counts;
  counts.memory_hits = 1;
  counts.disk_hits = 2;
  counts.misses = 3;
  counts.builds = 4;
  counts.prepared = 5;
  counts.waits = 6;
  counts.evictions = 7;
  counts.rejected = {8, 9, 10, 11, 12, 13};
  counts.saved_ms = 1.5;
  counts.disk_evictions = 14;
  counts.lease_waits = 15;
  counts.lease_wait_ns = 16;
  counts.lease_takeovers = 17;
  counts.lease_timeouts = 18;
  counts.negative_hits = 19;
  counts.absent = 20;
  counts.evicted = 21;
  counts.timed_out = 22;
  std::uint64_t count = 100;
  for (const auto& [name, value] : shared_count_names()) counts.shared.*value = ++count;
  return counts;
}

TEST_CASE("cache::totals: every count is added up, and what a newer version wrote stays") {
  const std::string once = totals_with("", some_counts(), 100);
  CHECK(once.find("\n  \"processes\": 1,\n") != std::string::npos);
  std::string marked = once;
  marked.insert(marked.find('{') + 1, "\"of a newer version\": [1, 2],");
  const std::string twice = totals_with(marked, some_counts(), 200);
  CHECK(nlohmann::json::parse(twice)["of a newer version"] == nlohmann::json::array({1, 2}));
  const CacheTotals totals = totals_of(twice);
  CHECK(totals.processes == 2);
  CHECK(totals.since_s == 100);
  CHECK(totals.updated_s == 200);
  CHECK(totals.counts.memory_hits == 2);
  CHECK(totals.counts.disk_hits == 4);
  CHECK(totals.counts.misses == 6);
  CHECK(totals.counts.builds == 8);
  CHECK(totals.counts.prepared == 10);
  CHECK(totals.counts.waits == 12);
  CHECK(totals.counts.evictions == 14);
  CHECK(totals.counts.rejected.corrupt == 16);
  CHECK(totals.counts.rejected.tampered == 18);
  CHECK(totals.counts.rejected.foreign == 20);
  CHECK(totals.counts.rejected.driver_changed == 22);
  CHECK(totals.counts.rejected.refused == 24);
  CHECK(totals.counts.rejected.quarantined == 26);
  CHECK(totals.counts.saved_ms == 3.0);
  CHECK(totals.counts.disk_evictions == 28);
  CHECK(totals.counts.lease_waits == 30);
  CHECK(totals.counts.lease_wait_ns == 32);
  CHECK(totals.counts.lease_takeovers == 34);
  CHECK(totals.counts.lease_timeouts == 36);
  CHECK(totals.counts.negative_hits == 38);
  CHECK(totals.counts.absent == 40);
  CHECK(totals.counts.evicted == 42);
  CHECK(totals.counts.timed_out == 44);
  std::uint64_t of_one = 100;
  for (const auto& [name, value] : shared_count_names()) {
    CAPTURE(name);
    ++of_one;
    CHECK(totals.counts.shared.*value == 2 * of_one);
  }
  // What was never counted of the shared programs is not written.
  CacheStats few;
  few.misses = 1;
  CHECK(nlohmann::json::parse(totals_with("", few, 1))["shared"] == nlohmann::json::object());
  few.shared.hits = 2;
  CHECK(nlohmann::json::parse(totals_with("", few, 1))["shared"] == nlohmann::json::parse(R"({"hits": 2})"));
}

TEST_CASE("cache::totals: what an older version wrote is added to, and what it did not count begins at nothing") {
  const char* older = R"({"schema": 1, "since": 5, "updated": 6, "processes": 3, "misses": 7, "evictions": 1})";
  CHECK(totals_of(older).counts.misses == 7);
  CHECK(totals_of(older).counts.lease_waits == 0);
  const CacheTotals totals = totals_of(totals_with(older, some_counts(), 9));
  CHECK(totals.processes == 4);
  CHECK(totals.counts.misses == 10);
  CHECK(totals.counts.lease_waits == 15);
  CHECK(totals.counts.disk_evictions == 14);
}

TEST_CASE("cache::totals: what is damaged is begun anew, member by member") {
  for (const char* text : {"", "{", "[]", "3", R"({"schema": 2, "misses": 7})", R"({"misses": 7})"}) {
    CAPTURE(text);
    CHECK(totals_of(text).counts.misses == 0);
    CHECK(totals_of(totals_with(text, some_counts(), 1)).counts.misses == 3);
  }
  const char* odd = R"({"schema": 1, "misses": -1, "builds": 5, "rejected": 3, "saved_ms": "x", "since": {}})";
  const CacheTotals totals = totals_of(totals_with(odd, some_counts(), 9));
  CHECK(totals.counts.misses == 3);
  CHECK(totals.counts.builds == 9);
  CHECK(totals.counts.rejected.corrupt == 8);
  CHECK(totals.since_s == 9);
}

TEST_CASE("cache::totals: a cache adds its counts when it is closed, and one that was not used leaves no trace") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  static_cast<void>(place.open());
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "one", device));
    REQUIRE(acquire(*cache, "one", device));
  }
  const auto totals = cache_totals(place.config);
  CHECK(totals->processes == 2);
  CHECK(totals->counts.misses == 1);
  CHECK(totals->counts.builds == 1);
  CHECK(totals->counts.disk_hits == 1);
  CHECK(totals->counts.memory_hits == 1);
  place.config.read_only = true;
  REQUIRE(acquire(*place.open(), "one", device));
  CHECK(cache_totals(place.config)->processes == 2);
  // Two counts of one each, which may not cancel out.
  const auto root = open_folder(place.config.directory, Create::no);
  CacheStats rejected, shared;
  rejected.misses = rejected.rejected.corrupt = 1;
  shared.misses = shared.shared.hits = 1;
  add_to_totals(root->get(), rejected);
  add_to_totals(root->get(), shared);
  CHECK(cache_totals(place.config)->processes == 4);
}

TEST_CASE("cache::totals: processes that end at one time lose no count that they could add in time") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto root = open_folder(place.config.directory, Create::no);
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<Child>([&]() -> std::string {
      for (int j = 0; j < 10; ++j) add_to_totals(root->get(), some_counts());
      return {};
    }));
  }
  for (auto& child : children) CHECK(child->wait().said == "");
  const CacheTotals totals = read_totals(root->get());
  // An update may be lost to the bound on waiting, never half of one.
  CHECK(totals.processes > 1);
  CHECK(totals.counts.misses == 1 + 3 * (totals.processes - 1));
  CHECK(totals.counts.builds == 1 + 4 * (totals.processes - 1));
  CHECK(place.files(".tmp").empty());
}

TEST_CASE("cache::totals: a lock that somebody holds is waited for no longer than its bound") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  const auto root = open_folder(place.config.directory, Create::no);
  auto held = BriefLock::take(root->get(), history_lock_name, std::chrono::milliseconds(0));
  REQUIRE(held);
  CHECK_FALSE(BriefLock::take(root->get(), history_lock_name, std::chrono::milliseconds(2)));
  REQUIRE(acquire(*place.open(), "two", device));  // closes while the lock is held
  CHECK(cache_totals(place.config)->processes == 1);
  CHECK(place.log.warnings().empty());
  held.reset();
  CHECK(BriefLock::take(root->get(), history_lock_name, std::chrono::milliseconds(0)));
  REQUIRE(acquire(*place.open(), "two", device));
  CHECK(cache_totals(place.config)->processes == 2);
}

std::vector<std::string> labels_of(const std::vector<MissedKey>& keys) {
  std::vector<std::string> labels;
  for (const MissedKey& key : keys) labels.push_back(key.label);
  return labels;
}

std::vector<MissedKey> missed_in(const Workplace& place) {
  return read_missed_keys(open_folder(place.config.directory, Create::no)->get());
}

TEST_CASE("cache::missed_keys: a process leaves what it missed, with the reason; the newest of a key counts") {
  Workplace place;
  SyntheticDevice device;
  for (const char* text : {"one", "two", "one"}) REQUIRE(acquire(*place.open(), text, device));
  CHECK(labels_of(missed_in(place)) == std::vector<std::string>{"the label of one", "the label of two"});
  CHECK(missed_in(place)[0].material == key_for("one", device).material);
  CHECK(missed_in(place)[0].reason == Rejection::none);
  CHECK(missed_in(place)[0].missed_s > 1'600'000'000);
  overwrite(place.named(key_for("one", device).digest.hex() + ".bin").at(0), {});
  REQUIRE(acquire(*place.open(), "one", device));
  const auto keys = missed_in(place);
  CHECK(labels_of(keys) == std::vector<std::string>{"the label of two", "the label of one"});
  CHECK(keys[1].reason == Rejection::corrupt);
  CHECK_FALSE(keys[1].why.empty());
}

TEST_CASE("cache::missed_keys: not where nothing may be saved, and never more than 1,024") {
  Workplace place;
  SyntheticDevice device;
  place.config.auto_save = false;
  REQUIRE(acquire(*place.open(), "one", device));
  CHECK(missed_in(place).empty());
  place.config.auto_save = true;
  for (int process = 0; process < 2; ++process) {
    const auto cache = place.open();
    for (int i = 0; i < 600; ++i) REQUIRE(acquire(*cache, std::to_string(1000 * process + i), device));
  }
  const auto keys = missed_in(place);
  REQUIRE(keys.size() == 1024);
  CHECK(keys.front().label == "the label of 176");
  CHECK(keys.back().label == "the label of 1599");
}

TEST_CASE("cache::missed_keys: what was encoded is read, what is none is nothing, long ones are left out") {
  const std::vector<MissedKey> keys = {{"a", std::string("\0m", 2), Rejection::refused, "because", 5},
                                       {"", "", {}, "", 0}};
  const std::string bytes = encode_missed_keys(keys);
  const auto read = decode_missed_keys(bytes);
  REQUIRE(read.size() == 2);
  CHECK(read[0].label == "a");
  CHECK(read[0].material == keys[0].material);
  CHECK(read[0].reason == Rejection::refused);
  CHECK(read[0].why == "because");
  CHECK(read[0].missed_s == 5);
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(decode_missed_keys(bytes.substr(0, size)).size() < 2);
  CHECK(decode_missed_keys("no file of ours").empty());
  for (unsigned number = 0; number < 256; ++number) {
    CAPTURE(number);
    const MissedKey of_reason{"a", "m", static_cast<Rejection>(number), "", 5};
    const auto again = decode_missed_keys(encode_missed_keys({of_reason}));
    const std::size_t known = number < 7 ? 1 : 0;  // none and the six reasons
    REQUIRE(again.size() == known);
    if (known == 1) CHECK(again[0].reason == of_reason.reason);
  }

  Workplace place;
  MissedKeys missed;
  missed.note({{}, std::string((1 << 20) + 1, 'x'), "too long"}, Rejection::none, {});
  for (int i = 0; i < 6; ++i)
    missed.note({{}, std::string((1 << 20) - 4, static_cast<char>('a' + i)), "long"}, Rejection::none, {});
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  missed.save(open_folder(place.config.directory, Create::no)->get());
  CHECK(labels_of(missed_in(place)) == std::vector<std::string>(4, "long"));
}

TEST_CASE("cache::missed_keys: each field of a record is there, under its name") {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  const std::string five(1, '\5'), eight = five + std::string(7, '\0'),
                                   schema = std::string(1, '\1') + std::string(7, '\0');
  const Fields whole{{"schema", schema}, {"missed", eight}, {"label", "l"},
                     {"reason", schema}, {"why", "w"},      {"material", "m"}};
  const auto keys_in = [](const Fields& fields) {
    KeyEncoder encoder;
    for (const auto& [name, value] : fields) encoder.field(name, value);
    return decode_missed_keys(encoder.material());
  };
  const auto keys = keys_in(whole);
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].missed_s == 5);
  CHECK(keys[0].label == "l");
  CHECK(keys[0].reason == Rejection::corrupt);
  CHECK(keys[0].why == "w");
  CHECK(keys[0].material == "m");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(whole[i].first);
    Fields fields = whole;
    fields[i].first += "x";
    CHECK(keys_in(fields).empty());
  }
  for (const std::size_t i : {0u, 1u, 3u}) {  // numbers have eight bytes
    Fields fields = whole;
    fields[i].second += std::string(1, '\0');
    CHECK(keys_in(fields).empty());
  }
  Fields other = whole;
  other[0].second = eight;  // another schema
  CHECK(keys_in(other).empty());
  CHECK(keys_in({}).empty());
  CHECK(keys_in({whole[0]}).empty());
  // A part of a record at the end is left out.
  Fields longer = whole;
  longer.insert(longer.end(), whole.begin() + 1, whole.end() - 1);
  CHECK(keys_in(longer).size() == 1);
  longer.push_back(whole.back());
  CHECK(keys_in(longer).size() == 2);
}

TEST_CASE("cache::missed_keys: long words are cut to 4096 bytes, and the newest of a key counts") {
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  const auto root = open_folder(place.config.directory, Create::no);
  MissedKeys missed;
  missed.save(root->get());
  CHECK(std::filesystem::is_empty(place.config.directory));  // nothing was missed
  missed.note({{}, "m", std::string(4097, 'l')}, Rejection::refused, std::string(4097, 'w'));
  missed.note({{}, "n", "short"}, Rejection::none, std::string(4096, 'w'));
  missed.save(root->get());
  missed.save(root->get());  // they are there once
  const auto keys = missed_in(place);
  REQUIRE(keys.size() == 2);
  CHECK(keys[0].label == std::string(4096, 'l'));
  CHECK(keys[0].why == std::string(4096, 'w'));
  CHECK(keys[1].why.size() == 4096);
  missed.note({{}, "m", "again"}, Rejection::corrupt, "now");
  missed.save(root->get());
  CHECK(labels_of(missed_in(place)) == std::vector<std::string>{"short", "again"});
}

}  // namespace
}  // namespace kiln::test

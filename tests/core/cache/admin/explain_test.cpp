// Why a program was not found: the field that differs from the nearest stored key, named and shown from both sides.
#include "cache/manifest.hpp"
#include "cache_admin/explanation.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <tuple>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;
using namespace std::chrono_literals;

KernelSource base_source() {
  KernelSource source = source_of("first line\nsecond line\nthird line\n");
  source.entry = "main";
  source.constants = {{"TILE", "16"}, {"UNROLL", "4"}};
  source.bindings = {Access::read, Access::write};
  source.views = {View::storage, View::texels};
  source.workgroup = {64, 2, 1};
  return source;
}

// Everything that a key takes in, changed one at a time, and what explain calls it.
struct Change {
  std::string field;
  std::function<void(KernelSource&, DeviceInfo&)> make;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"dialect", [](auto& source, auto&) { source.dialect = Dialect::opencl_c; }},
      {"source", [](auto& source, auto&) { source.text = "first line\nanother line\nthird line\n"; }},
      {"entry", [](auto& source, auto&) { source.entry = "other"; }},
      {"constant.TILE", [](auto& source, auto&) { source.constants[0].text = "8"; }},
      {"constant.UNROLL", [](auto& source, auto&) { source.constants[1].text = "2"; }},
      {"constant.NEW",
       [](auto& source, auto&) {
         source.constants.push_back({"NEW", "1"});
       }},
      {"binding", [](auto& source, auto&) { source.bindings[0] = Access::read_write; }},
      {"binding[1]", [](auto& source, auto&) { source.bindings[1] = Access::read_write; }},
      {"binding[2]", [](auto& source, auto&) { source.bindings.push_back(Access::read); }},
      {"view", [](auto& source, auto&) { source.views[0] = View::image; }},
      {"view[1]", [](auto& source, auto&) { source.views[1] = View::image; }},
      {"view[2]", [](auto& source, auto&) { source.views.push_back(View::storage); }},
      {"workgroup", [](auto& source, auto&) { source.workgroup[0] = 32; }},
      {"workgroup[1]", [](auto& source, auto&) { source.workgroup[1] = 4; }},
      {"workgroup[2]", [](auto& source, auto&) { source.workgroup[2] = 2; }},
      {"device.vendor", [](auto&, auto& device) { device.device_identity[0].second = "Other"; }},
      {"device.renderer", [](auto&, auto& device) { device.device_identity[1].second = "Other"; }},
      {"driver.version", [](auto&, auto& device) { device.driver_identity[0].second = "2.0"; }},
      {"driver.sha", [](auto&, auto& device) { device.driver_identity[1].second = "\x01\x02"; }},
  };
  return all;
}

TEST_CASE("cache::explain: a single field that changed is named, whichever it is and whatever else is stored") {
  CHECK(rc::check([] {
    const auto& change = changes()[*rc::gen::inRange<std::size_t>(0, changes().size())];
    Workplace place;
    SyntheticDevice before, after;
    KernelSource source = base_source();
    const auto others = *rc::gen::inRange(0, 4);
    const auto stored = key_of(source, before.info(), "layer/direct");
    {
      const auto cache = place.open();
      for (int i = 0; i < others; ++i) {  // other programs of the same shape, and of the same label
        KernelSource other = source_of("quite\nanother\nprogram " + std::to_string(i) + "\n");
        other.constants = {{"TILE", "16"}};
        RC_ASSERT(cache->get_or_build(key_of(other, before.info(), "layer/direct"), other, before).has_value());
      }
      RC_ASSERT(cache->get_or_build(stored, source, before).has_value());
    }
    change.make(source, after.facts());
    const auto asked = key_of(source, after.info(), "layer/direct");
    RC_ASSERT(place.open()->get_or_build(asked, source, after).has_value());
    const auto misses = explain_misses(place.config, asked.digest.hex());
    RC_ASSERT(misses.has_value());
    RC_ASSERT(misses->size() == 1u);
    const MissExplanation& miss = misses->front();
    RC_ASSERT(miss.stored_now);
    RC_ASSERT(miss.nearest.has_value());
    RC_ASSERT(miss.nearest->key == stored.digest);
    RC_ASSERT(miss.differences.size() == 1u);
    RC_ASSERT(miss.differences[0].name == change.field);
    RC_ASSERT(miss.differences[0].asked != miss.differences[0].stored);
  }));
}

TEST_CASE("cache::explain: both values, and of a source the first line that differs") {
  SyntheticDevice device;
  KernelSource one = base_source(), other = base_source();
  other.text = "first line\nSECOND line\nthird line\nfourth line\n";
  other.constants.pop_back();
  other.constants[0].text = "8";
  const auto compared =
      compare_keys(key_of(other, device.info(), "").material, key_of(one, device.info(), "").material);
  REQUIRE(compared);
  REQUIRE(compared->differences.size() == 3);
  const auto named = [&](const std::string& name) {
    for (const KeyDifference& each : compared->differences) {
      if (each.name == name) return each;
    }
    FAIL("no difference called " + name);
    return KeyDifference{};
  };
  const KeyDifference text = named("source");
  CHECK(text.line == 2);
  CHECK(text.asked == "SECOND line");
  CHECK(text.stored == "second line");
  CHECK(text.lines_differing == 3);
  CHECK(named("constant.TILE").asked == "8");
  CHECK(named("constant.TILE").stored == "16");
  CHECK(named("constant.TILE").line == 0);
  CHECK_FALSE(named("constant.UNROLL").in_asked);
  CHECK(named("constant.UNROLL").stored == "4");
  CHECK(compared->distance.causes == 3);
  CHECK_FALSE(compare_keys("none", key_of(one, device.info(), "").material));
}

TEST_CASE("cache::explain: a new driver is one cause, and its words are told") {
  Workplace place;
  SyntheticDevice before, after;
  REQUIRE(acquire(*place.open(), "one", before));
  REQUIRE(acquire(*place.open(), "two", before));
  after.facts().driver_identity[0].second = "2.0";
  after.facts().driver_identity[1].second = "another sha";
  REQUIRE(acquire(*place.open(), "one", after));
  const auto misses = explain_misses(place.config, "the label of one");
  REQUIRE(misses);
  REQUIRE(misses->size() == 2);  // latest first: the new driver's, then the very first
  CHECK(misses->front().reason == "driver_changed");
  CHECK(misses->front().nearest->key == key_for("one", before).digest);
  REQUIRE(misses->front().differences.size() == 2);
  CHECK(misses->front().differences[0].name == "driver.version");
  CHECK(misses->front().differences[0].asked == "2.0");
  CHECK(misses->front().differences[0].stored == "1.0");
  CHECK(misses->front().nearest_device.driver == "Synthetic 1.0");
  // Nothing was stored before the first program: what came later is not what it was compared with.
  CHECK(misses->back().reason == "absent");
  CHECK_FALSE(misses->back().nearest);
  CHECK(misses->back().stored_now);
}

TEST_CASE(
    "cache::explain: after a driver's update each of a hundred programs can be explained, also those of one label") {
  Workplace place;
  SyntheticDevice before, after;
  after.facts().driver_identity[0].second = "2.0";
  constexpr int programs = 100;
  const auto source = [](int i) {
    return source_of("// program " + std::to_string(i) + "\n" + std::string(20'000, 'x'));
  };
  for (SyntheticDevice* device : {&before, &after}) {
    const auto cache = place.open();
    for (int i = 0; i < programs; ++i) {
      const KernelSource one = source(i);
      REQUIRE(cache->get_or_build(key_of(one, device->info(), "net/layer"), one, *device));
    }
  }
  const auto all = explain_misses(place.config, "net");
  REQUIRE(all);
  int changed = 0;
  for (const MissExplanation& miss : *all) {
    if (miss.reason != "driver_changed") continue;
    ++changed;
    REQUIRE(miss.differences.size() == 1);
    CHECK(miss.differences[0].name == "driver.version");
  }
  CHECK(changed == programs);
  for (const int i : {0, programs / 2, programs - 1}) {
    const auto one = explain_misses(place.config, key_of(source(i), after.info(), "").digest.hex());
    REQUIRE(one);
    CHECK(one->front().nearest->key == key_of(source(i), before.info(), "").digest);
  }
}

TEST_CASE(
    "cache::explain: a file's clock may run a little ahead of the process's, and what came much later is left out") {
  struct Case {
    std::chrono::seconds ahead;
    bool compared;
  };
  for (const Case& each : {Case{1s, true}, Case{3600s, false}}) {
    Workplace place;
    SyntheticDevice device;
    REQUIRE(acquire(*place.open(), "one", device));
    const auto file = place.files(".bin").at(0);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() + each.ahead);
    REQUIRE(acquire(*place.open(), "two", device));
    const auto misses = explain_misses(place.config, key_for("two", device).digest.hex());
    INFO("stored " << each.ahead.count() << " s ahead of the miss");
    REQUIRE(misses);
    REQUIRE(misses->size() == 1);
    CHECK(misses->front().nearest.has_value() == each.compared);
  }
}

TEST_CASE("cache::explain: a program that was rejected says so, and one never missed is told from one unknown") {
  Workplace place;
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  auto bytes = contents(place.files(".bin").at(0));
  bytes[100] ^= std::byte{1};
  overwrite(place.files(".bin").at(0), bytes);
  REQUIRE(acquire(*place.open(), "one", device));
  const auto misses = explain_misses(place.config, key_for("one", device).digest.hex().substr(0, 8));
  REQUIRE(misses);
  REQUIRE(misses->size() == 1);
  CHECK(misses->front().key == key_for("one", device).digest);
  CHECK(misses->front().label == "the label of one");
  CHECK(misses->front().missed_s > 1'600'000'000);
  CHECK(misses->front().reason == "corrupt");
  CHECK(place.log.said("program 'the label of one' (" + key_for("one", device).digest.hex() + ") in folder " +
                       device_folder_name(device.info()) + ": corrupt: " + misses->front().why) == 1);
  CHECK_FALSE(misses->front().why.empty());
  const auto unknown = explain_misses(place.config, "nobody");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == StatusCode::not_found);
  CHECK_THAT(unknown.error().message, Contains("'nobody'") && Contains("the program is not stored"));
  std::filesystem::remove(place.config.directory / "missed_keys");
  CHECK_THAT(explain_misses(place.config, "the label of one").error().message, Contains("the program is stored"));
}

TEST_CASE("cache::explain: a field is told as a number, a word, a text or hexadecimal digits") {
  using namespace std::string_literals;
  const auto number = [](std::uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
    return bytes;
  };
  const std::tuple<std::string, std::string, std::string> fields[] = {
      {"schema", number(258), "258"},      {"workgroup", number(64), "64"},
      {"workgroup", "seven b", "seven b"}, {"binding", number(1), "read"},
      {"binding", number(2), "write"},     {"binding", number(3), "read_write"},
      {"binding", number(0), "0"},         {"binding", number(4), "4"},
      {"view", number(1), "storage"},      {"view", number(2), "texels"},
      {"view", number(3), "image"},        {"view", number(4), "uniforms"},
      {"view", number(5), "pixels"},       {"view", number(6), "6"},
      {"source", "a\tb\r\n", "a\tb\r\n"},  {"source", "\xc3\xa9", "\xc3\xa9"},
      {"driver.sha", "\x01\xab"s, "01ab"}, {"driver.sha", "a\x7f"s, "617f"},
      {"driver.sha", "a\0"s, "6100"},      {"driver.sha", "\xc3"s, "c3"},
      {"driver.sha", "\xc3("s, "c328"},    {"driver.sha", "\xed\xa0\x80"s, "eda080"},
      {"driver.sha", "\xff"s, "ff"},       {"driver.sha", "", ""}};
  for (const auto& [name, value, words] : fields) {
    CAPTURE(name, words);
    CHECK(words_of_field({name, value}) == words);
  }
}

TEST_CASE("cache::explain: of two texts the first line that differs, and how many lie between equal ends") {
  const auto compared = [](std::string_view asked, std::string_view stored) {
    KeyEncoder one, other;
    one.field("source", asked);
    other.field("source", stored);
    const auto keys = compare_keys(one.material(), other.material());
    REQUIRE(keys);
    std::string text;
    for (const KeyDifference& each : keys->differences) {
      CHECK(each.name == "source");
      CHECK(keys->distance.lines == each.lines_differing);
      text += std::to_string(each.line) + ": '" + each.asked + "' '" + each.stored + "' " +
              std::to_string(each.lines_differing);
    }
    return text;
  };
  CHECK(compared("a\nb\n", "a\nb\n").empty());
  CHECK(compared("a\nb\nc", "a\nx\nc") == "2: 'b' 'x' 1");
  CHECK(compared("a\nb", "x\nb") == "1: 'a' 'x' 1");
  CHECK(compared("a\nb", "a\nx") == "2: 'b' 'x' 1");
  CHECK(compared("a\nc", "a\nb\nc") == "2: 'c' 'b' 1");  // one more
  CHECK(compared("a\nb\nc", "a\nc") == "2: 'b' 'c' 1");
  CHECK(compared("a", "a\nb\nc") == "2: '' 'b' 2");
  CHECK(compared("", "a") == "1: '' 'a' 1");
  CHECK(compared("a\na\na", "a\na") == "3: 'a' '' 1");
  CHECK(compared("a\n1\n2\n3\nz", "a\n4\n2\n5\nz") == "2: '1' '4' 3");
  CHECK(compared("1\nb\nc\nd", "2\nb\nc\nd") == "1: '1' '2' 1");  // several lines are equal at the end
  CHECK(compared("a\n1\nb\nc\nd\n", "a\n2\n3\nb\nc\nd\n") == "2: '1' '2' 2");
  CHECK(compared("a\n2\n3\nb\nc\nd\n", "a\n1\nb\nc\nd\n") == "2: '2' '1' 2");
  CHECK(compared("x\ny\nz", "z") == "1: 'x' 'z' 2");
  CHECK(compared("a\n", "a") == "2: '' '' 1");  // the end of a line alone
}

TEST_CASE("cache::explain: as JSON") {
  MissExplanation bare, whole;
  bare.key.bytes.fill(0xab);
  bare.missed_s = 7;
  bare.reason = "absent";
  whole = bare;
  whole.label = "conv", whole.why = "no file", whole.stored_now = true, whole.reason = "corrupt";
  whole.nearest = CachedProgram{};
  whole.nearest->key.bytes.fill(0xcd);
  whole.nearest->folder = "folder";
  whole.nearest_device.device = "a card";
  KeyDifference line, added, removed;
  line.name = "source", line.asked = "a", line.stored = "b", line.line = 3, line.lines_differing = 2;
  added.name = "constant.A", added.asked = "1", added.in_stored = false;
  removed.name = "constant.B", removed.stored = "2", removed.in_asked = false;
  whole.differences = {line, added, removed};
  std::string ab, cd;
  for (int i = 0; i < 32; ++i) ab += "ab", cd += "cd";
  const std::vector<MissExplanation> both{bare, whole};
  CHECK(nlohmann::json::parse(explanations_json(both)) == nlohmann::json::parse(R"({"schema": 1, "misses": [
    {"key": ")" + ab + R"(", "label": null, "missed": 7, "reason": "absent", "why": null, "stored_now": false,
     "nearest": null, "differences": []},
    {"key": ")" + ab + R"(", "label": "conv", "missed": 7, "reason": "corrupt", "why": "no file", "stored_now": true,
     "nearest": {"key": ")" + cd + R"(", "label": null, "folder": "folder", "device": "a card", "driver": null},
     "differences": [
       {"field": "source", "asked": "a", "stored": "b", "line": 3, "lines_differing": 2},
       {"field": "constant.A", "asked": "1", "stored": null},
       {"field": "constant.B", "asked": null, "stored": "2"}]}]})"));
}

TEST_CASE("cache::explain: digits that several missed programs begin with are refused with all of them") {
  Workplace place;
  SyntheticDevice device;
  std::map<std::string, std::string> first;  // text by the first four digits
  std::string one, other, digits;
  for (int i = 0; digits.empty(); ++i) {
    REQUIRE(i < 5000);
    const std::string text = std::to_string(i), four = key_for(text, device).digest.hex().substr(0, 4);
    if (const auto [at, is_new] = first.emplace(four, text); !is_new) digits = four, one = at->second, other = text;
  }
  for (const std::string& text : {one, other}) REQUIRE(acquire(*place.open(), text, device));
  const auto named = [&](const std::string& text) {
    return key_for(text, device).digest.hex().substr(0, 12) + " (the label of " + text + ")";
  };
  const auto [low, high] = std::minmax({named(one), named(other)});
  CHECK(explain_misses(place.config, digits).error().text() == "invalid_argument: key '" + digits +
                                                                   "' matches 2 missed programs: " + low + ", " + high +
                                                                   ". Give more digits of the key");
  CHECK(explain_misses(place.config, key_for(one, device).digest.hex())->size() == 1);
}

TEST_CASE("cache::explain: a stored program that cannot be read hides none beside it") {
  Workplace place;
  SyntheticDevice device;
  const std::vector<std::string> texts{"one", "two", "three"};
  for (const std::string& text : texts) REQUIRE(acquire(*place.open(), text, device));
  REQUIRE(acquire(*place.open(), "asked", device));
  const auto hex = [&](const std::string& text) { return key_for(text, device).digest.hex(); };
  std::filesystem::remove(place.named(hex("asked") + ".bin").at(0));
  const auto good = contents(place.named(hex("one") + ".bin").at(0));
  for (const std::string& bad : texts) {
    const auto file = place.named(hex(bad) + ".bin").at(0);
    const auto before = contents(file);
    for (const auto& bytes : {copied_bytes("x"), bad == "one" ? before : good}) {  // none, and another's
      if (bytes == before) continue;
      CAPTURE(bad, bytes.size());
      overwrite(file, bytes);
      const auto misses = explain_misses(place.config, hex("asked"));
      REQUIRE(misses);
      REQUIRE(misses->size() == 1);
      CHECK_FALSE(misses->at(0).stored_now);
      REQUIRE(misses->at(0).nearest);
      CHECK(misses->at(0).nearest->key.hex() != hex(bad));
      REQUIRE(misses->at(0).differences.size() == 1);
      CHECK(misses->at(0).differences[0].name == "source");
    }
    overwrite(file, before);
  }
}

}  // namespace
}  // namespace kiln::test

// Which winners of other machines come in, beside what is known here; how near a shape must be; when runs are slow.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/tuner/tuning_database.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {
namespace {

const std::string first_line = "kiln-tuning 1\n";

TuningRecord judged(const std::string& variant, Verdict verdict, std::uint64_t when,
                    const std::string& source = "abc") {
  TuningRecord record;
  record.device = "d0", record.spec = "s", record.variant = variant, record.verdict = verdict;
  record.when = when, record.source = source, record.wall_ns = {1000};
  return record;
}

// A conv2d of 28 x 28 pixels, in batches of so many.
Conv2dSpec batch_of(std::int64_t images) {
  Conv2dSpec spec = resnet_layer();
  spec.h = spec.w = 28;
  spec.n = images;
  return spec;
}

TuningRecord winner_of(const KernelSpec& spec, const std::string& variant) {
  TuningRecord record = judged(variant, Verdict::winner, 1700000000);
  record.device = device_digest(sample_device());
  record.spec = record_spec(spec);
  const auto plan = plan_of(spec, sample_device(), Dialect::glsl, variant);
  REQUIRE(plan.has_value());
  record.source = source_digest(*plan, sample_device());
  return record;
}

}  // namespace

TEST_CASE("tuning database: a foreign winner comes in where nothing here speaks against it") {
  const TuningRecord theirs = judged("a", Verdict::winner, 100);
  const struct {
    TuningRecord ours;
    std::size_t taken;
  } rows[] = {{judged("b", Verdict::foreign, 99), 1},          {judged("b", Verdict::foreign, 100), 0},
              {judged("b", Verdict::foreign, 101), 0},         {judged("b", Verdict::winner, 1), 0},
              {judged("a", Verdict::measured, 1), 0},          {judged("a", Verdict::measured, 200, "other"), 1},
              {judged("b", Verdict::measured, 200), 1},        {judged("a", Verdict::rejected, 1, "other"), 0},
              {judged("a", Verdict::outvoted, 1, "other"), 0}, {judged("b", Verdict::rejected, 200), 1}};
  for (const auto& row : rows) {
    INFO(to_line(row.ours));
    TuningDatabase database({});
    REQUIRE(database.put({row.ours}).ok());
    const auto merged = database.merge_foreign(first_line + to_line(theirs), "d0");
    REQUIRE(merged.has_value());
    CHECK(merged->taken == row.taken);
    CHECK(merged->older == 1 - row.taken);
    CHECK(merged->damaged == 0);
    const auto waiting = database.foreign("d0", "s");
    CHECK((waiting && waiting->variant == "a") == (row.taken == 1));
  }
}

TEST_CASE("tuning database: only a winner of this device that holds is foreign, and usable here") {
  TuningRecord elsewhere = judged("a", Verdict::winner, 100), stale = elsewhere;
  elsewhere.device = "d1";
  stale.why = "runs in a row took longer";
  const auto taken = [](const TuningRecord& record, bool is_usable) {
    TuningDatabase database({});
    return database.merge_foreign(first_line + to_line(record), "d0", [&](const TuningRecord&) { return is_usable; })
        ->taken;
  };
  CHECK(taken(judged("a", Verdict::winner, 100), true) == 1);
  CHECK(taken(judged("a", Verdict::winner, 100), false) == 0);
  CHECK(taken(elsewhere, true) == 0);
  CHECK(taken(stale, true) == 0);
  for (const Verdict verdict : {Verdict::measured, Verdict::rejected, Verdict::outvoted, Verdict::foreign}) {
    CHECK(taken(judged("a", verdict, 100), true) == 0);
  }
}

TEST_CASE("tuning database: of the winners that were offered the newest is passed on, the first of the same age") {
  TuningDatabase database({});
  const auto offer = [&](const TuningRecord& record) {
    REQUIRE(database.merge_foreign(first_line + to_line(record), "d0", [](const TuningRecord&) { return false; }));
    return database.winners_text("d0");
  };
  const TuningRecord first = judged("a", Verdict::winner, 100);
  CHECK(offer(first) == first_line + to_line(first));
  CHECK(offer(judged("b", Verdict::winner, 99)) == first_line + to_line(first));
  CHECK(offer(judged("b", Verdict::winner, 100)) == first_line + to_line(first));
  const TuningRecord newer = judged("b", Verdict::winner, 101);
  CHECK(offer(newer) == first_line + to_line(newer));
}

TEST_CASE("tuning database: a text of another form is told by its first line, of which 40 characters are shown") {
  const auto found = [](const std::string& text) {
    TuningDatabase database({});
    const auto merged = database.merge(text);
    REQUIRE_FALSE(merged.has_value());
    CHECK(merged.error().code == StatusCode::corrupt);
    CHECK(database.merge_foreign(text, "d0").error().message == merged.error().message);
    return merged.error().message;
  };
  const auto message = [](const std::string& line) {
    return "not a tuning database: found '" + line + "' in the first line, expected 'kiln-tuning 1'";
  };
  const std::string forty(40, 'x');
  CHECK(found("kiln-tuning 2\nmore\n") == message("kiln-tuning 2"));
  CHECK(found("kiln-tuning 1") == message("kiln-tuning 1"));  // without an end
  CHECK(found("") == message(""));
  CHECK(found(forty + "\n") == message(forty));
  CHECK(found(forty + "y\n") == message(forty));
}

TEST_CASE("tuning database: an import of the same age is older, and one a second younger is taken") {
  for (const std::uint64_t when : {99u, 100u, 101u}) {
    CAPTURE(when);
    TuningDatabase database({});
    REQUIRE(database.put({judged("a", Verdict::measured, 100)}).ok());
    const auto merged = database.merge(first_line + to_line(judged("a", Verdict::measured, when)));
    REQUIRE(merged.has_value());
    CHECK(merged->taken == (when == 101 ? 1 : 0));
    CHECK(merged->older == (when == 101 ? 0 : 1));
    CHECK(database.of("d0", "s")[0].when == (when == 101 ? 101 : 100));
  }
}

TEST_CASE("tuning database: every identity of a machine, its name and its lanes are in its digest") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  DeviceInfo device;
  std::vector<std::string> digests = {device_digest(device)};
  for (Pairs DeviceInfo::*const identity :
       {&DeviceInfo::device_identity, &DeviceInfo::driver_identity, &DeviceInfo::speed_identity}) {
    for (const Pairs& pairs : {Pairs{{"a", "b"}}, Pairs{{"a", "c"}}, Pairs{{"b", "b"}}}) {
      DeviceInfo other;
      other.*identity = pairs;
      digests.push_back(device_digest(other));
    }
  }
  device.simd_lanes = 8;
  digests.push_back(device_digest(device));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    CHECK(digests[i].size() == 32);
    for (std::size_t j = 0; j < i; ++j) CHECK(digests[i] != digests[j]);
  }
  const std::string digest = device_digest(device);
  device.id = "opengl:7", device.name = "another name", device.max_bindings = 99;
  CHECK(device_digest(device) == digest);
}

TEST_CASE("choice: the winner of a shape serves less than four doublings away") {
  const Conv2dSpec spec = batch_of(1);
  const std::string own = default_variant(spec, sample_device());
  const double own_cost = predicted_run(spec, sample_device(), own).value();
  std::string theirs;  // fits all of them, and the model sees nothing against it
  for (const Candidate& each : conv_space(spec, sample_device())) {
    if (each.variant == own || each.predicted > 1.2 * own_cost) continue;
    if (plan_of(batch_of(16), sample_device(), Dialect::glsl, each.variant)) theirs = each.variant;
  }
  REQUIRE_FALSE(theirs.empty());
  const auto served = [&](std::int64_t images) {
    TuningDatabase database({});
    REQUIRE(database.put({winner_of(batch_of(images), theirs)}).ok());
    return choose(spec, sample_device(), Dialect::glsl, database).value().plan.variant;
  };
  CHECK(distance(spec, batch_of(16)).value() == 4);
  CHECK(served(8) == theirs);
  CHECK(served(15) == theirs);
  CHECK(served(16) == own);
}

TEST_CASE("dynamic_shaders::drift: a run is slow above one and a half times, and told from the span on") {
  const auto told = [](std::uint64_t device_ns, std::uint64_t last_ns) {
    DriftWatch watch(std::chrono::nanoseconds(100));
    const auto find = [] { return DriftWatch::Winner{"fast", 1000}; };
    for (int i = 0; i < 7; ++i) CHECK_FALSE(watch.drifts("d", GemmSpec{1, 2, 3}, 0, "fast", device_ns, 50, find));
    return watch.drifts("d", GemmSpec{1, 2, 3}, 0, "fast", device_ns, last_ns, find);
  };
  CHECK(told(1501, 150));
  CHECK_FALSE(told(1501, 149));
  CHECK_FALSE(told(1500, 150));
}

TEST_CASE("dynamic_shaders::drift: as many shapes are watched as there is room for, then it begins anew") {
  const auto told = [](std::int64_t others) {
    DriftWatch watch(std::chrono::nanoseconds(0));
    const auto find = [] { return DriftWatch::Winner{"fast", 1000}; };
    for (int i = 0; i < 7; ++i) CHECK_FALSE(watch.drifts("d", GemmSpec{1, 1, 1}, 0, "fast", 9000, 0, find));
    for (std::int64_t i = 0; i < others; ++i) watch.drifts("d", GemmSpec{2, 1, 1 + i}, 0, "fast", 9000, 0, find);
    return watch.drifts("d", GemmSpec{1, 1, 1}, 0, "fast", 9000, 0, find);
  };
  CHECK(told(4094));
  CHECK_FALSE(told(4095));
}

TEST_CASE("dynamic_shaders::drift: specs of one hash are told apart") {
  DriftWatch watch(std::chrono::nanoseconds(0));
  int lookups = 0;
  const auto find = [&] {
    ++lookups;
    return DriftWatch::Winner{"fast", 1000};
  };
  Conv2dSpec spec = batch_of(1), padded = spec;
  padded.dilation_x = 2;  // no part of the hash
  for (int i = 0; i < 7; ++i) CHECK_FALSE(watch.drifts("d", spec, 0, "fast", 9000, 0, find));
  CHECK_FALSE(watch.drifts("d", padded, 0, "fast", 9000, 0, find));
  CHECK_FALSE(watch.drifts("d", std::string("user"), 0, "fast", 9000, 0, find));
  CHECK(watch.drifts("d", spec, 0, "fast", 9000, 0, find));
  CHECK(lookups == 3);
}

}  // namespace kiln::dynamic_shaders

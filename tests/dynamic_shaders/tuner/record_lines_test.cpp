// Lines of the tuning database, and what of another one is taken in.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include <kiln/digest.hpp>

#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {
namespace {

const std::string head = "kiln-tuning 1\n";

// The fields with a checksum that is right.
std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += field + "\t";
  return line + sha256(line).hex().substr(0, 16) + "\n";
}

std::vector<std::string> good_fields() {
  return {"d0", "gemm m=1", "gemm/plain", "winner", "1700000000", "abc", "0.5", "0.25", "100,200", "", "slow"};
}

TuningRecord winner(const std::string& variant, std::uint64_t when) {
  TuningRecord record;
  record.device = "d0", record.spec = "s", record.variant = variant, record.verdict = Verdict::winner;
  record.when = when, record.source = "abc", record.wall_ns = {when};
  return record;
}

std::string text_of(const std::vector<TuningRecord>& records) {
  std::string text = head;
  for (const TuningRecord& record : records) text += to_line(record);
  return text;
}

}  // namespace

TEST_CASE("tuning database: the fields of a line, in their order") {
  const auto record = record_of(line_of(good_fields()));
  REQUIRE(record.has_value());
  CHECK(record->device == "d0");
  CHECK(record->spec == "gemm m=1");
  CHECK(record->variant == "gemm/plain");
  CHECK(record->verdict == Verdict::winner);
  CHECK(record->when == 1700000000);
  CHECK(record->source == "abc");
  CHECK(record->max_rel_error == 0.5);
  CHECK(record->error_bound == 0.25);
  CHECK(record->wall_ns == std::vector<std::uint64_t>{100, 200});
  CHECK(record->device_ns.empty());
  CHECK(record->why == "slow");
  CHECK(record->stale());
  CHECK(to_line(*record) == line_of(good_fields()));
  const char* const words[] = {"measured", "winner", "rejected", "outvoted", "foreign"};
  for (std::size_t i = 0; i < 5; ++i) {
    std::vector<std::string> fields = good_fields();
    fields[3] = words[i];
    REQUIRE(record_of(line_of(fields)).has_value());
    CHECK(record_of(line_of(fields))->verdict == static_cast<Verdict>(i + 1));
    CHECK(record_of(line_of(fields))->is_refused() == (i == 2 || i == 3));
    CHECK(record_of(line_of(fields))->stale() == (i == 1));
  }
}

TEST_CASE("tuning database: a line with a right checksum may still be none") {
  const auto read = [](std::size_t field, const std::string& value) {
    std::vector<std::string> fields = good_fields();
    fields[field] = value;
    return record_of(line_of(fields)).has_value();
  };
  for (const char* wrong : {"", "invalid", "won"}) CHECK_FALSE(read(3, wrong));
  for (const char* wrong : {"", "-1", "1x", "18446744073709551616"}) CHECK_FALSE(read(4, wrong));
  CHECK(read(4, "18446744073709551615"));
  for (const std::size_t field : {6U, 7U}) {
    CHECK(read(field, "1e-7"));
    for (const char* wrong : {"", "x", "1e-7 "}) CHECK_FALSE(read(field, wrong));
  }
  for (const std::size_t field : {8U, 9U}) {
    CHECK(read(field, ""));
    CHECK(read(field, "7"));
    for (const char* wrong : {"x", "1,x", "1,,2", "1;2", "-1"}) CHECK_FALSE(read(field, wrong));
    std::string many = "1";
    for (int i = 1; i < 1000; ++i) many += ",1";
    CHECK(read(field, many));
    CHECK_FALSE(read(field, many + ",1"));
  }
  std::vector<std::string> fields = good_fields();
  fields.pop_back();
  CHECK_FALSE(record_of(line_of(fields)).has_value());
  fields = good_fields();
  fields.push_back("basis");
  CHECK(record_of(line_of(fields))->basis == "basis");
  fields.push_back("more");
  CHECK_FALSE(record_of(line_of(fields)).has_value());
  CHECK_FALSE(record_of("").has_value());
  CHECK_FALSE(record_of("no tab").has_value());
}

TEST_CASE("tuning database: characters that end a field are spaces in it") {
  TuningRecord record = winner("v", 1);
  record.why =
      "a\tb\nc\x7f"
      "d\x1f"
      "e f~\x80";
  const auto back = record_of(to_line(record));
  REQUIRE(back.has_value());
  CHECK(back->why == "a b c d e f~\x80");
}

TEST_CASE("tuning database: lines that are damaged are counted in whatever is taken in") {
  TuningDatabase database({});
  const std::string text = text_of({winner("a", 5)}) + "half a li\n" + text_of({winner("b", 6)}).substr(head.size());
  const auto merged = database.merge(text);
  REQUIRE(merged.has_value());
  CHECK(merged->taken == 2);
  CHECK(merged->damaged == 1);
  CHECK(merged->older == 0);
  CHECK(database.winner("d0", "s")->variant == "b");
  CHECK(database.of("d0", "s").size() == 2);
  TuningDatabase other({});
  const auto foreign = other.merge_foreign(text, "d0");
  REQUIRE(foreign.has_value());
  CHECK(foreign->damaged == 1);
  for (const char* none : {"", "kiln-tuning 1", "kiln-tuning 2\n"}) {
    CHECK(database.merge(none).error().code == StatusCode::corrupt);
    CHECK(database.merge_foreign(none, "d0").error().code == StatusCode::corrupt);
  }
  CHECK(database.merge(head)->taken == 0);
}

TEST_CASE("tuning database: of a shape's winners elsewhere the newest is kept and passed on, whatever came first") {
  for (const bool newest_first : {false, true}) {
    CAPTURE(newest_first);
    TuningDatabase database({});
    const std::vector<TuningRecord> both = newest_first ? std::vector{winner("new", 9), winner("old", 5)}
                                                        : std::vector{winner("old", 5), winner("new", 9)};
    for (const TuningRecord& each : both) REQUIRE(database.merge_foreign(text_of({each}), "d0").has_value());
    REQUIRE(database.foreign("d0", "s").has_value());
    CHECK(database.foreign("d0", "s")->variant == "new");
    CHECK(database.of("d0", "s").size() == 1);
    CHECK(database.winners_text("d0") == text_of({winner("new", 9)}));
    CHECK(database.merge_foreign(text_of({winner("same age", 9)}), "d0")->older == 1);
    CHECK(database.merge_foreign(text_of({winner("newer", 10)}), "d0")->taken == 1);
    CHECK(database.foreign("d0", "s")->variant == "newer");
    CHECK_FALSE(database.winner("d0", "s").has_value());
    CHECK_FALSE(database.has_winners());
    // A winner of this machine takes its place.
    REQUIRE(database.put({winner("own", 1)}).ok());
    CHECK_FALSE(database.foreign("d0", "s").has_value());
    CHECK(database.has_winners());
    CHECK(database.winners_text("d0") == text_of({winner("own", 1)}));
  }
}

TEST_CASE("tuning database: only winners that hold are taken from elsewhere") {
  TuningDatabase database({});
  TuningRecord stale = winner("a", 5), measured = winner("b", 5), other = winner("c", 5);
  stale.why = "slow now";
  measured.verdict = Verdict::measured;
  other.device = "d1";
  const auto merged = database.merge_foreign(text_of({stale, measured, other}), "d0");
  REQUIRE(merged.has_value());
  CHECK(merged->taken == 0);
  CHECK(merged->older == 3);
  CHECK(database.winners_text("d0").empty());
}

TEST_CASE("tuning database: what is identified of a device, its driver and its speed makes it another machine") {
  const DeviceInfo base = sample_device();
  std::vector<std::string> digests{device_digest(base)};
  for (const auto identity :
       {&DeviceInfo::device_identity, &DeviceInfo::driver_identity, &DeviceInfo::speed_identity}) {
    for (const char* value : {"1", "2"}) {
      DeviceInfo device = base;
      (device.*identity).emplace_back("name", value);
      digests.push_back(device_digest(device));
    }
  }
  DeviceInfo wider = base;
  wider.simd_lanes += 8;
  digests.push_back(device_digest(wider));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    CHECK(digests[i].size() == 32);
    for (std::size_t j = 0; j < i; ++j) CHECK(digests[i] != digests[j]);
  }
  DeviceInfo named = base;
  named.id = "vulkan:3", named.name = "another name";  // which are no part of it
  CHECK(device_digest(named) == digests[0]);
}

}  // namespace kiln::dynamic_shaders

// What administration shows of a model and takes from it; how models of two processes become one, arm by arm.
#include "core/selector/candidates.hpp"

#include "selector/model_store.hpp"

#include <kiln/selector_admin.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <variant>

using namespace kiln;
using namespace kiln::selector;
using namespace kiln::test;

namespace {

const ArmKey key_a{"gemm", "a", "driver 1", "full @20.0/16"}, key_b{"gemm", "b", "", "full @20.0/16"};

Arm arm_of_runs(double mean, std::uint64_t count) {
  Arm arm;
  arm.run.log_ns = {mean, 0, count};
  arm.run.weight = count;
  return arm;
}

// The text with the digest in front that record_of() found to be right.
std::string with_digest(const std::string& body) {
  const auto refused = record_of("0000000000000000 " + body, 1);
  const auto* const why = std::get_if<RejectedRecord>(&refused);
  REQUIRE(why != nullptr);
  return why->found + " " + body;
}

// The arm of key_a where each of the three has one; nullptr: it has none.
std::map<ArmKey, Arm> merged_of(const Arm* stored, const Arm* base, const Arm* mine) {
  const auto only = [](const Arm* arm) {
    std::map<ArmKey, Arm> arms;
    if (arm != nullptr) arms[key_a] = *arm;
    return arms;
  };
  return merged(only(stored), only(base), only(mine), 0.1);
}

}  // namespace

TEST_CASE("selector admin: each figure of an arm is shown", "[selector]") {
  const TemporaryFolder folder;
  Arm arm;
  arm.run.log_ns = {std::log(2e6), 0.01, 8};
  arm.run.alarms = 3;
  arm.log_transfer = {std::log(5e5), 0, 4};
  arm.log_first = {std::log(9e6), 0, 2};
  arm.looks = 1;
  arm.used = 77;
  Arm looked;
  looked.looks = 2;
  REQUIRE(write_model(folder.path() / "selector.model", {{key_a, arm}, {key_b, looked}}, {{"contended", 5}}).ok());
  const auto model = read_selector_model(folder.path());
  REQUIRE(model);
  CHECK(model->file == folder.path() / "selector.model");
  CHECK(model->exists);
  CHECK(model->not_learned == std::map<std::string, std::uint64_t>{{"contended", 5}});
  CHECK(model->rejected.empty());
  REQUIRE(model->arms.size() == 2);
  const LearnedArm &a = model->arms[0], &b = model->arms[1];
  CHECK(a.operation == "gemm");
  CHECK(a.device == "a");
  CHECK(a.driver == "driver 1");
  CHECK(a.shape == "full @20.0/16");
  CHECK(a.runs == 8);
  CHECK(a.run_ns == Approx(2e6));
  CHECK(a.deviation == Approx(std::sqrt((0.01 * 8 + 0.09) / 9)));
  CHECK(a.transfer_ns == Approx(5e5));
  CHECK(a.first_runs == 2);
  CHECK(a.first_ns == Approx(9e6));
  CHECK(a.looks == 1);
  CHECK(a.alarms == 3);
  CHECK(a.used_us == 77);
  CHECK(b.device == "b");
  CHECK(b.looks == 2);
  CHECK(b.runs == 0);
  CHECK(b.run_ns == 0);
  CHECK(b.deviation == 0);
  CHECK(b.transfer_ns == 0);
  CHECK(b.first_runs == 0);
  CHECK(b.first_ns == 0);
}

TEST_CASE("selector admin: one run of a kind is enough to be shown", "[selector]") {
  const TemporaryFolder folder;
  Arm arm = arm_of_runs(std::log(2e6), 1);
  arm.log_transfer = {std::log(5e5), 0, 1};
  arm.log_first = {std::log(9e6), 0, 1};
  REQUIRE(write_model(folder.path() / "selector.model", {{key_a, arm}}, {}).ok());
  const auto model = read_selector_model(folder.path());
  REQUIRE(model);
  REQUIRE(model->arms.size() == 1);
  CHECK(model->arms[0].run_ns == Approx(2e6));
  CHECK(model->arms[0].deviation == Approx(0.3 / std::sqrt(2.0)));
  CHECK(model->arms[0].transfer_ns == Approx(5e5));
  CHECK(model->arms[0].first_ns == Approx(9e6));
}

TEST_CASE("selector admin: a reset of one device keeps what was not learned, a reset of all does not", "[selector]") {
  const TemporaryFolder folder;
  const Arm arm = arm_of_runs(14, 3);
  REQUIRE(write_model(folder.path() / "selector.model", {{key_a, arm}, {key_b, arm}}, {{"contended", 5}}).ok());
  const auto one = reset_selector_model(folder.path(), "b");
  REQUIRE(one);
  CHECK(one->removed == 1);
  CHECK(one->kept == 1);
  CHECK(read_selector_model(folder.path())->not_learned.at("contended") == 5);
  const auto nothing = reset_selector_model(folder.path(), "b");
  REQUIRE(nothing);
  CHECK(nothing->removed == 0);
  CHECK(nothing->kept == 1);
  const auto all = reset_selector_model(folder.path(), "");
  REQUIRE(all);
  CHECK(all->removed == 1);
  CHECK(all->kept == 0);
  const auto model = read_selector_model(folder.path());
  REQUIRE(model);
  CHECK(model->exists);
  CHECK(model->arms.empty());
  CHECK(model->not_learned.empty());
}

TEST_CASE("selector admin: a model that cannot be read can be reset as a whole alone", "[selector]") {
  const TemporaryFolder folder, elsewhere;
  const auto file = folder.path() / "selector.model";
  REQUIRE(write_model(elsewhere.path() / "model", {{key_a, arm_of_runs(14, 3)}}, {}).ok());
  std::filesystem::create_symlink(elsewhere.path() / "model", file);
  CHECK_FALSE(read_selector_model(folder.path()));
  CHECK_FALSE(reset_selector_model(folder.path(), "a"));
  const auto all = reset_selector_model(folder.path(), "");
  REQUIRE(all);
  CHECK(all->removed == 0);
  const auto model = read_selector_model(folder.path());
  REQUIRE(model);
  CHECK(model->arms.empty());
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(file)));
}

TEST_CASE("selector store: several refused records are told by the first of them", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  REQUIRE(write_model(file, {{key_a, arm_of_runs(14, 3)}}, {}).ok());
  for (const bool several : {false, true}) {
    std::ofstream(file, std::ios::app) << (several ? "two\n" : "one\n");
    Lines lines;
    CHECK(ModelStore(folder.path(), {&lines, LogLevel::info}).load().size() == 1);
    REQUIRE(lines.all.size() == 1);
    CHECK(lines.all[0] == "file " + file.string() + (several ? ": 2 of 3" : ": 1 of 2") +
                              " records ignored: line 3: frame: expected 16 hexadecimal digits, a space, a record, "
                              "found one" +
                              (several ? "; and others" : ""));
  }
}

TEST_CASE("selector store: a record at its limits is read as it was", "[selector]") {
  const std::string longest(1024, 'x');
  Arm arm = arm_of_runs(60, 1);
  arm.run.log_ns.count = arm.run.weight = arm.used = std::uint64_t{1} << 53;
  arm.run.log_ns.variance = arm.run.widening = 3600;
  arm.run.alarms = arm.looks = std::numeric_limits<std::uint32_t>::max();
  arm.log_transfer = {60, 3600, std::uint64_t{1} << 53};
  arm.log_first = {0, 3599.5, 2};
  arm.log_flops = arm.log_bytes = 60;
  const auto record = record_of(line_of({longest, longest, longest, longest}, arm), 2);
  const auto* const read = std::get_if<KeyedArm>(&record);
  REQUIRE(read != nullptr);
  CHECK(read->first.driver == longest);
  CHECK(read->second.run.log_ns.mean == 60);
  CHECK(read->second.run.log_ns.variance == 3600);
  CHECK(read->second.run.weight == 9007199254740992);
  CHECK(read->second.log_transfer.mean == 60);
  CHECK(read->second.log_transfer.variance == 3600);
  CHECK(read->second.log_transfer.count == 9007199254740992);
  CHECK(read->second.log_first.variance == 3599.5);
  CHECK(read->second.log_first.count == 2);
  CHECK(read->second.looks == 4294967295);
  const auto refused = record_of(line_of({longest, longest + "x", longest, longest}, arm), 2);
  const auto* const why = std::get_if<RejectedRecord>(&refused);
  REQUIRE(why != nullptr);
  CHECK(why->text() == "line 2: field device: expected at most 1024 bytes, found 1025 bytes");
}

TEST_CASE("selector store: the shortest record is a digest, a space and one byte", "[selector]") {
  const std::pair<std::string, std::string> lines[] = {
      {with_digest("5"), "line 7: json: expected an object, found 5"},
      {"0000000000000000 ",
       "line 7: frame: expected 16 hexadecimal digits, a space, a record, found 0000000000000000 "},
      {"0123456789abcdef0",
       "line 7: frame: expected 16 hexadecimal digits, a space, a record, found 0123456789abcdef0"},
      {"0123456789abcdef05",
       "line 7: frame: expected 16 hexadecimal digits, a space, a record, found 0123456789abcdef05"}};
  for (const auto& [line, text] : lines) {
    const auto refused = record_of(line, 7);
    const auto* const why = std::get_if<RejectedRecord>(&refused);
    REQUIRE(why != nullptr);
    CHECK(why->text() == text);
  }
}

TEST_CASE("selector store: what keeps a model from being written is said with the file", "[selector]") {
  const TemporaryFolder folder;
  const std::string in = "file " + (folder.path() / "selector.model").string();
  std::string why;
  SECTION("a folder in the place of the unfinished file") {
    std::filesystem::create_directory(folder.path() / "selector.model.new");
    why = in + ".new: cannot be created: File exists";
  }
  SECTION("a folder in the place of the file") {
    std::filesystem::create_directory(folder.path() / "selector.model");
    why = in + ".new: cannot be renamed: Is a directory";
  }
  SECTION("a link in the place of the lock") {
    std::filesystem::create_symlink(folder.path() / "elsewhere", folder.path() / "selector.lock");
    std::ofstream(folder.path() / "selector.model") << "kiln selector model 2\n";
    const auto reset = reset_selector_model(folder.path(), "");
    REQUIRE_FALSE(reset);
    why = "file " + (folder.path() / "selector.lock").string() + ": Too many levels of symbolic links";
    CHECK(reset.error().message == why);
  }
  Lines lines;
  ModelStore store(folder.path(), {&lines, LogLevel::info});
  CHECK_FALSE(store.merge({{key_a, arm_of_runs(14, 3)}}, {}));
  CHECK_FALSE(store.merge({{key_a, arm_of_runs(14, 3)}}, {}));
  CHECK(lines.all == std::vector<std::string>{"the learned model stays in memory only: " + why});
  CHECK(std::filesystem::exists(folder.path() / "selector.model.new") == (why.find("created") != std::string::npos));
}

TEST_CASE("selector store: what a process that was killed left unfinished is written over", "[selector]") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "selector.model.new") << "half a line";
  REQUIRE(ModelStore(folder.path(), {}).merge({{key_a, arm_of_runs(14, 3)}}, {}));
  const auto read = read_model(folder.path() / "selector.model");
  REQUIRE(read);
  CHECK(read->arms.size() == 1);
  CHECK(read->rejected.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.model.new"));
}

TEST_CASE("selector store: a process that read the file brings what it learned since", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  const ArmKey key_c{"gemm", "c", "", "full @20.0/16"};
  REQUIRE(write_model(file, {{key_a, arm_of_runs(14, 3)}}, {{"contended", 2}}).ok());
  ModelStore one(folder.path(), {}), two(folder.path(), {});
  auto mine = one.load();
  REQUIRE(mine.size() == 1);
  const bool beside = GENERATE(false, true);
  CAPTURE(beside);
  if (beside) {
    REQUIRE(two.load().size() == 1);
    REQUIRE(two.merge({{key_a, arm_of_runs(14, 3)}, {key_c, arm_of_runs(12, 7)}}, {{"contended", 1}}));
  }
  mine[key_b] = arm_of_runs(13, 5);
  const auto all = one.merge(mine, {{"contended", 4}});
  REQUIRE(all);
  CHECK(all->size() == (beside ? 3u : 2u));
  REQUIRE(one.merge(mine, {}));  // nothing more was learned or counted
  const auto read = read_model(file);
  REQUIRE(read);
  REQUIRE(read->arms.size() == (beside ? 3u : 2u));
  CHECK(read->arms.at(key_a).run.log_ns.count == 3);
  CHECK(read->arms.at(key_b).run.log_ns.count == 5);
  if (beside) CHECK(read->arms.at(key_c).run.log_ns.count == 7);
  CHECK(read->unfit == UnfitCounts{{"contended", beside ? 7u : 6u}});
}

TEST_CASE("selector store: a file and a merge hold at most 4096 arms", "[selector]") {
  std::map<ArmKey, Arm> arms;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    Arm arm = arm_of_runs(14, 3);
    arm.used = i + 10;
    arms[{"gemm", "a", "", std::to_string(i)}] = arm;
  }
  Arm newest = arm_of_runs(14, 3);
  newest.used = 5000;
  const auto all = merged(arms, {}, {{key_b, newest}}, 0.1);
  CHECK(all.size() == 4096);
  CHECK(all.contains(key_b));
  CHECK_FALSE(all.contains({"gemm", "a", "", "0"}));  // the one that was used the longest ago
  arms[key_b] = newest;
  const TemporaryFolder folder;
  REQUIRE(write_model(folder.path() / "selector.model", arms, {}).ok());
  const auto read = read_model(folder.path() / "selector.model");
  REQUIRE(read);
  CHECK(read->arms.size() == 4096);
  CHECK(read->arms.contains(key_b));
  CHECK_FALSE(read->arms.contains({"gemm", "a", "", "0"}));
  PerformanceModel model(0.1);
  model.replace(arms);
  CHECK(model.arms().size() == 4096);
  CHECK_FALSE(model.arms().contains({"gemm", "a", "", "0"}));
}

// Samples of 10, then samples of 16: what came since is 16, no matter how many of them the average forgot.
TEST_CASE("selector store: what came in since the last merge is that of its samples alone", "[selector]") {
  const std::pair<int, int> counts[] = {{0, 3}, {1, 4}, {5, 15}, {9, 1}, {20, 10}, {12, 1}};
  for (const auto& [before, since] : counts) {
    CAPTURE(before, since);
    Arm base, mine;
    for (int i = 0; i < before; ++i) base.log_first.add(10, 0.1);
    mine.log_first = base.log_first;
    for (int i = 0; i < since; ++i) mine.log_first.add(16, 0.1);
    const auto found = merged_of(nullptr, &base, &mine);
    REQUIRE(found.size() == 1);
    CHECK(found.at(key_a).log_first.mean == Approx(16));
    CHECK(found.at(key_a).log_first.count == static_cast<std::uint64_t>(since));
  }
}

TEST_CASE("selector store: of unfit runs at most 64 reasons are counted", "[selector]") {
  UnfitCounts counts;
  for (int i = 0; i < 64; ++i) counts["reason " + std::to_string(i)] = 1;
  CHECK(std::holds_alternative<UnfitCounts>(record_of(line_of(counts), 2)));
  counts["one more"] = 1;
  CHECK(std::holds_alternative<RejectedRecord>(record_of(line_of(counts), 2)));
}

// By hand: 4 runs of mean 10 were there, and 6 of mean 12 with them; 2 of mean 16 brought that about. Samples have
// equal weight, for there are ten at most.
TEST_CASE("selector store: an arm of two processes", "[selector]") {
  const Arm base = arm_of_runs(10, 4);
  Arm mine = arm_of_runs(12, 6), stored = base;
  SECTION("that the other left as it was is this one's") {
    mine.run.widening = 0.5;
    stored.run.widening = 0.7;
    stored.used = GENERATE(0u, 9u);
    const Arm found = merged_of(&stored, &base, &mine).at(key_a);
    CHECK(found.run.log_ns.mean == 12);
    CHECK(found.run.log_ns.count == 6);
    CHECK(found.run.weight == 6);
    CHECK(found.run.widening == 0.5);
  }
  SECTION("that the other learned too has the runs of both") {
    stored = arm_of_runs(11, 8);
    stored.run.widening = 0.7;
    mine.run.widening = 0.5;
    stored.used = 5;
    mine.used = 4;
    stored.log_flops = 20;
    const Arm found = merged_of(&stored, &base, &mine).at(key_a);
    CHECK(found.run.log_ns.count == 10);
    CHECK(found.run.log_ns.mean == Approx((8 * 11 + 2 * 16) / 10.0));
    CHECK(found.run.weight == 10);
    CHECK(found.run.widening == 0.7);
    CHECK(found.used == 5);
    CHECK(found.log_flops == 20);  // of the one that was used last
    mine.used = 5;
    mine.log_flops = 21;
    mine.run.slower.runs = 3;
    mine.run.faster.sum = 1.5;
    CHECK(merged_of(&stored, &base, &mine).at(key_a).log_flops == 21);
    CHECK(merged_of(&stored, &base, &mine).at(key_a).run.widening == 0.7);
    stored.used = 6;
    const Arm later = merged_of(&stored, &base, &mine).at(key_a);
    CHECK(later.log_flops == 20);
    CHECK(later.run.slower.runs == 3);  // what this process watches
    CHECK(later.run.faster.sum == 1.5);
  }
  SECTION("that the other removed has what came since") {
    Arm before = base;
    before.log_transfer = {10, 0, 4};
    mine.log_transfer = {12, 0, 6};
    mine.log_first = {15, 0, 1};
    mine.looks = 2;
    const Arm found = merged_of(nullptr, &before, &mine).at(key_a);
    CHECK(found.log_transfer.count == 2);
    CHECK(found.log_transfer.mean == Approx(16));
    CHECK(found.run.log_ns.count == 2);
    CHECK(found.run.log_ns.mean == Approx(16));
    CHECK(found.run.weight == 2);
    CHECK(found.log_first.count == 1);
    CHECK(found.log_first.mean == 15);
    CHECK(found.looks == 2);
  }
  SECTION("that the other removed stays so where nothing came since") {
    CHECK(merged_of(nullptr, &base, &base).empty());
    Arm first = base, looked = base;
    first.log_first = {15, 0, 1};
    looked.looks = 1;
    for (const Arm& one : {first, looked}) {
      const auto found = merged_of(nullptr, &base, &one);
      REQUIRE(found.size() == 1);
      CHECK(found.at(key_a).run.log_ns.count == 0);
      CHECK(found.at(key_a).run.weight == 0);
    }
  }
  SECTION("after an alarm is of the runs since it") {
    mine = arm_of_runs(20, 6);
    mine.run.weight = 2;
    mine.run.alarms = 1;
    const Arm found = merged_of(nullptr, &base, &mine).at(key_a);
    CHECK(found.run.log_ns.mean == 20);
    CHECK(found.run.log_ns.count == 2);
    CHECK(found.run.weight == 2);
    CHECK(found.run.alarms == 1);
    stored = base;
    stored.run.alarms = 2;
    CHECK(merged_of(&stored, &base, &mine).at(key_a).run.alarms == 3);
    Arm before = base;
    before.run.alarms = 1;
    mine.run.alarms = 3;
    CHECK(merged_of(nullptr, &before, &mine).at(key_a).run.alarms == 2);
  }
  SECTION("that one of them alone has is taken") {
    CHECK(merged_of(nullptr, nullptr, &mine).at(key_a).run.log_ns.count == 6);
    CHECK(merged_of(&stored, nullptr, nullptr).at(key_a).run.log_ns.count == 4);
    CHECK(merged_of(&stored, &base, nullptr).at(key_a).run.log_ns.count == 4);
  }
}

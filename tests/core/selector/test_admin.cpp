// What administration shows of a model and takes from it; how models of two processes become one, arm by arm.
#include "core/selector/candidates.hpp"

#include "selector/model_store.hpp"

#include <kiln/selector_admin.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <map>

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
  std::ofstream(file, std::ios::app) << "one\ntwo\n";
  Lines lines;
  CHECK(ModelStore(folder.path(), {&lines, LogLevel::info}).load().size() == 1);
  REQUIRE(lines.all.size() == 1);
  CHECK(lines.all[0] == "file " + file.string() +
                            ": 2 of 3 records ignored: line 3: frame: expected 16 hexadecimal digits, a space, a "
                            "record, found one; and others");
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
  }
  SECTION("that the other removed has what came since") {
    mine.log_first = {15, 0, 1};
    mine.looks = 2;
    const Arm found = merged_of(nullptr, &base, &mine).at(key_a);
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
  }
  SECTION("that one of them alone has is taken") {
    CHECK(merged_of(nullptr, nullptr, &mine).at(key_a).run.log_ns.count == 6);
    CHECK(merged_of(&stored, nullptr, nullptr).at(key_a).run.log_ns.count == 4);
    CHECK(merged_of(&stored, &base, nullptr).at(key_a).run.log_ns.count == 4);
  }
}

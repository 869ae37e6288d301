#include "core/executor/jobs.hpp"

#include "executor/ring_executor.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

void check_refused(Executor& executor, Submission submission, StatusCode code, const std::vector<std::string>& words) {
  const auto fence = executor.submit(std::move(submission));
  REQUIRE_FALSE(fence);
  CHECK(fence.error().code == code);
  for (const std::string& word : words) CHECK_THAT(fence.error().message, Catch::Contains(word));
}

}  // namespace

TEST_CASE("executor: a wrong submission is refused with both sides of the mismatch", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const auto weights = constant_of({1, 2});
  const Submission good = weigh(device, {1, 2}, weights).submission;
  constexpr StatusCode wrong = StatusCode::invalid_argument;
  Submission bad = good;

  SECTION("no device") {
    bad.device = nullptr;
    check_refused(*executor, bad, wrong, {"no device"});
  }
  SECTION("no plan") {
    bad.plan = nullptr;
    check_refused(*executor, bad, wrong, {"no plan"});
  }
  SECTION("a plan that contradicts itself") {
    KernelPlan plan = *good.plan;
    plan.passes[0].bindings[0].index = 7;
    bad.plan = std::make_shared<const KernelPlan>(plan);
    check_refused(*executor, bad, StatusCode::internal, {"weigh", "index 7, expected an index below 3"});
  }
  SECTION("too few programs") {
    bad.programs.clear();
    check_refused(*executor, bad, wrong, {"weigh", "0 programs given, expected 1"});
  }
  SECTION("an empty program") {
    bad.programs[0] = {};
    check_refused(*executor, bad, wrong, {"programs: element 0 is empty"});
  }
  SECTION("prepare programs that the plan does not have") {
    bad.prepare_programs = good.programs;
    check_refused(*executor, bad, wrong, {"1 prepare programs given, expected 0"});
  }
  SECTION("too few tensors") {
    bad.tensors.pop_back();
    check_refused(*executor, bad, wrong, {"2 tensors given, expected 3"});
  }
  SECTION("a tensor of another size") {
    bad.tensors[0].host = tensor_of({1, 2, 3});
    check_refused(*executor, bad, wrong, {"tensor x", "12 bytes given, expected 8"});
  }
  SECTION("a Constant of another size") {
    bad.tensors[1].constant = constant_of({1});
    check_refused(*executor, bad, wrong, {"tensor w", "4 bytes given, expected 8"});
  }
  SECTION("a tensor where a Constant belongs") {
    bad.tensors[1] = {tensor_of({1, 2}), nullptr};
    check_refused(*executor, bad, wrong, {"tensor w", "a tensor given, expected a Constant"});
  }
  SECTION("a Constant where a tensor belongs") {
    bad.tensors[2] = {nullptr, weights};
    check_refused(*executor, bad, wrong, {"tensor y", "a Constant given, expected a tensor"});
  }
  SECTION("nothing at all") {
    bad.tensors[0] = {};
    check_refused(*executor, bad, wrong, {"tensor x", "nothing given"});
  }
  SECTION("both at once") {
    bad.tensors[0].constant = weights;
    check_refused(*executor, bad, wrong, {"tensor x", "expected only one"});
  }
  CHECK(device->submitted() == 0);
  CHECK(executor->wait(executor->submit(good).value(), Deadline::never()));
}

TEST_CASE("executor: in_flight is 1 to 16", "[executor]") {
  const auto in_flight = GENERATE(0u, 17u, 1000u);
  ExecutorContext context;
  context.config.in_flight = in_flight;
  const auto made = RingExecutor::create(context);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == StatusCode::invalid_argument);
  CHECK_THAT(made.error().message, Catch::Contains(std::to_string(in_flight)) && Catch::Contains("expected 1 to 16"));
}

TEST_CASE("executor: ring is core's, and registered once", "[executor]") {
  Registry registry;
  REQUIRE(register_ring_executor(registry).ok());
  const Status again = register_ring_executor(registry);
  CHECK(again.code == StatusCode::invalid_argument);
  CHECK_THAT(again.message, Catch::Contains("core"));
}

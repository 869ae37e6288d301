// Verification is worth what it refuses: a device that computes wrongly, at its first run or at its last alone, and one
// that writes nothing over an output that was right before.
#include "runtime/verification.hpp"

#include "core/runtime/told_selector.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;
using support::FixtureMapping;

namespace {

constexpr std::uint32_t runs = 3;

// A request to "alpha", each op with buffers that are the host's own memory, memory shown to the host, and neither.
struct Setting {
  RuntimeFixture fixture;
  RunRequest request;
  std::string memory = GENERATE(as<std::string>(), "wrapped", "shown", "apart");

  Setting() {
    request = GENERATE(0, 1) == 0 ? small_conv2d() : small_gemm();
    request.device = "alpha";
    request.repeat = runs;
    fixture.options("alpha").info.wraps_host_memory = memory == "wrapped";
    fixture.options("alpha").mapping = memory == "apart" ? FixtureMapping::not_mapped : FixtureMapping::mapped;
  }
};

void check_refused(const RunReport& report, std::uint32_t finished) {
  CHECK(report.status.code == StatusCode::wrong_result);
  CHECK_THAT(report.status.message, Contains("alpha") && Contains("wrong; worst in"));
  CHECK(report.device.id == "alpha");
  REQUIRE(report.verified.has_value());
  CHECK_FALSE(*report.verified);
  CHECK_FALSE(report.max_rel_error <= report.error_bound);
  CHECK(report.runs == finished);
}

std::shared_ptr<HostTensor> sevens() {
  auto tensor = HostTensor::create(DType::f32, {16}).value();
  std::ranges::fill(tensor->as<float>(), 7.0f);
  return tensor;
}

// The fixture's `copy`, from one inout to the other: both hold sevens afterwards.
RunRequest copy_of_sevens() {
  UserKernelSpec spec;
  spec.path = "copy.cl";
  spec.text = "copy";
  spec.dialect = Dialect::opencl_c;
  spec.bindings = {{Access::read_write, 64}, {Access::read_write, 64}};
  RunRequest request;
  request.name = "copy";
  request.device = "alpha";
  request.verify = true;
  request.spec = spec;
  request.tensors = {{sevens(), nullptr}, {HostTensor::create(DType::f32, {16}).value(), nullptr}};
  return request;
}

}  // namespace

TEST_CASE("verification: a wrong first output is refused at once") {
  Setting setting;
  CAPTURE(setting.request.name, setting.memory);
  setting.fixture.controls("alpha").wrong_at = 1;
  check_refused(setting.fixture.runtime().run(setting.request), 0);
  CHECK(setting.fixture.controls("alpha").runs == 1);
  CHECK(setting.fixture.runtime().run(setting.request).verified == true);
}

TEST_CASE("verification: an output that is wrong at the last run alone is refused") {
  Setting setting;
  CAPTURE(setting.request.name, setting.memory);
  setting.fixture.controls("alpha").wrong_at = runs;
  check_refused(setting.fixture.runtime().run(setting.request), runs - 1);
}

TEST_CASE("verification: a device that writes nothing does not pass by what lay there before") {
  Setting setting;
  CAPTURE(setting.request.name, setting.memory);
  const std::uint32_t idle = GENERATE(1u, runs);
  setting.fixture.controls("alpha").idle_at = runs + idle;
  REQUIRE(setting.fixture.runtime().run(setting.request).verified == true);
  check_refused(setting.fixture.runtime().run(setting.request), idle - 1);
}

TEST_CASE("verification: nothing is claimed of what nobody asked to compare") {
  Setting setting;
  CAPTURE(setting.request.name, setting.memory);
  setting.request.verify = false;
  setting.fixture.controls("alpha").wrong_at = 1;
  const RunReport report = setting.fixture.runtime().run(setting.request);
  CHECK(report.status.text() == "ok");
  CHECK_FALSE(report.verified.has_value());
}

TEST_CASE("verification: a result that cannot be compared is no failure of the device, and no other one is asked") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  Pool2dSpec mean;  // of so many elements that its reference has no bound
  mean.kind = PoolKind::average;
  mean.c = mean.h = mean.w = 1;
  mean.r = mean.s = 4097;
  mean.pad_y = mean.pad_x = 2048;
  RunRequest request;
  request.spec = mean;
  request.device = "alpha";
  request.verify = true;
  const auto one = [] { return TensorArgument{HostTensor::create(DType::f32, {1, 1, 1, 1}).value(), nullptr}; };
  request.tensors = {one(), one()};
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::unsupported);
  CHECK_THAT(report.status.message, Contains("the output could not be compared"));
  CHECK(report.notes.empty());
  CHECK(report.device.id == "alpha");
  CHECK(fixture.controls("beta").submits == 0);
  REQUIRE(told.runs.size() == 1);
  CHECK(told.runs[0].conditions.status.ok());

  request.device.clear();
  const auto recorded = fixture.runtime().record({request}, "alpha");
  REQUIRE(recorded);
  CHECK(fixture.runtime().replay(**recorded).status.code == StatusCode::unsupported);
  for (const DeviceInfo& device : fixture.runtime().known_devices()) CHECK(device.usable);
}

TEST_CASE("verification: a kept reference is the inputs' that it was made of, and refuses what is wrong") {
  Setting setting;
  CAPTURE(setting.request.name, setting.memory);
  setting.request.repeat = 1;
  auto reference = keep_reference(setting.request);
  REQUIRE(reference.has_value());
  const RunReport anew = setting.fixture.runtime().run(setting.request);
  setting.request.reference = *reference;
  const RunReport kept = setting.fixture.runtime().run(setting.request);
  CHECK(kept.verified == true);
  CHECK(kept.max_rel_error == anew.max_rel_error);
  CHECK(kept.error_bound == anew.error_bound);
  setting.fixture.controls("alpha").wrong_at = 3;
  check_refused(setting.fixture.runtime().run(setting.request), 0);
  for (float& value : setting.request.tensors[0].host->as<float>()) value += 1;
  setting.request.reference = nullptr;
  CHECK(setting.fixture.runtime().run(setting.request).verified == true);
  setting.request.reference = *reference;  // of other inputs, and not made anew
  check_refused(setting.fixture.runtime().run(setting.request), 0);
}

TEST_CASE("verification: every inout of a user's kernel is compared") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.dialects = {Dialect::library, Dialect::opencl_c};
  RunRequest request = copy_of_sevens();
  SECTION("all right") {
    request.expected = {{sevens(), {}}, {sevens(), {}}};
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.text() == "ok");
    CHECK(report.verified == true);
  }
  SECTION("the second alone is wrong") {
    request.expected = {{sevens(), {}}, {sevens(), {}}};
    fixture.controls("alpha").wrong_at = 1;
    check_refused(fixture.runtime().run(request), 0);
  }
  SECTION("what it computes is not the device's fault: the device serves on") {
    request.expected = {{sevens(), {}}, {sevens(), {}}};
    request.device = "alpha";
    for (std::uint64_t value = 1; value <= 4; ++value) {
      fixture.controls("alpha").wrong_at = value;
      check_refused(fixture.runtime().run(request), 0);
    }
  }
  SECTION("a reference for the first alone is refused before anything runs") {
    request.expected = {{sevens(), {}}};
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::invalid_argument);
    CHECK_THAT(report.status.message, Contains("1 expected tensors given, expected 2"));
    CHECK_FALSE(report.verified.has_value());
    CHECK(fixture.controls("alpha").submits == 0);
  }
}

TEST_CASE("verification: comparisons of several outputs add up, and of the wrong ones the first is told") {
  const auto compared = [](std::int64_t elements, std::int64_t wrong, std::int64_t worst, double found) {
    reference::Comparison comparison;
    comparison.elements = elements;
    comparison.wrong = wrong;
    comparison.within = wrong == 0;
    comparison.worst_index = worst;
    comparison.worst_found = found;
    comparison.worst_expected = 0.5;
    comparison.worst_allowed = 0.000122;
    comparison.max_rel_error = found;
    comparison.error_bound = 1 / found;
    return comparison;
  };
  Verdict verdict;
  add_comparison(verdict, compared(0, 0, 0, 8), {0}, "empty");
  CHECK(verdict.worst.output.empty());
  add_comparison(verdict, compared(24, 0, 17, 1), {2, 3, 4}, "right");
  CHECK(verdict.within);
  CHECK(verdict.worst.output == "right");
  CHECK(verdict.worst.index == Shape{1, 1, 1});
  add_comparison(verdict, compared(24, 0, 3, 2), {2, 3, 4}, "right too");
  CHECK(verdict.worst.output == "right");
  add_comparison(verdict, compared(6, 2, 5, 4), {2, 3}, "wrong");
  CHECK_FALSE(verdict.within);
  CHECK(verdict.worst.output == "wrong");
  CHECK(verdict.worst.index == Shape{1, 2});
  CHECK(verdict.worst.found == 4);
  CHECK(verdict.worst.expected == 0.5);
  CHECK(verdict.worst.allowed == 0.000122);
  add_comparison(verdict, compared(6, 1, 0, 3), {6}, "wrong too");
  add_comparison(verdict, compared(6, 0, 0, 3), {6}, "right at last");
  CHECK_FALSE(verdict.within);
  CHECK(verdict.worst.output == "wrong");
  CHECK(verdict.elements == 66);
  CHECK(verdict.wrong == 3);
  CHECK(verdict.max_rel_error == 8);
  CHECK(verdict.error_bound == 1);
  CHECK(wrong_text(verdict) ==
        "3 of 66 elements are wrong; worst in wrong at [1, 2]: found 4, expected 0.5, allowed error 0.000122");
  Verdict one;
  add_comparison(one, compared(1, 1, 0, 0.1), {1}, "y.npy");
  CHECK(wrong_text(one) ==
        "1 of 1 element is wrong; worst in y.npy at [0]: found 0.1, expected 0.5, allowed error 0.000122");
}

TEST_CASE("verification: a kernel without a reference cannot be verified, and what is poisoned are outputs alone") {
  RunRequest request = copy_of_sevens();
  CHECK(check_verifiable(request).message ==
        "verify: the results of job 'copy' have no reference to compare with. Give `expect` for a result, or leave "
        "verify out");
  request.expected = {{nullptr, {}}, {nullptr, {}}};
  CHECK(check_verifiable(request).code == StatusCode::invalid_argument);
  request.expected[1].tensor = sevens();
  CHECK(check_verifiable(request).ok());
  request.expected.clear();
  request.verify = false;
  CHECK(check_verifiable(request).ok());
  poison_outputs(request);  // it has inouts
  CHECK(request.tensors[0].host->as<float>()[15] == 7);
  CHECK(request.tensors[1].host->as<float>()[15] == 0);

  const RunRequest layer = small_gemm();
  CHECK(check_verifiable(layer).ok());
  poison_outputs(layer);
  const auto output = layer.tensors[2].host->as<float>();
  CHECK(std::ranges::count_if(output, [](float value) { return std::isnan(value); }) == 20);
  const auto input = layer.tensors[0].host->as<float>();
  CHECK(std::ranges::count_if(input, [](float value) { return std::isnan(value); }) == 0);
}

TEST_CASE("verification: a kernel's results with a reference are compared, by their own tolerance or the job's") {
  RunRequest request = copy_of_sevens();
  auto wrong = sevens();
  wrong->as<float>()[4] = 8;
  const auto within = [&] {
    const auto verdict = verify_outputs(request);
    REQUIRE(verdict);
    REQUIRE(verdict->has_value());
    return (*verdict)->within;
  };
  const auto first_wrong = [&] {
    const auto verdict = verify_outputs(request);
    REQUIRE(verdict);
    REQUIRE(verdict->has_value());
    return (*verdict)->worst.output;
  };
  std::ranges::fill(request.tensors[1].host->as<float>(), 7.0f);
  request.expected = {{nullptr, {}}, {wrong, {}}};
  CHECK_FALSE(within());
  CHECK(first_wrong() == "bindings[1]");
  request.expected[1].name = "second.npy";
  CHECK(first_wrong() == "second.npy");
  request.tolerance = Tolerance{1, 0};
  CHECK(within());
  request.expected[1].tolerance = Tolerance{0.5, 0};
  CHECK_FALSE(within());
  request.expected[1].tolerance = Tolerance{1, 0};
  request.tolerance.reset();
  CHECK(within());
  request.expected = {{nullptr, {}}, {nullptr, {}}};
  const auto nothing = verify_outputs(request);
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
  request.expected.clear();
  CHECK(verify_outputs(request).has_value());

  // What is only read has no reference.
  auto& bindings = std::get<UserKernelSpec>(request.spec).bindings;
  bindings[0].access = Access::read;
  bindings.insert(bindings.begin() + 1, UserKernelSpec::Binding{Access::read_write, 64, BindingKind::local});
  request.expected = {{sevens(), {}}};
  CHECK(within());
  CHECK(first_wrong() == "bindings[2]");
}

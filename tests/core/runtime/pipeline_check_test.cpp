// PipelineChecker: what it compares the results of a pipeline with, and what it reports of them.
#include "runtime/pipeline_check.hpp"

#include <kiln/pipeline.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

using namespace kiln;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<HostTensor> four(const std::vector<float>& values) {
  auto tensor = HostTensor::create(DType::f32, {4}).value();
  std::ranges::copy(values, tensor->as<float>().begin());
  return tensor;
}

PipelineStep relu_step(const std::string& name, const std::string& from, const std::string& to) {
  ActivationSpec spec;
  spec.shape = {4};
  return {name, spec, {{from, {}}, {to, {}}}};
}

PipelineStep add_step(const std::string& name, const std::string& a, const std::string& b, const std::string& to) {
  AddSpec spec;
  spec.shape = {4};
  return {name, spec, {{a, {}}, {b, {}}, {to, {}}}};
}

// y = max(x, 0) and z = x + w, and the results that a device has left in them.
struct CheckScene {
  std::shared_ptr<HostTensor> x = four({1, 2, 3, -8}), w = four({1, 2, 3, -8});
  std::shared_ptr<HostTensor> y = four({1, 2, 3, 0}), z = four({2, 4, 6, -16});
  PipelineRequest request;
  PipelineResults results;
  RunReport report;

  CheckScene() {
    request.pipeline.name = "pair";
    request.pipeline.tensors = {{"x", DType::f32, {4}, Access::read, x},
                                {"w", DType::f32, {4}, Access::read, w},
                                {"y", DType::f32, {4}, Access::write, y},
                                {"z", DType::f32, {4}, Access::write, z}};
    request.pipeline.steps = {relu_step("relu", "x", "y"), add_step("sum", "x", "w", "z")};
    request.check = PipelineCheck::final;
    report.device.id = "beta";
  }
  Status compare() {
    const auto made = schedule(request.pipeline);
    REQUIRE(made);
    return PipelineChecker(request, *made, results).compare(report);
  }
  Status check_request() const {
    const auto made = schedule(request.pipeline);
    REQUIRE(made);
    return PipelineChecker(request, *made, results).check_request();
  }
};

}  // namespace

TEST_CASE("pipeline check: right results are within the bound of the chain of references") {
  CheckScene scene;
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.verified == true);
  CHECK(scene.report.compared_elements == 8);
  CHECK(scene.report.wrong_elements == 0);
  CHECK(scene.report.max_rel_error == 0);
  CHECK(scene.report.error_bound > 0);
  CHECK(scene.report.error_bound < 1e-5);
  CHECK(scene.report.worst.has_value());
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.compared_elements == 8);  // of the last comparison

  scene.z->as<float>()[1] = 4.001f;
  CHECK(scene.compare().code == StatusCode::wrong_result);
  CHECK(scene.report.verified == false);
  CHECK(scene.report.wrong_elements == 1);
  scene.z->as<float>()[1] = 4;
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.verified == false);  // one run was wrong
}

TEST_CASE("pipeline check: an error is told relative to the largest element, the worst of all results") {
  CheckScene scene;
  scene.request.tolerance = Tolerance{0.75, 0};
  scene.y->as<float>()[1] = 2.5f;  // 0.5 of 3
  scene.z->as<float>()[3] = -16.5f;
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.max_rel_error == Approx(0.5 / 3));
  CHECK(scene.report.error_bound == Approx(0.25));
  REQUIRE(scene.report.worst);
  CHECK(scene.report.worst->output == "y");
  CHECK(scene.report.worst->index == Shape{1});
  CHECK(scene.report.worst->found == 2.5);
  CHECK(scene.report.worst->expected == 2);
  CHECK(scene.report.worst->allowed == 0.75);

  CheckScene other;
  other.request.tolerance = Tolerance{0.75, 0};
  other.request.expected = {{"z", {nullptr, Tolerance{10, 0.5}}}};  // its own
  other.y->as<float>()[1] = 2.5f;
  other.z->as<float>()[2] = 14;  // 8 of 16
  CHECK(other.compare().text() == "ok");
  CHECK(other.report.max_rel_error == Approx(0.5));
  CHECK(other.report.error_bound == Approx(0.5 + 10.0 / 16));
  REQUIRE(other.report.worst);
  CHECK(other.report.worst->output == "z");
  CHECK(other.report.worst->index == Shape{2});
}

TEST_CASE("pipeline check: the result that is wrong is told with its numbers") {
  CheckScene scene;
  scene.request.tolerance = Tolerance{0.75, 0};
  scene.y->as<float>()[1] = 4;
  CHECK(scene.compare().text() ==
        "wrong_result: beta: 1 of 4 elements is wrong; worst in y at [1]: found 4, expected 2, allowed error 0.75");
  CHECK(scene.report.verified == false);
  CHECK(scene.report.wrong_elements == 1);
  CHECK(scene.report.compared_elements == 4);  // the other was not looked at
}

TEST_CASE("pipeline check: results of zeros have no relative error") {
  CheckScene scene;
  std::ranges::fill(scene.x->as<float>(), -1.0f);
  std::ranges::fill(scene.w->as<float>(), 1.0f);
  std::ranges::fill(scene.y->as<float>(), 0.0f);
  std::ranges::fill(scene.z->as<float>(), 0.0f);
  scene.request.tolerance = Tolerance{0.5, 0.25};
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.max_rel_error == 0);
  CHECK(scene.report.error_bound == 0.25);
  scene.y->as<float>()[0] = 0.25f;
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.max_rel_error == 0);
}

TEST_CASE("pipeline check: what the application expects is compared under its name, and before the references") {
  CheckScene scene;
  scene.request.expected = {{"z", {four({2, 4, 6, -16}), {}, "z.npy"}}};
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.compared_elements == 12);  // z twice
  scene.request.expected = {{"z", {four({2, 4, 6, -20}), Tolerance{4, 0}, ""}}};
  CHECK(scene.compare().text() == "ok");
  scene.request.expected[0].output.tolerance = Tolerance{3, 0};
  CHECK(scene.compare().text() ==
        "wrong_result: beta: 1 of 4 elements is wrong; worst in z at [3]: found -16, expected -20, allowed error 3");
  scene.request.expected[0].output.name = "z.npy";
  CHECK_THAT(scene.compare().message, Contains("worst in z.npy at [3]"));
  scene.request.expected[0].output.tensor = HostTensor::create(DType::f32, {2, 2}).value();
  const Status other_shape = scene.compare();
  CHECK(other_shape.code == StatusCode::invalid_argument);
  CHECK_THAT(other_shape.message, Catch::StartsWith("tensor 'z.npy': "));
}

TEST_CASE("pipeline check: each result is compared with its own expectation, and the worst of them stays") {
  CheckScene scene;
  scene.request.tolerance = Tolerance{0.75, 0};
  scene.request.expected = {{"z", {four({2, 4, 6, -16}), {}, "z.npy"}}, {"y", {four({1, 2, 3, 0}), {}, "y.npy"}}};
  scene.y->as<float>()[1] = 2.5f;
  CHECK(scene.compare().text() == "ok");
  REQUIRE(scene.report.worst);
  CHECK(scene.report.worst->output != "z.npy");
  CHECK(scene.report.worst->found == 2.5);
  CheckScene alone;  // without references
  UserKernelSpec kernel;
  kernel.path = "copy.cl";
  kernel.text = "copy";
  kernel.dialect = Dialect::opencl_c;
  kernel.bindings = {{Access::read, 16}, {Access::write, 16}};
  alone.request.pipeline.steps[0].spec = kernel;
  alone.request.tolerance = scene.request.tolerance;
  alone.request.expected = scene.request.expected;
  alone.y->as<float>()[1] = 2.5f;
  CHECK(alone.compare().text() == "ok");
  REQUIRE(alone.report.worst);
  CHECK(alone.report.worst->output == "y.npy");
  scene.request.expected[1].output.tensor = four({1, 5, 3, 0});
  CHECK(scene.compare().text() ==
        "wrong_result: beta: 1 of 4 elements is wrong; worst in y.npy at [1]: found 2.5, expected 5, allowed error "
        "0.75");
}

TEST_CASE("pipeline check: the references begin with what a result held before the run") {
  CheckScene scene;
  scene.request.pipeline.tensors = {{"x", DType::f32, {4}, Access::read_write, scene.x},
                                    {"a", DType::f32, {4}},
                                    {"w", DType::f32, {4}, Access::read, scene.w}};
  scene.request.pipeline.steps = {relu_step("relu", "x", "a"), add_step("sum", "a", "w", "x")};
  const auto before = scene.x->bytes();
  scene.results.push_back({scene.x, {before.begin(), before.end()}});
  const std::vector<float> after = {2, 4, 6, -8};
  std::ranges::copy(after, scene.x->as<float>().begin());
  CHECK(scene.compare().text() == "ok");
  CHECK(scene.report.verified == true);
  CHECK(scene.report.compared_elements == 4);
}

TEST_CASE("pipeline check: a request has a host tensor for each input and result, and something to compare with") {
  CheckScene scene;
  CHECK(scene.check_request().ok());
  SECTION("no host tensor") {
    for (std::size_t at = 0; at < 4; ++at) {
      CheckScene lacking;
      PipelineTensor& tensor = lacking.request.pipeline.tensors[at];
      tensor.host = nullptr;
      CHECK(lacking.check_request().message == "tensor '" + tensor.name + "' has no host tensor to read or write");
    }
  }
  SECTION("no result") {
    scene.request.expected = {{"z", {}}, {"x", {}}};
    CHECK(scene.check_request().message == "expected: tensor 'x' is not a result of the pipeline");
    scene.request.expected[1].tensor = "absent";
    CHECK(scene.check_request().message == "expected: tensor 'absent' is not a result of the pipeline");
  }
  SECTION("no reference") {
    UserKernelSpec kernel;
    kernel.path = "copy.cl";
    kernel.text = "copy";
    kernel.dialect = Dialect::opencl_c;
    kernel.bindings = {{Access::read, 16}, {Access::write, 16}};
    scene.request.pipeline.steps[0].spec = kernel;
    CHECK(scene.check_request().message ==
          "verify: the results of pipeline 'pair' have no reference to compare with. Give `expect` for a result, or "
          "use --verify=steps");
    for (const PipelineCheck check : {PipelineCheck::none, PipelineCheck::steps}) {
      scene.request.check = check;
      CHECK(scene.check_request().ok());
    }
    scene.request.check = PipelineCheck::final;
    scene.request.expected = {{"y", {nullptr, Tolerance{1, 0}}}};
    CHECK_FALSE(scene.check_request().ok());
    scene.request.expected = {{"z", {four({0, 0, 0, 0}), {}}}};
    CHECK(scene.check_request().ok());
  }
}

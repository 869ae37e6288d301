// Chains in a pipeline: which runs become one program, and what stays inside.
#include "contract/pipeline_schedule.hpp"
#include "core/contract/pipeline_steps.hpp"

#include <catch2/catch.hpp>

using namespace kiln;

namespace {

using test::relu;
using test::sum;

const Shape row{6};

PipelineStep kernel(const std::string& name, const std::string& from, const std::string& to) {
  UserKernelSpec spec;
  spec.path = "copy.comp", spec.text = "void main() {}", spec.dialect = Dialect::glsl;
  spec.bindings = {{Access::read, 24}, {Access::write, 24}};
  return {name, spec, {{from, {}}, {to, {}}}};
}

Pipeline pipeline(std::vector<PipelineStep> steps, const std::vector<std::string>& inner) {
  Pipeline made;
  made.name = "p";
  made.tensors = {{"x", DType::f32, row, Access::read}, {"y", DType::f32, row, Access::write}};
  for (const std::string& name : inner) made.tensors.push_back({name, DType::f32, row});
  made.steps = std::move(steps);
  return made;
}

std::vector<ScheduleUnit> units(const Pipeline& made) {
  const auto scheduled = schedule(made);
  REQUIRE(scheduled);
  std::vector<bool> leaves;
  for (const PipelineTensor& tensor : made.tensors) leaves.push_back(tensor.access != Access::invalid);
  return units_of(*scheduled, leaves);
}

}  // namespace

TEST_CASE("pipeline chains: layers that follow one another are one unit, and its inner tensors stay inside") {
  const Pipeline made = pipeline({relu("1", "x", "a"), sum("2", "a", "x", "b"), relu("3", "b", "y")}, {"a", "b"});
  const auto found = units(made);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == 0);
  CHECK(found[0].count == 3);
  CHECK(validate(KernelSpec(found[0].chain)).text() == "ok");
  REQUIRE(found[0].tensors.size() == 2);
  CHECK(found[0].tensors[0].storage == 0);  // x
  CHECK(found[0].tensors[1].storage == 1);  // y
  CHECK(found[0].live_bytes == 24);         // element by element: b has the place of a
}

TEST_CASE("pipeline chains: a step that is no add or activation needs a place of its own for its result") {
  PipelineStep pool{"2", Pool2dSpec{}, {{"a", {}}, {"b", {}}}};
  auto& spec = std::get<Pool2dSpec>(pool.spec);
  spec.c = 1, spec.h = 1, spec.w = 6, spec.r = 1, spec.s = 1;
  const Shape plane{1, 1, 1, 6};
  const auto on_plane = [](PipelineStep step) {
    std::get<ActivationSpec>(step.spec).shape = {1, 1, 1, 6};
    return step;
  };
  Pipeline made = pipeline({on_plane(relu("1", "x", "a")), pool, on_plane(relu("3", "b", "y"))}, {"a", "b"});
  for (PipelineTensor& tensor : made.tensors) tensor.shape = plane;
  const auto found = units(made);
  REQUIRE(found.size() == 1);
  CHECK(found[0].live_bytes == 2 * 24);
}

TEST_CASE("pipeline chains: a tensor that a product reads as a matrix keeps its dimensions") {
  const Shape image{1, 2, 1, 3};
  GemmSpec product{1, 2, 6};
  const PipelineStep first{
      "1",
      product,
      {{"x", {}}, {"", {nullptr, Constant::create(HostTensor::create(DType::f32, {6, 2}).value())}}, {"z", {}}}};
  PipelineStep second = relu("2", "x", "y");
  std::get<ActivationSpec>(second.spec).shape = {1, 2, 1, 3};
  Pipeline made = pipeline({first, second}, {});
  for (PipelineTensor& tensor : made.tensors) tensor.shape = image;
  made.tensors.push_back({"z", DType::f32, {1, 2}, Access::write});
  const auto found = units(made);
  REQUIRE(found.size() == 1);
  CHECK(found[0].chain.tensors[0].shape == image);
  CHECK(validate(KernelSpec(found[0].chain)).text() == "ok");
}

TEST_CASE("pipeline chains: a tensor that another step reads leaves the chain") {
  const Pipeline made = pipeline(
      {relu("1", "x", "a"), relu("2", "a", "b"), kernel("3", "a", "c"), sum("4", "c", "b", "y")}, {"a", "b", "c"});
  const auto found = units(made);
  REQUIRE(found.size() == 3);
  REQUIRE(found[0].tensors.size() == 3);  // x, a, b
  CHECK(found[0].chain.tensors[1].role == TensorRole::output);
  CHECK(found[0].chain.tensors[2].role == TensorRole::output);
  CHECK(found[1].chain.steps.empty());
  CHECK(found[2].chain.steps.empty());  // one layer alone
  CHECK(found[2].first == 3);
}

TEST_CASE("pipeline chains: loops, and tensors that are written twice, have none") {
  PipelineStep again = relu("2", "a", "b");
  again.repeat = 3;
  again.swap = {{"a", "b"}};
  const auto looped = units(pipeline({relu("1", "x", "a"), again, relu("3", "a", "y")}, {"a", "b"}));
  CHECK(looped.size() == 5);
  const auto twice = units(pipeline(
      {relu("1", "x", "a"), relu("2", "a", "y"), relu("3", "x", "a"), sum("4", "a", "x", "b"), relu("5", "b", "c")},
      {"a", "b", "c"}));
  CHECK(twice.size() == 5);
  for (const ScheduleUnit& unit : twice) CHECK(unit.chain.steps.empty());
  for (const auto& units_of_each : {looped, twice}) {  // every run once, in order
    for (std::size_t run = 0; run < units_of_each.size(); ++run) {
      CHECK(units_of_each[run].first == run);
      CHECK(units_of_each[run].count == 1);
    }
  }
}

TEST_CASE("pipeline chains: a product that writes a tensor again makes none") {
  const PipelineArgument weights{"", {nullptr, Constant::create(HostTensor::create(DType::f32, {6, 6}).value())}};
  const auto product = [&](const std::string& name, const std::string& to) {
    return PipelineStep{name, GemmSpec{1, 6, 6}, {{"x", {}}, weights, {to, {}}}};
  };
  const auto on_row = [](PipelineStep step) {
    std::get<ActivationSpec>(step.spec).shape = {1, 6};
    return step;
  };
  const auto count = [&](const std::string& second) {
    Pipeline made =
        pipeline({product("1", "a"), on_row(relu("2", "a", "y")), product("3", second), on_row(relu("4", second, "z"))},
                 second == "a" ? std::vector<std::string>{"a"} : std::vector<std::string>{"a", second});
    made.tensors.push_back({"z", DType::f32, {1, 6}, Access::write});
    for (PipelineTensor& tensor : made.tensors) tensor.shape = {1, 6};
    return units(made).size();
  };
  CHECK(count("b") == 1);
  CHECK(count("a") == 4);
}

TEST_CASE("pipeline schedule: at most 100,000 runs, and loops eight deep") {
  const auto looped = [](std::uint32_t rounds, unsigned loops) {
    PipelineStep step = relu("1", "x", "y");
    for (unsigned i = 0; i < loops; ++i) {
      PipelineStep loop;
      loop.name = "loop";
      loop.steps.push_back(std::move(step));
      step = std::move(loop);
    }
    step.repeat = rounds;
    return pipeline({step}, {});
  };
  const auto most = schedule(looped(100'000, 1));
  REQUIRE(most);
  CHECK(most->runs.size() == 100'000);
  const auto more = schedule(looped(100'001, 1));
  REQUIRE_FALSE(more);
  CHECK(more.error().text() == "invalid_argument: pipeline 'p': runs more than 100000 steps, counting each repeat");
  CHECK(schedule(looped(2, 7)));
  const auto deeper = schedule(looped(2, 8));
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().text() == "invalid_argument: pipeline 'p': loops are nested more than 8 deep");
}

// What a pipeline is refused for, with both sides, and the order of its runs with the storage of their tensors.
#include "contract/pipeline_schedule.hpp"
#include "core/contract/pipeline_steps.hpp"

#include <catch2/catch.hpp>

using namespace kiln;

namespace {

using test::relu;
using test::sum;

PipelineStep kernel(const std::string& name, Access access, const std::string& first, const std::string& second) {
  UserKernelSpec spec;
  spec.path = "k.comp", spec.text = "void main() {}", spec.dialect = Dialect::glsl;
  spec.bindings = {{Access::read, 24}, {access, 24}};
  return {name, spec, {{first, {}}, {second, {}}}};
}

// y = relu(relu(x)), with a between them.
Pipeline two_steps() {
  Pipeline made;
  made.name = "p";
  made.tensors = {{"x", DType::f32, {6}, Access::read}, {"y", DType::f32, {6}, Access::write}, {"a", DType::f32, {6}}};
  made.steps = {relu("1", "x", "a"), relu("2", "a", "y")};
  return made;
}

std::string refusal(const Pipeline& pipeline) {
  const auto made = schedule(pipeline);
  return made ? "accepted" : made.error().text();
}

std::shared_ptr<HostTensor> host_of(DType dtype, Shape shape) {
  return HostTensor::create(dtype, std::move(shape)).value();
}

using Storages = std::vector<std::size_t>;

std::vector<Storages> storages_of(const Pipeline& pipeline) {
  const auto made = schedule(pipeline);
  REQUIRE(made);
  std::vector<Storages> found;
  for (const StepRun& run : made->runs) found.emplace_back(run.storages.begin(), run.storages.end());
  return found;
}

}  // namespace

TEST_CASE("pipeline schedule: wrong tensors are refused by name", "[contract]") {
  Pipeline p = two_steps();
  REQUIRE(refusal(p) == "accepted");
  const std::string before = "invalid_argument: pipeline 'p': tensor ";
  PipelineTensor& a = p.tensors[2];
  SECTION("no name") {
    a.name.clear();
    CHECK(refusal(p) == before + "2: has no name");
  }
  SECTION("a name twice") {
    a.name = "x";
    CHECK(refusal(p) == before + "'x': its name is used twice");
  }
  SECTION("no elements") {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{6, -1}}) {
      a.shape = shape;
      CHECK(refusal(p) ==
            before + "'a': found float32 " + to_string(shape) + ", expected a type and at least one element");
    }
  }
  SECTION("no type") {
    a.dtype = DType::invalid;
    CHECK_THAT(refusal(p), Catch::Contains("expected a type and at least one element"));
  }
  SECTION("a host tensor of a tensor that stays on the device") {
    a.host = host_of(DType::f32, {6});
    CHECK(refusal(p) == before + "'a': has a host tensor, but access is not set");
  }
  SECTION("a host tensor of another type or shape") {
    p.tensors[0].host = host_of(DType::f32, {6});
    CHECK(refusal(p) == "accepted");
    p.tensors[0].host = host_of(DType::i32, {6});
    CHECK(refusal(p) == before + "'x': its host tensor is int32 [6], expected float32 [6]");
    p.tensors[0].host = host_of(DType::f32, {2, 3});
    CHECK(refusal(p) == before + "'x': its host tensor is float32 [2, 3], expected float32 [6]");
  }
  SECTION("a result that swaps leave with what no step uses") {
    // Of y and x, y is written: behind the swap the result y is what x was given, and no step has read that.
    Pipeline swapped;
    swapped.name = "p";
    swapped.tensors = {{"x", DType::f32, {6}, Access::read, host_of(DType::f32, {6})},
                       {"other", DType::f32, {6}, Access::read, host_of(DType::f32, {6})},
                       {"y", DType::f32, {6}, Access::write, host_of(DType::f32, {6})},
                       {"z", DType::f32, {6}, Access::write, host_of(DType::f32, {6})}};
    swapped.steps = {relu("1", "other", "y"), relu("2", "x", "z")};
    CHECK(refusal(swapped) == "accepted");
    swapped.steps[0].swap = {{"x", "y"}};
    CHECK(refusal(swapped) ==
          before + "'y': is a result, but after all swaps has the initial contents of tensor 'x', which no step uses");
    swapped.steps.insert(swapped.steps.begin(), relu("0", "x", "z"));  // now one has
    CHECK(refusal(swapped) == "accepted");
  }
  SECTION("unused, or not written") {
    p.tensors.push_back({"spare", DType::f32, {6}});
    CHECK(refusal(p) == before + "'spare': no step uses it");
    p.tensors[3].access = Access::read;
    CHECK(refusal(p) == before + "'spare': no step uses it");
    for (const Access access : {Access::write, Access::read_write}) {
      p.tensors[3].access = access;
      CHECK(refusal(p) == before + (access == Access::write ? "'spare': is a result, but no step writes it"
                                                            : "'spare': no step uses it"));
    }
  }
}

TEST_CASE("pipeline schedule: wrong steps are refused by name", "[contract]") {
  Pipeline p = two_steps();
  const std::string before = "invalid_argument: pipeline 'p': step ";
  PipelineStep& second = p.steps[1];
  SECTION("none") {
    p.steps.clear();
    CHECK(refusal(p) == "invalid_argument: pipeline 'p': has no steps, expected at least one");
  }
  SECTION("no name") {
    second.name.clear();
    CHECK(refusal(p) == before + "'': has no name");
  }
  SECTION("a name twice") {
    second.name = "1";
    CHECK(refusal(p) == before + "'1': its name is used twice");
  }
  SECTION("a loop with arguments") {
    second.steps = {relu("inner", "a", "y")};
    CHECK(refusal(p) == before + "'2': is a loop and has arguments, expected steps only");
    second.arguments.clear();
    CHECK(refusal(p) == "accepted");
    second.steps[0].arguments[0].tensor = "z";
    CHECK_THAT(refusal(p), Catch::StartsWith(before + "'2/inner': "));
  }
  SECTION("no round") {
    second.repeat = 0;
    CHECK(refusal(p) == before + "'2': repeat is 0, expected at least 1");
  }
  SECTION("a wrong spec") {
    std::get<ActivationSpec>(second.spec).shape = {};
    CHECK_THAT(refusal(p), Catch::StartsWith(before + "'2': "));
  }
  SECTION("a wrong number of arguments") {
    second.arguments.pop_back();
    CHECK(refusal(p) == before + "'2': 1 arguments given, expected 2");
    second.arguments = {{"a", {}}, {"y", {}}, {"y", {}}};
    CHECK(refusal(p) == before + "'2': 3 arguments given, expected 2");
  }
  SECTION("an unknown tensor") {
    second.arguments[0].tensor = "z";
    CHECK_THAT(refusal(p), Catch::Contains("tensor 'z': the pipeline has no such tensor, expected one of x, y, a"));
  }
  SECTION("values of its own") {
    second.arguments[0] = {"", {host_of(DType::f32, {6}), nullptr}};
    p.steps[0].arguments[1].tensor = "y";
    p.tensors.pop_back();
    CHECK(refusal(p) == "accepted");
    second.arguments[0].value.host = host_of(DType::f32, {5});
    CHECK_THAT(refusal(p), Catch::Contains("found 20 bytes, expected 24"));
    second.arguments[0].value.host = nullptr;
    CHECK_THAT(refusal(p), Catch::Contains("found nothing, expected a tensor"));
    second.arguments[0].value.device = std::make_shared<const DeviceTensor>(DeviceTensor{24, nullptr, nullptr});
    CHECK_THAT(refusal(p), Catch::Contains("found a DeviceTensor, expected a tensor's name"));
    second.arguments[0] = {"x", {}};
    second.arguments[1] = {"", {host_of(DType::f32, {6}), nullptr}};
    CHECK_THAT(refusal(p),
               Catch::Contains("found a value, expected a tensor's name, because the step writes the tensor"));
  }
  SECTION("uniforms that a step writes") {
    PipelineStep with = kernel("2", Access::write, "a", "y");
    auto& spec = std::get<UserKernelSpec>(with.spec);
    spec.uniforms = {{"gain", UserKernelSpec::Uniform::Type::number, {}}};
    with.arguments.push_back({"v", {}});
    p.tensors.push_back({"v", DType::f64, {1}, Access::read});
    p.steps[1] = with;
    CHECK(refusal(p) == "accepted");
    p.tensors.back() = {"v", DType::f64, {1}};
    PipelineStep writes = kernel("3", Access::write, "a", "v");
    std::get<UserKernelSpec>(writes.spec).bindings[1].bytes = 8;
    p.steps = {p.steps[0], writes, with};
    CHECK_THAT(refusal(p), Catch::Contains("step '2': tensor 'v' has values of uniforms, which are read before") &&
                               Catch::Contains("a step writes the tensor"));
  }
  SECTION("weights") {
    const auto weights = Constant::create(host_of(DType::f32, {6, 2}));
    PipelineStep product{"1", GemmSpec{1, 2, 6}, {{"x", {}}, {"", {nullptr, weights}}, {"y", {}}}};
    p.tensors = {{"x", DType::f32, {1, 6}, Access::read}, {"y", DType::f32, {1, 2}, Access::write}};
    p.steps = {product};
    CHECK(refusal(p) == "accepted");
    p.steps[0].arguments[1].value.constant = nullptr;  // not loaded yet
    CHECK(refusal(p) == "accepted");
    p.steps[0].arguments[1].tensor = "x";
    CHECK_THAT(refusal(p), Catch::Contains("found tensor 'x', expected a Constant"));
  }
}

TEST_CASE("pipeline schedule: tensors of a layer have its type and shape, those of a kernel its bytes", "[contract]") {
  Pipeline p = two_steps();
  p.tensors[2].dtype = DType::i32;
  CHECK_THAT(refusal(p), Catch::Contains("tensor 'a' is int32 [6], expected float32 [6]"));
  p.tensors[2] = {"a", DType::f32, {2, 3}};
  CHECK_THAT(refusal(p), Catch::Contains("tensor 'a' is float32 [2, 3], expected float32 [6]"));
  p.steps = {kernel("1", Access::write, "x", "a"), kernel("2", Access::write, "a", "y")};
  CHECK(refusal(p) == "accepted");
  p.tensors[2] = {"a", DType::u8, {24}};
  CHECK(refusal(p) == "accepted");
  p.tensors[2] = {"a", DType::u8, {23}};
  CHECK_THAT(refusal(p), Catch::Contains("tensor 'a' is uint8 [23], expected 24 bytes"));
}

TEST_CASE("pipeline schedule: a product reads a tensor of any rank as a matrix of its rows", "[contract]") {
  const auto reads = [](const Shape& shape) {
    const auto weights = Constant::create(host_of(DType::f32, {6, 2}));
    Pipeline p;
    p.name = "p";
    p.tensors = {{"x", DType::f32, shape, Access::read}, {"y", DType::f32, {4, 2}, Access::write}};
    p.steps = {{"1", GemmSpec{4, 2, 6}, {{"x", {}}, {"", {nullptr, weights}}, {"y", {}}}}};
    return refusal(p) == "accepted";
  };
  CHECK(reads({4, 6}));
  CHECK(reads({4, 6, 1}));
  CHECK(reads({4, 3, 2}));
  CHECK(reads({4, 1, 2, 3}));
  CHECK_FALSE(reads({24}));
  CHECK_FALSE(reads({6, 4}));
  CHECK_FALSE(reads({2, 2, 6}));
  CHECK_FALSE(reads({8, 3}));
  CHECK_FALSE(reads({4, 6, 2}));
  CHECK_FALSE(reads({4, 5}));
}

TEST_CASE("pipeline schedule: only tensors of one type and shape are exchanged", "[contract]") {
  Pipeline p = two_steps();
  p.tensors.push_back({"b", DType::f32, {6}});
  p.steps = {relu("0", "x", "a"), relu("1", "a", "b"), relu("2", "a", "y")};
  const std::string before = "invalid_argument: pipeline 'p': step '1': swap: ";
  p.steps[1].swap = {{"a", "b"}};
  CHECK(refusal(p) == "accepted");
  p.steps[1].swap = {{"a", "a"}};
  CHECK(refusal(p) ==
        before +
            "'a' is float32 [6] and 'a' is float32 [6], expected two different tensors of the same type and shape");
  p.steps[1].swap = {{"z", "a"}};
  CHECK_THAT(refusal(p), Catch::StartsWith(before + "tensor 'z': "));
  p.steps[1].swap = {{"a", "z"}};
  CHECK_THAT(refusal(p), Catch::StartsWith(before + "tensor 'z': "));
  p.tensors.push_back({"c", DType::f32, {2, 3}});
  p.tensors.push_back({"d", DType::i32, {6}});
  for (const char* other : {"c", "d"}) {
    p.steps[1].swap = {{"a", other}};
    CHECK_THAT(refusal(p), Catch::StartsWith(before + "'a' is float32 [6] and '" + other + "' is "));
  }
}

TEST_CASE("pipeline schedule: runs in order, each with the storage that its tensors have then", "[contract]") {
  Pipeline p = two_steps();
  p.tensors.push_back({"b", DType::f32, {6}});  // x 0, y 1, a 2, b 3
  PipelineStep loop;
  loop.name = "loop";
  loop.repeat = 3;
  loop.steps = {relu("s", "a", "b")};
  loop.swap = {{"a", "b"}};
  p.steps = {relu("first", "x", "a"), loop, relu("last", "a", "y")};
  CHECK(storages_of(p) == std::vector<Storages>{{0, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 1}});
  const auto made = schedule(p);
  CHECK(made->names == std::vector<std::string>{"first", "loop/s", "last"});
  CHECK(made->runs[0].step == 0);
  for (const std::size_t i : {1, 2, 3}) CHECK(made->runs[i].step == 1);
  CHECK(made->runs[4].step == 2);
  CHECK(made->written == std::vector<bool>{false, true, true, true});

  p.steps[1].steps = {sum("s", "a", "a", "b")};  // read twice
  CHECK(storages_of(p)[1] == Storages{2, 2, 3});
}

TEST_CASE("pipeline schedule: what is written is no other tensor of the step, and is written before it is read",
          "[contract]") {
  Pipeline p = two_steps();
  p.steps[1] = sum("2", "a", "y", "y");
  const std::string before = "invalid_argument: pipeline 'p': step '2': tensor ";
  CHECK_THAT(refusal(p), Catch::StartsWith("invalid_argument: pipeline 'p': step '2': tensor 'y' is read before"));
  p.steps[1] = sum("2", "a", "x", "x");
  CHECK(refusal(p) == before + "'x' is used twice and written, expected two different tensors");
  p.steps[1] = kernel("2", Access::read_write, "a", "a");
  CHECK(refusal(p) == before + "'a' is used twice and written, expected two different tensors");
  p.steps[1] = kernel("2", Access::read_write, "a", "y");
  CHECK(refusal(p) == before + "'y' is read before any step writes it");
  p.tensors[1].access = Access::read_write;
  CHECK(refusal(p) == "accepted");
  p.steps[1] = relu("2", "a", "x");  // an input may be written over
  CHECK_THAT(refusal(p), Catch::Contains("tensor 'y': no step uses it"));
  // After an exchange the new name has what was written.
  Pipeline exchanged = two_steps();
  exchanged.tensors.push_back({"b", DType::f32, {6}});
  exchanged.steps = {relu("1", "x", "a"), relu("2", "b", "y")};
  CHECK_THAT(refusal(exchanged), Catch::Contains("tensor 'b' is read before any step writes it"));
  exchanged.steps[0].swap = {{"a", "b"}};
  CHECK(refusal(exchanged) == "accepted");
}

TEST_CASE("pipeline schedule: a result shares no memory with another tensor", "[contract]") {
  Pipeline p = two_steps();
  const auto one = host_of(DType::f32, {6}), other = host_of(DType::f32, {6});
  p.tensors[0].host = one;
  p.tensors[1].host = other;
  CHECK(refusal(p) == "accepted");
  p.tensors[1].host = one;
  CHECK(refusal(p) ==
        "invalid_argument: pipeline 'p': tensor 'y' is written and shares memory with tensor 'x', expected separate "
        "memory");
  p.tensors[1].access = Access::read;  // of a pipeline that writes neither
  p.tensors.push_back({"z", DType::f32, {6}, Access::write, other});
  p.steps = {sum("1", "x", "y", "z")};
  p.tensors.erase(p.tensors.begin() + 2);
  CHECK(refusal(p) == "accepted");
  p.steps[0].arguments[1] = {"", {other, nullptr}};
  p.tensors.erase(p.tensors.begin() + 1);
  CHECK_THAT(refusal(p), Catch::Contains("tensor 'z' is written and shares memory with tensor"));
}

#include <kiln/kernel.hpp>

#include <catch2/catch.hpp>

#include <functional>
#include <utility>
#include <vector>

using namespace kiln;

namespace {

Pass pass_of(std::vector<Access> access, std::vector<Binding> bindings) {
  Pass pass;
  pass.source.dialect = Dialect::glsl;
  pass.source.bindings = std::move(access);
  pass.bindings = std::move(bindings);
  return pass;
}

constexpr Binding tensor(std::uint32_t index) { return {BindingSource::tensor, index}; }
constexpr Binding scratch(std::uint32_t index) { return {BindingSource::scratch, index}; }
constexpr Binding prepared(std::uint32_t index) { return {BindingSource::prepared, index}; }

// Every kind of thing a plan can hold: two passes by way of scratch, weights in a packed form.
KernelPlan plan() {
  KernelPlan plan;
  plan.variant = "test/whole";
  plan.tensors = {{"x", TensorRole::input, 64}, {"w", TensorRole::constant, 16}, {"y", TensorRole::output, 64}};
  plan.scratch = {{"s", 64}};
  plan.prepared = {{1, "packed", 16}};
  plan.prepare = {pass_of({Access::read, Access::write}, {tensor(1), prepared(0)})};
  plan.passes = {pass_of({Access::read, Access::read, Access::write}, {tensor(0), prepared(0), scratch(0)}),
                 pass_of({Access::read, Access::write}, {scratch(0), tensor(2)})};
  return plan;
}

}  // namespace

TEST_CASE("kernel plan: a whole one is valid", "[contract]") {
  CHECK(validate(plan()).ok());
  KernelPlan inout = plan();
  inout.tensors[2].role = TensorRole::inout;
  inout.passes[1].source.bindings[1] = Access::read_write;
  CHECK(validate(inout).ok());
}

TEST_CASE("kernel plan: its own constants are read by passes and by prepare passes", "[contract]") {
  KernelPlan whole = plan();
  auto tensor = HostTensor::create(DType::i32, {2});
  REQUIRE(tensor.has_value());
  whole.constants = {Constant::create(*tensor)};
  const auto bind = [](Pass& pass, Access access) {
    pass.bindings.push_back({BindingSource::constant, 0});
    pass.source.bindings.push_back(access);
  };
  bind(whole.prepare[0], Access::read);
  bind(whole.passes[1], Access::read);
  CHECK(validate(whole).ok());
  const auto says = [&](const std::function<void(KernelPlan&)>& change) {
    KernelPlan wrong = whole;
    change(wrong);
    return validate(wrong).message;
  };
  CHECK_THAT(says([](KernelPlan& p) { p.constants.clear(); }), Catch::Contains("index 0, expected an index below 0"));
  CHECK_THAT(says([](KernelPlan& p) { p.constants[0] = nullptr; }), Catch::Contains("constant 0 is null"));
  CHECK_THAT(says([](KernelPlan& p) { p.passes[1].source.bindings.back() = Access::write; }),
             Catch::Contains("writes constant 0 of the plan"));
  CHECK_THAT(says([](KernelPlan& p) { p.prepare[0].source.bindings.back() = Access::read_write; }),
             Catch::Contains("writes the constant"));
}

TEST_CASE("kernel plan: what contradicts itself is told by plan, pass and cause", "[contract]") {
  struct Case {
    std::string what;
    std::function<void(KernelPlan&)> change;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {"no pass", [](KernelPlan& p) { p.passes.clear(); }, {"has no pass"}},
      {"tensor index",
       [](KernelPlan& p) { p.passes[0].bindings[0] = tensor(3); },
       {"pass 0", "index 3, expected an index below 3"}},
      {"scratch index",
       [](KernelPlan& p) { p.passes[1].bindings[0] = scratch(1); },
       {"pass 1", "index 1, expected an index below 1"}},
      {"prepared index",
       [](KernelPlan& p) { p.passes[0].bindings[1] = prepared(9); },
       {"pass 0", "index 9, expected an index below 1"}},
      {"binding without source", [](KernelPlan& p) { p.passes[0].bindings[0] = {}; }, {"pass 0", "no source"}},
      {"too few bindings",
       [](KernelPlan& p) { p.passes[0].bindings.pop_back(); },
       {"pass 0", "has 2 bindings, expected 3"}},
      {"no dialect", [](KernelPlan& p) { p.passes[1].source.dialect = Dialect::invalid; }, {"pass 1", "no dialect"}},
      {"empty grid", [](KernelPlan& p) { p.passes[1].grid[2] = 0; }, {"pass 1", "empty grid"}},
      {"writes an input",
       [](KernelPlan& p) { p.passes[0].source.bindings[0] = Access::read_write; },
       {"writes tensor x"}},
      {"writes a constant", [](KernelPlan& p) { p.passes[1].bindings[1] = tensor(1); }, {"writes tensor w"}},
      {"writes a packed form",
       [](KernelPlan& p) { p.passes[0].source.bindings[1] = Access::write; },
       {"packed constant 0"}},
      {"prepare without prepared", [](KernelPlan& p) { p.prepared.clear(); }, {"1 prepare passes, expected 0"}},
      {"packs an input",
       [](KernelPlan& p) { p.prepared[0].tensor = 0; },
       {"prepare pass 0", "does not pack a constant"}},
      {"packs nothing",
       [](KernelPlan& p) { p.prepared[0].tensor = 7; },
       {"prepare pass 0", "does not pack a constant"}},
      {"prepare binds an input",
       [](KernelPlan& p) { p.prepare[0].bindings[0] = tensor(0); },
       {"prepare pass 0", "has a binding other than the constant"}},
      {"prepare binds scratch",
       [](KernelPlan& p) { p.prepare[0].bindings[1] = scratch(0); },
       {"prepare pass 0", "has a binding other than the constant"}},
      {"prepare writes its constant",
       [](KernelPlan& p) { p.prepare[0].source.bindings[0] = Access::read_write; },
       {"prepare pass 0", "writes the constant"}},
      {"prepare with an empty grid",
       [](KernelPlan& p) { p.prepare[0].grid[0] = 0; },
       {"prepare pass 0", "empty grid"}}};
  for (const Case& test : cases) {
    CAPTURE(test.what);
    KernelPlan wrong = plan();
    test.change(wrong);
    const Status status = validate(wrong);
    CHECK(status.code == StatusCode::internal);
    CHECK_THAT(status.message, Catch::StartsWith("plan test/whole: "));
    for (const std::string& word : test.words) CHECK_THAT(status.message, Catch::Contains(word));
  }
}

TEST_CASE("kernel plan: views are one for each binding, and those that only read write nothing", "[contract]") {
  using Views = std::vector<View>;
  const auto answer = [](const Views& views, Access last = Access::write) {
    KernelPlan whole = plan();
    whole.passes[0].source.views = views;
    whole.passes[0].source.bindings[2] = last;
    return validate(whole).text();
  };
  CHECK(answer({}) == "ok");
  for (const View reads : {View::texels, View::image, View::uniforms, View::storage, View::pixels}) {
    for (const View writes : {View::storage, View::pixels}) CHECK(answer({reads, reads, writes}) == "ok");
  }
  CHECK(answer({View::storage, View::storage, View::pixels}, Access::read_write) == "ok");
  CHECK_THAT(answer({View::storage, View::storage}),
             Catch::Contains("pass 0: has 2 views, expected 3, one for each declared binding"));
  CHECK_THAT(answer(Views(4, View::storage)),
             Catch::Contains("has 4 views, expected 3, one for each declared binding"));
  for (std::size_t i = 0; i < 3; ++i) {
    Views views(3, View::storage);
    views[i] = View::invalid;
    CHECK_THAT(answer(views), Catch::Contains("binding " + std::to_string(i) + " has no view"));
  }
  for (const View reads : {View::texels, View::image, View::uniforms}) {
    for (const Access writes : {Access::write, Access::read_write}) {
      CHECK_THAT(answer({View::storage, View::storage, reads}, writes),
                 Catch::Contains("writes binding 2 through view ") && Catch::Contains("which is read-only"));
    }
  }
}

TEST_CASE("kernel plan: a grid is read from a binding that the pass has", "[contract]") {
  KernelPlan whole = plan();
  for (const std::uint32_t binding : {0u, 1u}) {
    whole.passes[1].indirect = {binding, 0};
    CHECK(validate(whole).text() == "ok");
  }
  whole.passes[1].indirect = {2, 0};
  CHECK(validate(whole).text() ==
        "internal: plan test/whole: pass 1: reads the grid from binding 2, expected an index below 2");
}

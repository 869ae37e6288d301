// PlanMemo: it answers for exactly the spec, the device and the revision that were kept.
#include "runtime/planner.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <iterator>
#include <thread>

#include "core/cache/synthetic_device.hpp"

namespace kiln {
namespace {

std::shared_ptr<const KeyedPlan> plan_named(const std::string& variant) {
  KernelPlan plan;
  plan.variant = variant;
  return std::make_shared<const KeyedPlan>(KeyedPlan{std::make_shared<const KernelPlan>(std::move(plan)), {}, {}});
}

Conv2dSpec layer(std::int64_t channels) {
  Conv2dSpec spec;
  spec.c = channels;
  spec.h = spec.w = 28;
  spec.k = 16;
  spec.r = spec.s = 3;
  return spec;
}

}  // namespace

TEST_CASE("runtime::PlanMemo: spec, device and revision each tell plans apart", "[runtime][memo]") {
  PlanMemo memo;
  const test::SyntheticDevice device;
  const test::SyntheticDevice twin;
  memo.insert(layer(8), device, 1, plan_named("eight"));
  REQUIRE(memo.find(layer(8), device, 1) != nullptr);
  CHECK(memo.find(layer(8), device, 1)->plan->variant == "eight");
  CHECK(memo.find(layer(9), device, 1) == nullptr);
  CHECK(memo.find(layer(8), twin, 1) == nullptr);
  CHECK(memo.find(layer(8), device, 2) == nullptr);
  CHECK(memo.find(GemmSpec{}, device, 1) == nullptr);
}

TEST_CASE("runtime::PlanMemo: a plan that another revision gives as well takes no room, and answers for the newest",
          "[runtime][memo]") {
  PlanMemo memo;
  const test::SyntheticDevice device;
  const auto first = memo.insert(layer(8), device, 1, plan_named("eight"));
  for (std::uint64_t revision = 2; revision <= 5000; ++revision) {
    CHECK(memo.insert(layer(8), device, revision, plan_named("eight")) == first);
  }
  CHECK(memo.find(layer(8), device, 5000) == first.get());
  CHECK(memo.insert(layer(8), device, 3, plan_named("eight")) == first);  // of who was late
  CHECK(memo.find(layer(8), device, 5000) == first.get());
  memo.insert(layer(8), device, 5001, plan_named("other"));
  CHECK(memo.find(layer(8), device, 5001)->plan->variant == "other");
  memo.insert(layer(9), device, 5001, plan_named("nine"));  // there is room
  CHECK(memo.find(layer(9), device, 5001) != nullptr);
}

TEST_CASE("runtime::PlanMemo: plans of one variant are one plan only if their programs are", "[runtime][memo]") {
  const test::SyntheticDevice device;
  const auto keyed = [&](const std::vector<std::string>& prepare, const std::vector<std::string>& passes) {
    const auto keys = [&](const std::vector<std::string>& texts) {
      std::vector<ProgramKey> all;
      for (const std::string& text : texts) {
        KernelSource source;
        source.text = text;
        all.push_back(key_of(source, device.info(), text));
      }
      return all;
    };
    KernelPlan plan;
    plan.variant = "v";
    return std::make_shared<const KeyedPlan>(
        KeyedPlan{std::make_shared<const KernelPlan>(std::move(plan)), keys(prepare), keys(passes)});
  };
  PlanMemo memo;
  const auto first = memo.insert(layer(8), device, 1, keyed({"p"}, {"a", "b"}));
  CHECK(memo.insert(layer(8), device, 2, keyed({"p"}, {"a", "b"})) == first);
  std::uint64_t revision = 2;
  for (const auto& other :
       {keyed({"p"}, {"a", "c"}), keyed({"p"}, {"a"}), keyed({"q"}, {"a", "b"}), keyed({}, {"a", "b"})}) {
    const auto stored = memo.insert(layer(8), device, ++revision, other);
    CHECK(stored != first);
    CHECK(memo.find(layer(8), device, revision) == stored.get());
  }
  CHECK(memo.find(layer(8), device, 2) == first.get());
}

TEST_CASE("runtime::PlanMemo: layers of one size and other operations are apart", "[runtime][memo]") {
  PlanMemo memo;
  const test::SyntheticDevice device, twin;
  GemmSpec gemm;
  gemm.m = gemm.n = gemm.k = 4;
  SoftmaxSpec softmax;
  softmax.shape = {4};
  AddSpec add;
  add.shape = {4};
  ActivationSpec activation;
  activation.shape = {4}, activation.activation = Activation::relu;
  Pool2dSpec pool;
  pool.c = pool.h = pool.w = 4, pool.r = pool.s = 2, pool.kind = PoolKind::maximum;
  const KernelSpec specs[] = {layer(8), gemm, softmax, add, activation, pool};
  for (std::size_t i = 0; i < std::size(specs); ++i) memo.insert(specs[i], device, 1, plan_named(std::to_string(i)));
  memo.insert(gemm, twin, 1, plan_named("twin"));
  for (std::size_t i = 0; i < std::size(specs); ++i) {
    const KeyedPlan* const found = memo.find(specs[i], device, 1);
    REQUIRE(found != nullptr);
    CHECK(found->plan->variant == std::to_string(i));
    for (std::size_t j = 0; j < i; ++j) CHECK(spec_hash(specs[i]) != spec_hash(specs[j]));
  }
  REQUIRE(memo.find(gemm, twin, 1) != nullptr);
  CHECK(memo.find(gemm, twin, 1)->plan->variant == "twin");
  CHECK(memo.insert(gemm, device, 1, plan_named("late"))->plan->variant == "late");  // of who was late: not remembered
  CHECK(memo.find(gemm, device, 1)->plan->variant == "1");
}

TEST_CASE("runtime::PlanMemo: every field of a spec reaches its hash", "[runtime][memo]") {
  const Conv2dSpec base = layer(8);
  const auto hash = spec_hash(base);
  std::int64_t Conv2dSpec::*const numbers[] = {&Conv2dSpec::n,          &Conv2dSpec::c,        &Conv2dSpec::h,
                                               &Conv2dSpec::w,          &Conv2dSpec::k,        &Conv2dSpec::r,
                                               &Conv2dSpec::s,          &Conv2dSpec::pad_y,    &Conv2dSpec::pad_x,
                                               &Conv2dSpec::stride_y,   &Conv2dSpec::stride_x, &Conv2dSpec::dilation_y,
                                               &Conv2dSpec::dilation_x, &Conv2dSpec::groups};
  for (const auto number : numbers) {
    Conv2dSpec other = base;
    other.*number += 1;
    CHECK(spec_hash(other) != hash);
  }
  Conv2dSpec biased = base;
  biased.bias = Bias::per_channel;
  CHECK(spec_hash(biased) != hash);
  Conv2dSpec active = base;
  active.activation = Activation::relu;
  CHECK(spec_hash(active) != hash);
  Conv2dSpec loose = base;
  loose.accuracy = Accuracy::winograd;
  CHECK(spec_hash(loose) != hash);
  CHECK(spec_hash(UserKernelSpec{}) == std::nullopt);
}

TEST_CASE("runtime::PlanMemo: a user's own kernel is not remembered, and what is full stays as it is",
          "[runtime][memo]") {
  PlanMemo memo;
  const test::SyntheticDevice device;
  CHECK(memo.insert(UserKernelSpec{}, device, 0, plan_named("mine"))->plan->variant == "mine");
  CHECK(memo.find(UserKernelSpec{}, device, 0) == nullptr);
  for (std::int64_t c = 1; c <= 5000; ++c) memo.insert(layer(c), device, 0, plan_named(std::to_string(c)));
  CHECK(memo.find(layer(4096), device, 0)->plan->variant == "4096");
  CHECK(memo.find(layer(4097), device, 0) == nullptr);
  CHECK(memo.find(layer(1), device, 0)->plan->variant == "1");
}

TEST_CASE("runtime::PlanMemo: readers beside a writer see whole plans or none", "[runtime][memo]") {
  PlanMemo memo;
  const test::SyntheticDevice device;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        for (std::int64_t c = 1; c <= 2000; c += 37) {
          const auto found = memo.find(layer(c), device, 0);
          if (found != nullptr && found->plan->variant != std::to_string(c)) ++wrong;
        }
      }
    });
  }
  for (std::int64_t c = 1; c <= 2000; ++c) memo.insert(layer(c), device, 0, plan_named(std::to_string(c)));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(memo.find(layer(2000), device, 0) != nullptr);
}

}  // namespace kiln

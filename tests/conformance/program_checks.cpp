#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "conformance/checks.hpp"
#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"

namespace kiln::conformance {
namespace {

bool dialect_is_text() { return subject().dialect == Dialect::glsl || subject().dialect == Dialect::opencl_c; }

std::unique_ptr<Program> build(const KernelSource& source) {
  auto program = subject().device->build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  REQUIRE(*program != nullptr);
  return std::move(program).value();
}

// One pass of a plan for small_conv() on fresh buffers, through the given program: what it computed is right.
void check_computes(const KernelPlan& plan, const Program& program) {
  Device& device = *subject().device;
  std::vector<std::vector<float>> tensors = random_tensors(plan.tensors, 21);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> bound;
  for (const std::vector<float>& values : tensors) {
    BufferDesc desc;
    desc.bytes = values.size() * sizeof(float);
    desc.usage = &values == &tensors.back() ? BufferUsage::readback : BufferUsage::upload;
    auto buffer = device.create_buffer(desc);
    REQUIRE(buffer.has_value());
    REQUIRE((*buffer)->write(0, bytes_of(values)).ok());
    buffers.push_back(std::move(buffer).value());
  }
  for (const Binding& binding : plan.passes.front().bindings) bound.push_back(buffers[binding.index].get());
  const PassLaunch launch{&program, bound, plan.passes.front().grid};
  const auto value = device.submit({std::span(&launch, 1)});
  REQUIRE(value.has_value());
  const auto fence = device.wait(*value, Deadline::never());
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
  REQUIRE(buffers.back()->read(0, bytes_of(tensors.back())).ok());
  CHECK(first_difference(expected_of(small_conv(), tensors), tensors.back()) == "");
}

// A plan of one pass that packs nothing, for the checks that launch its program themselves.
bool is_plain(const KernelPlan& plan) {
  return plan.passes.size() == 1 && plan.prepare.empty() && plan.scratch.empty();
}

}  // namespace

TEST_CASE("conformance: a program is built, charged and counted", "[conformance][program]") {
  if (!present()) return;
  const KernelPlan plan = plan_for(small_conv());
  const WorkCounters* counters = subject().counters;
  REQUIRE(counters != nullptr);
  const std::uint64_t builds = counters->builds, loads = counters->loads, prepared = counters->prepared;
  const auto program = build(plan.passes.front().source);
  CHECK(program->charge() > 0);
  CHECK(counters->loads == loads);
  if (subject().device->info().serializes) {
    CHECK(counters->builds == builds + 1);
  } else {
    CHECK(counters->builds == builds);  // nothing that could have been kept was compiled
  }
  if (is_plain(plan)) check_computes(plan, *program);
  if (subject().dialect == Dialect::library) CHECK(counters->prepared > prepared);
}

TEST_CASE("conformance: a dispatch over nothing needs no buffers, computes nothing and leaves the program usable",
          "[conformance][program]") {
  if (!present()) return;
  const KernelPlan plan = plan_for(small_conv());
  const auto program = build(plan.passes.front().source);
  const PassLaunch launch{program.get(), {}, PassLaunch::nothing};
  for (int i = 0; i < 2; ++i) {
    const auto value = subject().device->submit({std::span(&launch, 1)});
    REQUIRE(value.has_value());
    CHECK(subject().device->wait(*value, Deadline::never()).has_value());
  }
  if (is_plain(plan)) check_computes(plan, *program);
}

TEST_CASE("conformance: a build that fails answers the compiler's log", "[conformance][program]") {
  if (!present()) return;
  if (!dialect_is_text()) {
    WARN("skipped: dialect " << to_string(subject().dialect) << " is not text that a compiler reads");
    return;
  }
  KernelSource source = plan_for(small_conv()).passes.front().source;
  const auto brace = source.text.rfind('}');
  REQUIRE(brace != std::string::npos);
  source.text.insert(brace, "\n  undeclared_name_of_kiln = 1;\n");
  const auto program = subject().device->build(source);
  REQUIRE_FALSE(program.has_value());
  INFO(program.error().text());
  CHECK(program.error().code == StatusCode::invalid_argument);
  CHECK_THAT(program.error().message, Catch::Contains("undeclared_name_of_kiln"));
}

TEST_CASE("conformance: a dialect that the device does not read is unsupported", "[conformance][program]") {
  if (!present()) return;
  KernelSource source = plan_for(small_conv()).passes.front().source;
  const auto& dialects = subject().device->info().dialects;
  for (const Dialect dialect : {Dialect::glsl, Dialect::opencl_c, Dialect::library, Dialect::code_object}) {
    if (std::find(dialects.begin(), dialects.end(), dialect) != dialects.end()) continue;
    source.dialect = dialect;
    const auto program = subject().device->build(source);
    REQUIRE_FALSE(program.has_value());
    CHECK(program.error().code == StatusCode::unsupported);
    CHECK_THAT(program.error().message, Catch::Contains(std::string(to_string(dialect))));
  }
}

TEST_CASE("conformance: a program is serialized and loaded again, or refused as unsupported",
          "[conformance][program]") {
  if (!present()) return;
  Device& device = *subject().device;
  const KernelPlan plan = plan_for(small_conv());
  const KernelSource& source = plan.passes.front().source;
  auto program = build(source);
  auto binary = device.serialize(*program);
  if (!device.info().serializes) {
    REQUIRE_FALSE(binary.has_value());
    CHECK(binary.error().code == StatusCode::unsupported);
    const auto loaded = device.load(source, {"any", std::vector<std::byte>(64)});
    REQUIRE_FALSE(loaded.has_value());
    CHECK(is_one_of(loaded.error(), {StatusCode::unsupported, StatusCode::corrupt}));
    return;
  }
  REQUIRE(binary.has_value());
  CHECK_FALSE(binary->format.empty());
  CHECK_FALSE(binary->bytes.empty());
  program.reset();  // what was serialized stands alone
  const std::uint64_t builds = subject().counters->builds, loads = subject().counters->loads;
  auto loaded = device.load(source, *binary);
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded.has_value());
  CHECK(subject().counters->builds == builds);
  CHECK(subject().counters->loads == loads + 1);
  if (is_plain(plan)) check_computes(plan, **loaded);
}

TEST_CASE("conformance: a damaged binary is refused", "[conformance][program]") {
  if (!present()) return;
  Device& device = *subject().device;
  if (!device.info().serializes) {
    WARN("skipped: " << device.info().id << " keeps no binaries");
    return;
  }
  const KernelPlan plan = plan_for(small_conv());
  const KernelSource& source = plan.passes.front().source;
  const auto program = build(source);
  const auto binary = device.serialize(*program);
  REQUIRE(binary.has_value());
  std::vector<ProgramBinary> damaged(5, *binary);
  damaged[0].bytes[binary->bytes.size() / 2] ^= std::byte{0x10};
  damaged[1].bytes.back() ^= std::byte{0x01};
  damaged[2].bytes.resize(binary->bytes.size() / 2);
  damaged[3].bytes.clear();
  damaged[4].format += "x";
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    INFO("damage " << i);
    const auto loaded = device.load(source, damaged[i]);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(is_one_of(loaded.error(), {StatusCode::corrupt, StatusCode::unsupported}));
  }
  const auto intact = device.load(source, *binary);  // a refusal leaves nothing behind
  REQUIRE(intact.has_value());
  if (is_plain(plan)) check_computes(plan, **intact);
}

TEST_CASE("conformance: a program may be dropped on another thread", "[conformance][program]") {
  if (!present()) return;
  const KernelPlan plan = plan_for(small_conv());
  auto program = build(plan.passes.front().source);
  if (is_plain(plan)) check_computes(plan, *program);
  std::thread([&program] { program.reset(); }).join();
  CHECK(program == nullptr);
  const auto again = build(plan.passes.front().source);
  if (is_plain(plan)) check_computes(plan, *again);
}

TEST_CASE("conformance: programs are built on several threads at once", "[conformance][program]") {
  if (!present()) return;
  std::vector<KernelPlan> plans;
  for (std::int64_t k = 1; k <= 4; ++k) {
    Conv2dSpec spec = small_conv();
    spec.k = k;
    plans.push_back(plan_for(spec));
  }
  std::vector<std::string> failures(plans.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    threads.emplace_back([&, i] {
      Conv2dSpec spec = small_conv();
      spec.k = static_cast<std::int64_t>(i) + 1;
      auto tensors = random_tensors(plans[i].tensors, i);
      const PlanOutcome outcome = run_plan(*subject().device, plans[i], tensors);
      failures[i] = outcome.status.ok() ? outcome.damage + first_difference(expected_of(spec, tensors), tensors.back())
                                        : outcome.status.text();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

}  // namespace kiln::conformance

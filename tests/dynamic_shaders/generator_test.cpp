#include "dynamic_shaders/generator.hpp"

#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "dynamic_shaders/family_plans.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

KernelPlan plan_of(const KernelSpec& spec, const DeviceInfo& device = sample_device()) {
  INFO(canonical_text(spec));
  REQUIRE(validate(spec).ok());
  auto plan = Generator().generate(spec, device, Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  const Status sound = validate(*plan);
  INFO(sound.text());
  REQUIRE(sound.ok());
  return std::move(plan).value();
}

KernelPlan plain_plan_of(const KernelSpec& spec) {
  auto plan = Generator().generate_variant(spec, sample_device(), Dialect::glsl, "direct/plain");
  REQUIRE(plan.has_value());
  REQUIRE(validate(*plan).ok());
  return std::move(plan).value();
}

Status refusal_of(const KernelSpec& spec, const DeviceInfo& device) {
  const auto plan = Generator().generate(spec, device, Dialect::glsl);
  REQUIRE_FALSE(plan.has_value());
  return plan.error();
}

}  // namespace

TEST_CASE("dynamic_shaders: a plan has the tensors of its spec and declares its workgroup") {
  for (const KernelSpec& spec : sample_specs()) {
    const KernelPlan plan = plan_of(spec);
    CHECK(plan.tensors == tensors_of(spec));
    CHECK((plan.variant == "direct/plain" || plan.variant == "gemm/plain" ||
           plan.variant.starts_with("direct/blocked:") || plan.variant.starts_with("gemm/blocked:")));
    for (const Pass& pass : plan.passes) {
      CHECK(pass.source.dialect == Dialect::glsl);
      CHECK(pass.source.constants.empty());
      const auto& [x, y, z] = pass.source.workgroup;
      CHECK(z == 1);
      CHECK_THAT(pass.source.text, Catch::Contains("layout(local_size_x = " + std::to_string(x) +
                                                   ", local_size_y = " + std::to_string(y) + ") in;"));
    }
  }
}

TEST_CASE("dynamic_shaders: a source never calls fma and never uses GLSL's reserved words as names") {
  const std::regex reserved(R"(\b(fma|input|output|sample|common|filter|active|packed|resource|half|this)\b)");
  std::vector<std::string> sources{all_sources()};
  std::set<std::string> families;
  for (const KernelPlan& plan : plans_of_families(Dialect::glsl)) {
    const std::size_t colon = plan.variant.find(':');
    const bool any = colon != std::string::npos && plan.variant.ends_with("@any");
    families.insert(plan.variant.substr(0, colon) + (any ? "@any" : ""));
    for (const Pass& pass : passes_of({plan})) sources.push_back(pass.source.text);
  }
  for (const char* family :
       {"depthwise/bands", "depthwise/blocked", "depthwise/blocked@any", "depthwise/planes", "direct/blocked",
        "direct/blocked@any", "direct/plain", "direct/plain@any", "gemm/blocked", "gemm/blocked@any", "gemm/plain",
        "gemm/plain@any", "gemm/shared", "implicit/registers", "implicit/shared", "implicit/shared@any", "winograd/f2",
        "winograd/f2@any", "winograd/f4"}) {
    INFO(family);
    CHECK(families.contains(family));
  }
  for (const std::string& source : sources) {
    std::istringstream lines(source);
    std::string met;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line.substr(0, line.find("//")), reserved)) met += line + "\n";  // a comment may say so
    }
    INFO(source);
    CHECK(met == "");
  }
}

TEST_CASE("dynamic_shaders: one program serves every batch size") {
  Conv2dSpec spec = resnet_layer();
  const KernelPlan one = plan_of(spec);
  spec.n = 16;
  const KernelPlan many = plan_of(spec);
  REQUIRE(one.passes.size() == many.passes.size());
  for (std::size_t i = 0; i < one.passes.size(); ++i) {
    CHECK(one.passes[i].source.text == many.passes[i].source.text);
    CHECK(one.passes[i].grid[2] == 1);
    CHECK(many.passes[i].grid[2] == 16);
  }
}

TEST_CASE("dynamic_shaders: what the result depends on is in the source") {
  const std::string base = plain_plan_of(depthwise_layer()).passes.front().source.text;
  std::vector<Conv2dSpec> others(10, depthwise_layer());
  others[0].h = 13, others[1].w = 12, others[2].k = 6, others[3].r = 2, others[4].stride_x = 2, others[5].pad_x = 1;
  others[6].dilation_y = 2, others[7].groups = 3, others[8].bias = Bias::none, others[9].activation = Activation::none;
  for (const Conv2dSpec& other : others) {
    INFO(canonical_text(other));
    CHECK(plain_plan_of(other).passes.front().source.text != base);
  }
}

TEST_CASE("dynamic_shaders: a sum too long for one pass goes on in the next") {
  Conv2dSpec spec = resnet_layer();
  spec.c = 20000, spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  const KernelPlan plan = plain_plan_of(spec);
  REQUIRE(plan.passes.size() == 5);  // 13 rounds a channel, 60000 a pass
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const KernelSource& source = plan.passes[i].source;
    const bool first = i == 0, last = i == 4;
    CHECK(source.bindings.back() == (first ? Access::write : Access::read_write));
    CHECK(source.bindings.size() == (last ? 4 : 3));
    CHECK((source.text.find("float sum = 0.0;") != std::string::npos) == first);
    CHECK((source.text.find("bias[row]") != std::string::npos) == last);
    CHECK((source.text.find("max(sum, 0.0)") != std::string::npos) == last);
    const std::string channels =
        "c = " + std::to_string(i * 4000) + "; c < " + std::to_string((i + 1) * 4000) + "; ++c";
    CHECK_THAT(source.text, Catch::Contains(channels));
  }
  CHECK(passes_for(60000, 1) == 1);
  CHECK(passes_for(60001, 1) == 2);
  CHECK(passes_for(1, 60001) == 0);
}

TEST_CASE("dynamic_shaders: what cannot be written is refused with both sides") {
  DeviceInfo device = sample_device();
  Conv2dSpec taps = resnet_layer();
  taps.c = taps.k = 1, taps.pad_y = 0, taps.pad_x = 0;
  taps.h = taps.w = taps.r = taps.s = 3000;
  CHECK(refusal_of(taps, device).code == StatusCode::unsupported);
  CHECK_THAT(refusal_of(taps, device).message, Catch::Contains("3000 x 3000") && Catch::Contains("60000"));
  taps.h = taps.w = taps.r = taps.s = 300;  // too many for the plain kernel, not for one that unrolls a row
  const auto long_rows = Generator().generate(taps, device, Dialect::glsl);
  REQUIRE(long_rows.has_value());
  CHECK_THAT(long_rows->variant, Catch::StartsWith("direct/blocked:"));

  device.max_buffer_bytes = 1000;
  CHECK(refusal_of(small_gemm(), device).code == StatusCode::unsupported);
  CHECK_THAT(refusal_of(small_gemm(), device).message,
             Catch::Contains("tensor a has 4420 bytes") && Catch::Contains("1000"));

  device = sample_device();
  device.max_bindings = 3;
  CHECK_THAT(refusal_of(depthwise_layer(), device).message, Catch::Contains("4 bindings, expected at most 3"));

  Conv2dSpec huge = resnet_layer();
  huge.n = 20000;
  CHECK_THAT(refusal_of(huge, sample_device()).message, Catch::Contains("tensor input: 4014080000 elements"));

  const auto foreign = Generator().generate(small_gemm(), sample_device(), Dialect::library);
  REQUIRE_FALSE(foreign.has_value());
  CHECK(foreign.error().code == StatusCode::unsupported);
  CHECK_THAT(foreign.error().message, Catch::Contains("library") && Catch::Contains("glsl or opencl_c"));
}

TEST_CASE("dynamic_shaders: a workgroup stays within the device's limits") {
  DeviceInfo device = sample_device();
  device.max_workgroup = {16, 2, 1};
  device.max_workgroup_lanes = 24;
  for (const KernelSpec& spec : sample_specs()) {
    for (const Pass& pass : plan_of(spec, device).passes) {
      CHECK(pass.source.workgroup[0] <= 16);
      CHECK(pass.source.workgroup[1] <= 2);
      CHECK(pass.source.workgroup[0] * pass.source.workgroup[1] <= 24);
    }
  }
}

}  // namespace kiln::dynamic_shaders

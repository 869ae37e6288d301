// SPIR-V modules of the user, as the `source` of a job.
#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {
namespace {

using support::bytes_of_values;
using support::lanes;
using support::ramp;
using support::values_of_bytes;
using support::Vulkan;
using Uniform = UserKernelSpec::Uniform;

// The SPIR-V that the plugin stores of a text.
std::string module_of(const std::string& text) {
  Device& device = *Vulkan::instance().device();
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = text;
  auto program = device.build(source);
  REQUIRE(program);
  auto binary = device.serialize(**program);
  REQUIRE(binary);
  std::uint32_t words = 0;
  std::memcpy(&words, binary->bytes.data() + 32, sizeof words);
  return {reinterpret_cast<const char*>(binary->bytes.data() + 36), std::size_t{words} * 4};
}

constexpr const char* adding =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
    "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
    "layout(push_constant) uniform Push { float more; };\n"
    "void main() { uint i = gl_LocalInvocationID.x; y[i] = x[i] + more; }\n";

Status run_module(const std::string& module, std::vector<std::vector<std::byte>>& tensors, std::string entry = "main") {
  UserKernelSpec kernel;
  kernel.entry = std::move(entry);
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  kernel.text = module;
  for (const Access access : {Access::read, Access::write}) {
    UserKernelSpec::Binding binding;
    binding.access = access;
    binding.bytes = lanes * sizeof(float);
    kernel.bindings.push_back(binding);
  }
  kernel.uniforms.push_back({"more", Uniform::Type::number, {}});
  return support::run_kernel(kernel, tensors);
}

}  // namespace

TEST_CASE("vulkan: a SPIR-V module of the user runs, with names and numbers of its own", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(adding), tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  const auto result = values_of_bytes<float>(tensors[1]);
  for (std::uint32_t i = 0; i < lanes; ++i) CHECK(result[i] == static_cast<float>(i) + 0.5F);
}

TEST_CASE("vulkan: a SPIR-V module has the entry point of the job", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(adding), tensors, "other");
  INFO(status.text());
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Catch::Contains("no entry point 'other' (it has main)"));
}

TEST_CASE("vulkan: a SPIR-V module may have several entry points, of which the job names one", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string one = module_of(adding);
  std::string two = one.substr(0, 20);
  for (std::size_t at = 20; at < one.size();) {
    std::uint32_t word = 0;
    std::memcpy(&word, one.data() + at, sizeof word);
    std::string instruction = one.substr(at, std::size_t{word >> 16} * 4);
    at += instruction.size();
    two += instruction;
    if ((word & 0xffffU) != 15) continue;  // OpEntryPoint
    instruction.replace(instruction.find("main"), 4, "also");
    two += instruction;
  }
  const auto run = [&](const std::string& entry) {
    std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                                bytes_of_values(std::vector<double>{0.5})};
    Status status = run_module(two, tensors, entry);
    if (status.ok()) CHECK(values_of_bytes<float>(tensors[1])[3] == 3.5F);
    return status;
  };
  CHECK(run("main").ok());
  CHECK(run("also").ok());
  CHECK_THAT(run("none").message, Catch::Contains("no entry point 'none' (it has main, also)"));
}

TEST_CASE("vulkan: a SPIR-V module may have the layouts that GLSL may have", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::string text = adding;
  text.replace(text.find("layout(local"), 0, "#extension GL_EXT_scalar_block_layout : require\n");
  text.replace(text.find("std430, binding = 0) readonly buffer X { float x[]; }"), 53,
               "scalar, binding = 0) readonly buffer X { float first; vec3 v[]; }");
  text.replace(text.find("x[i]"), 4, "v[i / 3u][i % 3u]");
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(text), tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(values_of_bytes<float>(tensors[1])[5] == 6.5F);
}

TEST_CASE("vulkan: blocks of a SPIR-V module without names have one each", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string named = module_of(
      "#version 450\nlayout(local_size_x = 1) in;\nlayout(std430, binding = 0) writeonly buffer Y { float y; };\n"
      "layout(set = 0, binding = 2) uniform P { float a; } p;\nlayout(set = 1, binding = 2) uniform Q { float a; } q;\n"
      "void main() { y = 10 * p.a + q.a; }\n");
  UserKernelSpec kernel;
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  constexpr std::size_t head = 20;
  kernel.text = named.substr(0, head);
  for (std::size_t at = head; at < named.size();) {
    std::uint32_t word = 0;
    std::memcpy(&word, named.data() + at, sizeof word);
    const std::size_t length = std::size_t{word >> 16} * 4;
    const std::uint32_t op = word & 0xffffU;
    if (op != 5 && op != 6) kernel.text += named.substr(at, length);  // OpName, OpMemberName
    at += length;
  }
  kernel.bindings.resize(1);
  kernel.bindings[0].access = Access::write;
  kernel.bindings[0].bytes = 4;
  kernel.uniforms.push_back({"binding2.member0", Uniform::Type::number, {}});
  kernel.uniforms.push_back({"set1.binding2.member0", Uniform::Type::number, {}});
  std::vector<std::vector<std::byte>> tensors{std::vector<std::byte>(4), bytes_of_values(std::vector<double>{1, 2})};
  const Status status = support::run_kernel(kernel, tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(values_of_bytes<float>(tensors[0])[0] == 12);
}

TEST_CASE("vulkan: a SPIR-V module that is not valid does not reach the driver", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string good = module_of(adding);
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  std::vector<std::string> bad{good.substr(0, good.size() / 8 * 4), good.substr(0, 18), good.substr(0, 20),
                               good + std::string(4, '\0')};
  bad.push_back(good);
  bad.back()[0] = 0;  // its magic number
  bad.push_back(good);
  bad.back()[12] = 1;  // its number of ids
  bad.push_back(good);
  bad.back()[6] = 9;  // SPIR-V 1.3 becomes 9.3
  for (const std::string& module : bad) {
    const Status status = run_module(module, tensors);
    INFO(status.text());
    CHECK(status.code == StatusCode::invalid_argument);
    CHECK_THAT(status.message, Catch::Contains("mine.spv") && Catch::Contains("SPIR-V"));
  }
}

}  // namespace kiln::vulkan

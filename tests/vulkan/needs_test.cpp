// What a program needs of a device: the bytes of its shared memory, and features that no capability tells.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

std::string with_extensions(std::initializer_list<const char*> extensions) {
  std::string text = "#version 450\n";
  for (const char* each : extensions) text += "#extension " + std::string(each) + " : require\n";
  return text + "layout(local_size_x = 64) in;\n";
}

}  // namespace

TEST_CASE("vulkan needs: shared memory is as large as its parts", "[vulkan][refusal]") {
  if (!on_software()) return;
  const struct {
    const char* declaration;
    const char* first;  // an expression of a number
    std::uint64_t bytes;
  } cases[] = {
      {"shared float s[100000];", "s[i]", 400000},
      {"shared vec3 s[100000];", "s[i].x", 1200000},
      {"shared mat3x2 s[100000];", "s[i][0][0]", 2400000},
      {"shared double s[100000];", "s[i]", 800000},
      {"shared bool s[100000];", "(s[i] ? 1 : 0)", 400000},
      {"struct A { vec2 a; bool b; float c[3]; };\nshared A s[100000];", "s[i].a.x", 2400000},
      {"shared float s[100000];\nshared int t[50000];", "(s[i] + t[i])", 600000},
  };
  for (const auto& each : cases) {
    INFO(each.declaration);
    refuse(Kernel(std::string(each.declaration) + "\n", each.first),
           std::to_string(each.bytes) + " bytes of shared memory, the device has at most ");
  }
  // One that nothing uses takes none, whatever the layer says.
  support::FaultyVulkan vulkan({}, {{"validation", false}});
  const auto device = vulkan.plugin().open("vulkan:0");
  check(Kernel("shared float s[64];\nshared float t[1000000];\n", "(s[i] = float(i), s[i])").on(*device), {0, 1, 2, 3});
}

TEST_CASE("vulkan needs: a feature for the atomics of a kernel is named", "[vulkan][feature]") {
  if (!on_software()) return;
  const Pretence pretence;
  pretence->features = [](VkPhysicalDeviceFeatures2& features) {
    for (auto* at = static_cast<VkBaseOutStructure*>(features.pNext); at != nullptr; at = at->pNext) {
      if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT) {
        auto& floats = reinterpret_cast<VkPhysicalDeviceShaderAtomicFloatFeaturesEXT&>(*at);
        floats.shaderBufferFloat32Atomics = floats.shaderSharedFloat32Atomics = floats.shaderImageFloat32Atomics =
            VK_FALSE;
      }
    }
  };
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const std::string floats = with_extensions({"GL_EXT_shader_atomic_float"});
  const auto needs = [&](const std::string& declarations, const std::string& expression, const std::string& feature,
                         bool has_image = false) {
    INFO(expression);
    Kernel kernel(floats + declarations, expression);
    if (has_image) {
      kernel.texture(BindingKind::image, Access::read_write, "m", ramp(), DType::f32, {64});
    } else {
      kernel.input(ramp(), "A", {}, Access::read_write);
    }
    refuse(kernel.on(*device),
           "the program needs the Vulkan feature " + feature + ", which " + device->info().name + " does not support");
  };
  const std::string in_buffer = "layout(std430, binding = 0) buffer A { float a[]; };\n";
  needs(in_buffer, "atomicExchange(a[i], 1.0)", "shaderBufferFloat32Atomics");
  needs(in_buffer + "shared float s;\n", "(atomicExchange(s, 2.0), a[i])", "shaderSharedFloat32Atomics");
  needs(in_buffer + "shared float s;\n", "(atomicExchange(s, 2.0), atomicExchange(a[i], 1.0))",
        "shaderBufferFloat32Atomics, shaderSharedFloat32Atomics");
  needs("layout(r32f) uniform image1D m;\n", "imageAtomicExchange(m, int(i), 3.0)", "shaderImageFloat32Atomics", true);
}

TEST_CASE("vulkan needs: more descriptors of a kind than a stage or a set may have are refused", "[vulkan][refusal]") {
  if (!on_software()) return;
  using Limits = VkPhysicalDeviceLimits;
  const auto text = [](const char* declarations) { return std::string(declarations); };
  const std::string samplers = text("uniform sampler1D s[2];\n"), images = text("layout(r32f) uniform image1D m[2];\n"),
                    uniforms = text(
                        "layout(std140, binding = 1) uniform U { float u; };\n"
                        "layout(std140, binding = 2) uniform V { float v; };\n");
  const std::string read_samplers = "texelFetch(s[0], 0, 0).x + texelFetch(s[1], 0, 0).x",
                    read_images = "imageLoad(m[0], 0).x + imageLoad(m[1], 0).x";
  const struct {
    const std::string& declarations;
    std::string expression;
    std::uint32_t Limits::*limit;
    const char* words;
  } cases[] = {
      {uniforms, "u + v", &Limits::maxPerStageDescriptorUniformBuffers, "2 uniform blocks"},
      {uniforms, "u + v", &Limits::maxDescriptorSetUniformBuffers, "2 uniform blocks"},
      {samplers, read_samplers, &Limits::maxPerStageDescriptorSampledImages, "2 textures"},
      {samplers, read_samplers, &Limits::maxDescriptorSetSampledImages, "2 textures"},
      {samplers, read_samplers, &Limits::maxPerStageDescriptorSamplers, "2 samplers"},
      {samplers, read_samplers, &Limits::maxDescriptorSetSamplers, "2 samplers"},
      {images, read_images, &Limits::maxPerStageDescriptorStorageImages, "2 images"},
      {images, read_images, &Limits::maxDescriptorSetStorageImages, "2 images"},
  };
  for (const auto& each : cases) {
    for (const std::uint32_t most : {1U, 2U}) {
      INFO(each.words << " of " << most);
      const Pretence pretence;
      pretence->properties = [&](VkPhysicalDeviceProperties& properties) { properties.limits.*each.limit = most; };
      support::FaultyVulkan vulkan({});
      const auto device = vulkan.plugin().open("vulkan:0");
      KernelSource source;
      source.dialect = Dialect::glsl;
      source.text = "#version 450\nlayout(local_size_x = 1) in;\n" + each.declarations +
                    "layout(std430, binding = 9) buffer Out { float y[]; };\nvoid main() { y[0] = " + each.expression +
                    "; }\n";
      const auto built = device->build(source);
      CHECK(built.has_value() == (most == 2));
      if (built) continue;
      CHECK(built.error().code == StatusCode::invalid_argument);
      CHECK_THAT(built.error().message,
                 Catch::Contains(std::string(each.words) + ", the device takes at most " + std::to_string(most)));
    }
  }
}

TEST_CASE("vulkan needs: the sizes of push constants and of uniform blocks have their limits", "[vulkan][refusal]") {
  if (!on_software()) return;
  const auto build = [](std::uint32_t VkPhysicalDeviceLimits::*limit, std::uint32_t most, const char* declaration) {
    const Pretence pretence;
    pretence->properties = [&](VkPhysicalDeviceProperties& properties) { properties.limits.*limit = most; };
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = std::string("#version 450\nlayout(local_size_x = 1) in;\n") + declaration +
                  "layout(std430, binding = 9) buffer Out { vec4 y[]; };\nvoid main() { y[0] = v[3]; }\n";
    const auto built = device->build(source);
    return built ? Status() : built.error();
  };
  const char* const push = "layout(push_constant) uniform Push { vec4 v[4]; };\n";
  CHECK(build(&VkPhysicalDeviceLimits::maxPushConstantsSize, 64, push).ok());
  const Status too_many = build(&VkPhysicalDeviceLimits::maxPushConstantsSize, 63, push);
  CHECK(too_many.code == StatusCode::unsupported);
  CHECK_THAT(too_many.message, Catch::Contains("64 bytes of push constants, the device takes at most 63"));
  const char* const block = "layout(std140, binding = 0) uniform U { vec4 v[4]; };\n";
  CHECK(build(&VkPhysicalDeviceLimits::maxUniformBufferRange, 64, block).ok());
  const Status too_large = build(&VkPhysicalDeviceLimits::maxUniformBufferRange, 63, block);
  CHECK(too_large.code == StatusCode::invalid_argument);
  CHECK_THAT(too_large.message, Catch::Contains("a uniform block of 64 bytes, the device takes at most 63"));
}

}  // namespace kiln::vulkan

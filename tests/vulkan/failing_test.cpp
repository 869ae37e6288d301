// A driver whose calls fail, one at a time: each is reported by type, nothing of it stays, and the next try succeeds.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

using Words = std::vector<std::uint32_t>;

KernelSource tripling() { return from_words("x[i] * 3u"); }

Result<std::unique_ptr<Buffer>> made(Device& device, BufferUsage usage, const Words& words) {
  BufferDesc desc;
  desc.bytes = words.size() * 4;
  desc.usage = usage;
  auto buffer = device.create_buffer(desc);
  if (!buffer) return buffer.error();
  if (Status status = (*buffer)->write(0, std::as_bytes(std::span(words))); !status.ok()) return status;
  return buffer;
}

// A submission and its end, also where waiting fails: the buffers go after it.
Status run(Device& device, const PassLaunch& launch) {
  const auto value = device.submit({{&launch, 1}});
  if (!value) return value.error();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const auto done = device.wait(*value, deadline);
  if (done) return {};
  [[maybe_unused]] const auto ended = device.wait(*value, deadline);
  return done.error();
}

// Buffers of each usage, a program that is built, stored and loaded, launches of both kinds of grid, and values, texels
// and images of a kernel.
Status work(Device& device) {
  const auto in = made(device, BufferUsage::upload, Words(lanes, 5)),
             out = made(device, BufferUsage::readback, Words(lanes)),
             grid = made(device, BufferUsage::storage, {1, 1, 1});
  for (const auto* each : {&in, &out, &grid}) {
    if (!*each) return each->error();
  }
  const KernelSource source = tripling();
  const auto program = device.build(source);
  if (!program) return program.error();
  const auto binary = device.serialize(**program);
  if (!binary) return binary.error();
  const auto loaded = device.load(source, *binary);
  if (!loaded) return loaded.error();
  Buffer* const bindings[] = {in->get(), out->get(), grid->get()};
  const PassLaunch launch{loaded->get(), std::span(bindings).first(2), {1, 1, 1}};
  for (int i = 0; i < 3; ++i) {
    if (Status status = run(device, launch); !status.ok()) return status;
  }
  Words results(lanes);
  if (Status status = (*out)->read(0, std::as_writable_bytes(std::span(results))); !status.ok()) return status;
  CHECK(results == Words(lanes, 15));

  KernelSource wide = source;
  wide.bindings.push_back(Access::read);
  const auto indirect = device.build(wide);
  if (!indirect) return indirect.error();
  PassLaunch second{indirect->get(), bindings, {1, 1, 1}};
  second.indirect = IndirectGrid{2, 0};
  if (Status status = run(device, second); !status.ok()) return status;

  Kernel kernel(
      "layout(std430, binding = 0) readonly buffer A { float a[]; };\nuniform float gain;\nuniform sampler1D t;\n"
      "uniform samplerBuffer b;\nlayout(r32f) uniform image1D m;\n",
      "(imageStore(m, int(i), vec4(2.0)), a[i] * gain + texelFetch(t, int(i), 0).x + texelFetch(b, int(i)).x)");
  kernel.input(ramp(), "A")
      .number("gain", 2)
      .texture(BindingKind::sampler, Access::read, "t", ramp(), DType::f32, {64})
      .texture(BindingKind::sampler, Access::read, "b", ramp(), DType::f32, {64})
      .texture(BindingKind::image, Access::write, "m", ramp(), DType::f32, {64})
      .on(device);
  if (Status status = kernel.run(); !status.ok()) return status;
  CHECK(kernel.result()[3] == 12);
  CHECK(values_of_bytes<float>(kernel.tensor(4))[3] == 2);
  return {};
}

struct Call {
  const char* name;
  int least;  // of such calls in an opening and the work
};

// Every function that may fail, but for those that tell nothing where they do.
constexpr Call calls[] = {
    {"vkCreateDevice", 1},
    {"vkQueueSubmit", 5},
    {"vkAllocateMemory", 8},
    {"vkMapMemory", 4},
    {"vkCreateBuffer", 8},
    {"vkBindBufferMemory", 8},
    {"vkCreateBufferView", 2},
    {"vkCreateImage", 2},
    {"vkBindImageMemory", 2},
    {"vkCreateImageView", 2},
    {"vkCreateSampler", 1},
    {"vkCreateShaderModule", 3},
    {"vkCreatePipelineCache", 3},
    {"vkCreateComputePipelines", 3},
    {"vkCreateDescriptorSetLayout", 3},
    {"vkCreatePipelineLayout", 3},
    {"vkCreateDescriptorPool", 2},
    {"vkResetDescriptorPool", 1},
    {"vkAllocateDescriptorSets", 2},
    {"vkCreateCommandPool", 1},
    {"vkResetCommandPool", 3},
    {"vkAllocateCommandBuffers", 1},
    {"vkBeginCommandBuffer", 3},
    {"vkEndCommandBuffer", 3},
    {"vkCreateQueryPool", 1},
    {"vkCreateSemaphore", 1},
    {"vkWaitSemaphores", 3},
};

// How many calls of the function failed in turn.
int fail_each(const Pretence& pretence, const std::string& call) {
  for (int before = 0;; ++before) {
    INFO(call << " after " << before);
    support::FaultyVulkan vulkan({});
    pretence.fail(call, before);
    Status status;
    auto device = vulkan.plugin().driver().open("vulkan:0");
    if (device) {
      status = work(**device);
    } else {
      status = device.error();
    }
    if (!pretence->has_failed) {
      INFO(status.text());
      CHECK(status.ok());
      return before;
    }
    INFO(status.text());
    REQUIRE_FALSE(status.ok());
    CHECK(status.code == StatusCode::unavailable);
    CHECK_THAT(status.message, Catch::Contains("VK_ERROR_OUT_OF_DEVICE_MEMORY"));
    CHECK_THAT(status.message, Catch::Contains("vulkan:0"));
    if (!device) device = vulkan.plugin().driver().open("vulkan:0");
    REQUIRE(device.has_value());
    const Status again = work(**device);
    INFO(again.text());
    CHECK(again.ok());
  }
}

}  // namespace

TEST_CASE("vulkan failing: each call that finds no memory is reported, and the next try succeeds",
          "[vulkan][failing]") {
  if (!on_software()) return;
  for (const Call& call : calls) {  // on a card: with copies and stamps
    const Pretence pretence;
    become_card(pretence);
    CHECK(fail_each(pretence, call.name) >= call.least);
  }
}

TEST_CASE("vulkan failing: a loader whose instance or list of devices fails is named", "[vulkan][failing]") {
  if (!on_software()) return;
  const struct {
    const char* call;
    int before;
    VkResult result;
    const char* words;
  } cases[] = {
      {"vkCreateInstance", 0, VK_ERROR_OUT_OF_HOST_MEMORY, "vkCreateInstance: VK_ERROR_OUT_OF_HOST_MEMORY"},
      {"vkCreateInstance", 0, VK_ERROR_INCOMPATIBLE_DRIVER,
       "vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER: no Vulkan driver is installed"},
      {"vkEnumeratePhysicalDevices", 0, VK_ERROR_INITIALIZATION_FAILED,
       "vkEnumeratePhysicalDevices: VK_ERROR_INITIALIZATION_FAILED"},
      {"vkEnumeratePhysicalDevices", 1, VK_ERROR_OUT_OF_HOST_MEMORY,
       "vkEnumeratePhysicalDevices: VK_ERROR_OUT_OF_HOST_MEMORY"},
  };
  for (const auto& each : cases) {
    INFO(each.call << " after " << each.before);
    const Pretence pretence;
    support::FaultyVulkan vulkan({});
    pretence.fail(each.call, each.before, each.result);
    const auto listed = vulkan.plugin().driver().enumerate();
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].id == "vulkan:0");
    CHECK(listed[0].name == "Vulkan");
    CHECK(listed[0].kind == DeviceKind::gpu);
    CHECK(listed[0].dialects == std::vector<Dialect>{Dialect::glsl, Dialect::code_object});
    CHECK_FALSE(listed[0].usable);
    CHECK(listed[0].why_not == each.words);
    const auto opened = vulkan.plugin().driver().open("vulkan:0");
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == StatusCode::unavailable);
    CHECK(opened.error().message == "vulkan:0: " + std::string(each.words));
  }
}

TEST_CASE("vulkan failing: a result of the driver has a type and its name", "[vulkan][failing]") {
  if (!on_software()) return;
  const struct {
    int result;
    StatusCode code;
    const char* name;
  } results[] = {
      {1, StatusCode::internal, "VK_NOT_READY"},
      {2, StatusCode::internal, "VK_TIMEOUT"},
      {5, StatusCode::internal, "VK_INCOMPLETE"},
      {-1, StatusCode::unavailable, "VK_ERROR_OUT_OF_HOST_MEMORY"},
      {-2, StatusCode::unavailable, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
      {-3, StatusCode::unavailable, "VK_ERROR_INITIALIZATION_FAILED"},
      {-4, StatusCode::device_lost, "VK_ERROR_DEVICE_LOST. Open the device again"},
      {-5, StatusCode::unavailable, "VK_ERROR_MEMORY_MAP_FAILED"},
      {-6, StatusCode::internal, "VK_ERROR_LAYER_NOT_PRESENT"},
      {-7, StatusCode::internal, "VK_ERROR_EXTENSION_NOT_PRESENT"},
      {-8, StatusCode::internal, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {-9, StatusCode::unavailable, "VK_ERROR_INCOMPATIBLE_DRIVER"},
      {-10, StatusCode::unavailable, "VK_ERROR_TOO_MANY_OBJECTS"},
      {-11, StatusCode::internal, "VK_ERROR_FORMAT_NOT_SUPPORTED"},
      {-12, StatusCode::internal, "VK_ERROR_FRAGMENTED_POOL"},
      {-13, StatusCode::internal, "VK_ERROR_UNKNOWN"},
      {-1000069000, StatusCode::internal, "VK_ERROR_OUT_OF_POOL_MEMORY"},
      {-1000072003, StatusCode::unavailable, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
      {1000297000, StatusCode::internal, "VK_PIPELINE_COMPILE_REQUIRED"},
      {-1234, StatusCode::internal, "VkResult -1234"},
  };
  const Pretence pretence;
  for (const auto& each : results) {
    INFO(each.name);
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    pretence.fail("vkCreateBuffer", 0, static_cast<VkResult>(each.result));
    const auto buffer = made(*device, BufferUsage::storage, {1});
    REQUIRE_FALSE(buffer);
    CHECK(buffer.error().code == each.code);
    CHECK(buffer.error().message == std::string("vulkan:0: a buffer of 128 bytes: ") + each.name);
  }
}

TEST_CASE("vulkan failing: a lost device is lost for all that follows, and opens again", "[vulkan][failing]") {
  if (!on_software()) return;
  for (const char* call : {"vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"}) {
    INFO(call);
    const Pretence pretence;
    // The layer takes what a lost device had in flight for still in use.
    support::FaultyVulkan vulkan({}, {{"validation", false}});
    const auto device = vulkan.plugin().open("vulkan:0");
    const KernelSource source = tripling();
    const auto program = device->build(source);
    REQUIRE(program.has_value());
    const auto in = made(*device, BufferUsage::upload, Words(lanes, 5)),
               out = made(*device, BufferUsage::readback, Words(lanes));
    Buffer* const bindings[] = {in->get(), out->get()};
    const PassLaunch launch{program->get(), bindings, {1, 1, 1}};
    pretence.fail(call, 0, VK_ERROR_DEVICE_LOST);
    const auto value = device->submit({{&launch, 1}});
    Status status = value ? ok_status() : value.error();
    if (value) {
      const auto done = device->wait(*value, Deadline::after(std::chrono::seconds(60)));
      REQUIRE_FALSE(done);
      status = done.error();
    }
    CHECK(status.code == StatusCode::device_lost);
    CHECK_THAT(status.message, Catch::Contains("vulkan:0"));
    CHECK_THAT(status.message, Catch::Contains("Open the device again"));
    const auto again = device->submit({{&launch, 1}});
    REQUIRE_FALSE(again);
    CHECK(again.error().code == StatusCode::device_lost);
    CHECK(again.error().message == "vulkan:0: the Vulkan device was lost. Open the device again");
    CHECK(device->build(source).error().code == StatusCode::device_lost);
    Words words(lanes);
    CHECK((*out)->read(0, std::as_writable_bytes(std::span(words))).code == StatusCode::device_lost);
    CHECK((*in)->write(0, std::as_bytes(std::span(words))).code == StatusCode::device_lost);
    CHECK(work(*vulkan.plugin().open("vulkan:0")).ok());
  }
}

TEST_CASE("vulkan failing: a wait that finds no memory leaves the submission in flight", "[vulkan][failing]") {
  if (!on_software()) return;
  for (const char* call : {"vkWaitSemaphores", "vkGetSemaphoreCounterValue"}) {
    INFO(call);
    const Pretence pretence;
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    const auto program = device->build(tripling());
    REQUIRE(program.has_value());
    const auto in = made(*device, BufferUsage::upload, Words(lanes, 5)),
               out = made(*device, BufferUsage::readback, Words(lanes));
    Buffer* const bindings[] = {in->get(), out->get()};
    const PassLaunch launch{program->get(), bindings, {1, 1, 1}};
    const auto value = device->submit({{&launch, 1}});
    REQUIRE(value.has_value());
    pretence.fail(call, 0, VK_ERROR_OUT_OF_HOST_MEMORY);
    const auto unread = device->wait(*value, Deadline::after(std::chrono::seconds(60)));
    REQUIRE_FALSE(unread);
    CHECK(unread.error().code == StatusCode::unavailable);
    CHECK_THAT(unread.error().message, Catch::EndsWith("VK_ERROR_OUT_OF_HOST_MEMORY"));
    CHECK(device->wait(*value, Deadline::after(std::chrono::seconds(60))).has_value());
    Words words(lanes);
    CHECK((*out)->read(0, std::as_writable_bytes(std::span(words))).ok());
    CHECK(words == Words(lanes, 15));
  }
}

TEST_CASE("vulkan failing: the stored code of a program is kept where loading it only found no memory",
          "[vulkan][failing]") {
  if (!on_software()) return;
  const Pretence pretence;
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const KernelSource source = tripling();
  const auto program = device->build(source);
  REQUIRE(program.has_value());
  const auto binary = device->serialize(**program);
  REQUIRE(binary.has_value());
  const struct {
    VkResult result;
    StatusCode code;
  } cases[] = {{VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::unavailable},
               {VK_PIPELINE_COMPILE_REQUIRED, StatusCode::corrupt},
               {VK_ERROR_UNKNOWN, StatusCode::corrupt},
               {VK_ERROR_DEVICE_LOST, StatusCode::device_lost}};
  for (const auto& each : cases) {
    INFO("result " << each.result);
    pretence.fail("vkCreateComputePipelines", 0, each.result);
    const auto loaded = device->load(source, *binary);
    REQUIRE_FALSE(loaded);
    INFO(loaded.error().text());
    CHECK(loaded.error().code == each.code);
  }
}

TEST_CASE("vulkan failing: a program whose stored code cannot be read is not serialized", "[vulkan][failing]") {
  if (!on_software()) return;
  const Pretence pretence;
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const auto program = device->build(tripling());
  REQUIRE(program.has_value());
  for (const int before : {0, 1}) {
    INFO("after " << before);
    pretence.fail("vkGetPipelineCacheData", before);
    const auto binary = device->serialize(**program);
    REQUIRE_FALSE(binary);
    CHECK(binary.error().code == StatusCode::unavailable);
  }
  CHECK(device->serialize(**program).has_value());
}

// Without the functions that end them, a device and an instance stay.
TEST_CASE("vulkan failing: a function that the driver lacks is named", "[vulkan][failing][unsanitized]") {
  if (!on_software()) return;
  const char* const of_devices[] = {"vkDestroyDevice",
                                    "vkGetDeviceQueue",
                                    "vkDeviceWaitIdle",
                                    "vkQueueSubmit",
                                    "vkAllocateMemory",
                                    "vkFreeMemory",
                                    "vkMapMemory",
                                    "vkCreateBuffer",
                                    "vkDestroyBuffer",
                                    "vkGetBufferMemoryRequirements",
                                    "vkBindBufferMemory",
                                    "vkCreateBufferView",
                                    "vkDestroyBufferView",
                                    "vkCreateImage",
                                    "vkDestroyImage",
                                    "vkGetImageMemoryRequirements",
                                    "vkBindImageMemory",
                                    "vkCreateImageView",
                                    "vkDestroyImageView",
                                    "vkCreateSampler",
                                    "vkDestroySampler",
                                    "vkCreateShaderModule",
                                    "vkDestroyShaderModule",
                                    "vkCreatePipelineCache",
                                    "vkDestroyPipelineCache",
                                    "vkGetPipelineCacheData",
                                    "vkCreateComputePipelines",
                                    "vkDestroyPipeline",
                                    "vkCreateDescriptorSetLayout",
                                    "vkDestroyDescriptorSetLayout",
                                    "vkCreatePipelineLayout",
                                    "vkDestroyPipelineLayout",
                                    "vkCreateDescriptorPool",
                                    "vkDestroyDescriptorPool",
                                    "vkResetDescriptorPool",
                                    "vkAllocateDescriptorSets",
                                    "vkUpdateDescriptorSets",
                                    "vkCreateCommandPool",
                                    "vkDestroyCommandPool",
                                    "vkResetCommandPool",
                                    "vkAllocateCommandBuffers",
                                    "vkBeginCommandBuffer",
                                    "vkEndCommandBuffer",
                                    "vkCmdBindPipeline",
                                    "vkCmdBindDescriptorSets",
                                    "vkCmdPushConstants",
                                    "vkCmdDispatch",
                                    "vkCmdDispatchIndirect",
                                    "vkCmdPipelineBarrier",
                                    "vkCmdCopyBuffer",
                                    "vkCmdCopyBufferToImage",
                                    "vkCmdCopyImageToBuffer",
                                    "vkCmdResetQueryPool",
                                    "vkCmdWriteTimestamp",
                                    "vkCreateQueryPool",
                                    "vkDestroyQueryPool",
                                    "vkGetQueryPoolResults",
                                    "vkCreateSemaphore",
                                    "vkDestroySemaphore"};
  const Pretence pretence;
  for (const std::string name : of_devices) {
    INFO(name);
    pretence->hidden = name;
    // A device whose destruction is not known stays, of which the layer would tell.
    support::FaultyVulkan vulkan({}, {{"validation", false}});
    const auto opened = vulkan.plugin().driver().open("vulkan:0");
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == StatusCode::unavailable);
    CHECK(opened.error().message == "vulkan:0: the Vulkan driver has no " + name);
  }
  const char* const of_instances[] = {"vkDestroyInstance",
                                      "vkGetDeviceProcAddr",
                                      "vkEnumeratePhysicalDevices",
                                      "vkEnumerateDeviceExtensionProperties",
                                      "vkGetPhysicalDeviceProperties",
                                      "vkGetPhysicalDeviceProperties2",
                                      "vkGetPhysicalDeviceFeatures2",
                                      "vkGetPhysicalDeviceMemoryProperties",
                                      "vkGetPhysicalDeviceQueueFamilyProperties",
                                      "vkGetPhysicalDeviceFormatProperties",
                                      "vkGetPhysicalDeviceExternalBufferProperties",
                                      "vkGetPhysicalDeviceExternalSemaphoreProperties",
                                      "vkCreateDevice"};
  for (const std::string name : of_instances) {
    INFO(name);
    pretence->hidden = name;
    support::FaultyVulkan vulkan({}, {{"validation", false}});
    CHECK(vulkan.plugin().driver().enumerate().at(0).why_not == "the Vulkan driver has no " + name);
  }
  for (const std::string name : {"vkCreateInstance", "vkEnumerateInstanceLayerProperties"}) {
    INFO(name);
    pretence->hidden = name;
    support::FaultyVulkan vulkan({});
    CHECK(vulkan.plugin().driver().enumerate().at(0).why_not ==
          std::string(KILN_FAULTY_LOADER) + ": the Vulkan driver has no " + name);
  }
  pretence->hidden = "vkGetCalibratedTimestampsEXT";  // one that need not be there
  support::FaultyVulkan vulkan({});
  CHECK(vulkan.plugin().driver().open("vulkan:0").has_value());
}

}  // namespace kiln::vulkan

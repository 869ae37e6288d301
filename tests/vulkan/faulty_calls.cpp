// Calls that fail when a test says so.
#include "vulkan/faulty_calls.hpp"

#include <cstring>

extern "C" __attribute__((visibility("default"))) kiln::vulkan::FaultyState faulty_vulkan_state;
kiln::vulkan::FaultyState faulty_vulkan_state;

namespace kiln::vulkan {

FaultyState& faulty_state() { return faulty_vulkan_state; }

namespace {

bool fails(const char* name) {
  FaultyState& state = faulty_state();
  if (state.failing != name || state.has_failed) return false;
  if (state.calls_before-- > 0) return false;
  state.has_failed = true;
  return true;
}

// Every function that the plugin calls and that may fail.
#define KILN_CALLS(call)                                                                                        \
  call(CreateInstance) call(EnumeratePhysicalDevices) call(CreateDevice) call(QueueSubmit) call(AllocateMemory) \
      call(MapMemory) call(CreateBuffer) call(BindBufferMemory) call(CreateBufferView) call(CreateImage)        \
          call(BindImageMemory) call(CreateImageView) call(CreateSampler) call(CreateShaderModule)              \
              call(CreatePipelineCache) call(GetPipelineCacheData) call(CreateComputePipelines)                 \
                  call(CreateDescriptorSetLayout) call(CreatePipelineLayout) call(CreateDescriptorPool)         \
                      call(ResetDescriptorPool) call(AllocateDescriptorSets) call(CreateCommandPool)            \
                          call(ResetCommandPool) call(AllocateCommandBuffers) call(BeginCommandBuffer)          \
                              call(EndCommandBuffer) call(CreateQueryPool) call(GetQueryPoolResults)            \
                                  call(CreateSemaphore) call(WaitSemaphores) call(GetSemaphoreCounterValue)     \
                                      call(GetCalibratedTimestampsEXT) call(GetMemoryFdKHR) call(GetSemaphoreFdKHR)

enum Number : std::size_t {
#define KILN_NUMBER(name) number_of_##name,
  KILN_CALLS(KILN_NUMBER)
#undef KILN_NUMBER
      calls
};

constexpr const char* names[] = {
#define KILN_NAME(name) "vk" #name,
    KILN_CALLS(KILN_NAME)
#undef KILN_NAME
};

PFN_vkVoidFunction reals[calls] = {};

template <class Function>
struct StandIn;

template <class... Arguments>
struct StandIn<VkResult(VKAPI_PTR*)(Arguments...)> {
  template <std::size_t number>
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    if (fails(names[number])) return faulty_state().result;
    return reinterpret_cast<VkResult(VKAPI_PTR*)(Arguments...)>(reals[number])(arguments...);
  }
};

const PFN_vkVoidFunction stand_ins[] = {
#define KILN_STAND_IN(name) reinterpret_cast<PFN_vkVoidFunction>(&StandIn<PFN_vk##name>::call<number_of_##name>),
    KILN_CALLS(KILN_STAND_IN)
#undef KILN_STAND_IN
};

}  // namespace

PFN_vkVoidFunction failing_call(const char* name, PFN_vkVoidFunction real) {
  if (real == nullptr || faulty_state().hidden == name) return nullptr;
  for (std::size_t i = 0; i < calls; ++i) {
    if (std::strcmp(names[i], name) != 0) continue;
    reals[i] = real;
    return stand_ins[i];
  }
  return real;
}

}  // namespace kiln::vulkan

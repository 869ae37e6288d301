/* A Vulkan application that gets its shader and its compute pipeline from Kiln's cache: the first process compiles them, later ones
 * create them from what is stored. Its compiler is glslangValidator. usage: c_vulkan squares.comp */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L /* popen */
#endif
#include <kiln_vulkan.h>
#include <stdio.h>

typedef struct application {
  VkPipelineLayout layout;
  VkShaderModule module;
} application;

/* Reads what is left of a file. */
static size_t read_all(FILE* file, char* to, size_t room) {
  size_t count = 0, read;
  while ((read = fread(to + count, 1, room - count, file)) != 0) count += read;
  return count;
}

/* Compiles the shader. */
static kiln_code compile(void* user, kiln_request* request) {
  static char code[1 << 16];
  char command[512];
  FILE* compiler;
  size_t count;
  snprintf(command, sizeof command,
           "o=$(mktemp) && { glslangValidator -V '%s' -o $o >&2 && cat $o; s=$?; rm $o; exit $s; }", (const char*)user);
  compiler = popen(command, "r");
  if (compiler == NULL) return KILN_UNAVAILABLE;
  count = read_all(compiler, code, sizeof code);
  if (pclose(compiler) != 0) {
    kiln_request_set_message(request, "glslangValidator failed");
    return KILN_INVALID_ARGUMENT;
  }
  return kiln_request_set_bytes(request, code, count) ? KILN_OK : KILN_UNAVAILABLE;
}

/* Creates the pipeline, whether it has to be compiled or not. */
static VkResult create(void* user, VkDevice device, VkPipelineCache cache, VkPipeline* pipeline) {
  const application* self = (const application*)user;
  VkComputePipelineCreateInfo info;
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = self->module;
  info.stage.pName = "main";
  info.layout = self->layout;
  return vkCreateComputePipelines(device, cache, 1, &info, NULL, pipeline);
}

static int failed(kiln_status* status) {
  if (status == NULL) return 0;
  fprintf(stderr, "c_vulkan: %s: %s\n", kiln_code_name(kiln_status_code(status)), kiln_status_message(status));
  kiln_status_free(status);
  return 1;
}

/* Memory that the host sees; 32: none. */
static uint32_t host_memory(VkPhysicalDevice physical, uint32_t allowed) {
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkPhysicalDeviceMemoryProperties memory;
  uint32_t at;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (at = 0; at < memory.memoryTypeCount; ++at) {
    if ((allowed >> at & 1) != 0 && (memory.memoryTypes[at].propertyFlags & wanted) == wanted) return at;
  }
  return 32;
}

int main(int argc, char** argv) {
  enum { count = 1024 };
  static const char* const tiers[] = {"nowhere", "memory", "disk", "the compiler"};
  const float priority = 1.0f;
  VkApplicationInfo about = {VK_STRUCTURE_TYPE_APPLICATION_INFO, NULL, "c_vulkan", 1, NULL, 0, VK_API_VERSION_1_0};
  VkInstanceCreateInfo instance_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, NULL, 0, &about, 0, NULL, 0, NULL};
  VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, 0, 0, 1, &priority};
  VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, NULL, 0, 1, &queue_info, 0, NULL, 0, NULL, NULL};
  VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
  VkDescriptorSetLayoutCreateInfo set_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, NULL, 0, 1, &binding};
  VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, NULL, 0, 1, NULL, 0, NULL};
  VkBufferCreateInfo buffer_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, NULL, 0, count * sizeof(uint32_t),
                                    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, VK_SHARING_MODE_EXCLUSIVE, 0, NULL};
  VkMemoryAllocateInfo memory_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 0, 0};
  VkDescriptorPoolSize pool_size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
  VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, NULL, 0, 1, 1, &pool_size};
  VkDescriptorSetAllocateInfo sets_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, VK_NULL_HANDLE, 1, NULL};
  VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, VK_NULL_HANDLE, 0, 0, 1,
                                VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, NULL, NULL, NULL};
  VkCommandPoolCreateInfo commands_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL, 0, 0};
  VkCommandBufferAllocateInfo command_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, VK_NULL_HANDLE,
                                              VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  VkCommandBufferBeginInfo begin_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL, 0, NULL};
  VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO, NULL, 0, NULL, NULL, 1, NULL, 0, NULL};
  VkDescriptorBufferInfo whole = {VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkDescriptorSetLayout set_layout;
  VkBuffer buffer;
  VkMemoryRequirements needs;
  VkDeviceMemory memory;
  VkDescriptorPool pool;
  VkDescriptorSet set;
  VkCommandPool command_pool;
  VkCommandBuffer commands;
  VkPhysicalDeviceProperties properties;
  application self;
  kiln_vulkan vulkan;
  kiln_cache* cache = NULL;
  kiln_program *shader = NULL, *program = NULL;
  char source[4096] = "";
  FILE* file = argc == 2 ? fopen(argv[1], "r") : NULL;
  const void* code;
  size_t code_bytes;
  void* mapped = NULL;
  const uint32_t* values;
  uint32_t devices = 1, at, wrong = 0;
  VkResult found;

  if (file == NULL) {
    fprintf(stderr, "usage: c_vulkan squares.comp\n");
    return 2;
  }
  source[read_all(file, source, sizeof source - 1)] = '\0';
  fclose(file);
  if (vkCreateInstance(&instance_info, NULL, &instance) != VK_SUCCESS) {
    fprintf(stderr, "c_vulkan: no Vulkan; install mesa-vulkan-drivers or another driver\n");
    return 77;
  }
  found = vkEnumeratePhysicalDevices(instance, &devices, &physical);
  if ((found != VK_SUCCESS && found != VK_INCOMPLETE) || devices == 0 ||
      vkCreateDevice(physical, &device_info, NULL, &device) != VK_SUCCESS) {
    fprintf(stderr, "c_vulkan: no Vulkan device\n");
    return 77;
  }
  vkGetDeviceQueue(device, 0, 0, &queue);
  vkCreateDescriptorSetLayout(device, &set_info, NULL, &set_layout);
  layout_info.pSetLayouts = &set_layout;
  vkCreatePipelineLayout(device, &layout_info, NULL, &self.layout);

  vulkan.physical_device = physical;
  vulkan.device = device;
  if (failed(kiln_cache_open(NULL, &cache)) ||
      failed(kiln_vulkan_shader(cache, device, source, "-V", "glslangValidator 11", "squares.comp", compile, argv[1],
                                &shader))) {
    return 1;
  }
  /* The key: the code, and what else the pipeline is made from. Here that is one layout that never changes. */
  self.module = kiln_vulkan_module_of(shader);
  code = kiln_vulkan_code_of(shader, &code_bytes);
  if (failed(kiln_vulkan_pipeline(cache, &vulkan, code, code_bytes, "squares", create, &self, &program))) return 1;

  vkCreateBuffer(device, &buffer_info, NULL, &buffer);
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  memory_info.allocationSize = needs.size;
  memory_info.memoryTypeIndex = host_memory(physical, needs.memoryTypeBits);
  vkAllocateMemory(device, &memory_info, NULL, &memory);
  vkBindBufferMemory(device, buffer, memory, 0);
  vkCreateDescriptorPool(device, &pool_info, NULL, &pool);
  sets_info.descriptorPool = pool;
  sets_info.pSetLayouts = &set_layout;
  vkAllocateDescriptorSets(device, &sets_info, &set);
  whole.buffer = buffer;
  write.dstSet = set;
  write.pBufferInfo = &whole;
  vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
  vkCreateCommandPool(device, &commands_info, NULL, &command_pool);
  command_info.commandPool = command_pool;
  vkAllocateCommandBuffers(device, &command_info, &commands);
  vkBeginCommandBuffer(commands, &begin_info);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kiln_vulkan_pipeline_of(program));
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, self.layout, 0, 1, &set, 0, NULL);
  vkCmdDispatch(commands, count / 64, 1, 1);
  vkEndCommandBuffer(commands);
  submit.pCommandBuffers = &commands;
  vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE);
  vkQueueWaitIdle(queue);
  vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped);
  values = (const uint32_t*)mapped;
  for (at = 0; at < count; ++at) wrong += values[at] != at * at;
  vkGetPhysicalDeviceProperties(physical, &properties);
  printf("program from %s, shader from %s, %u of %u results wrong (%s)\n", tiers[kiln_program_tier(program)],
         tiers[kiln_program_tier(shader)], wrong, (unsigned)count, properties.deviceName);

  kiln_program_free(program); /* pipelines and modules, before their device */
  kiln_program_free(shader);
  kiln_cache_close(cache);
  vkDestroyCommandPool(device, command_pool, NULL);
  vkDestroyDescriptorPool(device, pool, NULL);
  vkDestroyBuffer(device, buffer, NULL);
  vkFreeMemory(device, memory, NULL);
  vkDestroyPipelineLayout(device, self.layout, NULL);
  vkDestroyDescriptorSetLayout(device, set_layout, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return wrong != 0;
}

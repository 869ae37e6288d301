/* kiln_vulkan.h: pipelines and shader modules from Kiln's program cache. Header only, C99; link Vulkan and libkiln.so.
 *
 * A stored pipeline is the data of a VkPipelineCache that contains only this pipeline. A stored module is SPIR-V. The first
 * process compiles them. Later processes create them from the stored data.
 * Thread-safety: call the functions from any thread. Ownership: the kiln_program owns the Vulkan objects. Before you destroy
 * the device, free the kiln_program, and call kiln_cache_drop_context() or close the cache.
 *
 *   kiln_vulkan vulkan = {physical_device, device};
 *   kiln_program* program = NULL;
 *   kiln_status* failure = kiln_vulkan_pipeline(cache, &vulkan, key_text, "blur", create, &my_state, &program);
 *   if (failure == NULL) vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kiln_vulkan_pipeline_of(program));
 *
 * If you compile shaders from text, call kiln_vulkan_shader() first. Its SPIR-V is a part of the pipeline's key. */
#ifndef KILN_VULKAN_H
#define KILN_VULKAN_H

#include <kiln.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_vulkan {
  VkPhysicalDevice physical_device;
  VkDevice device;
} kiln_vulkan;

/* Creates one pipeline with the pipeline cache. */
typedef VkResult (*kiln_vulkan_create)(void* user, VkDevice device, VkPipelineCache cache, VkPipeline* pipeline);

/* The object in a kiln_program of kiln_vulkan_pipeline(). This struct and kiln_vulkan_module are frozen, because parts of a
 * process that were compiled with other versions of this file may share the cache. */
typedef struct kiln_vulkan_object {
  VkDevice device;
  VkPipeline pipeline;
} kiln_vulkan_object;

typedef struct kiln_vulkan_call {
  const kiln_vulkan* vulkan;
  kiln_vulkan_create create;
  void* user;
} kiln_vulkan_call;

static inline void kiln_vulkan_destroy(void* object) {
  kiln_vulkan_object* made = (kiln_vulkan_object*)object;
  if (made->pipeline != VK_NULL_HANDLE) vkDestroyPipeline(made->device, made->pipeline, NULL);
  free(made);
}

/* Returns KILN_INVALID_ARGUMENT for errors of the pipeline itself. They are permanent. Errors of memory or of the device and
 * unknown errors may be temporary. */
static inline kiln_code kiln_vulkan_failed(kiln_request* request, const char* what, VkResult result) {
  kiln_request_set_message(request, what);
  if (result == VK_ERROR_DEVICE_LOST) return KILN_DEVICE_LOST;
  if (result > 0 || result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_TOO_MANY_OBJECTS || result == VK_ERROR_UNKNOWN) {
    return KILN_UNAVAILABLE; /* positive: the pipeline is not wrong, but the driver would have to compile it */
  }
  return KILN_INVALID_ARGUMENT;
}

/* Creates the pipeline with a separate pipeline cache that starts from the bytes, and sets it as the object of the request. */
static inline kiln_code kiln_vulkan_make(const kiln_vulkan_call* call, kiln_request* request, const void* bytes, size_t count,
                                         int store) {
  kiln_code code = KILN_OK;
  VkDevice device = call->vulkan->device;
  VkPipelineCache cache = VK_NULL_HANDLE;
  VkPipelineCacheCreateInfo info;
  VkResult result;
  kiln_vulkan_object* object = (kiln_vulkan_object*)calloc(1, sizeof *object);
  size_t size = 0;
  void* data = NULL;
  if (object == NULL) return KILN_UNAVAILABLE;
  object->device = device;
  kiln_request_set_object(request, object, count);
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = count;
  info.pInitialData = bytes;
  result = vkCreatePipelineCache(device, &info, NULL, &cache);
  if (result != VK_SUCCESS) return kiln_vulkan_failed(request, "vkCreatePipelineCache failed", result);
  result = call->create(call->user, device, cache, &object->pipeline);
  if (result != VK_SUCCESS) code = kiln_vulkan_failed(request, "the pipeline cannot be created", result);
  if (code == KILN_OK && store) {
    result = vkGetPipelineCacheData(device, cache, &size, NULL);
    if (result == VK_SUCCESS && size != 0) data = malloc(size);
    if (data != NULL) result = vkGetPipelineCacheData(device, cache, &size, data);
    if (data == NULL || result != VK_SUCCESS || !kiln_request_set_bytes(request, data, size)) {
      kiln_request_set_message(request, "vkGetPipelineCacheData failed");
      code = KILN_UNAVAILABLE;
    }
    free(data);
  }
  vkDestroyPipelineCache(device, cache, NULL);
  return code;
}

static inline kiln_code kiln_vulkan_on_build(void* user, kiln_request* request) {
  return kiln_vulkan_make((const kiln_vulkan_call*)user, request, NULL, 0, 1);
}

static inline kiln_code kiln_vulkan_on_load(void* user, kiln_request* request, const void* bytes, size_t count) {
  const kiln_vulkan_call* call = (const kiln_vulkan_call*)user;
  VkPhysicalDeviceProperties properties;
  uint32_t header[4];
  /* The key has this device, so the data must be for this device. Drivers silently ignore data for another device, so this
   * function checks the header. */
  vkGetPhysicalDeviceProperties(call->vulkan->physical_device, &properties);
  if (count < sizeof header + VK_UUID_SIZE) return KILN_CORRUPT;
  memcpy(header, bytes, sizeof header);
  if (header[1] != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || header[2] != properties.vendorID ||
      header[3] != properties.deviceID ||
      memcmp((const char*)bytes + sizeof header, properties.pipelineCacheUUID, VK_UUID_SIZE) != 0) {
    kiln_request_set_message(request, "the header is of another device");
    return KILN_CORRUPT;
  }
  return kiln_vulkan_make(call, request, bytes, count, 0);
}

/* Writes two hexadecimal digits per byte and a zero byte. */
static inline void kiln_vulkan_hex(char* to, const uint8_t* bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  size_t at;
  for (at = 0; at < count; ++at) {
    to[2 * at] = digits[bytes[at] >> 4];
    to[2 * at + 1] = digits[bytes[at] & 15];
  }
  to[2 * count] = '\0';
}

static inline VkPipeline kiln_vulkan_pipeline_of(const kiln_program* program) {
  const kiln_vulkan_object* object = (const kiln_vulkan_object*)kiln_program_object(program);
  return object == NULL ? VK_NULL_HANDLE : object->pipeline;
}

/* fields, count: the bytes of everything that defines the pipeline: SPIR-V, entry point, specialization constants, layout and
 * states. KILN_INVALID_ARGUMENT: `fields` is empty, so all pipelines would have the same key. `create` runs once or not at all,
 * on this thread or on another thread that requests the same pipeline. */
static inline KILN_MUST_USE kiln_status* kiln_vulkan_pipeline(kiln_cache* cache, const kiln_vulkan* vulkan, const void* fields,
                                                              size_t count, const char* label, kiln_vulkan_create create,
                                                              void* user, kiln_program** program) {
  VkPhysicalDeviceProperties properties;
  uint8_t numbers[12];
  char device[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 2 * VK_UUID_SIZE + 2], driver[2 * sizeof numbers + 1];
  kiln_vulkan_call call;
  kiln_compiler compiler = kiln_compiler_default();
  kiln_key_builder* builder = NULL;
  kiln_key* key = NULL;
  kiln_identity identity;
  kiln_status* failure;
  size_t name;
  if (vulkan == NULL || create == NULL) {
    return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_vulkan_pipeline: vulkan or create is NULL");
  }
  if (fields == NULL || count == 0) {
    return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_vulkan_pipeline: fields is NULL or empty, expected everything that "
                                                   "the pipeline is created from: without it all pipelines are one");
  }
  /* pipelineCacheUUID identifies the driver's compiled code. */
  vkGetPhysicalDeviceProperties(vulkan->physical_device, &properties);
  name = strlen(properties.deviceName);
  memcpy(device, properties.deviceName, name);
  device[name] = ' ';
  kiln_vulkan_hex(device + name + 1, properties.pipelineCacheUUID, VK_UUID_SIZE);
  memcpy(numbers, &properties.vendorID, 4);
  memcpy(numbers + 4, &properties.deviceID, 4);
  memcpy(numbers + 8, &properties.driverVersion, 4);
  kiln_vulkan_hex(driver, numbers, sizeof numbers);
  identity = kiln_identity_of("vulkan", device, driver);
  identity.context = vulkan->device; /* a pipeline belongs to its VkDevice */
  call.vulkan = vulkan;
  call.create = create;
  call.user = user;
  compiler.user = &call;
  compiler.build = kiln_vulkan_on_build;
  compiler.load = kiln_vulkan_on_load;
  compiler.destroy = kiln_vulkan_destroy;
  failure = kiln_key_builder_create(cache, &identity, label, &builder);
  if (failure == NULL) failure = kiln_key_builder_bytes(builder, "pipeline", fields, count);
  if (failure == NULL) failure = kiln_key_builder_finish(builder, &key);
  if (failure == NULL) failure = kiln_cache_get_or_build(cache, key, &compiler, program);
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  return failure;
}

/* The object in a kiln_program of kiln_vulkan_shader(). */
typedef struct kiln_vulkan_module {
  VkDevice device;
  VkShaderModule module;
  size_t count;
  uint32_t* code;
} kiln_vulkan_module;

/* Compiles the field "source" of the request to SPIR-V and sets it with kiln_request_set_bytes(). If it fails, it sets the
 * error with kiln_request_set_message(). */
typedef kiln_code (*kiln_vulkan_compile)(void* user, kiln_request* request);

typedef struct kiln_vulkan_shader_call {
  VkDevice device;
  kiln_vulkan_compile compile;
  void* user;
} kiln_vulkan_shader_call;

static inline void kiln_vulkan_destroy_module(void* object) {
  kiln_vulkan_module* made = (kiln_vulkan_module*)object;
  if (made->module != VK_NULL_HANDLE) vkDestroyShaderModule(made->device, made->module, NULL);
  free(made->code);
  free(made);
}

static inline kiln_code kiln_vulkan_on_compile(void* user, kiln_request* request) {
  const kiln_vulkan_shader_call* call = (const kiln_vulkan_shader_call*)user;
  return call->compile(call->user, request);
}

static inline kiln_code kiln_vulkan_on_module(void* user, kiln_request* request, const void* bytes, size_t count) {
  const kiln_vulkan_shader_call* call = (const kiln_vulkan_shader_call*)user;
  VkShaderModuleCreateInfo info;
  VkResult result;
  uint32_t magic = 0;
  kiln_vulkan_module* object;
  if (count >= 20) memcpy(&magic, bytes, sizeof magic); /* a header has five words */
  if (count % 4 != 0 || magic != 0x07230203u) {
    kiln_request_set_message(request, "the bytes are no SPIR-V");
    return KILN_CORRUPT;
  }
  object = (kiln_vulkan_module*)calloc(1, sizeof *object);
  if (object == NULL) return KILN_UNAVAILABLE;
  object->device = call->device;
  object->count = count;
  kiln_request_set_object(request, object, count);
  object->code = (uint32_t*)malloc(count);
  if (object->code == NULL) return KILN_UNAVAILABLE;
  memcpy(object->code, bytes, count);
  memset(&info, 0, sizeof info);
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = count;
  info.pCode = object->code;
  result = vkCreateShaderModule(call->device, &info, NULL, &object->module);
  return result == VK_SUCCESS ? KILN_OK : kiln_vulkan_failed(request, "vkCreateShaderModule failed", result);
}

static inline VkShaderModule kiln_vulkan_module_of(const kiln_program* shader) {
  const kiln_vulkan_module* object = (const kiln_vulkan_module*)kiln_program_object(shader);
  return object == NULL ? VK_NULL_HANDLE : object->module;
}

/* Returns the SPIR-V, for the fields of kiln_vulkan_pipeline(). */
static inline const void* kiln_vulkan_code_of(const kiln_program* shader, size_t* count) {
  const kiln_vulkan_module* object = (const kiln_vulkan_module*)kiln_program_object(shader);
  *count = object == NULL ? 0 : object->count;
  return object == NULL ? NULL : object->code;
}

/* Creates a shader module from text. source: with the text of included files. options: everything else that changes the
 * SPIR-V, such as stage, defines and target. compiler: its name and exact version. SPIR-V is the same for all devices, so the
 * key has no device. */
static inline KILN_MUST_USE kiln_status* kiln_vulkan_shader(kiln_cache* cache, VkDevice device, const char* source,
                                                            const char* options, const char* compiler, const char* label,
                                                            kiln_vulkan_compile compile, void* user, kiln_program** program) {
  kiln_vulkan_shader_call call;
  kiln_compiler callbacks = kiln_compiler_default();
  kiln_key_builder* builder = NULL;
  kiln_key* key = NULL;
  kiln_identity identity = kiln_identity_of("spirv", "any", compiler);
  kiln_status* failure;
  if (compile == NULL) return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_vulkan_shader: compile is NULL");
  identity.context = device; /* a module belongs to its VkDevice */
  call.device = device;
  call.compile = compile;
  call.user = user;
  callbacks.user = &call;
  callbacks.build = kiln_vulkan_on_compile;
  callbacks.load = kiln_vulkan_on_module;
  callbacks.destroy = kiln_vulkan_destroy_module;
  failure = kiln_key_builder_create(cache, &identity, label, &builder);
  if (failure == NULL) failure = kiln_key_builder_text(builder, "source", source);
  if (failure == NULL) failure = kiln_key_builder_text(builder, "options", options);
  if (failure == NULL) failure = kiln_key_builder_finish(builder, &key);
  if (failure == NULL) failure = kiln_cache_get_or_build(cache, key, &callbacks, program);
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  return failure;
}

#ifdef __cplusplus
}
#endif

#endif

// The adapters on drivers that answer what a test wants: wrong arguments, errors that pass and errors that last.
#include "c_interface/store.hpp"

#include <kiln_egl.h>
#include <kiln_opengl.h>

#define CL_TARGET_OPENCL_VERSION 120
#if __has_include(<CL/cl.h>)
#include <CL/cl.h>
#endif
#if __has_include(<vulkan/vulkan.h>)
#include <vulkan/vulkan.h>
#endif

#include <cstdint>
#include <cstring>

namespace kiln::test {
namespace {

// --- OpenGL

struct FakeGl {
  inline static const char* version = "4.6 of a test";
  inline static std::vector<const char*> extensions;
  inline static bool is_lost = false;         // the context: it makes no object and answers nothing
  inline static const char* log = nullptr;    // not null: no shader compiles
  inline static int shaders = 0, builds = 0;  // that were made

  static void open() {
    version = "4.6 of a test";
    extensions.clear();
    is_lost = false;
    log = nullptr;
    shaders = builds = 0;
  }
  static const GLubyte* get_string(GLenum name) {
    return reinterpret_cast<const GLubyte*>(name == GL_VERSION ? version : "a test");
  }
  static const GLubyte* get_string_at(GLenum, GLuint at) { return reinterpret_cast<const GLubyte*>(extensions[at]); }
  static void get_integer(GLenum name, GLint* value) {
    *value = name == GL_NUM_EXTENSIONS ? static_cast<GLint>(extensions.size()) : 1;
  }
  static GLuint create_shader(GLenum) { return is_lost ? 0 : static_cast<GLuint>(++shaders); }
  static GLuint create_program() { return is_lost ? 0 : 1; }
  static void get_shader(GLuint, GLenum name, GLint* value) {
    if (is_lost) return;
    if (name == GL_COMPILE_STATUS) *value = log == nullptr ? 1 : 0;
    if (name == GL_INFO_LOG_LENGTH) *value = log == nullptr ? 0 : static_cast<GLint>(std::strlen(log) + 1);
  }
  static void get_shader_log(GLuint, GLsizei, GLsizei*, GLchar* text) { std::strcpy(text, log); }
  static void get_program(GLuint, GLenum name, GLint* value) {
    if (!is_lost) *value = name == GL_LINK_STATUS ? 1 : 4;
  }
  static void get_program_binary(GLuint, GLsizei, GLsizei* count, GLenum* format, void* bytes) {
    ++builds;
    *count = 4;
    *format = 7;
    std::memcpy(bytes, "code", 4);
  }
  static void take(GLuint) {}
  static void take_shader(GLuint, GLuint) {}
  static void take_source(GLuint, GLsizei, const GLchar* const*, const GLint*) {}
  static void take_parameter(GLuint, GLenum, GLint) {}
  static void take_binary(GLuint, GLenum, const void*, GLsizei) {}

  static kiln_opengl_function find(const char* name) {
    static const std::pair<const char*, void*> all[] = {
        {"glGetString", reinterpret_cast<void*>(get_string)},
        {"glGetStringi", reinterpret_cast<void*>(get_string_at)},
        {"glGetIntegerv", reinterpret_cast<void*>(get_integer)},
        {"glCreateShader", reinterpret_cast<void*>(create_shader)},
        {"glCreateProgram", reinterpret_cast<void*>(create_program)},
        {"glGetShaderiv", reinterpret_cast<void*>(get_shader)},
        {"glGetShaderInfoLog", reinterpret_cast<void*>(get_shader_log)},
        {"glGetProgramiv", reinterpret_cast<void*>(get_program)},
        {"glGetProgramBinary", reinterpret_cast<void*>(get_program_binary)},
        {"glGetProgramInfoLog", reinterpret_cast<void*>(get_shader_log)},
        {"glCompileShader", reinterpret_cast<void*>(take)},
        {"glDeleteShader", reinterpret_cast<void*>(take)},
        {"glLinkProgram", reinterpret_cast<void*>(take)},
        {"glDeleteProgram", reinterpret_cast<void*>(take)},
        {"glAttachShader", reinterpret_cast<void*>(take_shader)},
        {"glDetachShader", reinterpret_cast<void*>(take_shader)},
        {"glShaderSource", reinterpret_cast<void*>(take_source)},
        {"glProgramParameteri", reinterpret_cast<void*>(take_parameter)},
        {"glProgramBinary", reinterpret_cast<void*>(take_binary)},
    };
    for (const auto& [known, function] : all) {
      if (std::string(known) == name) return reinterpret_cast<kiln_opengl_function>(function);
    }
    return nullptr;
  }
};

struct GlProgram {
  kiln_code code;
  std::string message;
  GLuint program = 0;
  kiln_tier tier = KILN_TIER_NONE;
};

GlProgram gl_program(kiln_cache* cache, const kiln_opengl& gl, std::vector<kiln_opengl_stage> stages) {
  GlProgram made{};
  const Answer answer = kiln_opengl_program(cache, &gl, stages.data(), stages.size(), "sky", &made.program, &made.tier);
  made.code = answer.code;
  made.message = answer.message;
  return made;
}

TEST_CASE("adapters: OpenGL: a stage that does not exist or that the context lacks is named, and nothing is stored") {
  const StoreFolder store;
  const auto cache = store.open();
  FakeGl::open();
  kiln_opengl gl;
  must(kiln_opengl_open(FakeGl::find, &gl));
  const GlProgram unknown = gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, "good"}, {0x1234, "good"}});
  CHECK(unknown.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(unknown.message, Catch::Contains("stage 1: type 0x1234, expected one such as GL_COMPUTE_SHADER"));
  CHECK(unknown.program == 0);

  FakeGl::version = "4.1 of a test";
  FakeGl::extensions = {"GL_ARB_compute_shader_of_none", "GL_ARB_tessellation_shader"};
  const GlProgram lacking = gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, "good"}});
  CHECK(lacking.code == KILN_UNSUPPORTED);
  CHECK_THAT(lacking.message, Catch::Contains("stage 0: type 0x91b9 needs compute_shader") &&
                                  Catch::Contains("the context is OpenGL 4.1 of a test"));
  CHECK(FakeGl::shaders == 0);
  CHECK(store.files(".bin").empty());

  CHECK(gl_program(cache.get(), gl, {{GL_GEOMETRY_SHADER, "good"}}).code == KILN_OK);
  FakeGl::extensions.push_back("GL_ARB_compute_shader");
  CHECK(gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, "good"}}).code == KILN_OK);
  FakeGl::extensions.clear();
  FakeGl::version = "OpenGL ES 3.1 of a test";
  CHECK(gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, "good"}}).code == KILN_OK);
  CHECK(gl_program(cache.get(), gl, {{GL_TESS_CONTROL_SHADER, "good"}}).code == KILN_UNSUPPORTED);
  FakeGl::version = nullptr;
  CHECK(gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, "good"}}).code == KILN_UNAVAILABLE);
}

TEST_CASE("adapters: OpenGL: a context that was lost passes, an error of the source lasts") {
  const StoreFolder store;
  FakeGl::open();
  kiln_opengl gl;
  must(kiln_opengl_open(FakeGl::find, &gl));
  const std::vector<kiln_opengl_stage> stages = {{GL_COMPUTE_SHADER, "good"}};
  {
    const auto cache = store.open();
    FakeGl::is_lost = true;
    CHECK(gl_program(cache.get(), gl, stages).code == KILN_UNAVAILABLE);
    FakeGl::is_lost = false;
    FakeGl::log = "";  // fails without a word
    CHECK(gl_program(cache.get(), gl, stages).code == KILN_UNAVAILABLE);
    FakeGl::log = nullptr;
    CHECK(gl_program(cache.get(), gl, stages).tier == KILN_TIER_BUILT);

    const std::vector<kiln_opengl_stage> wrong = {{GL_COMPUTE_SHADER, "wrong"}};
    FakeGl::log = "line 1: wrong";
    const int before = FakeGl::shaders;
    for (int time = 0; time < 2; ++time) {
      const GlProgram refused = gl_program(cache.get(), gl, wrong);
      CHECK(refused.code == KILN_INVALID_ARGUMENT);
      CHECK_THAT(refused.message, Catch::Contains("line 1: wrong"));
    }
    CHECK(FakeGl::shaders == before + 1);
    FakeGl::log = nullptr;
  }
  const auto cache = store.open();
  FakeGl::is_lost = true;
  CHECK(gl_program(cache.get(), gl, stages).code == KILN_UNAVAILABLE);
  FakeGl::is_lost = false;
  CHECK(gl_program(cache.get(), gl, stages).tier == KILN_TIER_DISK);  // the stored one was kept
  CHECK(FakeGl::builds == 1);
}

// A context of the installed driver, current on this thread.
class GlContext {
 public:
  GlContext() {
    const auto get = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
    if (get == nullptr) return;
    display_ = get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    if (display_ == EGL_NO_DISPLAY || eglInitialize(display_, nullptr, nullptr) == EGL_FALSE) return;
    eglBindAPI(EGL_OPENGL_API);
    const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
    context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
    if (context_ != EGL_NO_CONTEXT) eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_);
  }
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;
  ~GlContext() {
    if (context_ == EGL_NO_CONTEXT) return;
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglDestroyContext(display_, context_);
  }
  bool is_there() const noexcept { return context_ != EGL_NO_CONTEXT; }

 private:
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
};

TEST_CASE("adapters: OpenGL: errors of the application's context stay as they were") {
  const GlContext context;
  if (!context.is_there()) return;
  const StoreFolder store;
  const auto cache = store.open();
  kiln_opengl gl;
  must(kiln_opengl_open(eglGetProcAddress, &gl));
  const auto get_error = reinterpret_cast<GLenum (*)()>(eglGetProcAddress("glGetError"));
  REQUIRE(get_error() == GL_NO_ERROR);
  const char* source = "#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  const std::vector<kiln_opengl_stage> mixed = {{GL_COMPUTE_SHADER, source}, {0x1234, source}};
  CHECK(gl_program(cache.get(), gl, mixed).code == KILN_INVALID_ARGUMENT);
  CHECK(get_error() == GL_NO_ERROR);
  gl.link_program(4711);  // an error of the application
  CHECK(gl_program(cache.get(), gl, mixed).code == KILN_INVALID_ARGUMENT);
  CHECK(store.files(".bin").empty());
  const GlProgram good = gl_program(cache.get(), gl, {{GL_COMPUTE_SHADER, source}});
  CHECK(good.code == KILN_OK);
  gl.delete_program(good.program);
  CHECK(get_error() == GL_INVALID_VALUE);
  CHECK(get_error() == GL_NO_ERROR);
}

}  // namespace
}  // namespace kiln::test

// --- OpenCL and Vulkan: the driver's functions are the test's in the adapters.

#if __has_include(<CL/cl.h>)
namespace kiln::test {
namespace {

cl_int cl_answer = CL_SUCCESS;  // of clBuildProgram()

cl_int fake_cl_build(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*) {
  return cl_answer;
}
cl_int fake_cl_build_info(cl_program, cl_device_id, cl_program_build_info, std::size_t, void*, std::size_t*) {
  return CL_INVALID_VALUE;  // no log
}
cl_program fake_cl_from_source(cl_context, cl_uint, const char**, const std::size_t*, cl_int* error) {
  *error = CL_SUCCESS;
  return reinterpret_cast<cl_program>(new int);
}
cl_program fake_cl_from_binary(cl_context, cl_uint, const cl_device_id*, const std::size_t*, const unsigned char**,
                               cl_int* status, cl_int* error) {
  *status = *error = CL_SUCCESS;
  return reinterpret_cast<cl_program>(new int);
}
cl_int fake_cl_release(cl_program program) {
  delete reinterpret_cast<int*>(program);
  return CL_SUCCESS;
}
const auto fake_cl_device = reinterpret_cast<cl_device_id>(std::uintptr_t{8});
cl_int fake_cl_program_info(cl_program, cl_program_info what, std::size_t, void* value, std::size_t*) {
  if (what == CL_PROGRAM_NUM_DEVICES) *static_cast<cl_uint*>(value) = 1;
  if (what == CL_PROGRAM_DEVICES) *static_cast<cl_device_id*>(value) = fake_cl_device;
  if (what == CL_PROGRAM_BINARY_SIZES) *static_cast<std::size_t*>(value) = 4;
  if (what == CL_PROGRAM_BINARIES) std::memcpy(*static_cast<unsigned char**>(value), "code", 4);
  return CL_SUCCESS;
}
cl_int fake_cl_device_info(cl_device_id, cl_device_info, std::size_t, void* value, std::size_t* bytes) {
  if (bytes != nullptr) *bytes = 5;
  if (value != nullptr) std::memcpy(value, "test", 5);
  return CL_SUCCESS;
}

}  // namespace
}  // namespace kiln::test
#define clBuildProgram kiln::test::fake_cl_build
#define clGetProgramBuildInfo kiln::test::fake_cl_build_info
#define clCreateProgramWithSource kiln::test::fake_cl_from_source
#define clCreateProgramWithBinary kiln::test::fake_cl_from_binary
#define clReleaseProgram kiln::test::fake_cl_release
#define clGetProgramInfo kiln::test::fake_cl_program_info
#define clGetDeviceInfo kiln::test::fake_cl_device_info
#include <kiln_opencl.h>
namespace kiln::test {
namespace {

// The code and the tier, "ok/3".
std::string cl_get(kiln_cache* cache, const char* source) {
  kiln_program* program = nullptr;
  const Answer answer = kiln_opencl_program(cache, nullptr, fake_cl_device, source, nullptr, "f", &program);
  const ProgramPointer owned(program);
  return std::string(kiln_code_name(answer.code)) + "/" + std::to_string(kiln_program_tier(program));
}

TEST_CASE("adapters: OpenCL: what is no fault of the source or of the binary passes") {
  const StoreFolder store;
  {
    const auto cache = store.open();
    for (const cl_int passing : {CL_DEVICE_NOT_AVAILABLE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
                                 CL_OUT_OF_RESOURCES, CL_INVALID_OPERATION}) {
      const std::string source = "passes " + std::to_string(passing);
      cl_answer = passing;
      CHECK(cl_get(cache.get(), source.c_str()) == "unavailable/0");
      cl_answer = CL_SUCCESS;
      CHECK(cl_get(cache.get(), source.c_str()) == "ok/3");
    }
    for (const cl_int lasting : {CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS}) {
      const std::string source = "lasts " + std::to_string(lasting);
      cl_answer = lasting;
      CHECK(cl_get(cache.get(), source.c_str()) == "invalid_argument/0");
      cl_answer = CL_SUCCESS;
      CHECK(cl_get(cache.get(), source.c_str()) == "invalid_argument/0");
    }
    CHECK(cl_get(cache.get(), "stored") == "ok/3");
  }
  {
    const auto cache = store.open();
    cl_answer = CL_DEVICE_NOT_AVAILABLE;
    CHECK(cl_get(cache.get(), "stored") == "unavailable/0");
    CHECK(stats_of(cache.get()).refused == 0);
    cl_answer = CL_SUCCESS;
    CHECK(cl_get(cache.get(), "stored") == "ok/2");
  }
  const auto cache = store.open();
  cl_answer = CL_INVALID_BINARY;
  cl_get(cache.get(), "stored");
  CHECK(stats_of(cache.get()).refused == 1);
  cl_answer = CL_SUCCESS;
}

}  // namespace
}  // namespace kiln::test
#endif

#if __has_include(<vulkan/vulkan.h>)
namespace kiln::test {
namespace {

constexpr std::uint32_t fake_vk_header[8] = {32, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, 0, 0, 0, 0, 0, 0};

void fake_vk_properties(VkPhysicalDevice, VkPhysicalDeviceProperties* properties) {
  *properties = {};
  std::strcpy(properties->deviceName, "a test");
}
VkResult fake_vk_create_cache(VkDevice, const VkPipelineCacheCreateInfo*, const VkAllocationCallbacks*,
                              VkPipelineCache*) {
  return VK_SUCCESS;
}
void fake_vk_destroy_cache(VkDevice, VkPipelineCache, const VkAllocationCallbacks*) {}
VkResult fake_vk_cache_data(VkDevice, VkPipelineCache, std::size_t* count, void* bytes) {
  *count = sizeof fake_vk_header;
  if (bytes != nullptr) std::memcpy(bytes, fake_vk_header, sizeof fake_vk_header);
  return VK_SUCCESS;
}
void fake_vk_destroy_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}
VkResult vk_answer = VK_SUCCESS;  // of what creates pipelines and shader modules
VkResult fake_vk_create_module(VkDevice, const VkShaderModuleCreateInfo*, const VkAllocationCallbacks*,
                               VkShaderModule*) {
  return vk_answer;
}
void fake_vk_destroy_module(VkDevice, VkShaderModule, const VkAllocationCallbacks*) {}

}  // namespace
}  // namespace kiln::test
#define vkGetPhysicalDeviceProperties kiln::test::fake_vk_properties
#define vkCreatePipelineCache kiln::test::fake_vk_create_cache
#define vkDestroyPipelineCache kiln::test::fake_vk_destroy_cache
#define vkGetPipelineCacheData kiln::test::fake_vk_cache_data
#define vkDestroyPipeline kiln::test::fake_vk_destroy_pipeline
#define vkCreateShaderModule kiln::test::fake_vk_create_module
#define vkDestroyShaderModule kiln::test::fake_vk_destroy_module
#include <kiln_vulkan.h>
namespace kiln::test {
namespace {

VkResult create_pipeline(void* calls, VkDevice, VkPipelineCache, VkPipeline*) {
  ++*static_cast<int*>(calls);
  return vk_answer;
}

// The code, and how often the pipeline was created: "ok 1".
std::string vk_get(kiln_cache* cache, const void* fields, std::size_t count) {
  const kiln_vulkan vulkan{};
  kiln_program* program = nullptr;
  int calls = 0;
  const Answer answer = kiln_vulkan_pipeline(cache, &vulkan, fields, count, "p", create_pipeline, &calls, &program);
  const ProgramPointer owned(program);
  return std::string(kiln_code_name(answer.code)) + " " + std::to_string(calls);
}

TEST_CASE("adapters: Vulkan: what is no fault of the pipeline passes, and a pipeline without fields is refused") {
  const StoreFolder store;
  const auto cache = store.open();
  const std::pair<VkResult, const char*> passing[] = {{VK_ERROR_UNKNOWN, "unavailable 1"},
                                                      {VK_ERROR_TOO_MANY_OBJECTS, "unavailable 1"},
                                                      {VK_ERROR_OUT_OF_HOST_MEMORY, "unavailable 1"},
                                                      {VK_ERROR_OUT_OF_DEVICE_MEMORY, "unavailable 1"},
                                                      {VK_NOT_READY, "unavailable 1"},
                                                      {VK_ERROR_DEVICE_LOST, "device_lost 1"}};
  for (const auto& [result, expected] : passing) {
    vk_answer = result;
    CHECK(vk_get(cache.get(), &result, sizeof result) == expected);
    vk_answer = VK_SUCCESS;
    CHECK(vk_get(cache.get(), &result, sizeof result) == "ok 1");
  }
  vk_answer = VK_ERROR_FEATURE_NOT_PRESENT;
  CHECK(vk_get(cache.get(), "lasts", 5) == "invalid_argument 1");
  vk_answer = VK_SUCCESS;
  CHECK(vk_get(cache.get(), "lasts", 5) == "invalid_argument 0");

  CHECK(vk_get(cache.get(), nullptr, 0) == "invalid_argument 0");
  CHECK(vk_get(cache.get(), "", 0) == "invalid_argument 0");
  const kiln_vulkan vulkan{};
  kiln_program* program = nullptr;
  int calls = 0;
  const Answer answer = kiln_vulkan_pipeline(cache.get(), &vulkan, nullptr, 4, "p", create_pipeline, &calls, &program);
  CHECK(answer.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(answer.message, Catch::Contains("kiln_vulkan_pipeline: fields is NULL or empty"));
}

TEST_CASE("adapters: Vulkan: a module that the driver cannot make now is asked for again") {
  const StoreFolder store;
  const auto cache = store.open();
  const auto get = [&] {
    kiln_program* program = nullptr;
    const Answer answer = kiln_vulkan_shader(
        cache.get(), nullptr, "source", "", "compiler 1", "s",
        [](void*, kiln_request* request) {
          const std::uint32_t code[5] = {0x07230203u};
          return kiln_request_set_bytes(request, code, sizeof code) ? KILN_OK : KILN_UNAVAILABLE;
        },
        nullptr, &program);
    const ProgramPointer owned(program);
    return answer.code;
  };
  vk_answer = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  CHECK(get() == KILN_UNAVAILABLE);  // by `load`, which has no faulty bytes to complain of
  vk_answer = VK_ERROR_DEVICE_LOST;
  CHECK(get() == KILN_DEVICE_LOST);
  vk_answer = VK_SUCCESS;
  CHECK(get() == KILN_OK);
}

}  // namespace
}  // namespace kiln::test
#endif

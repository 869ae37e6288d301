#include "witnesses/runners/opengl/opengl_context.hpp"

#include "witnesses/runners/renderer.hpp"

#include <dlfcn.h>

#include <string_view>
#include <vector>

namespace kiln::witness {
namespace {

bool has_word(const char* list, std::string_view word) {
  if (list == nullptr) return false;
  const std::string padded = " " + std::string(list) + " ";
  return padded.find(" " + std::string(word) + " ") != std::string::npos;
}

}  // namespace

__eglMustCastToProperFunctionPointerType OpenglContext::address_of(const char* name) const {
  const auto address = get_proc_address_(name);
  if (address == nullptr) throw NoRenderer(std::string("EGL does not know ") + name);
  return address;
}

OpenglContext::OpenglContext(DeviceChoice choice) {
  open_library();
  try {
    create_context(choose_device(choice));
    load_functions();
  } catch (...) {
    close();
    throw;
  }
}

OpenglContext::~OpenglContext() { close(); }

void OpenglContext::open_library() {
  void* library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);  // stays until exit: the driver's threads run in it
  if (library == nullptr) throw NoRenderer(dlerror());
  get_proc_address_ = reinterpret_cast<PFNEGLGETPROCADDRESSPROC>(dlsym(library, "eglGetProcAddress"));
  if (get_proc_address_ == nullptr) throw NoRenderer("libEGL.so.1 has no eglGetProcAddress");
}

EGLDeviceEXT OpenglContext::choose_device(DeviceChoice choice) const {
  PFNEGLQUERYDEVICESEXTPROC query_devices = nullptr;
  PFNEGLQUERYDEVICESTRINGEXTPROC query_string = nullptr;
  find(query_devices, "eglQueryDevicesEXT");
  find(query_string, "eglQueryDeviceStringEXT");
  EGLint count = 0;
  query_devices(0, nullptr, &count);
  std::vector<EGLDeviceEXT> devices(static_cast<std::size_t>(count));
  if (query_devices(count, devices.data(), &count) != EGL_TRUE) throw NoRenderer("eglQueryDevicesEXT failed");
  for (const EGLDeviceEXT device : devices) {
    const bool software = has_word(query_string(device, EGL_EXTENSIONS), "EGL_MESA_device_software");
    if (software == (choice == DeviceChoice::software)) return device;
  }
  throw NoRenderer(choice == DeviceChoice::software ? "EGL lists no software device" : "EGL lists no render node");
}

void OpenglContext::create_context(EGLDeviceEXT device) {
  PFNEGLGETPLATFORMDISPLAYEXTPROC get_display = nullptr;
  PFNEGLINITIALIZEPROC initialize = nullptr;
  PFNEGLBINDAPIPROC bind_api = nullptr;
  PFNEGLCREATECONTEXTPROC create = nullptr;
  PFNEGLMAKECURRENTPROC make_current = nullptr;
  find(get_display, "eglGetPlatformDisplayEXT");
  find(initialize, "eglInitialize");
  find(bind_api, "eglBindAPI");
  find(create, "eglCreateContext");
  find(make_current, "eglMakeCurrent");
  display_ = get_display(EGL_PLATFORM_DEVICE_EXT, device, nullptr);
  if (display_ == EGL_NO_DISPLAY || initialize(display_, nullptr, nullptr) != EGL_TRUE) {
    throw NoRenderer("the EGL device does not open");
  }
  const EGLint attributes[] = {
      EGL_CONTEXT_MAJOR_VERSION,           4,       EGL_CONTEXT_MINOR_VERSION, 5, EGL_CONTEXT_OPENGL_PROFILE_MASK,
      EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
  bind_api(EGL_OPENGL_API);
  context_ = create(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  if (context_ == EGL_NO_CONTEXT || make_current(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_) != EGL_TRUE) {
    throw NoRenderer("the driver gives no OpenGL 4.5 core context");
  }
}

void OpenglContext::close() {
  PFNEGLMAKECURRENTPROC make_current = nullptr;
  PFNEGLDESTROYCONTEXTPROC destroy_context = nullptr;
  make_current = reinterpret_cast<PFNEGLMAKECURRENTPROC>(get_proc_address_("eglMakeCurrent"));
  destroy_context = reinterpret_cast<PFNEGLDESTROYCONTEXTPROC>(get_proc_address_("eglDestroyContext"));
  if (display_ == EGL_NO_DISPLAY || make_current == nullptr || destroy_context == nullptr) return;
  make_current(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  if (context_ != EGL_NO_CONTEXT) destroy_context(display_, context_);
  // The display is not terminated: others in the process may hold the same one, and what the driver keeps until the
  // process ends would be memory of a library that is gone.
}

void OpenglContext::load_functions() {
  find(gl_.get_string, "glGetString");
  find(gl_.get_string_i, "glGetStringi");
  find(gl_.get_integer, "glGetIntegerv");
  find(gl_.get_error, "glGetError");
  find(gl_.create_shader, "glCreateShader");
  find(gl_.shader_source, "glShaderSource");
  find(gl_.compile_shader, "glCompileShader");
  find(gl_.get_shader, "glGetShaderiv");
  find(gl_.get_shader_log, "glGetShaderInfoLog");
  find(gl_.delete_shader, "glDeleteShader");
  find(gl_.create_program, "glCreateProgram");
  find(gl_.attach_shader, "glAttachShader");
  find(gl_.link_program, "glLinkProgram");
  find(gl_.get_program, "glGetProgramiv");
  find(gl_.get_program_log, "glGetProgramInfoLog");
  find(gl_.delete_program, "glDeleteProgram");
  find(gl_.use_program, "glUseProgram");
  find(gl_.get_uniform_location, "glGetUniformLocation");
  find(gl_.uniform_int, "glUniform1i");
  find(gl_.uniform_uint, "glUniform1ui");
  find(gl_.uniform_float, "glUniform1f");
  find(gl_.uniform_vec4, "glUniform4fv");
  find(gl_.gen_buffers, "glGenBuffers");
  find(gl_.bind_buffer, "glBindBuffer");
  find(gl_.bind_buffer_base, "glBindBufferBase");
  find(gl_.buffer_data, "glBufferData");
  find(gl_.get_buffer_data, "glGetBufferSubData");
  find(gl_.delete_buffers, "glDeleteBuffers");
  find(gl_.dispatch, "glDispatchCompute");
  find(gl_.dispatch_indirect, "glDispatchComputeIndirect");
  find(gl_.memory_barrier, "glMemoryBarrier");
  find(gl_.finish, "glFinish");
  GLint count = 0;
  gl_.get_integer(GL_NUM_EXTENSIONS, &count);
  for (GLuint k = 0; k < static_cast<GLuint>(count); ++k) {
    extensions_.insert(reinterpret_cast<const char*>(gl_.get_string_i(GL_EXTENSIONS, k)));
  }
}

std::string OpenglContext::name() const { return reinterpret_cast<const char*>(gl_.get_string(GL_RENDERER)); }

void OpenglContext::check(const char* what) const {
  const GLenum error = gl_.get_error();
  if (error != GL_NO_ERROR) throw std::runtime_error(std::string(what) + ": OpenGL error " + std::to_string(error));
}

}  // namespace kiln::witness

// An OpenGL context as an application makes it, and what both peers of Kiln do with a program: for start_plain and
// start_adopted.
//
// Thread-safety: none. Ownership: values. Nothing is given back: the process ends.
#pragma once

#define EGL_NO_X11  // X11 would define Status
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <glad/gl.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace kiln::bench {

constexpr std::size_t floats = 4096;  // of the input, and of each output

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// Without a window system: Mesa's way, else that of the first device.
inline EGLDisplay own_display() {
  EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (eglInitialize(display, nullptr, nullptr)) return display;
  const auto query = reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(eglGetProcAddress("eglQueryDevicesEXT"));
  EGLDeviceEXT device = nullptr;
  EGLint devices = 0;
  if (query == nullptr || !query(1, &device, &devices) || devices == 0) fail("no EGL device");
  display = eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, device, nullptr);
  if (!eglInitialize(display, nullptr, nullptr)) fail("no EGL display");
  return display;
}

inline GladGLContext own_context() {
  const EGLDisplay display = own_display();
  const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
  eglBindAPI(EGL_OPENGL_API);
  const EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
  if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) fail("no OpenGL 4.3 context");
  GladGLContext gl{};
  if (gladLoadGLContext(&gl, eglGetProcAddress) == 0) fail("no OpenGL functions");
  return gl;
}

// Empty: there is no such file.
inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs a program on x.npy of the folder and writes the output beside it.
inline void dispatch(const GladGLContext& gl, GLuint program, const std::string& folder, const std::string& output) {
  static GLuint buffers[2] = {0, 0};
  if (buffers[0] == 0) gl.GenBuffers(2, buffers);
  std::string file = contents(folder + "/x.npy");
  constexpr GLsizeiptr bytes = floats * sizeof(float);
  char* const values = file.data() + file.size() - bytes;
  gl.BindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffers[0]);
  gl.BufferData(GL_SHADER_STORAGE_BUFFER, bytes, values, GL_DYNAMIC_DRAW);
  gl.BindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, buffers[1]);
  gl.BufferData(GL_SHADER_STORAGE_BUFFER, bytes, nullptr, GL_DYNAMIC_READ);
  gl.UseProgram(program);
  gl.DispatchCompute(1, 1, 1);
  gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  gl.GetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, bytes, values);
  std::ofstream(folder + "/" + output, std::ios::binary) << file;
}

}  // namespace kiln::bench

#include "opengl/adopt/own_context.hpp"

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>

namespace kiln::test {
namespace {

template <class Function_>
Function_ gl(const char* name) {
  return reinterpret_cast<Function_>(eglGetProcAddress(name));
}

}  // namespace

OwnContext::OwnContext() : display_(eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr)) {
  if (!eglInitialize(display_, nullptr, nullptr) || !eglBindAPI(EGL_OPENGL_API)) return;
  // Of the core profile, as the plugin's contexts: the profile stands in the version, which is part of the identity.
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
  context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  if (context_ != nullptr) make_current();
}

OwnContext::~OwnContext() {
  make_none_current();
  if (context_ != nullptr) eglDestroyContext(display_, context_);
}

void OwnContext::make_current() const { eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_); }

void OwnContext::make_none_current() const { eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT); }

Function find_gl(const char* name) { return eglGetProcAddress(name); }

bool is_program(unsigned name) { return gl<unsigned char (*)(unsigned)>("glIsProgram")(name) != 0; }

bool is_linked(unsigned name) {
  constexpr unsigned link_status = 0x8b82;
  int linked = 0;
  gl<void (*)(unsigned, unsigned, int*)>("glGetProgramiv")(name, link_status, &linked);
  return linked != 0;
}

float uniform(unsigned program, const char* name) {
  float value = 0;
  const int location = gl<int (*)(unsigned, const char*)>("glGetUniformLocation")(program, name);
  gl<void (*)(unsigned, int, float*)>("glGetUniformfv")(program, location, &value);
  return value;
}

void set_uniform(unsigned program, const char* name, float value) {
  const int location = gl<int (*)(unsigned, const char*)>("glGetUniformLocation")(program, name);
  gl<void (*)(unsigned, int, float)>("glProgramUniform1f")(program, location, value);
}

namespace {

constexpr unsigned storage_block = 0x92e6;

unsigned block_index(unsigned program, const char* block) {
  return gl<unsigned (*)(unsigned, unsigned, const char*)>("glGetProgramResourceIndex")(program, storage_block, block);
}

}  // namespace

int block_binding(unsigned program, const char* block) {
  constexpr unsigned buffer_binding = 0x9302;
  int value = -1;
  using Get = void (*)(unsigned, unsigned, unsigned, int, const unsigned*, int, int*, int*);
  gl<Get>("glGetProgramResourceiv")(program, storage_block, block_index(program, block), 1, &buffer_binding, 1, nullptr,
                                    &value);
  return value;
}

void set_block_binding(unsigned program, const char* block, unsigned binding) {
  gl<void (*)(unsigned, unsigned, unsigned)>("glShaderStorageBlockBinding")(program, block_index(program, block),
                                                                            binding);
}

void cause_an_error() { gl<void (*)(unsigned)>("glEnable")(0xffff); }

bool has_error() { return gl<unsigned (*)()>("glGetError")() != 0; }

}  // namespace kiln::test

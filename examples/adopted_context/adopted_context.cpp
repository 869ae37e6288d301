// An application with an OpenGL context of its own that gets its compute program from Kiln's cache: built by the first
// run, read from disk by every later one.
//
//   adopted_context [--broken | --other-thread]      the two ways it can go wrong, shown
#include <kiln/adopted_gl.hpp>
#include <kiln/open_program_cache.hpp>

#define EGL_NO_X11  // X11's headers would define Status
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

// What such an application has anyway: a context, here without a window.
class OwnContext {
 public:
  OwnContext() {
    display_ = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
    if (eglInitialize(display_, nullptr, nullptr) && eglBindAPI(EGL_OPENGL_API)) {
      context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
    }
    current_ = context_ != EGL_NO_CONTEXT && eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_);
  }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  ~OwnContext() {
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (context_ != EGL_NO_CONTEXT) eglDestroyContext(display_, context_);
    eglTerminate(display_);
  }
  bool current() const { return current_; }

 private:
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
  bool current_ = false;
};

template <class Function>
Function gl_function(const char* name) {
  return reinterpret_cast<Function>(eglGetProcAddress(name));
}

constexpr unsigned count = 1024;
constexpr const char* squares = R"(#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Squares { uint value[]; };
void main() { value[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * gl_GlobalInvocationID.x; }
)";

// The application's own dispatch: Kiln has no part in it.
unsigned wrong_results(GLuint program) {
  const auto use_program = gl_function<PFNGLUSEPROGRAMPROC>("glUseProgram");
  const auto gen_buffers = gl_function<PFNGLGENBUFFERSPROC>("glGenBuffers");
  const auto bind_buffer_base = gl_function<PFNGLBINDBUFFERBASEPROC>("glBindBufferBase");
  const auto buffer_data = gl_function<PFNGLBUFFERDATAPROC>("glBufferData");
  const auto dispatch = gl_function<PFNGLDISPATCHCOMPUTEPROC>("glDispatchCompute");
  const auto barrier = gl_function<PFNGLMEMORYBARRIERPROC>("glMemoryBarrier");
  const auto read = gl_function<PFNGLGETBUFFERSUBDATAPROC>("glGetBufferSubData");
  const auto delete_buffers = gl_function<PFNGLDELETEBUFFERSPROC>("glDeleteBuffers");

  std::vector<GLuint> values(count, 0xdeadbeef);
  const GLsizeiptr bytes = count * sizeof(GLuint);
  GLuint buffer = 0;
  gen_buffers(1, &buffer);
  bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 0, buffer);
  buffer_data(GL_SHADER_STORAGE_BUFFER, bytes, values.data(), GL_DYNAMIC_COPY);
  use_program(program);
  dispatch(count / 64, 1, 1);
  barrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  read(GL_SHADER_STORAGE_BUFFER, 0, bytes, values.data());
  delete_buffers(1, &buffer);
  unsigned wrong = 0;
  for (unsigned i = 0; i < count; ++i) wrong += values[i] != i * i ? 1 : 0;
  return wrong;
}

int fail(const kiln::Status& status) {
  std::fprintf(stderr, "adopted_context: %s\n", status.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const OwnContext context;
  if (!context.current()) return fail(kiln::unavailable("no OpenGL 4.3 context on this machine"));

  // From here to the program: Kiln.
  auto gl = kiln::AdoptedGl::adopt(eglGetProcAddress);  // before the cache: it outlives it
  if (!gl) return fail(gl.error());
  auto cache = kiln::open_program_cache();
  if (!cache) return fail(cache.error());
  const std::string text = mode == "--broken" ? std::string(squares) + "oops" : squares;
  auto program = (*gl)->program(**cache, text, "squares");
  if (!program) return fail(program.error());

  const unsigned wrong = wrong_results(program->name());
  std::printf("tier %s, %u of %u squares wrong\n", std::string(kiln::to_string(program->tier())).c_str(), wrong, count);

  if (mode == "--other-thread") {
    kiln::Status answer;
    std::thread([&] { answer = (*gl)->program(**cache, text, "squares").error(); }).join();
    return fail(answer);
  }
  return wrong == 0 ? 0 : 1;
}

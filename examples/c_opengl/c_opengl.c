/* An OpenGL application that gets a compute program and a graphics program from Kiln's cache: the first process compiles them,
 * later ones load their binaries. */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <kiln_opengl.h>
#include <stdio.h>

static const char* const squares =
    "#version 430 core\n"
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) buffer Squares { uint value[]; };\n"
    "void main() { value[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * gl_GlobalInvocationID.x; }\n";
static const char* const vertex =
    "#version 430 core\n"
    "void main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }\n";
static const char* const fragment =
    "#version 430 core\n"
    "layout(location = 0) out vec4 colour;\n"
    "void main() { colour = vec4(1, 0.5, 0, 1); }\n";

static int failed(kiln_status* status) {
  if (status == NULL) return 0;
  fprintf(stderr, "c_opengl: %s: %s\n", kiln_code_name(kiln_status_code(status)), kiln_status_message(status));
  kiln_status_free(status);
  return 1;
}

/* What such an application has anyway: a context, here without a window. */
static int make_context(void) {
  static const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
  const EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
  EGLContext context;
  if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API)) return 0;
  context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  return context != EGL_NO_CONTEXT && eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context);
}

/* The functions of OpenGL that the application itself uses. */
static PFNGLGENBUFFERSPROC gen_buffers;
static PFNGLBINDBUFFERBASEPROC bind_buffer_base;
static PFNGLBUFFERDATAPROC buffer_data;
static PFNGLUSEPROGRAMPROC use_program;
static PFNGLDISPATCHCOMPUTEPROC dispatch;
static PFNGLMEMORYBARRIERPROC barrier;
static PFNGLGETBUFFERSUBDATAPROC read_buffer;
static PFNGLGENFRAMEBUFFERSPROC gen_framebuffers;
static PFNGLBINDFRAMEBUFFERPROC bind_framebuffer;
static PFNGLGENRENDERBUFFERSPROC gen_renderbuffers;
static PFNGLBINDRENDERBUFFERPROC bind_renderbuffer;
static PFNGLRENDERBUFFERSTORAGEPROC renderbuffer_storage;
static PFNGLFRAMEBUFFERRENDERBUFFERPROC framebuffer_renderbuffer;
static PFNGLGENVERTEXARRAYSPROC gen_vertex_arrays;
static PFNGLBINDVERTEXARRAYPROC bind_vertex_array;

static void find(void* to, const char* name) {
  const kiln_opengl_function found = eglGetProcAddress(name);
  memcpy(to, &found, sizeof found);
}

static void find_all(void) {
  find(&gen_buffers, "glGenBuffers");
  find(&bind_buffer_base, "glBindBufferBase");
  find(&buffer_data, "glBufferData");
  find(&use_program, "glUseProgram");
  find(&dispatch, "glDispatchCompute");
  find(&barrier, "glMemoryBarrier");
  find(&read_buffer, "glGetBufferSubData");
  find(&gen_framebuffers, "glGenFramebuffers");
  find(&bind_framebuffer, "glBindFramebuffer");
  find(&gen_renderbuffers, "glGenRenderbuffers");
  find(&bind_renderbuffer, "glBindRenderbuffer");
  find(&renderbuffer_storage, "glRenderbufferStorage");
  find(&framebuffer_renderbuffer, "glFramebufferRenderbuffer");
  find(&gen_vertex_arrays, "glGenVertexArrays");
  find(&bind_vertex_array, "glBindVertexArray");
}

static unsigned wrong_squares(GLuint program, unsigned count) {
  static GLuint values[1024];
  GLuint buffer;
  unsigned at, wrong = 0;
  gen_buffers(1, &buffer);
  bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 0, buffer);
  buffer_data(GL_SHADER_STORAGE_BUFFER, sizeof values, NULL, GL_DYNAMIC_COPY);
  use_program(program);
  dispatch(count / 64, 1, 1);
  barrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  read_buffer(GL_SHADER_STORAGE_BUFFER, 0, sizeof values, values);
  for (at = 0; at < count; ++at) wrong += values[at] != at * at;
  return wrong;
}

static unsigned wrong_pixels(GLuint program) {
  unsigned char pixels[16 * 16 * 4];
  GLuint framebuffer, renderbuffer, vertices;
  unsigned at, wrong = 0;
  gen_framebuffers(1, &framebuffer);
  bind_framebuffer(GL_FRAMEBUFFER, framebuffer);
  gen_renderbuffers(1, &renderbuffer);
  bind_renderbuffer(GL_RENDERBUFFER, renderbuffer);
  renderbuffer_storage(GL_RENDERBUFFER, GL_RGBA8, 16, 16);
  framebuffer_renderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
  gen_vertex_arrays(1, &vertices);
  bind_vertex_array(vertices);
  glViewport(0, 0, 16, 16);
  use_program(program);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  glReadPixels(0, 0, 16, 16, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
  for (at = 0; at < 256; ++at) wrong += pixels[4 * at] != 255 || (pixels[4 * at + 1] + 1) / 4 != 32 || pixels[4 * at + 2] != 0;
  return wrong;
}

int main(void) {
  enum { count = 1024 };
  static const char* const tiers[] = {"nowhere", "memory", "disk", "the compiler"};
  const kiln_opengl_stage compute[] = {{GL_COMPUTE_SHADER, squares}};
  const kiln_opengl_stage draw[] = {{GL_VERTEX_SHADER, vertex}, {GL_FRAGMENT_SHADER, fragment}};
  GLuint programs[2] = {0, 0};
  kiln_tier found[2] = {KILN_TIER_NONE, KILN_TIER_NONE};
  kiln_cache* cache = NULL;
  kiln_opengl gl;
  unsigned wrong;
  if (!make_context()) {
    fprintf(stderr, "c_opengl: no OpenGL 4.3 context; install libgl1-mesa-dri or another driver\n");
    return 77;
  }
  if (failed(kiln_cache_open(NULL, &cache)) || failed(kiln_opengl_open(eglGetProcAddress, &gl)) ||
      failed(kiln_opengl_program(cache, &gl, compute, 1, "squares", &programs[0], &found[0])) ||
      failed(kiln_opengl_program(cache, &gl, draw, 2, "orange", &programs[1], &found[1]))) {
    return 1;
  }
  find_all();
  wrong = wrong_squares(programs[0], count) + wrong_pixels(programs[1]);
  printf("program from %s, %u of %u results wrong\n", found[0] == found[1] ? tiers[found[0]] : "two places", wrong,
         count + 256u);
  kiln_cache_close(cache);
  return wrong != 0;
}

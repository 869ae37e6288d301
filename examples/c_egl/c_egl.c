/* An OpenGL application whose driver stores its own blobs in Kiln's cache, by EGL_ANDROID_blob_cache: no program is changed. */
#include <kiln_egl.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <stdio.h>

static const char* const squares =
    "#version 430 core\n"
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) buffer Squares { uint value[]; };\n"
    "void main() { value[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * gl_GlobalInvocationID.x; }\n";

static void find(void* to, const char* name) {
  void (*const found)(void) = eglGetProcAddress(name);
  memcpy(to, &found, sizeof found);
}

/* As any application does it: compile, link, dispatch. */
static unsigned wrong_squares(unsigned count) {
  static GLuint values[1024];
  PFNGLCREATESHADERPROGRAMVPROC create;
  PFNGLGENBUFFERSPROC gen_buffers;
  PFNGLBINDBUFFERBASEPROC bind_buffer_base;
  PFNGLBUFFERDATAPROC buffer_data;
  PFNGLUSEPROGRAMPROC use_program;
  PFNGLDISPATCHCOMPUTEPROC dispatch;
  PFNGLMEMORYBARRIERPROC barrier;
  PFNGLGETBUFFERSUBDATAPROC read_buffer;
  GLuint buffer;
  unsigned at, wrong = 0;
  find(&create, "glCreateShaderProgramv");
  find(&gen_buffers, "glGenBuffers");
  find(&bind_buffer_base, "glBindBufferBase");
  find(&buffer_data, "glBufferData");
  find(&use_program, "glUseProgram");
  find(&dispatch, "glDispatchCompute");
  find(&barrier, "glMemoryBarrier");
  find(&read_buffer, "glGetBufferSubData");
  gen_buffers(1, &buffer);
  bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 0, buffer);
  buffer_data(GL_SHADER_STORAGE_BUFFER, sizeof values, NULL, GL_DYNAMIC_COPY);
  use_program(create(GL_COMPUTE_SHADER, 1, (const GLchar* const*)&squares));
  dispatch(count / 64, 1, 1);
  barrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  read_buffer(GL_SHADER_STORAGE_BUFFER, 0, sizeof values, values);
  for (at = 0; at < count; ++at) wrong += values[at] != at * at;
  return wrong;
}

int main(void) {
  static const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
  const EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
  EGLContext context;
  kiln_cache* cache = NULL;
  kiln_cache_stats stats;
  kiln_status* failure;
  unsigned wrong;
  if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API)) {
    fprintf(stderr, "c_egl: no EGL display\n");
    return 77;
  }
  failure = kiln_cache_open(NULL, &cache);
  if (failure == NULL) failure = kiln_egl_blob_cache(display, cache); /* before the first context */
  if (failure != NULL) {
    const int lacks = kiln_status_code(failure) == KILN_UNSUPPORTED;
    fprintf(stderr, "c_egl: %s\n", kiln_status_message(failure));
    kiln_status_free(failure);
    return lacks ? 77 : 1;
  }
  context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) return 1;
  wrong = wrong_squares(1024);
  eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  eglDestroyContext(display, context);
  eglTerminate(display); /* the driver's threads end before the cache */
  stats.size = sizeof stats;
  failure = kiln_cache_get_stats(cache, &stats);
  kiln_status_free(failure);
  printf("program from %s, %u of 1024 results wrong (%u blobs found, %u stored)\n", stats.disk_hits == 0 ? "the compiler" : "disk",
         wrong, (unsigned)stats.disk_hits, (unsigned)stats.builds);
  kiln_cache_close(cache);
  return wrong != 0;
}

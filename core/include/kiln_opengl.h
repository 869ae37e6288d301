/* kiln_opengl.h: program objects of an application's OpenGL context from Kiln's program cache, compute and graphics. Header
 * only, C99; links no OpenGL: the application passes the function that finds OpenGL's functions.
 *
 * Each call returns a program object of its own, which the caller deletes. The first process compiles and links; later ones
 * call glProgramBinary().
 * Thread-safety: the context must be current on the calling thread. It is left as it was.
 *
 *   kiln_opengl gl;
 *   kiln_opengl_stage stages[] = {{GL_VERTEX_SHADER, vertex}, {GL_FRAGMENT_SHADER, fragment}};
 *   GLuint program = 0;
 *   kiln_status* failure = kiln_opengl_open(eglGetProcAddress, &gl);
 *   if (failure == NULL) failure = kiln_opengl_program(cache, &gl, stages, 2, "sky", &program, NULL);
 *
 * Some drivers make their machine code at the first draw, and store it in a cache of their own: kiln_driver_environment(). */
#ifndef KILN_OPENGL_H
#define KILN_OPENGL_H

#include <GL/gl.h>
#include <GL/glext.h>
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* eglGetProcAddress, or a function that calls glXGetProcAddress or SDL_GL_GetProcAddress. */
typedef void (*kiln_opengl_function)(void);
typedef kiln_opengl_function (*kiln_opengl_find)(const char* name);

typedef struct kiln_opengl {
  const GLubyte* (*get_string)(GLenum name);
  void (*get_integer)(GLenum name, GLint* value);
  PFNGLCREATESHADERPROC create_shader;
  PFNGLSHADERSOURCEPROC shader_source;
  PFNGLCOMPILESHADERPROC compile_shader;
  PFNGLGETSHADERIVPROC get_shader;
  PFNGLGETSHADERINFOLOGPROC get_shader_log;
  PFNGLDELETESHADERPROC delete_shader;
  PFNGLCREATEPROGRAMPROC create_program;
  PFNGLATTACHSHADERPROC attach_shader;
  PFNGLDETACHSHADERPROC detach_shader;
  PFNGLPROGRAMPARAMETERIPROC program_parameter;
  PFNGLLINKPROGRAMPROC link_program;
  PFNGLGETPROGRAMIVPROC get_program;
  PFNGLGETPROGRAMINFOLOGPROC get_program_log;
  PFNGLGETPROGRAMBINARYPROC get_program_binary;
  PFNGLPROGRAMBINARYPROC program_binary;
  PFNGLDELETEPROGRAMPROC delete_program;
  GLint binary_formats; /* 0: the driver has no program binaries, and each process builds */
} kiln_opengl;

typedef struct kiln_opengl_stage {
  GLenum type; /* GL_COMPUTE_SHADER, GL_VERTEX_SHADER, … */
  const char* source;
} kiln_opengl_stage;

/* What the cache holds: the bytes, so that the next caller links a program object of its own. */
typedef struct kiln_opengl_blob {
  size_t count;
  unsigned char* bytes; /* the binary format, 4 bytes, then the binary */
} kiln_opengl_blob;

typedef struct kiln_opengl_call {
  const kiln_opengl* gl;
  const kiln_opengl_stage* stages;
  size_t count;
  GLuint made; /* the caller's program object, if this call has linked one */
} kiln_opengl_call;

/* KILN_UNAVAILABLE: no context is current, or it lacks program binaries (OpenGL 4.1). */
static inline KILN_MUST_USE kiln_status* kiln_opengl_open(kiln_opengl_find find, kiln_opengl* gl) {
  size_t at;
  struct {
    const char* name;
    void* to;
  } wanted[18];
  if (find == NULL || gl == NULL) return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_opengl_open: find or gl is NULL");
  memset(gl, 0, sizeof *gl);
#define KILN_OPENGL_WANT(place, function, member) wanted[place].name = function, wanted[place].to = &gl->member
  KILN_OPENGL_WANT(0, "glGetString", get_string);
  KILN_OPENGL_WANT(1, "glGetIntegerv", get_integer);
  KILN_OPENGL_WANT(2, "glCreateShader", create_shader);
  KILN_OPENGL_WANT(3, "glShaderSource", shader_source);
  KILN_OPENGL_WANT(4, "glCompileShader", compile_shader);
  KILN_OPENGL_WANT(5, "glGetShaderiv", get_shader);
  KILN_OPENGL_WANT(6, "glGetShaderInfoLog", get_shader_log);
  KILN_OPENGL_WANT(7, "glDeleteShader", delete_shader);
  KILN_OPENGL_WANT(8, "glCreateProgram", create_program);
  KILN_OPENGL_WANT(9, "glAttachShader", attach_shader);
  KILN_OPENGL_WANT(10, "glDetachShader", detach_shader);
  KILN_OPENGL_WANT(11, "glProgramParameteri", program_parameter);
  KILN_OPENGL_WANT(12, "glLinkProgram", link_program);
  KILN_OPENGL_WANT(13, "glGetProgramiv", get_program);
  KILN_OPENGL_WANT(14, "glGetProgramInfoLog", get_program_log);
  KILN_OPENGL_WANT(15, "glGetProgramBinary", get_program_binary);
  KILN_OPENGL_WANT(16, "glProgramBinary", program_binary);
  KILN_OPENGL_WANT(17, "glDeleteProgram", delete_program);
#undef KILN_OPENGL_WANT
  for (at = 0; at < sizeof wanted / sizeof *wanted; ++at) {
    const kiln_opengl_function found = find(wanted[at].name);
    if (found == NULL) {
      char message[128];
      snprintf(message, sizeof message, "kiln_opengl_open: %s was not found, expected OpenGL 4.1 or newer", wanted[at].name);
      return kiln_status_make(KILN_UNAVAILABLE, message);
    }
    memcpy(wanted[at].to, &found, sizeof found); /* pointers to functions of another type */
  }
  if (gl->get_string(GL_VERSION) == NULL) {
    return kiln_status_make(KILN_UNAVAILABLE, "kiln_opengl_open: no OpenGL context is current on this thread");
  }
  gl->get_integer(GL_NUM_PROGRAM_BINARY_FORMATS, &gl->binary_formats);
  return NULL;
}

static inline void kiln_opengl_say(const kiln_opengl* gl, kiln_request* request, GLuint object, int is_shader) {
  GLint length = 0;
  char* log;
  if (is_shader) gl->get_shader(object, GL_INFO_LOG_LENGTH, &length);
  if (!is_shader) gl->get_program(object, GL_INFO_LOG_LENGTH, &length);
  log = length > 0 ? (char*)calloc((size_t)length + 1, 1) : NULL;
  if (log == NULL) return;
  if (is_shader) gl->get_shader_log(object, length, NULL, log);
  if (!is_shader) gl->get_program_log(object, length, NULL, log);
  kiln_request_set_message(request, log);
  free(log);
}

static inline void kiln_opengl_destroy(void* object) {
  free(((kiln_opengl_blob*)object)->bytes);
  free(object);
}

static inline int kiln_opengl_give(kiln_request* request, unsigned char* bytes, size_t count) {
  kiln_opengl_blob* blob = (kiln_opengl_blob*)malloc(sizeof *blob);
  if (blob == NULL) {
    free(bytes);
    return 0;
  }
  blob->bytes = bytes;
  blob->count = count;
  kiln_request_set_object(request, blob, count);
  return 1;
}

/* Compiles and links. 0: it failed; the request has the log. */
static inline GLuint kiln_opengl_link(const kiln_opengl_call* call, kiln_request* request) {
  const kiln_opengl* gl = call->gl;
  GLuint program = gl->create_program();
  GLint good = 1;
  size_t at;
  for (at = 0; at < call->count && good; ++at) {
    const GLuint shader = gl->create_shader(call->stages[at].type);
    const GLchar* source = call->stages[at].source;
    gl->shader_source(shader, 1, &source, NULL);
    gl->compile_shader(shader);
    gl->get_shader(shader, GL_COMPILE_STATUS, &good);
    if (!good && request != NULL) kiln_opengl_say(gl, request, shader, 1);
    gl->attach_shader(program, shader);
    gl->delete_shader(shader); /* with the program */
  }
  if (good) {
    gl->program_parameter(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
    gl->link_program(program);
    gl->get_program(program, GL_LINK_STATUS, &good);
    if (!good && request != NULL) kiln_opengl_say(gl, request, program, 0);
  }
  if (good) return program;
  gl->delete_program(program);
  return 0;
}

/* Links from bytes that link() made. 0: the driver refused them. */
static inline GLuint kiln_opengl_restore(const kiln_opengl* gl, const unsigned char* bytes, size_t count) {
  GLuint program;
  GLint good = 0;
  GLenum format;
  if (count <= sizeof format) return 0;
  memcpy(&format, bytes, sizeof format);
  program = gl->create_program();
  gl->program_binary(program, format, bytes + sizeof format, (GLsizei)(count - sizeof format));
  gl->get_program(program, GL_LINK_STATUS, &good);
  if (good) return program;
  gl->delete_program(program);
  return 0;
}

static inline kiln_code kiln_opengl_on_build(void* user, kiln_request* request) {
  kiln_opengl_call* call = (kiln_opengl_call*)user;
  const kiln_opengl* gl = call->gl;
  GLint length = 0;
  GLsizei written = 0;
  GLenum format = 0;
  unsigned char* bytes;
  call->made = kiln_opengl_link(call, request);
  if (call->made == 0) return KILN_INVALID_ARGUMENT;
  if (gl->binary_formats > 0) gl->get_program(call->made, GL_PROGRAM_BINARY_LENGTH, &length);
  if (length <= 0) return KILN_UNSUPPORTED; /* the caller has its program all the same */
  bytes = (unsigned char*)malloc((size_t)length + sizeof format);
  if (bytes == NULL) return KILN_UNAVAILABLE;
  gl->get_program_binary(call->made, length, &written, &format, bytes + sizeof format);
  memcpy(bytes, &format, sizeof format);
  if (written <= 0 || !kiln_request_set_bytes(request, bytes, (size_t)written + sizeof format)) {
    free(bytes);
    return KILN_UNAVAILABLE;
  }
  return kiln_opengl_give(request, bytes, (size_t)written + sizeof format) ? KILN_OK : KILN_UNAVAILABLE;
}

static inline kiln_code kiln_opengl_on_load(void* user, kiln_request* request, const void* bytes, size_t count) {
  kiln_opengl_call* call = (kiln_opengl_call*)user;
  unsigned char* copy;
  call->made = kiln_opengl_restore(call->gl, (const unsigned char*)bytes, count);
  if (call->made == 0) {
    kiln_request_set_message(request, "glProgramBinary: the driver refused the binary");
    return KILN_CORRUPT;
  }
  copy = (unsigned char*)malloc(count);
  if (copy == NULL) return KILN_UNAVAILABLE;
  memcpy(copy, bytes, count);
  return kiln_opengl_give(request, copy, count) ? KILN_OK : KILN_UNAVAILABLE;
}

/* program: an object that the caller deletes. tier: NULL, or where the program was found. KILN_INVALID_ARGUMENT: a stage does
 * not compile, or the program does not link; the message is the log. */
static inline KILN_MUST_USE kiln_status* kiln_opengl_program(kiln_cache* cache, const kiln_opengl* gl,
                                                             const kiln_opengl_stage* stages, size_t count,
                                                             const char* label, GLuint* program, kiln_tier* tier) {
  kiln_opengl_call call;
  kiln_compiler compiler = kiln_compiler_default();
  kiln_key_builder* builder = NULL;
  kiln_key* key = NULL;
  kiln_program* cached = NULL;
  kiln_status* failure;
  kiln_identity identity;
  char device[512];
  size_t at;
  if (gl == NULL || stages == NULL || count == 0 || program == NULL) {
    return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_opengl_program: gl, stages or program is NULL, or there is no stage");
  }
  *program = 0;
  snprintf(device, sizeof device, "%s %s", (const char*)gl->get_string(GL_VENDOR), (const char*)gl->get_string(GL_RENDERER));
  identity = kiln_identity_of("opengl", device, (const char*)gl->get_string(GL_VERSION));
  call.gl = gl;
  call.stages = stages;
  call.count = count;
  call.made = 0;
  compiler.user = &call;
  compiler.build = kiln_opengl_on_build;
  compiler.load = kiln_opengl_on_load;
  compiler.destroy = kiln_opengl_destroy;
  failure = kiln_key_builder_create(cache, &identity, label, &builder);
  for (at = 0; at < count && failure == NULL; ++at) {
    failure = kiln_key_builder_number(builder, "stage", stages[at].type);
    if (failure == NULL) failure = kiln_key_builder_text(builder, "source", stages[at].source);
  }
  if (failure == NULL) failure = kiln_key_builder_finish(builder, &key);
  if (failure == NULL) failure = kiln_cache_get_or_build(cache, key, &compiler, &cached);
  if (tier != NULL) *tier = cached == NULL ? KILN_TIER_BUILT : kiln_program_tier(cached);
  if (call.made == 0 && cached != NULL) { /* found in memory, or made by another thread */
    const kiln_opengl_blob* blob = (const kiln_opengl_blob*)kiln_program_object(cached);
    call.made = kiln_opengl_restore(gl, blob->bytes, blob->count);
    if (call.made == 0) call.made = kiln_opengl_link(&call, NULL);
    if (call.made == 0) failure = kiln_status_make(KILN_CORRUPT, "the driver refuses the binary, and cannot link again");
  }
  if (call.made == 0 && failure != NULL && kiln_status_code(failure) == KILN_UNSUPPORTED) {
    call.made = kiln_opengl_link(&call, NULL); /* a driver without binaries: remembered from the first build */
  }
  if (call.made != 0 && failure != NULL) { /* linked, but not stored */
    kiln_status_free(failure);
    failure = NULL;
  }
  *program = call.made;
  kiln_program_free(cached);
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  return failure;
}

#ifdef __cplusplus
}
#endif

#endif

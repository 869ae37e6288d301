/* kiln_opengl.h: program objects for an application's OpenGL context from Kiln's program cache, compute and graphics. Header
 * only, C99; link libkiln.so. You need not link OpenGL: the application passes a function that finds OpenGL's functions.
 *
 * Each call returns a new program object. The caller deletes it. The first process compiles and links. Later processes call
 * glProgramBinary().
 * Thread-safety: the context must be current on the calling thread. The adapter does not change the state of the context.
 *
 *   kiln_opengl gl;
 *   kiln_opengl_stage stages[] = {{GL_VERTEX_SHADER, vertex}, {GL_FRAGMENT_SHADER, fragment}};
 *   GLuint program = 0;
 *   kiln_status* failure = kiln_opengl_open(eglGetProcAddress, &gl);
 *   if (failure == NULL) failure = kiln_opengl_program(cache, &gl, stages, 2, "sky", &program, NULL);
 *
 * Some drivers generate machine code at the first draw and store it in the driver's cache. kiln_driver_environment() places
 * this cache in Kiln's folder. */
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
  PFNGLGETSTRINGIPROC get_string_at;
} kiln_opengl;

typedef struct kiln_opengl_stage {
  GLenum type; /* GL_COMPUTE_SHADER, GL_VERTEX_SHADER, … */
  const char* source;
} kiln_opengl_stage;

/* The object in the cache: the binary, from which each caller creates a program object. The struct is frozen, because parts of
 * a process that were compiled with other versions of this file may share the cache. */
typedef struct kiln_opengl_blob {
  size_t count;
  unsigned char* bytes; /* the binary format, 4 bytes, then the binary */
} kiln_opengl_blob;

typedef struct kiln_opengl_call {
  const kiln_opengl* gl;
  const kiln_opengl_stage* stages;
  size_t count;
  GLuint made;   /* the caller's program object; 0: this call has not linked one */
  kiln_code why; /* if made is 0: KILN_INVALID_ARGUMENT for a wrong source, KILN_UNAVAILABLE for a temporary error */
} kiln_opengl_call;

/* Finds OpenGL's functions. KILN_UNAVAILABLE: no context is current, or a function of OpenGL 4.1 is missing. */
static inline KILN_MUST_USE kiln_status* kiln_opengl_open(kiln_opengl_find find, kiln_opengl* gl) {
  size_t at;
  struct {
    const char* name;
    void* to;
  } wanted[19];
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
  KILN_OPENGL_WANT(18, "glGetStringi", get_string_at);
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

/* Returns 1 if the context has an extension with this name after the vendor prefix. For example, "compute_shader" matches
 * GL_ARB_compute_shader. */
static inline int kiln_opengl_has_extension(const kiln_opengl* gl, const char* name) {
  GLint count = 0, at;
  const size_t length = strlen(name);
  gl->get_integer(GL_NUM_EXTENSIONS, &count);
  for (at = 0; at < count; ++at) {
    const char* found = (const char*)gl->get_string_at(GL_EXTENSIONS, (GLuint)at);
    const size_t whole = found == NULL ? 0 : strlen(found);
    if (whole > length && found[whole - length - 1] == '_' && strcmp(found + whole - length, name) == 0) return 1;
  }
  return 0;
}

/* Returns NULL if the context supports stages of this type. A failed glCreateShader() would leave an error in the
 * application's context. */
static inline kiln_status* kiln_opengl_check_stage(const kiln_opengl* gl, const char* version, size_t place, GLenum type) {
  const char* extension = NULL;
  unsigned major = 0, minor = 0, since = 0, since_es = 0;
  const char* number = version;
  char message[320];
  switch (type) {
    case GL_VERTEX_SHADER:
    case GL_FRAGMENT_SHADER:
      return NULL;
    case GL_GEOMETRY_SHADER:
      since = since_es = 32;
      extension = "geometry_shader";
      break;
    case GL_TESS_CONTROL_SHADER:
    case GL_TESS_EVALUATION_SHADER:
      since = 40;
      since_es = 32;
      extension = "tessellation_shader";
      break;
    case GL_COMPUTE_SHADER:
      since = 43;
      since_es = 31;
      extension = "compute_shader";
      break;
    case 0x9559: /* mesh */
    case 0x955A: /* task */
      since = since_es = ~0u;
      extension = "mesh_shader";
      break;
    default:
      snprintf(message, sizeof message, "kiln_opengl_program: stage %u: type 0x%04x, expected one such as GL_COMPUTE_SHADER",
               (unsigned)place, (unsigned)type);
      return kiln_status_make(KILN_INVALID_ARGUMENT, message);
  }
  while (*number != '\0' && (*number < '0' || *number > '9')) ++number; /* "OpenGL ES 3.2 …" */
  while (*number >= '0' && *number <= '9') major = 10 * major + (unsigned)(*number++ - '0');
  if (*number == '.' && number[1] >= '0' && number[1] <= '9') minor = (unsigned)(number[1] - '0');
  if (10 * major + minor >= (strncmp(version, "OpenGL ES", 9) == 0 ? since_es : since)) return NULL;
  if (major >= 3 && kiln_opengl_has_extension(gl, extension)) return NULL;
  snprintf(message, sizeof message, "kiln_opengl_program: stage %u: type 0x%04x needs %s, the context is OpenGL %.128s without it",
           (unsigned)place, (unsigned)type, extension, version);
  return kiln_status_make(KILN_UNSUPPORTED, message);
}

/* Sets the log as the message. A failure with a log is an error of the source. A failure without a log, for example in a lost
 * context, is temporary. */
static inline kiln_code kiln_opengl_say(const kiln_opengl* gl, kiln_request* request, GLuint object, int is_shader) {
  GLint length = 0;
  char* log;
  kiln_code why = KILN_UNAVAILABLE;
  if (is_shader) gl->get_shader(object, GL_INFO_LOG_LENGTH, &length);
  if (!is_shader) gl->get_program(object, GL_INFO_LOG_LENGTH, &length);
  log = length > 0 ? (char*)calloc((size_t)length + 1, 1) : NULL;
  if (log == NULL) return why;
  if (is_shader) gl->get_shader_log(object, length, NULL, log);
  if (!is_shader) gl->get_program_log(object, length, NULL, log);
  if (*log != '\0') {
    kiln_request_set_message(request, log);
    why = KILN_INVALID_ARGUMENT;
  }
  free(log);
  return why;
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

/* Compiles and links. Returns 0 on failure, sets `why`, and sets the log as the message of the request. */
static inline GLuint kiln_opengl_link(kiln_opengl_call* call, kiln_request* request) {
  const kiln_opengl* gl = call->gl;
  GLuint program = gl->create_program();
  GLint good = program != 0;
  size_t at;
  call->why = KILN_UNAVAILABLE;
  if (!good) kiln_request_set_message(request, "glCreateProgram failed");
  for (at = 0; at < call->count && good; ++at) {
    const GLuint shader = gl->create_shader(call->stages[at].type);
    const GLchar* source = call->stages[at].source;
    good = 0; /* OpenGL does not write the result in a lost context */
    if (shader == 0) {
      kiln_request_set_message(request, "glCreateShader failed");
      break;
    }
    gl->shader_source(shader, 1, &source, NULL);
    gl->compile_shader(shader);
    gl->get_shader(shader, GL_COMPILE_STATUS, &good);
    if (!good) call->why = kiln_opengl_say(gl, request, shader, 1);
    gl->attach_shader(program, shader);
    gl->delete_shader(shader); /* takes effect when the program is deleted */
  }
  if (good) {
    good = 0;
    gl->program_parameter(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
    gl->link_program(program);
    gl->get_program(program, GL_LINK_STATUS, &good);
    if (!good) call->why = kiln_opengl_say(gl, request, program, 0);
  }
  if (good) return program;
  if (program != 0) gl->delete_program(program);
  return 0;
}

/* Creates a program object from stored bytes. Returns 0 and sets `why` if the driver refuses the bytes or cannot create a
 * program object. */
static inline GLuint kiln_opengl_restore(kiln_opengl_call* call, const unsigned char* bytes, size_t count) {
  const kiln_opengl* gl = call->gl;
  GLuint program;
  GLint good = 0;
  GLenum format;
  call->why = KILN_CORRUPT;
  if (count <= sizeof format) return 0;
  memcpy(&format, bytes, sizeof format);
  program = gl->create_program();
  if (program == 0) {
    call->why = KILN_UNAVAILABLE;
    return 0;
  }
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
  if (call->made == 0) return call->why;
  if (gl->binary_formats > 0) gl->get_program(call->made, GL_PROGRAM_BINARY_LENGTH, &length);
  /* The caller still gets the linked program, but the cache does not store it. */
  if (length <= 0) return gl->binary_formats > 0 ? KILN_UNAVAILABLE : KILN_UNSUPPORTED;
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
  call->made = kiln_opengl_restore(call, (const unsigned char*)bytes, count);
  if (call->made == 0) {
    kiln_request_set_message(request, call->why == KILN_CORRUPT ? "glProgramBinary: the driver refused the binary"
                                                                : "glCreateProgram failed");
    return call->why;
  }
  copy = (unsigned char*)malloc(count);
  if (copy == NULL) return KILN_UNAVAILABLE;
  memcpy(copy, bytes, count);
  return kiln_opengl_give(request, copy, count) ? KILN_OK : KILN_UNAVAILABLE;
}

/* program: receives an object that the caller deletes. tier: receives the tier of the program, or NULL. KILN_INVALID_ARGUMENT:
 * a stage does not compile or the program does not link, and the message is the log; or a stage type is unknown.
 * KILN_UNSUPPORTED: the context does not support a stage. */
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
  const char* version;
  size_t at;
  if (gl == NULL || stages == NULL || count == 0 || program == NULL) {
    return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_opengl_program: gl, stages or program is NULL, or there is no stage");
  }
  *program = 0;
  version = (const char*)gl->get_string(GL_VERSION);
  if (version == NULL) {
    return kiln_status_make(KILN_UNAVAILABLE, "kiln_opengl_program: no OpenGL context is current on this thread");
  }
  for (at = 0; at < count; ++at) {
    failure = kiln_opengl_check_stage(gl, version, at, stages[at].type);
    if (failure != NULL) return failure;
  }
  snprintf(device, sizeof device, "%s %s", (const char*)gl->get_string(GL_VENDOR), (const char*)gl->get_string(GL_RENDERER));
  identity = kiln_identity_of("opengl", device, version);
  call.gl = gl;
  call.stages = stages;
  call.count = count;
  call.made = 0;
  call.why = KILN_OK;
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
    call.made = kiln_opengl_restore(&call, blob->bytes, blob->count);
    if (call.made == 0) call.made = kiln_opengl_link(&call, NULL);
    if (call.made == 0) {
      failure = kiln_status_make(call.why == KILN_UNAVAILABLE ? KILN_UNAVAILABLE : KILN_CORRUPT,
                                 "the driver refuses the binary, and cannot link again");
    }
  }
  if (call.made == 0 && failure != NULL && kiln_status_code(failure) == KILN_UNSUPPORTED) {
    call.made = kiln_opengl_link(&call, NULL); /* a driver without binaries: the cache returns the first build's error */
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

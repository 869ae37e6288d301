/* kiln_egl.h: stores a driver's blobs in Kiln's program cache through EGL_ANDROID_blob_cache. Header only, C99; link EGL and
 * libkiln.so.
 *
 * The callbacks of the extension have no user pointer. The adapter therefore has one static pointer in the source file that
 * includes it. Include it in one source file only, and use one cache.
 * Thread-safety: the driver may call the callbacks from any thread. Ownership: the cache must outlive the display.
 *
 *   if (!eglInitialize(display, NULL, NULL)) return 1;
 *   kiln_status* failure = kiln_egl_blob_cache(display, cache);   // before the first context
 *
 * KILN_UNSUPPORTED: the driver lacks the extension (such as llvmpipe), or its callbacks are already set. */
#ifndef KILN_EGL_H
#define KILN_EGL_H

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <kiln.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device and driver that blobs are for. */
typedef struct kiln_egl_state {
  kiln_cache* cache;
  kiln_identity identity;
  char device[512];
  char driver[512];
} kiln_egl_state;

/* Returns the static pointer to the state. */
static inline kiln_egl_state** kiln_egl_state_of_process(void) {
  static kiln_egl_state* state = NULL;
  return &state;
}

typedef struct kiln_egl_blob {
  const void* bytes;
  size_t count;
  int replaces; /* not 0: replaces the stored blob with this name */
} kiln_egl_blob;

static inline kiln_code kiln_egl_on_build(void* user, kiln_request* request) {
  const kiln_egl_blob* blob = (const kiln_egl_blob*)user;
  if (blob == NULL) return KILN_NOT_FOUND; /* a lookup */
  return kiln_request_set_bytes(request, blob->bytes, blob->count) ? KILN_OK : KILN_UNAVAILABLE;
}

/* Finds the program of the name, or builds it from `blob`. blob: NULL for a lookup only. Returns NULL if it fails. */
static inline kiln_program* kiln_egl_program(const void* name, size_t count, kiln_egl_blob* blob) {
  kiln_egl_state* state = *kiln_egl_state_of_process();
  kiln_compiler compiler = kiln_compiler_default();
  kiln_key_builder* builder = NULL;
  kiln_key* key = NULL;
  kiln_program* program = NULL;
  kiln_status* failure;
  if (state == NULL) return NULL;
  compiler.user = blob;
  compiler.build = kiln_egl_on_build;
  failure = kiln_key_builder_create(state->cache, &state->identity, "EGL blob", &builder);
  if (failure == NULL) failure = kiln_key_builder_bytes(builder, "name", name, count);
  if (failure == NULL) failure = kiln_key_builder_finish(builder, &key);
  if (failure == NULL && blob != NULL && blob->replaces) failure = kiln_cache_remove(state->cache, key);
  if (failure == NULL) failure = kiln_cache_get_or_build(state->cache, key, &compiler, &program);
  kiln_status_free(failure); /* the driver creates an absent blob */
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  return program;
}

/* If a driver refuses a stored blob, it sets a new one. The new blob then replaces the stored blob. */
static inline void kiln_egl_on_set(const void* name, EGLsizeiANDROID name_count, const void* bytes, EGLsizeiANDROID count) {
  kiln_egl_blob blob;
  kiln_program* program;
  const void* stored;
  size_t stored_count = 0;
  if (name_count <= 0 || count <= 0) return;
  blob.bytes = bytes;
  blob.count = (size_t)count;
  blob.replaces = 0;
  program = kiln_egl_program(name, (size_t)name_count, &blob);
  stored = kiln_program_bytes(program, &stored_count);
  blob.replaces = stored != NULL && (stored_count != blob.count || memcmp(stored, bytes, stored_count) != 0);
  kiln_program_free(program);
  if (blob.replaces) kiln_program_free(kiln_egl_program(name, (size_t)name_count, &blob));
}

/* Returns the size of the blob, and copies the bytes if `room` is large enough. Returns 0 if the blob is absent. */
static inline EGLsizeiANDROID kiln_egl_on_get(const void* name, EGLsizeiANDROID name_count, void* to, EGLsizeiANDROID room) {
  kiln_program* program;
  const void* bytes;
  size_t count = 0;
  if (name_count <= 0) return 0;
  program = kiln_egl_program(name, (size_t)name_count, NULL);
  bytes = kiln_program_bytes(program, &count);
  if (bytes != NULL && to != NULL && room >= 0 && count <= (size_t)room) memcpy(to, bytes, count);
  kiln_program_free(program);
  return (EGLsizeiANDROID)count;
}

/* Call it after eglInitialize() and before the first context. */
static inline KILN_MUST_USE kiln_status* kiln_egl_blob_cache(EGLDisplay display, kiln_cache* cache) {
  kiln_egl_state** process = kiln_egl_state_of_process();
  const char* extensions = eglQueryString(display, EGL_EXTENSIONS);
  const char* vendor = eglQueryString(display, EGL_VENDOR);
  const char* version = eglQueryString(display, EGL_VERSION);
  PFNEGLSETBLOBCACHEFUNCSANDROIDPROC set_functions = NULL;
  kiln_egl_state* state;
  size_t length;
  if (cache == NULL) return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_egl_blob_cache: cache is NULL");
  if (extensions == NULL || vendor == NULL || version == NULL) {
    return kiln_status_make(KILN_INVALID_ARGUMENT, "kiln_egl_blob_cache: the display is not initialized. Call eglInitialize()");
  }
  if (strstr(extensions, "EGL_ANDROID_blob_cache") != NULL) {
    set_functions = (PFNEGLSETBLOBCACHEFUNCSANDROIDPROC)eglGetProcAddress("eglSetBlobCacheFuncsANDROID");
  }
  if (set_functions == NULL) {
    return kiln_status_make(KILN_UNSUPPORTED, "kiln_egl_blob_cache: the driver has no EGL_ANDROID_blob_cache");
  }
  if (*process != NULL) {
    return kiln_status_make(KILN_UNSUPPORTED, "kiln_egl_blob_cache: this process has a blob cache already");
  }
  state = (kiln_egl_state*)calloc(1, sizeof *state);
  if (state == NULL) return kiln_status_make(KILN_UNAVAILABLE, "out of memory");
  state->cache = cache;
  /* The driver includes its build and its device in the name of each blob. The identity only separates EGL implementations. */
  length = strlen(vendor);
  memcpy(state->device, vendor, length < sizeof state->device ? length : sizeof state->device - 1);
  length = strlen(version);
  memcpy(state->driver, version, length < sizeof state->driver ? length : sizeof state->driver - 1);
  state->identity = kiln_identity_of("egl", state->device, state->driver);
  *process = state;
  set_functions(display, kiln_egl_on_set, kiln_egl_on_get);
  if (eglGetError() != EGL_SUCCESS) {
    *process = NULL;
    free(state);
    return kiln_status_make(KILN_UNSUPPORTED, "eglSetBlobCacheFuncsANDROID failed: the display has other callbacks");
  }
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif

/* kiln_opencl.h: cl_program objects from Kiln's program cache. Header only, C99; link OpenCL and libkiln.so.
 *
 * The first process compiles the source and stores the binary from clGetProgramInfo(). Later processes load the binary.
 * Thread-safety: call the functions from any thread. Ownership: the kiln_program owns the cl_program.
 *
 *   kiln_program* program = NULL;
 *   kiln_status* failure = kiln_opencl_program(cache, context, device, source, "-cl-fast-relaxed-math", "blur", &program);
 *   if (failure == NULL) kernel = clCreateKernel(kiln_opencl_program_of(program), "blur", &error);
 *
 * Equal text and options give the same cl_program, so each user must call clCreateKernel(). The key has only `source` and
 * `options`. Replace #include lines in `source` by the text of the files. */
#ifndef KILN_OPENCL_H
#define KILN_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <kiln.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_opencl_call {
  cl_context context;
  cl_device_id device;
  const char* source;
  const char* options;
} kiln_opencl_call;

/* lasting: the code for permanent errors of the source or the binary. Other errors are KILN_UNAVAILABLE, because a retry may
 * succeed. */
static inline kiln_code kiln_opencl_failed(kiln_request* request, const char* what, cl_int error, kiln_code lasting) {
  char text[96];
  size_t at = 0, digits = 0;
  unsigned rest = error < 0 ? 0u - (unsigned)error : (unsigned)error;
  char reversed[16];
  while (*what != '\0' && at < 64) text[at++] = *what++;
  memcpy(text + at, ": error ", 8);
  at += 8;
  if (error < 0) text[at++] = '-';
  do {
    reversed[digits++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  while (digits != 0) text[at++] = reversed[--digits];
  text[at] = '\0';
  kiln_request_set_message(request, text);
  return error == CL_BUILD_PROGRAM_FAILURE || error == CL_COMPILE_PROGRAM_FAILURE || error == CL_INVALID_BUILD_OPTIONS ||
                 error == CL_INVALID_BINARY
             ? lasting
             : KILN_UNAVAILABLE;
}

/* Builds the program. If the build fails, sets the compiler's log as the message and returns `refused` or
 * KILN_UNAVAILABLE. */
static inline kiln_code kiln_opencl_build(kiln_request* request, cl_program program, const kiln_opencl_call* call,
                                          kiln_code refused) {
  size_t bytes = 0;
  char* log;
  const cl_int error = clBuildProgram(program, 1, &call->device, call->options, NULL, NULL);
  if (error == CL_SUCCESS) return KILN_OK;
  refused = kiln_opencl_failed(request, "clBuildProgram", error, refused);
  if (clGetProgramBuildInfo(program, call->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS) return refused;
  log = (char*)calloc(bytes + 1, 1);
  if (log == NULL) return refused;
  if (clGetProgramBuildInfo(program, call->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) == CL_SUCCESS && *log != '\0') {
    kiln_request_set_message(request, log);
  }
  free(log);
  return refused;
}

/* Sets the binary for `device`. A program has one binary for each device of its context. */
static inline kiln_code kiln_opencl_give_binary(kiln_request* request, cl_program program, cl_device_id device) {
  kiln_code code = KILN_UNAVAILABLE;
  cl_uint count = 0, at = 0;
  cl_device_id* devices = NULL;
  size_t* sizes = NULL;
  unsigned char** binaries = NULL;
  cl_int error = clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, NULL);
  if (error != CL_SUCCESS || count == 0) return kiln_opencl_failed(request, "clGetProgramInfo", error, KILN_INTERNAL);
  devices = (cl_device_id*)calloc(count, sizeof *devices);
  sizes = (size_t*)calloc(count, sizeof *sizes);
  binaries = (unsigned char**)calloc(count, sizeof *binaries);
  if (devices != NULL && sizes != NULL && binaries != NULL) {
    error = clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof *devices, devices, NULL);
    if (error == CL_SUCCESS) {
      error = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL);
    }
    while (at < count && devices[at] != device) ++at;
    if (error == CL_SUCCESS && at < count && sizes[at] != 0) {
      binaries[at] = (unsigned char*)malloc(sizes[at]); /* NULL for other devices: clGetProgramInfo() skips them */
      if (binaries[at] != NULL) {
        error = clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries, NULL);
        if (error == CL_SUCCESS && kiln_request_set_bytes(request, binaries[at], sizes[at])) code = KILN_OK;
      }
    }
    if (error != CL_SUCCESS) code = kiln_opencl_failed(request, "clGetProgramInfo", error, KILN_UNAVAILABLE);
    if (at < count) free(binaries[at]);
  }
  free(binaries);
  free(sizes);
  free(devices);
  return code;
}

static inline kiln_code kiln_opencl_on_build(void* user, kiln_request* request) {
  const kiln_opencl_call* call = (const kiln_opencl_call*)user;
  const char* source = call->source;
  cl_int error = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(call->context, 1, &source, NULL, &error);
  kiln_code code;
  if (program == NULL) return kiln_opencl_failed(request, "clCreateProgramWithSource", error, KILN_UNAVAILABLE);
  kiln_request_set_object(request, program, 0);
  code = kiln_opencl_build(request, program, call, KILN_INVALID_ARGUMENT);
  return code == KILN_OK ? kiln_opencl_give_binary(request, program, call->device) : code;
}

static inline kiln_code kiln_opencl_on_load(void* user, kiln_request* request, const void* bytes, size_t count) {
  const kiln_opencl_call* call = (const kiln_opencl_call*)user;
  const unsigned char* binary = (const unsigned char*)bytes;
  cl_int error = CL_SUCCESS, status = CL_SUCCESS;
  cl_program program = clCreateProgramWithBinary(call->context, 1, &call->device, &count, &binary, &status, &error);
  if (program == NULL) return kiln_opencl_failed(request, "clCreateProgramWithBinary", error, KILN_CORRUPT);
  kiln_request_set_object(request, program, 0);
  if (status != CL_SUCCESS) return kiln_opencl_failed(request, "clCreateProgramWithBinary", status, KILN_CORRUPT);
  return kiln_opencl_build(request, program, call, KILN_CORRUPT);
}

static inline void kiln_opencl_destroy(void* object) { clReleaseProgram((cl_program)object); }

/* Returns the texts of `infos`, joined by spaces, or NULL if one text cannot be read. Free the result with free(). */
static inline char* kiln_opencl_text(cl_device_id device, const cl_device_info* infos, size_t count) {
  size_t total = 1, at, bytes, used = 0;
  char* text;
  for (at = 0; at < count; ++at) {
    if (clGetDeviceInfo(device, infos[at], 0, NULL, &bytes) != CL_SUCCESS) return NULL;
    total += bytes + 1;
  }
  text = (char*)calloc(total, 1);
  for (at = 0; text != NULL && at < count; ++at) {
    if (used != 0) text[used++] = ' ';
    if (clGetDeviceInfo(device, infos[at], total - used, text + used, NULL) != CL_SUCCESS) {
      free(text);
      return NULL;
    }
    used += strlen(text + used);
  }
  return text;
}

static inline cl_program kiln_opencl_program_of(const kiln_program* program) {
  return (cl_program)kiln_program_object(program);
}

/* options: as for clBuildProgram(), or NULL. KILN_INVALID_ARGUMENT: the source does not compile, and the message is the log. */
static inline KILN_MUST_USE kiln_status* kiln_opencl_program(kiln_cache* cache, cl_context context, cl_device_id device,
                                                             const char* source, const char* options, const char* label,
                                                             kiln_program** program) {
  static const cl_device_info of_device[] = {CL_DEVICE_VENDOR, CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DEVICE_EXTENSIONS};
  static const cl_device_info of_driver[] = {CL_DRIVER_VERSION, CL_DEVICE_OPENCL_C_VERSION};
  kiln_opencl_call call;
  kiln_compiler compiler = kiln_compiler_default();
  kiln_key_builder* builder = NULL;
  kiln_key* key = NULL;
  char* device_text = kiln_opencl_text(device, of_device, sizeof of_device / sizeof *of_device);
  char* driver_text = kiln_opencl_text(device, of_driver, sizeof of_driver / sizeof *of_driver);
  kiln_identity identity = kiln_identity_of("opencl", device_text, driver_text);
  kiln_status* failure;
  identity.context = context;
  call.context = context;
  call.device = device;
  call.source = source;
  call.options = options == NULL ? "" : options;
  compiler.user = &call;
  compiler.build = kiln_opencl_on_build;
  compiler.load = kiln_opencl_on_load;
  compiler.destroy = kiln_opencl_destroy;
  failure = kiln_key_builder_create(cache, &identity, label, &builder);
  if (failure == NULL) failure = kiln_key_builder_text(builder, "source", source);
  if (failure == NULL) failure = kiln_key_builder_text(builder, "options", call.options);
  if (failure == NULL) failure = kiln_key_builder_finish(builder, &key);
  if (failure == NULL) failure = kiln_cache_get_or_build(cache, key, &compiler, program);
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  free(device_text);
  free(driver_text);
  return failure;
}

#ifdef __cplusplus
}
#endif

#endif

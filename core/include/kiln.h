/* kiln.h: the C interface of Kiln, libkiln.so. C99 and any later C or C++, any compiler.
 *
 * The interface is stable: libkiln.so has soname 1, and its functions and structs stay as they are. Structs that begin with
 * `size` may grow at the end; `size` tells the library which version the caller was compiled with. The others are frozen:
 * they never change, and what they lack gets a function of its own.
 *
 * Errors: a function that can fail returns a kiln_status*, NULL if it succeeded. Free it with kiln_status_free(). Every
 * function checks its arguments: NULL where an object is needed is KILN_INVALID_ARGUMENT. Functions that free accept NULL.
 * No exception leaves a function, and none of them prints, exits or changes the environment.
 * Text is UTF-8 and ends with a zero byte. Text that a function returns belongs to the object it came from.
 * Thread-safety: every function from any thread, except that one kiln_key_builder and one kiln_guard stay on one thread.
 * fork(): a child opens its own caches and runtimes. The caches, runtimes and jobs of its parent have no threads in the
 * child: functions on them return KILN_UNAVAILABLE or find nothing. Closing and freeing them does nothing.
 *
 *   kiln_cache* cache = NULL;
 *   kiln_status* failure = kiln_cache_open(NULL, &cache);
 *   if (failure != NULL) fprintf(stderr, "%s\n", kiln_status_message(failure));
 *   kiln_status_free(failure);
 *   kiln_cache_close(cache);
 *
 * docs/c-interface.md has an example of each function. */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#define KILN_MUST_USE __attribute__((warn_unused_result))
#else
#define KILN_API
#define KILN_MUST_USE
#endif

/* --- status */

typedef enum kiln_code {
  KILN_OK = 0,
  KILN_INVALID_ARGUMENT = 1, /* the argument is wrong; a retry fails again */
  KILN_NOT_FOUND = 2,        /* a named thing does not exist */
  KILN_UNSUPPORTED = 3,      /* valid but not possible here; permanent for this object */
  KILN_UNAVAILABLE = 4,      /* not possible now; a later call may succeed */
  KILN_CORRUPT = 5,          /* stored bytes are damaged or not authentic */
  KILN_IO = 6,               /* error of the operating system */
  KILN_TIMEOUT = 7,          /* the deadline passed; the work may still be running */
  KILN_DEVICE_LOST = 8,      /* the device must be opened again */
  KILN_CANCELLED = 9,        /* cancelled by the caller */
  KILN_INTERNAL = 10,        /* a bug in Kiln or in a callback */
  KILN_WRONG_RESULT = 11,    /* verification: a result differs from its reference by more than the tolerance */
  /* Not a code. It makes the type an int, so that the library can reject a wrong number. So do the others that end in
   * _INT. */
  KILN_CODE_INT = -2147483647 - 1
} kiln_code;

typedef struct kiln_status kiln_status; /* a failure: code and message */

KILN_API kiln_code kiln_status_code(const kiln_status* status);      /* KILN_OK for NULL */
KILN_API const char* kiln_status_message(const kiln_status* status); /* "" for NULL */
KILN_API void kiln_status_free(kiln_status* status);
/* For adapters and wrappers of this interface. NULL for KILN_OK. */
KILN_API KILN_MUST_USE kiln_status* kiln_status_make(kiln_code code, const char* message);
KILN_API const char* kiln_code_name(kiln_code code); /* "invalid_argument" */
KILN_API const char* kiln_version(void);             /* "0.1.0" */

/* Text that a function hands over. Free it with kiln_text_free(). */
KILN_API void kiln_text_free(char* text);

typedef enum kiln_log_level {
  KILN_LOG_DEFAULT = 0, /* as the configuration says */
  KILN_LOG_DEBUG = 1,
  KILN_LOG_INFO = 2,
  KILN_LOG_WARNING = 3,
  KILN_LOG_ERROR = 4,
  KILN_LOG_OFF = 5,
  KILN_LOG_INT = -2147483647 - 1
} kiln_log_level;

/* Receives one line without a newline. Called from several threads at once, also while the library holds locks. So functions of
 * its cache or runtime, and of their jobs, are KILN_UNAVAILABLE in it; closing does nothing, and freeing a job cancels it. It
 * must not wait for a thread that may be in such a function. */
typedef void (*kiln_log_function)(void* user, kiln_log_level level, const char* component, const char* message);

/* --- program cache: "bring your own compiler" */

typedef struct kiln_cache kiln_cache;

typedef struct kiln_cache_options {
  size_t size;
  const char* config;     /* TOML file: its [cache] section, for kiln_open() all of it; NULL: $KILN_CONFIG, else the defaults */
  const char* directory;  /* NULL: the user's cache folder; "": memory only */
  const char* key_file;   /* file with the key that signs programs; NULL: the user's */
  uint64_t max_disk;      /* bytes; 0: as configured, also for the next two */
  uint64_t max_memory;    /* bytes */
  uint64_t max_programs;  /* in memory */
  uint32_t read_only;     /* not 0: write nothing to the folder */
  uint32_t thread_wait_ms;  /* longest wait for another thread's build, then KILN_TIMEOUT; 0: 30 s */
  uint32_t process_wait_ms; /* longest wait for another process's build, then this process builds; 0: 5 s */
  kiln_log_level log_level; /* least level that `log` receives */
  kiln_log_function log;    /* NULL: silent */
  void* log_user;
  uint32_t trace; /* kiln_open() only. Not 0: record a trace for kiln_runtime_trace() */
  uint32_t reserved; /* 0 */
} kiln_cache_options;

static inline kiln_cache_options kiln_cache_options_default(void) {
  kiln_cache_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  return options;
}

/* Opens a program cache. A folder that cannot be used is no error: the cache then works in memory only, and logs this once.
 * Programs are shared through the layers and remotes of `config`; with remotes the cache starts threads, and loads the plugins
 * that reach them. A program is written to a remote as soon as it is built and loaded.
 * options: NULL for the defaults. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_open(const kiln_cache_options* options, kiln_cache** cache);
/* Waits for requests that are running. Keys and programs of the cache may be freed later. Does nothing if a callback of this
 * cache calls it, `log` included. */
KILN_API void kiln_cache_close(kiln_cache* cache);

/* What makes a compiled program valid on one machine only. All texts must be set: a program that is loaded on another
 * device or by another driver fails or crashes there. */
typedef struct kiln_identity {
  size_t size;
  const char* api;    /* "opencl", "vulkan": what the bytes are for */
  const char* device; /* the device with everything that changes its code: name, PCI id, UUID, CPU features */
  const char* driver; /* the driver with its exact version or build id */
  /* Separates objects in memory only, and is not part of the key: the cl_context or VkDevice to which the objects belong.
   * Call kiln_cache_drop_context() before it is destroyed. NULL: objects may be used everywhere in the process. */
  const void* context;
} kiln_identity;

static inline kiln_identity kiln_identity_of(const char* api, const char* device, const char* driver) {
  kiln_identity identity;
  memset(&identity, 0, sizeof identity);
  identity.size = sizeof identity;
  identity.api = api;
  identity.device = device;
  identity.driver = driver;
  return identity;
}

typedef struct kiln_key_builder kiln_key_builder;
typedef struct kiln_key kiln_key; /* SHA-256 over named, length-delimited fields; belongs to one cache */

/* label: what people see in `kiln cache list`, at most 4096 bytes; not part of the key. Add everything that changes the compiled
 * bytes: source, options, constants. Names are letters, digits, '_', '.' and '-', at most 128. Equal fields in equal order give
 * equal keys. "source" and "options" are compared line by line by kiln_cache_explain(). */
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_create(kiln_cache* cache, const kiln_identity* identity,
                                                            const char* label, kiln_key_builder** builder);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_text(kiln_key_builder* builder, const char* name, const char* text);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_bytes(kiln_key_builder* builder, const char* name, const void* bytes,
                                                           size_t count);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_number(kiln_key_builder* builder, const char* name, uint64_t value);
/* Makes the key. KILN_INVALID_ARGUMENT: no field was added, or adding one failed. The builder stays valid. */
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_finish(const kiln_key_builder* builder, kiln_key** key);
KILN_API void kiln_key_builder_free(kiln_key_builder* builder);
KILN_API void kiln_key_free(kiln_key* key);
/* Writes 64 lower-case hexadecimal digits and a zero byte. */
KILN_API void kiln_key_hex(const kiln_key* key, char hex[65]);

/* One call of a callback: what is asked for, and what the callback made. Valid until the callback returns. */
typedef struct kiln_request kiln_request;

KILN_API const char* kiln_request_label(const kiln_request* request);
/* Finds the first field of the key with this name; a number has 8 bytes, little endian. 0: there is none. */
KILN_API int kiln_request_field(const kiln_request* request, const char* name, const void** bytes, size_t* count);
/* Sets the compiled bytes, at most 256 MiB. They are copied. 0: out of memory or too many; the build then fails. */
KILN_API int kiln_request_set_bytes(kiln_request* request, const void* bytes, size_t count);
/* Sets the live object, which kiln_program_object() returns, and the bytes of memory that it takes (0: the number of
 * compiled bytes). It is destroyed by `destroy`, also if the callback fails afterwards. */
KILN_API void kiln_request_set_object(kiln_request* request, void* object, uint64_t charge);
/* Explains a failure: the compiler's log. */
KILN_API void kiln_request_set_message(kiln_request* request, const char* message);

/* The callbacks of one request. They run on a thread that waits in a function of the cache. They may use the cache for other
 * keys; asking for the key that is being built is KILN_INVALID_ARGUMENT. They must return: a callback that hangs is not
 * stopped. A C++ exception that leaves one is KILN_INTERNAL. */
typedef struct kiln_compiler {
  size_t size;
  void* user; /* for `build` and `load`; must be valid until the request is answered */
  /* Compiles and sets the bytes. If the compiler already has the object, the callback sets that too.
   * KILN_INVALID_ARGUMENT and KILN_UNSUPPORTED mean that this source never compiles: later requests of the process get
   * the same error. A program that cannot be serialized has an object and no bytes: it is then in memory only. */
  kiln_code (*build)(void* user, kiln_request* request);
  /* Makes the object from bytes that were stored and authenticated, or that `build` just made. KILN_CORRUPT and
   * KILN_UNSUPPORTED mean that the driver refused them: they are removed, and the program is built again. NULL: programs
   * are bytes, see kiln_program_bytes(). Use a key with or without `load`: KILN_INVALID_ARGUMENT if both happens. */
  kiln_code (*load)(void* user, kiln_request* request, const void* bytes, size_t count);
  void (*destroy)(void* object); /* called once for each object, from any thread; must not throw or use the cache; NULL: nothing to do */
} kiln_compiler;

static inline kiln_compiler kiln_compiler_default(void) {
  kiln_compiler compiler;
  memset(&compiler, 0, sizeof compiler);
  compiler.size = sizeof compiler;
  return compiler;
}

typedef enum kiln_tier {
  KILN_TIER_NONE = 0,
  KILN_TIER_MEMORY = 1,
  KILN_TIER_DISK = 2, /* stored on disk, in a layer or in a remote: nothing was compiled */
  KILN_TIER_BUILT = 3,
  KILN_TIER_LIBRARY = 4 /* of a run: a library of the device has it, nothing was compiled or stored */
} kiln_tier;

typedef struct kiln_program kiln_program; /* keeps one program alive */

/* Finds the program in memory, then on disk, else builds it. Threads and processes that share the folder build it once. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_get_or_build(kiln_cache* cache, const kiln_key* key,
                                                            const kiln_compiler* compiler, kiln_program** program);
KILN_API void* kiln_program_object(const kiln_program* program); /* NULL: the program is bytes */
/* The compiled bytes of a program without a `load` callback; NULL if it has one. */
KILN_API const void* kiln_program_bytes(const kiln_program* program, size_t* count);
KILN_API kiln_tier kiln_program_tier(const kiln_program* program); /* where the request found it */
KILN_API void kiln_program_free(kiln_program* program);

/* The same on a thread of the cache. At most as many requests run at once as there are processors; others wait. */
typedef struct kiln_pending kiln_pending;
KILN_API KILN_MUST_USE kiln_status* kiln_cache_start(kiln_cache* cache, const kiln_key* key, const kiln_compiler* compiler,
                                                     kiln_pending** pending);
/* KILN_TIMEOUT: not finished yet, if kiln_pending_ended() says so; call it again. Else the request itself timed out. The program
 * is handed over once. */
KILN_API KILN_MUST_USE kiln_status* kiln_pending_wait(kiln_pending* pending, uint32_t timeout_ms, kiln_program** program);
KILN_API int kiln_pending_ended(const kiln_pending* pending); /* 1: the request has its answer */
/* Does not stop the build. */
KILN_API void kiln_pending_free(kiln_pending* pending);

/* Lookup in memory only, for hot loops. No lock is taken. kiln_cache_find() fills `found` if it returns 1, and what it gives is
 * valid until the guard is left. Only a guard of the same cache protects it.
 * Leave the guard on the thread that entered it; keep it short, because it delays freeing of evicted programs.
 * Both structs are frozen, without `size`: a guard is returned by value, and a wrong `size` would look like a miss. */
typedef struct kiln_guard {
  void* slot; /* NULL: the cache cannot be entered, and nothing is found */
} kiln_guard;
typedef struct kiln_found {
  void* object;      /* NULL: the program is bytes */
  const void* bytes; /* NULL: the program has a `load` callback */
  size_t count;      /* of `bytes` */
} kiln_found;
KILN_API kiln_guard kiln_cache_enter(kiln_cache* cache);
KILN_API int kiln_cache_find(kiln_cache* cache, const kiln_key* key, const kiln_guard* guard, kiln_found* found); /* 0: no */
KILN_API void kiln_guard_leave(kiln_guard* guard);

/* Loads the stored programs of the identity that are expected to save the most time, at most `most`, on `threads` threads
 * (0: one per processor), by `load`; it reads the fields of the key with kiln_request_field(). loaded: NULL or their number.
 * A program that cannot be loaded is left out. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_warm(kiln_cache* cache, const kiln_identity* identity,
                                                    const kiln_compiler* compiler, size_t most, uint32_t threads,
                                                    size_t* loaded);

/* Removes the program from memory and disk, so that the next request builds it: for a driver that refuses bytes after `load`.
 * A program that is not there is no error, and those that are held stay valid. Layers and remotes keep theirs: a program of
 * a layer is found again. KILN_UNAVAILABLE: the folder is read only. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_remove(kiln_cache* cache, const kiln_key* key);
/* Destroys the objects of an identity's context that are in memory. Call it before the context is destroyed: a later context
 * may get its address, and would be given its objects. KILN_UNAVAILABLE: programs of the context are in use still. Free them,
 * leave the guards, and call it again. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_drop_context(kiln_cache* cache, const void* context);

typedef struct kiln_cache_stats {
  size_t size;
  uint64_t memory_hits, disk_hits, misses, builds, failed_builds;
  uint64_t waits; /* requests that waited for a build or load of another thread */
  uint64_t evictions, disk_evictions;
  uint64_t corrupt, tampered, foreign, driver_changed, refused, quarantined; /* rejected entries */
  uint64_t programs_in_memory, bytes_in_memory, bytes_on_disk;
  uint64_t lease_waits, lease_takeovers, lease_timeouts; /* waits for other processes */
  uint64_t negative_hits;                                /* answered with the error of an earlier build */
  uint64_t absent, evicted, timed_out;                   /* other reasons of misses */
  double saved_ms;                                       /* build time saved by hits, minus the cost of the hits */
} kiln_cache_stats;

/* Fills `stats`, whose `size` the caller has set. Reads the size of the folder. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_get_stats(kiln_cache* cache, kiln_cache_stats* stats);
/* Says why programs were missed, newest first, as the JSON of `kiln cache explain --json`. which: a label or a key, which
 * may be cut. Misses are recorded when a cache is closed. KILN_NOT_FOUND: no such miss. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_explain(kiln_cache* cache, const char* which, char** json);
/* Stores programs that are pending because of `auto_save = false`. stored: NULL or their number. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_persist(kiln_cache* cache, uint64_t* stored);
/* Evicts unused programs under memory pressure. Call it when idle. */
KILN_API void kiln_cache_trim_memory(kiln_cache* cache);

/* Calls `each` for every variable that makes drivers keep their own cache in Kiln's folder. Kiln sets none: set them before
 * the process loads a driver or starts a thread, and only those that are not set. Creates the folder. */
KILN_API KILN_MUST_USE kiln_status* kiln_driver_environment(const kiln_cache_options* options,
                                                            void (*each)(void* user, const char* name, const char* value),
                                                            void* user);

/* --- devices, kernels and jobs */

/* Finds devices, and runs kernels, layers and pipelines on them. */
typedef struct kiln_runtime kiln_runtime;

/* Reads the configuration and loads the plugins; opens no device. The environment stays as it is: to let drivers keep their
 * machine code in Kiln's folder, call kiln_driver_environment() first. thread_wait_ms and process_wait_ms do not apply.
 * KILN_UNAVAILABLE: a required plugin cannot be loaded. options: NULL for the defaults. */
KILN_API KILN_MUST_USE kiln_status* kiln_open(const kiln_cache_options* options, kiln_runtime** runtime);
/* Free the jobs first. Does nothing if a callback of a job of this runtime calls it, or its `log`. */
KILN_API void kiln_close(kiln_runtime* runtime);
/* Lists the devices as the JSON of `kiln devices --json`. Loads the drivers. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_devices(kiln_runtime* runtime, char** json);
/* Metrics of jobs, devices and cache in Prometheus text format. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_metrics(kiln_runtime* runtime, char** text);
/* What was recorded since the last call, as Chrome trace events (docs/traces.md), and forgets it. KILN_UNSUPPORTED: the
 * runtime was opened without `trace`. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_trace(kiln_runtime* runtime, char** json);
/* As the functions of kiln_cache, for the programs of the runtime. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_get_stats(kiln_runtime* runtime, kiln_cache_stats* stats);
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_explain(kiln_runtime* runtime, const char* which, char** json);
/* Loads stored programs of a device before they are needed, at most `most`. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_warm(kiln_runtime* runtime, const char* device, size_t most, size_t* loaded);

typedef enum kiln_type {
  KILN_F32 = 1,
  KILN_F64 = 2,
  KILN_I32 = 3,
  KILN_U32 = 4,
  KILN_U8 = 5,
  KILN_I8 = 6,
  KILN_I16 = 7,
  KILN_U16 = 8,
  KILN_I64 = 9,
  KILN_U64 = 10,
  KILN_F16 = 11,  /* IEEE 754 binary16 */
  KILN_BOOL = 12, /* one byte, 0 or 1 */
  KILN_TYPE_INT = -2147483647 - 1
} kiln_type;

typedef enum kiln_access {
  KILN_READ = 1,
  KILN_WRITE = 2, /* a kernel and a pipeline find zeros there */
  KILN_READ_WRITE = 3,
  KILN_ACCESS_INT = -2147483647 - 1
} kiln_access;

/* A dense tensor in C order, in memory of the application. It must stay valid until the job is freed, and unchanged while the
 * job runs. Memory that is aligned to 64 bytes is used without a copy. A tensor that a job writes shares no memory with another
 * tensor of the job. */
typedef struct kiln_tensor {
  size_t size;
  void* data;
  kiln_type type;
  uint32_t rank;
  const int64_t* shape; /* copied */
} kiln_tensor;

static inline kiln_tensor kiln_tensor_of(void* data, kiln_type type, uint32_t rank, const int64_t* shape) {
  kiln_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.size = sizeof tensor;
  tensor.data = data;
  tensor.type = type;
  tensor.rank = rank;
  tensor.shape = shape;
  return tensor;
}

typedef struct kiln_job kiln_job; /* a kernel, layer or pipeline with its tensors; runs any number of times */

/* name: a label, for messages and `kiln cache list`. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_create(kiln_runtime* runtime, const char* name, kiln_job** job);
/* Cancels the job if it runs, and waits until it has ended and the device no longer uses its tensors. A call from `log` or
 * from a callback of the job cancels the job, and neither waits nor frees it. */
KILN_API void kiln_job_free(kiln_job* job);

/* A kernel. path: a file; the extension names the language (.comp and .glsl: GLSL, .cl: OpenCL C, .spv: SPIR-V), and #include
 * works. text: NULL, or the source itself; then `path` is its name in messages. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_kernel(kiln_job* job, const char* path, const char* text);
KILN_API KILN_MUST_USE kiln_status* kiln_job_entry(kiln_job* job, const char* entry); /* OpenCL C: which kernel */
KILN_API KILN_MUST_USE kiln_status* kiln_job_constant(kiln_job* job, const char* name, const char* text); /* a #define */
/* name: the GLSL block, or NULL: by position. A tensor is written if `access` says so. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_buffer(kiln_job* job, const char* name, kiln_access access,
                                                    const kiln_tensor* tensor);
KILN_API KILN_MUST_USE kiln_status* kiln_job_float(kiln_job* job, float value);      /* an OpenCL C argument by value */
KILN_API KILN_MUST_USE kiln_status* kiln_job_int(kiln_job* job, int32_t value);      /* the same */
KILN_API KILN_MUST_USE kiln_status* kiln_job_local(kiln_job* job, uint64_t bytes);   /* local memory of a workgroup */
/* A GLSL uniform outside a block. KILN_F64: double values; KILN_I32: int64_t values. Both are converted to its type. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_uniform(kiln_job* job, const char* name, kiln_type type, uint32_t rank,
                                                     const uint32_t* shape, const void* values);
KILN_API KILN_MUST_USE kiln_status* kiln_job_grid(kiln_job* job, uint32_t x, uint32_t y, uint32_t z); /* workgroups */
/* The same with integers, constants, parameters, + - * / % and parentheses: "ROWS / TILE". */
KILN_API KILN_MUST_USE kiln_status* kiln_job_grid_text(kiln_job* job, const char* x, const char* y, const char* z);
KILN_API KILN_MUST_USE kiln_status* kiln_job_workgroup(kiln_job* job, uint32_t x, uint32_t y, uint32_t z); /* lanes */
/* A #define that kiln_job_tune() chooses; the first text is the default. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_parameter(kiln_job* job, const char* name, const char* const* texts,
                                                       size_t count);

typedef struct kiln_conv2d {
  size_t size;
  int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, groups; /* 0: 1, but of pad */
  uint32_t relu;                                                           /* not 0: max(0, x) */
} kiln_conv2d;

/* float32. input: [n, c, h, w]; weights: [k, c / groups, r, s]; bias: NULL or [k]; output: [n, k, out_h, out_w]. conv: NULL for
 * the defaults. Weights and bias are read here, once. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_conv2d(kiln_job* job, const kiln_conv2d* conv, const kiln_tensor* input,
                                                    const kiln_tensor* weights, const kiln_tensor* bias,
                                                    const kiln_tensor* output);
/* float32. a: [m, k]; b: [k, n]; bias: NULL or [n]; output: [m, n]. b and bias are read here, once. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_gemm(kiln_job* job, const kiln_tensor* a, const kiln_tensor* b,
                                                  const kiln_tensor* bias, uint32_t relu, const kiln_tensor* output);

/* A job or pipeline as written in TOML, with all that the command's have: images, samplers, uniform blocks, steps, loops.
 * text: one [[job]] or one [[pipeline]] (docs/user-kernels.md, docs/pipelines.md). Where it has "memory:NAME" in place of a
 * file, it means a tensor of the application; all results are such tensors. `device` and `verify` of the text apply until
 * kiln_job_device() or kiln_job_verify() changes them. folder: where relative file names start; NULL: the working directory.
 * KILN_INVALID_ARGUMENT: the message has all problems, a line each. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_toml(kiln_job* job, const char* text, const char* folder);
/* Gives the tensor NAME of the text, or another one in its place: the function then waits until the device no longer uses
 * the earlier one, whose memory is the application's again. Inputs are read in each run and results are written, as the text
 * says; weights and bias are copied here. KILN_NOT_FOUND: the text has no "memory:NAME". */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tensor(kiln_job* job, const char* name, const kiln_tensor* tensor);
/* The tensors of the text as JSON: {"tensors": [{"name", "access", "dtype", "shape", "given"}]}. access: "read", "write" or
 * "read_write". dtype and shape are null if not known: those of a pipeline's results are, once all its inputs are given. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tensors(kiln_job* job, char** json);

/* device: an id; NULL or "auto": any. If the device is unavailable, lost or cannot run the job, another one runs it, and a note
 * in kiln_job_report_json() says so. `fallback = "never"` in [device] of the configuration makes that an error. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_device(kiln_job* job, const char* device);
KILN_API KILN_MUST_USE kiln_status* kiln_job_repeat(kiln_job* job, uint32_t runs);
KILN_API KILN_MUST_USE kiln_status* kiln_job_timeout(kiln_job* job, uint32_t milliseconds); /* of one run; 0: as configured */
/* Layers: compare the result. Of a text: results with their `expect`; of a pipeline without one: also each step. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_verify(kiln_job* job, uint32_t verify);
/* progress: NULL, or called after each of the runs of kiln_job_repeat(), on the thread that runs the job. It returns 0 to end
 * the job with KILN_CANCELLED. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_progress(kiln_job* job, int (*progress)(void* user, uint32_t done, uint32_t of),
                                                      void* user);

/* Runs the job and waits. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_run(kiln_job* job);
/* The same on a thread of the runtime. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_start(kiln_job* job);
/* The result of the job that was started. KILN_TIMEOUT: it runs still, if kiln_job_ended() says so; call it again. Else the run
 * itself timed out. KILN_UNAVAILABLE: a callback of the job calls it, and `timeout_ms` is not 0. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_wait(kiln_job* job, uint32_t timeout_ms);
KILN_API int kiln_job_ended(kiln_job* job); /* 1: its last run has ended; 0: it runs, or was never started */
/* Stops waiting for the device; kiln_job_wait() then returns KILN_CANCELLED. Any thread may call it. */
KILN_API void kiln_job_cancel(kiln_job* job);

typedef struct kiln_report {
  size_t size;
  const char* device;  /* an id; this and the next are valid until the job runs again or is freed */
  const char* variant; /* of the generated or tuned kernel */
  kiln_tier tier;      /* the slowest tier of its programs */
  uint32_t runs;
  uint32_t verified; /* 0: not compared; 1: right; 2: wrong */
  uint32_t reserved;
  uint64_t wall_ns, queue_ns, build_ns, upload_ns, device_ns, readback_ns; /* median of the runs */
  double flops, max_rel_error, error_bound;
  uint64_t copied_bytes; /* of tensors whose memory is not aligned to 64 bytes: copied before and after each run */
} kiln_report;

/* Fills `report`, whose `size` the caller has set. KILN_NOT_FOUND: the job has not run. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_get_report(kiln_job* job, kiln_report* report);

/* The same and more as an element of `jobs` of `kiln run --json` (docs/json.md): notes, the worst element, the steps of a
 * pipeline. KILN_NOT_FOUND: the job has not run. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_report_json(kiln_job* job, char** json);

/* Measures the variants of a kernel with parameters, in this process, and stores the fastest, which later runs use. Variants
 * whose results differ from those of the others are rejected. device: an id. budget_ms: 0 for 30 s. progress: NULL, or called
 * after each measurement; it returns 0 to stop. json: as an element of `jobs` of `kiln tune --json`. KILN_CANCELLED: progress
 * or kiln_job_cancel() stopped it; what was measured is kept. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tune(kiln_job* job, const char* device, uint32_t budget_ms,
                                                  int (*progress)(void* user, size_t done, size_t of, const char* best),
                                                  void* user, char** json);

#ifdef __cplusplus
}
#endif

#endif

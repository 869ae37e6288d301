/* kiln.h: the C interface of Kiln, libkiln.so. C99 and any later C or C++, any compiler.
 *
 * The interface is stable: libkiln.so has soname 1, and its functions and structs do not change. Structs that begin with
 * `size` may grow at the end. The caller sets `size` to the size of the struct that it was compiled with. All other structs
 * are frozen: they never change, and new data has a separate function.
 *
 * Errors: a function that can fail returns a kiln_status*, or NULL if it succeeded. Free the status with kiln_status_free().
 * Every function checks its arguments and returns KILN_INVALID_ARGUMENT if a required object is NULL. Functions that free
 * accept NULL. Functions throw no exception, print nothing, do not exit, and do not change the environment.
 * Text is UTF-8 and ends with a zero byte. The object that returned a text owns the text.
 * Thread-safety: call every function from any thread. But use one kiln_key_builder or kiln_guard on one thread only.
 * fork(): a child process must open new caches and runtimes. The parent's caches, runtimes and jobs have no threads in the
 * child. In the child, functions on them return KILN_UNAVAILABLE or find nothing, and closing or freeing them does nothing.
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
  /* Not a code. This value makes the type an int, so that the library can reject a wrong number. The other enums have a
   * value that ends in _INT for the same reason. */
  KILN_CODE_INT = -2147483647 - 1
} kiln_code;

typedef struct kiln_status kiln_status; /* a failure: code and message */

KILN_API kiln_code kiln_status_code(const kiln_status* status);      /* KILN_OK for NULL */
KILN_API const char* kiln_status_message(const kiln_status* status); /* "" for NULL */
KILN_API void kiln_status_free(kiln_status* status);
/* Creates a status, for adapters and wrappers of this interface. Returns NULL for KILN_OK. */
KILN_API KILN_MUST_USE kiln_status* kiln_status_make(kiln_code code, const char* message);
KILN_API const char* kiln_code_name(kiln_code code); /* "invalid_argument" */
KILN_API const char* kiln_version(void);             /* "0.1.0" */

/* Frees a text that a function returned through a `char**` argument. */
KILN_API void kiln_text_free(char* text);

typedef enum kiln_log_level {
  KILN_LOG_DEFAULT = 0, /* the level in the configuration */
  KILN_LOG_DEBUG = 1,
  KILN_LOG_INFO = 2,
  KILN_LOG_WARNING = 3,
  KILN_LOG_ERROR = 4,
  KILN_LOG_OFF = 5,
  KILN_LOG_INT = -2147483647 - 1
} kiln_log_level;

/* Receives one line without a newline. The library calls this function from several threads at once, also while it holds
 * locks. In this function, calls on the same cache or runtime, or on its jobs, return KILN_UNAVAILABLE. Closing does nothing,
 * and freeing a job only cancels the job. The function must not wait for a thread that may be in a call on this cache or
 * runtime. */
typedef void (*kiln_log_function)(void* user, kiln_log_level level, const char* component, const char* message);

/* --- program cache: "bring your own compiler" */

typedef struct kiln_cache kiln_cache;

typedef struct kiln_cache_options {
  size_t size;
  const char* config;     /* TOML file; a cache reads only [cache]; NULL: $KILN_CONFIG, else the defaults */
  const char* directory;  /* NULL: the user's cache folder; "": memory only */
  const char* key_file;   /* file with the key that signs programs; NULL: the user's key file */
  uint64_t max_disk;      /* bytes; 0 in this or the next two members: the configured value */
  uint64_t max_memory;    /* bytes */
  uint64_t max_programs;  /* in memory */
  uint32_t read_only;     /* not 0: write nothing to the folder */
  uint32_t thread_wait_ms;  /* longest wait for another thread's build, then KILN_TIMEOUT; 0: 30 s */
  uint32_t process_wait_ms; /* longest wait for another process's build, then this process builds; 0: 5 s */
  kiln_log_level log_level; /* lowest level that `log` receives */
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

/* Opens a program cache. An unusable folder is not an error: the cache then works in memory only and logs this once.
 * The cache shares programs through the layers and remotes of `config`. If `config` has remotes, the cache starts threads and
 * loads the plugins for these remotes. It writes a program to a remote after the program is built and loaded.
 * options: NULL for the defaults. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_open(const kiln_cache_options* options, kiln_cache** cache);
/* Waits for running requests. You may free the keys and programs of the cache later. Does nothing if `log` or another
 * callback of this cache calls it. */
KILN_API void kiln_cache_close(kiln_cache* cache);

/* The API, device and driver that a compiled program is valid for. Set all texts: a program for another device or driver
 * fails or crashes when it is loaded. */
typedef struct kiln_identity {
  size_t size;
  const char* api;    /* the API of the compiled bytes: "opencl", "vulkan" */
  const char* device; /* the device with everything that changes its code: name, PCI id, UUID, CPU features */
  const char* driver; /* the driver with its exact version or build id */
  /* The cl_context or VkDevice that the objects belong to. It separates objects in memory and is not part of the key. Call
   * kiln_cache_drop_context() before you destroy the context. NULL: objects may be used everywhere in the process. */
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

/* Creates a builder. Then add everything that changes the compiled bytes as fields: source, options, constants. Equal fields
 * in equal order give equal keys. A field name has at most 128 characters: letters, digits, '_', '.' and '-'.
 * kiln_cache_explain() compares the fields "source" and "options" line by line. label: the name in `kiln cache list`, at most
 * 4096 bytes. The label is not part of the key. */
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_create(kiln_cache* cache, const kiln_identity* identity,
                                                            const char* label, kiln_key_builder** builder);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_text(kiln_key_builder* builder, const char* name, const char* text);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_bytes(kiln_key_builder* builder, const char* name, const void* bytes,
                                                           size_t count);
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_number(kiln_key_builder* builder, const char* name, uint64_t value);
/* Creates the key. KILN_INVALID_ARGUMENT: no field was added, or adding a field failed. The builder stays valid. */
KILN_API KILN_MUST_USE kiln_status* kiln_key_builder_finish(const kiln_key_builder* builder, kiln_key** key);
KILN_API void kiln_key_builder_free(kiln_key_builder* builder);
KILN_API void kiln_key_free(kiln_key* key);
/* Writes 64 lower-case hexadecimal digits and a zero byte. */
KILN_API void kiln_key_hex(const kiln_key* key, char hex[65]);

/* One call of a callback: the requested program, and the result of the callback. Valid until the callback returns. */
typedef struct kiln_request kiln_request;

KILN_API const char* kiln_request_label(const kiln_request* request);
/* Finds the first field of the key with this name. A number has 8 bytes, little endian. Returns 0 if the key has no such
 * field. */
KILN_API int kiln_request_field(const kiln_request* request, const char* name, const void** bytes, size_t* count);
/* Copies the compiled bytes, at most 256 MiB. Returns 0 if memory is exhausted or there are too many bytes. The build then
 * fails. */
KILN_API int kiln_request_set_bytes(kiln_request* request, const void* bytes, size_t count);
/* Sets the live object for kiln_program_object(). charge: the memory of the object in bytes; 0: the number of compiled bytes.
 * The cache destroys the object with `destroy`, also if the callback fails afterwards. */
KILN_API void kiln_request_set_object(kiln_request* request, void* object, uint64_t charge);
/* Sets the error message, for example the compiler's log. */
KILN_API void kiln_request_set_message(kiln_request* request, const char* message);

/* The callbacks of one request. They run on a thread that waits in a function of the cache. They may request other keys from
 * the cache. A request for the key that is being built fails with KILN_INVALID_ARGUMENT. The cache does not stop a callback
 * that hangs. If a callback throws a C++ exception, the request fails with KILN_INTERNAL. */
typedef struct kiln_compiler {
  size_t size;
  void* user; /* for `build` and `load`; must be valid until the request has ended */
  /* Compiles the program and sets its bytes. If the compiler also creates the object, the callback sets the object too.
   * Return KILN_INVALID_ARGUMENT or KILN_UNSUPPORTED if this source never compiles: later requests of the process get the
   * same error. If a program cannot be serialized, set an object and no bytes. The cache then stores it in memory only. */
  kiln_code (*build)(void* user, kiln_request* request);
  /* Creates the object from stored and authenticated bytes, or from the bytes of `build`. Return KILN_CORRUPT or
   * KILN_UNSUPPORTED if the driver refuses the bytes: the cache removes them and builds the program again. NULL: programs
   * are bytes, see kiln_program_bytes(). Use a key always with `load` or always without it, else the request fails with
   * KILN_INVALID_ARGUMENT. */
  kiln_code (*load)(void* user, kiln_request* request, const void* bytes, size_t count);
  /* Called once for each object, from any thread. It must not throw or use the cache. NULL: the cache calls nothing. */
  void (*destroy)(void* object);
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
  KILN_TIER_LIBRARY = 4 /* in a report: a library of the device provides the program; nothing was compiled or stored */
} kiln_tier;

typedef struct kiln_program kiln_program; /* a reference that prevents the destruction of one program */

/* Looks for the program in memory, then on disk, and builds it if it is absent. Threads and processes that share the folder
 * build it once. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_get_or_build(kiln_cache* cache, const kiln_key* key,
                                                            const kiln_compiler* compiler, kiln_program** program);
KILN_API void* kiln_program_object(const kiln_program* program); /* NULL: the program is bytes */
/* Returns the compiled bytes of a program without a `load` callback. Returns NULL if the program has this callback. */
KILN_API const void* kiln_program_bytes(const kiln_program* program, size_t* count);
KILN_API kiln_tier kiln_program_tier(const kiln_program* program); /* the tier of the request */
KILN_API void kiln_program_free(kiln_program* program);

/* Starts kiln_cache_get_or_build() on a thread of the cache. The cache has one thread per processor, at least 2 and at most
 * 16. Other requests wait. */
typedef struct kiln_pending kiln_pending;
KILN_API KILN_MUST_USE kiln_status* kiln_cache_start(kiln_cache* cache, const kiln_key* key, const kiln_compiler* compiler,
                                                     kiln_pending** pending);
/* Waits for the result and returns the program, once. KILN_TIMEOUT: call kiln_pending_ended(). If it returns 0, the request
 * still runs, and you can wait again. If it returns 1, the request itself timed out. */
KILN_API KILN_MUST_USE kiln_status* kiln_pending_wait(kiln_pending* pending, uint32_t timeout_ms, kiln_program** program);
KILN_API int kiln_pending_ended(const kiln_pending* pending); /* 1: the request has its answer */
/* Frees the pending request but does not stop its build. */
KILN_API void kiln_pending_free(kiln_pending* pending);

/* Lookup in memory only and without a lock, for hot loops. kiln_cache_find() fills `found` if it returns 1. The contents of
 * `found` are valid until you leave the guard. The guard must be of the same cache.
 * Leave the guard on the thread that entered it. Hold it briefly, because it delays freeing of evicted programs.
 * Both structs are frozen and have no `size`: a guard is returned by value, and a wrong `size` would look like a miss. */
typedef struct kiln_guard {
  void* slot; /* NULL: the cache cannot be entered, and nothing is found */
} kiln_guard;
typedef struct kiln_found {
  void* object;      /* NULL: the program is bytes */
  const void* bytes; /* NULL: the program has a `load` callback */
  size_t count;      /* of `bytes` */
} kiln_found;
KILN_API kiln_guard kiln_cache_enter(kiln_cache* cache);
KILN_API int kiln_cache_find(kiln_cache* cache, const kiln_key* key, const kiln_guard* guard, kiln_found* found); /* 0: absent */
KILN_API void kiln_guard_leave(kiln_guard* guard);

/* Loads at most `most` stored programs of the identity on `threads` threads (0: one per processor). It selects the programs
 * with the largest expected time savings. It calls `load`, which can read the fields of the key with kiln_request_field().
 * It skips a program that cannot be loaded. loaded: receives the number of loaded programs, or NULL. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_warm(kiln_cache* cache, const kiln_identity* identity,
                                                    const kiln_compiler* compiler, size_t most, uint32_t threads,
                                                    size_t* loaded);

/* Removes the program from memory and disk, so that the next request builds it. Use this function if the driver refuses the
 * bytes after `load`. An absent program is not an error, and existing kiln_program references stay valid. The function does
 * not change layers and remotes: the next request finds a program of a layer again. KILN_UNAVAILABLE: the folder is read
 * only. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_remove(kiln_cache* cache, const kiln_key* key);
/* Destroys all objects in memory that have this context in their identity. Call it before you destroy the context: a new
 * context may get the same address, and would then get the old objects. KILN_UNAVAILABLE: programs of the context are still in
 * use. Free them, leave the guards, and call the function again. */
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

/* Fills `stats`. Set `stats->size` first. Reads the size of the folder. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_get_stats(kiln_cache* cache, kiln_cache_stats* stats);
/* Returns the reasons of cache misses, newest first, as the JSON of `kiln cache explain --json`. which: a label, the leading
 * components of a label, a key, or the leading digits of a key. A cache records its misses when it is closed.
 * KILN_NOT_FOUND: no such miss. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_explain(kiln_cache* cache, const char* which, char** json);
/* Stores programs that are pending because of `auto_save = false`. stored: receives the number of programs, or NULL. */
KILN_API KILN_MUST_USE kiln_status* kiln_cache_persist(kiln_cache* cache, uint64_t* stored);
/* Evicts unused programs under memory pressure. Call it when idle. */
KILN_API void kiln_cache_trim_memory(kiln_cache* cache);

/* Calls `each` for every environment variable that places a driver's cache in Kiln's folder. Creates the folder. Kiln does not
 * set these variables. Set the ones that are not set before the process loads a driver or starts a thread. */
KILN_API KILN_MUST_USE kiln_status* kiln_driver_environment(const kiln_cache_options* options,
                                                            void (*each)(void* user, const char* name, const char* value),
                                                            void* user);

/* --- devices, kernels and jobs */

/* Finds devices, and runs kernels, layers and pipelines on them. */
typedef struct kiln_runtime kiln_runtime;

/* Reads the configuration and loads the plugins. Opens no device. Call kiln_driver_environment() first if drivers should store
 * their machine code in Kiln's folder. Ignores thread_wait_ms and process_wait_ms. options: NULL for the defaults.
 * KILN_UNAVAILABLE: a required plugin cannot be loaded. */
KILN_API KILN_MUST_USE kiln_status* kiln_open(const kiln_cache_options* options, kiln_runtime** runtime);
/* Free the jobs first. Does nothing if `log` or a callback of a job of this runtime calls it. */
KILN_API void kiln_close(kiln_runtime* runtime);
/* Lists the devices as the JSON of `kiln devices --json`. Loads the drivers. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_devices(kiln_runtime* runtime, char** json);
/* Returns metrics of jobs, devices and cache in Prometheus text format. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_metrics(kiln_runtime* runtime, char** text);
/* Returns the events since the last call as Chrome trace events (docs/traces.md), and removes them. KILN_UNSUPPORTED: the
 * runtime was opened without `trace`. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_trace(kiln_runtime* runtime, char** json);
/* The same as kiln_cache_get_stats() and kiln_cache_explain(), for the programs of the runtime. */
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_get_stats(kiln_runtime* runtime, kiln_cache_stats* stats);
KILN_API KILN_MUST_USE kiln_status* kiln_runtime_explain(kiln_runtime* runtime, const char* which, char** json);
/* Loads at most `most` stored programs of a device before jobs need them. */
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
  KILN_WRITE = 2, /* kernels and pipelines start with zeros in the tensor */
  KILN_READ_WRITE = 3,
  KILN_ACCESS_INT = -2147483647 - 1
} kiln_access;

/* A dense tensor in C order, in memory of the application. The memory must stay valid until the job is freed. Do not change it
 * while the job runs. Kiln uses memory without a copy if it is aligned to 64 bytes. A tensor that a job writes must not share
 * memory with another tensor of the job. */
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
/* Cancels a running job, waits until it has ended and the device no longer uses its tensors, and frees the job. A call from
 * `log` or from a callback of the job only cancels the job. */
KILN_API void kiln_job_free(kiln_job* job);

/* Makes the job a kernel. path: the source file. Its extension selects the language: .comp and .glsl are GLSL, .cl is OpenCL C,
 * .spv is SPIR-V. The source may use #include. text: NULL, or the source. With `text`, `path` is the name in messages. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_kernel(kiln_job* job, const char* path, const char* text);
KILN_API KILN_MUST_USE kiln_status* kiln_job_entry(kiln_job* job, const char* entry); /* OpenCL C: which kernel */
KILN_API KILN_MUST_USE kiln_status* kiln_job_constant(kiln_job* job, const char* name, const char* text); /* a #define */
/* Adds a buffer. name: the GLSL block; NULL: the position decides. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_buffer(kiln_job* job, const char* name, kiln_access access,
                                                    const kiln_tensor* tensor);
KILN_API KILN_MUST_USE kiln_status* kiln_job_float(kiln_job* job, float value);      /* an OpenCL C argument by value */
KILN_API KILN_MUST_USE kiln_status* kiln_job_int(kiln_job* job, int32_t value);      /* the same */
KILN_API KILN_MUST_USE kiln_status* kiln_job_local(kiln_job* job, uint64_t bytes);   /* local memory of a workgroup */
/* Sets a GLSL uniform outside a block. type: KILN_F64 if `values` are double, KILN_I32 if `values` are int64_t. Kiln converts
 * the values to the declared type. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_uniform(kiln_job* job, const char* name, kiln_type type, uint32_t rank,
                                                     const uint32_t* shape, const void* values);
KILN_API KILN_MUST_USE kiln_status* kiln_job_grid(kiln_job* job, uint32_t x, uint32_t y, uint32_t z); /* workgroups */
/* Sets the grid by expressions of integers, constants, parameters, + - * / % and parentheses: "ROWS / TILE". */
KILN_API KILN_MUST_USE kiln_status* kiln_job_grid_text(kiln_job* job, const char* x, const char* y, const char* z);
KILN_API KILN_MUST_USE kiln_status* kiln_job_workgroup(kiln_job* job, uint32_t x, uint32_t y, uint32_t z); /* lanes */
/* Adds a #define with several texts. kiln_job_tune() selects one of them. The first text is the default. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_parameter(kiln_job* job, const char* name, const char* const* texts,
                                                       size_t count);

typedef struct kiln_conv2d {
  size_t size;
  int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, groups; /* 0 means 1, except for pad_y and pad_x */
  uint32_t relu;                                                           /* not 0: max(0, x) */
} kiln_conv2d;

/* float32. input: [n, c, h, w]; weights: [k, c / groups, r, s]; bias: NULL or [k]; output: [n, k, out_h, out_w]. conv: NULL for
 * the defaults. This function copies the weights and the bias. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_conv2d(kiln_job* job, const kiln_conv2d* conv, const kiln_tensor* input,
                                                    const kiln_tensor* weights, const kiln_tensor* bias,
                                                    const kiln_tensor* output);
/* float32. a: [m, k]; b: [k, n]; bias: NULL or [n]; output: [m, n]. This function copies b and the bias. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_gemm(kiln_job* job, const kiln_tensor* a, const kiln_tensor* b,
                                                  const kiln_tensor* bias, uint32_t relu, const kiln_tensor* output);

/* Describes the job or pipeline in TOML, as for `kiln run`, with images, samplers, uniform blocks, steps and loops.
 * text: one [[job]] or one [[pipeline]] (docs/user-kernels.md, docs/pipelines.md). In place of a file name, "memory:NAME" is a
 * tensor of the application. All results must be such tensors. kiln_job_device() and kiln_job_verify() override `device` and
 * `verify` of the text. folder: base of relative file names; NULL: the working directory.
 * KILN_INVALID_ARGUMENT: the message has all problems, one per line. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_toml(kiln_job* job, const char* text, const char* folder);
/* Sets the tensor NAME of the text, or replaces it. Before a replacement, the function waits until the device no longer uses
 * the earlier tensor. The application may then free the earlier tensor. Each run reads the inputs and writes the results. This
 * function copies weights and bias. KILN_NOT_FOUND: the text has no "memory:NAME". */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tensor(kiln_job* job, const char* name, const kiln_tensor* tensor);
/* Returns the tensors of the text as JSON: {"tensors": [{"name", "access", "dtype", "shape", "given"}]}. access: "read",
 * "write" or "read_write". dtype and shape are null if unknown. For results of a pipeline, they are known when all inputs are
 * set. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tensors(kiln_job* job, char** json);

/* device: an id; NULL or "auto": any device. If the device is unavailable, lost or cannot run the job, another device runs it.
 * kiln_job_report_json() then has a note. With `fallback = "never"` in [device] of the configuration, the job fails instead. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_device(kiln_job* job, const char* device);
KILN_API KILN_MUST_USE kiln_status* kiln_job_repeat(kiln_job* job, uint32_t runs);
KILN_API KILN_MUST_USE kiln_status* kiln_job_timeout(kiln_job* job, uint32_t milliseconds); /* of one run; 0: as configured */
/* verify: not 0 to compare results: a layer with a reference, a kernel in TOML with its `expect`. In a pipeline that has
 * kernels and no `expect`, Kiln also compares each step. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_verify(kiln_job* job, uint32_t verify);
/* progress: called after each run of kiln_job_repeat() on the thread that runs the job; NULL: not called. Return 0 from it to
 * end the job with KILN_CANCELLED. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_progress(kiln_job* job, int (*progress)(void* user, uint32_t done, uint32_t of),
                                                      void* user);

/* Runs the job and waits. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_run(kiln_job* job);
/* Runs the job on a thread of the runtime and returns at once. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_start(kiln_job* job);
/* Waits for the result of kiln_job_start(). KILN_TIMEOUT: call kiln_job_ended(). If it returns 0, the job still runs, and you
 * can wait again. If it returns 1, the run itself timed out. KILN_UNAVAILABLE: a callback of the job called this function with
 * a `timeout_ms` other than 0. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_wait(kiln_job* job, uint32_t timeout_ms);
KILN_API int kiln_job_ended(kiln_job* job); /* 1: the last run has ended; 0: the job runs, or was never started */
/* Stops waiting for the device. kiln_job_wait() then returns KILN_CANCELLED. Any thread may call this function. */
KILN_API void kiln_job_cancel(kiln_job* job);

typedef struct kiln_report {
  size_t size;
  const char* device;  /* an id; this text and `variant` are valid until the job runs again or is freed */
  const char* variant; /* of the generated or tuned kernel */
  kiln_tier tier;      /* the slowest tier of its programs */
  uint32_t runs;
  uint32_t verified; /* 0: not compared; 1: right; 2: wrong */
  uint32_t reserved;
  uint64_t wall_ns, queue_ns, build_ns, upload_ns, device_ns, readback_ns; /* median of the runs */
  double flops, max_rel_error, error_bound;
  uint64_t copied_bytes; /* bytes of tensors that are not aligned to 64 bytes; copied before and after each run */
} kiln_report;

/* Fills `report`. Set `report->size` first. KILN_NOT_FOUND: the job has not run. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_get_report(kiln_job* job, kiln_report* report);

/* Returns the report as an element of `jobs` of `kiln run --json` (docs/json.md). It also has the notes, the worst element and
 * the steps of a pipeline. KILN_NOT_FOUND: the job has not run. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_report_json(kiln_job* job, char** json);

/* Measures the variants of a kernel with parameters in this process, and stores the fastest one for later runs. Rejects
 * variants with results that differ from the other variants. device: an id. budget_ms: 0 for 30 s. progress: called after each
 * measurement; NULL: not called. Return 0 from it to stop. json: receives an element of `jobs` of `kiln tune --json`.
 * KILN_CANCELLED: `progress` or kiln_job_cancel() stopped the tuning; the measurements so far are stored. */
KILN_API KILN_MUST_USE kiln_status* kiln_job_tune(kiln_job* job, const char* device, uint32_t budget_ms,
                                                  int (*progress)(void* user, size_t done, size_t of, const char* best),
                                                  void* user, char** json);

#ifdef __cplusplus
}
#endif

#endif

#include "opengl/support/wrapping_egl.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

// The few declarations of EGL and OpenGL that are wrapped, by their documented types and values.
struct __GLsync;

namespace {

using Function = void (*)();
constexpr int egl_extensions = 0x3055;
constexpr int egl_render_node = 0x3377;
constexpr int robust_access = 0x31B2;
constexpr int reset_strategy = 0x31BD;
constexpr int egl_none = 0x3038;
constexpr unsigned already_signaled = 0x911A;
constexpr unsigned timeout_expired = 0x911B;
constexpr unsigned condition_satisfied = 0x911C;
constexpr unsigned wait_failed = 0x911D;
constexpr unsigned out_of_memory = 0x0505;
constexpr unsigned gl_timestamp = 0x8E28;
constexpr unsigned gl_query_result = 0x8866;
constexpr unsigned gl_atomic_counter_buffer = 0x92C0;

using kiln::support::GlCall;

kiln::support::EglSwitches switches;
std::mutex log_mutex;
std::optional<std::vector<GlCall>> gl_log;  // absent: nothing is logged
int fake_devices[2];                        // their addresses are the handles

Function real(const char* name) {
  static void* const library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static const auto get = reinterpret_cast<Function (*)(const char*)>(dlsym(library, "eglGetProcAddress"));
  return get(name);
}

template <class Signature>
Signature* real_as(const char* name) {
  return reinterpret_cast<Signature*>(real(name));
}

bool take_one(std::atomic<int>& left) {
  int now = left.load();
  while (now > 0) {
    if (left.compare_exchange_weak(now, now - 1)) return true;
  }
  return false;
}

void log(GlCall::What what, unsigned bits = 0) {
  const std::lock_guard lock(log_mutex);
  if (gl_log) gl_log->push_back({what, bits});
}

int fake_index(const void* device) {
  for (int i = 0; i < 2; ++i) {
    if (device == &fake_devices[i]) return i;
  }
  return -1;
}

unsigned get_reset_status() {
  const unsigned told = switches.reset_status;
  return told != 0 ? told : real_as<unsigned()>("glGetGraphicsResetStatus")();
}

unsigned get_error() {
  if (switches.error_to_give > 0 && --switches.error_to_give == 0) return out_of_memory;
  return real_as<unsigned()>("glGetError")();
}

void dispatch_compute(unsigned x, unsigned y, unsigned z) {
  log(GlCall::What::dispatched);
  real_as<void(unsigned, unsigned, unsigned)>("glDispatchCompute")(x, y, z);
}

void memory_barrier(unsigned bits) {
  log(GlCall::What::barred, bits);
  real_as<void(unsigned)>("glMemoryBarrier")(bits);
}

void copy_buffer_sub_data(unsigned from, unsigned to, long from_offset, long to_offset, long bytes) {
  log(GlCall::What::copied);
  real_as<void(unsigned, unsigned, long, long, long)>("glCopyBufferSubData")(from, to, from_offset, to_offset, bytes);
}

void buffer_sub_data(unsigned target, long offset, long bytes, const void* from) {
  log(GlCall::What::copied);
  real_as<void(unsigned, long, long, const void*)>("glBufferSubData")(target, offset, bytes, from);
}

void get_buffer_sub_data(unsigned target, long offset, long bytes, void* to) {
  log(GlCall::What::copied);
  real_as<void(unsigned, long, long, void*)>("glGetBufferSubData")(target, offset, bytes, to);
}

void* map_buffer_range(unsigned target, long offset, long bytes, unsigned access) {
  log(GlCall::What::mapped);
  if (switches.map_to_fail > 0 && --switches.map_to_fail == 0) return nullptr;
  return real_as<void*(unsigned, long, long, unsigned)>("glMapBufferRange")(target, offset, bytes, access);
}

__GLsync* fence_sync(unsigned condition, unsigned flags) {
  log(GlCall::What::fenced);
  return real_as<__GLsync*(unsigned, unsigned)>("glFenceSync")(condition, flags);
}

void flush() {
  log(GlCall::What::flushed);
  real_as<void()>("glFlush")();
}

void get_integer64(unsigned name, std::int64_t* value) {
  real_as<void(unsigned, std::int64_t*)>("glGetInteger64v")(name, value);
  if (name == gl_timestamp) *value += switches.clock_ahead_ns;
}

void get_query_object(unsigned query, unsigned name, std::uint64_t* value) {
  real_as<void(unsigned, unsigned, std::uint64_t*)>("glGetQueryObjectui64v")(query, name, value);
  if (name == gl_query_result) *value += static_cast<std::uint64_t>(switches.clock_ahead_ns.load());
}

unsigned client_wait_sync(__GLsync* sync, unsigned flags, unsigned long timeout) {
  log(GlCall::What::waited);
  for (int tick = 0; tick < 20000 && switches.hold_waits; ++tick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (take_one(switches.waits_to_expire)) return timeout_expired;
  if (take_one(switches.waits_to_fail)) return wait_failed;
  const unsigned answer =
      real_as<unsigned(__GLsync*, unsigned, unsigned long)>("glClientWaitSync")(sync, flags, timeout);
  const bool succeeded = answer == already_signaled || answer == condition_satisfied;
  return succeeded && switches.success != 0 ? switches.success.load() : answer;
}

void debug_message_callback(decltype(switches.debug_callback) callback, const void* user) {
  switches.debug_callback = callback;
  switches.debug_user = user;
  real_as<void(decltype(callback), const void*)>("glDebugMessageCallback")(callback, user);
}

void* create_context(void* display, void* config, void* share, const int* attributes) {
  if (share != nullptr && take_one(switches.shared_contexts_to_fail)) return nullptr;
  for (const int* each = attributes; switches.refuse_robustness && *each != egl_none; each += 2) {
    if (*each != robust_access && *each != reset_strategy) continue;
    ++switches.robust_contexts_refused;
    return nullptr;
  }
  return real_as<void*(void*, void*, void*, const int*)>("eglCreateContext")(display, config, share, attributes);
}

const char* query_string(void* display, int name) {
  if (display == nullptr && name == egl_extensions) {
    if (!switches.client_extensions.empty()) return switches.client_extensions.c_str();
    if (switches.hide_platforms) return "EGL_EXT_platform_base";
    if (switches.hide_devices) return "EGL_EXT_platform_base EGL_MESA_platform_surfaceless";
  }
  return real_as<const char*(void*, int)>("eglQueryString")(display, name);
}

unsigned query_devices(int most, void** devices, int* count) {
  if (real_as<unsigned(int, void**, int*)>("eglQueryDevicesEXT")(most, devices, count) == 0) return 0;
  for (int i = 0; i < 2; ++i) {
    if (switches.extra_nodes[i].empty()) continue;
    if (devices != nullptr && *count < most) devices[*count] = &fake_devices[i];
    ++*count;
  }
  return 1;
}

// Of a device of the machine.
const char* query_real_device_string(void* device, int name) {
  const auto query = real_as<const char*(void*, int)>("eglQueryDeviceStringEXT");
  if (switches.software_node.empty() || (name != egl_extensions && name != egl_render_node)) return query(device, name);
  const char* const extensions = query(device, egl_extensions);
  if (extensions == nullptr || std::strstr(extensions, "EGL_MESA_device_software") == nullptr) {
    return query(device, name);
  }
  if (name == egl_render_node) return switches.software_node.c_str();
  return "EGL_MESA_device_software EGL_EXT_device_drm EGL_EXT_device_drm_render_node";
}

const char* query_device_string(void* device, int name) {
  const int fake = fake_index(device);
  if (fake < 0) return query_real_device_string(device, name);
  if (name == egl_extensions) return "EGL_EXT_device_drm EGL_EXT_device_drm_render_node";
  return name == egl_render_node ? switches.extra_nodes[fake].c_str() : nullptr;
}

void* get_platform_display(unsigned platform, void* device, const int* attributes) {
  if (fake_index(device) >= 0) return nullptr;
  return real_as<void*(unsigned, void*, const int*)>("eglGetPlatformDisplayEXT")(platform, device, attributes);
}

unsigned create_program() {
  const unsigned name = real_as<unsigned()>("glCreateProgram")();
  if (name != 0) ++switches.programs;
  return name;
}

void delete_program(unsigned name) {
  if (name != 0) --switches.programs;
  real_as<void(unsigned)>("glDeleteProgram")(name);
}

int names_in(int count, const unsigned* names) {
  int found = 0;
  for (int i = 0; i < count; ++i) found += names[i] != 0 ? 1 : 0;
  return found;
}

void gen_textures(int count, unsigned* names) {
  real_as<void(int, unsigned*)>("glGenTextures")(count, names);
  switches.textures += names_in(count, names);
}

void delete_textures(int count, const unsigned* names) {
  switches.textures -= names_in(count, names);
  real_as<void(int, const unsigned*)>("glDeleteTextures")(count, names);
}

void gen_buffers(int count, unsigned* names) {
  real_as<void(int, unsigned*)>("glGenBuffers")(count, names);
  switches.buffers += names_in(count, names);
}

void delete_buffers(int count, const unsigned* names) {
  switches.buffers -= names_in(count, names);
  real_as<void(int, const unsigned*)>("glDeleteBuffers")(count, names);
}

void note_binding(unsigned target, unsigned index, unsigned name) {
  if (target != gl_atomic_counter_buffer || index >= 32) return;
  if (name != 0) {
    switches.counter_buffers |= 1u << index;
  } else {
    switches.counter_buffers &= ~(1u << index);
  }
}

void bind_buffer_base(unsigned target, unsigned index, unsigned name) {
  note_binding(target, index, name);
  real_as<void(unsigned, unsigned, unsigned)>("glBindBufferBase")(target, index, name);
}

void bind_buffer_range(unsigned target, unsigned index, unsigned name, long offset, long bytes) {
  note_binding(target, index, name);
  real_as<void(unsigned, unsigned, unsigned, long, long)>("glBindBufferRange")(target, index, name, offset, bytes);
}

bool makes_context(void* device) {
  constexpr unsigned device_platform = 0x313F, opengl_api = 0x30A2;
  constexpr int version_4_3_core[] = {0x3098, 4, 0x30FB, 3, 0x30FD, 1, egl_none};
  void* const display =
      real_as<void*(unsigned, void*, const int*)>("eglGetPlatformDisplayEXT")(device_platform, device, nullptr);
  if (display == nullptr) return false;
  if (real_as<unsigned(void*, int*, int*)>("eglInitialize")(display, nullptr, nullptr) == 0) return false;
  if (real_as<unsigned(unsigned)>("eglBindAPI")(opengl_api) == 0) return false;
  void* const context =
      real_as<void*(void*, void*, void*, const int*)>("eglCreateContext")(display, nullptr, nullptr, version_4_3_core);
  if (context == nullptr) return false;
  const auto make_current = real_as<unsigned(void*, void*, void*, void*)>("eglMakeCurrent");
  const bool is_current = make_current(display, nullptr, nullptr, context) != 0;
  make_current(display, nullptr, nullptr, nullptr);
  real_as<unsigned(void*, void*)>("eglDestroyContext")(display, context);
  real_as<unsigned()>("eglReleaseThread")();
  return is_current;
}

template <class Signature>
Function wrapper(Signature* function) {
  return reinterpret_cast<Function>(function);
}

}  // namespace

namespace kiln::support {

EglSwitches& egl_switches() noexcept { return switches; }

bool egl_makes_a_context() {
  const auto query_text = real_as<const char*(void*, int)>("eglQueryString");
  const char* const extensions = query_text == nullptr ? nullptr : query_text(nullptr, egl_extensions);
  if (extensions == nullptr || std::strstr(extensions, "EGL_EXT_platform_device") == nullptr) return false;
  const auto query = real_as<unsigned(int, void**, int*)>("eglQueryDevicesEXT");
  int count = 0;
  if (query == nullptr || query(0, nullptr, &count) == 0 || count <= 0) return false;
  std::vector<void*> devices(static_cast<std::size_t>(count));
  if (query(count, devices.data(), &count) == 0) return false;
  for (int i = 0; i < count; ++i) {
    if (makes_context(devices[static_cast<std::size_t>(i)])) return true;
  }
  return false;
}

void begin_gl_log() {
  const std::lock_guard lock(log_mutex);
  gl_log.emplace();
}

std::vector<GlCall> end_gl_log() {
  const std::lock_guard lock(log_mutex);
  return std::exchange(gl_log, std::nullopt).value_or(std::vector<GlCall>());
}

}  // namespace kiln::support

extern "C" Function eglGetProcAddress(const char* name) {
  static const std::map<std::string, Function> wrapped{
      {"glGetGraphicsResetStatus", wrapper(get_reset_status)},
      {"glGetError", wrapper(get_error)},
      {"glDebugMessageCallback", wrapper(debug_message_callback)},
      {"glClientWaitSync", wrapper(client_wait_sync)},
      {"glDispatchCompute", wrapper(dispatch_compute)},
      {"glMemoryBarrier", wrapper(memory_barrier)},
      {"glCopyBufferSubData", wrapper(copy_buffer_sub_data)},
      {"glBufferSubData", wrapper(buffer_sub_data)},
      {"glGetBufferSubData", wrapper(get_buffer_sub_data)},
      {"glMapBufferRange", wrapper(map_buffer_range)},
      {"glFenceSync", wrapper(fence_sync)},
      {"glFlush", wrapper(flush)},
      {"glCreateProgram", wrapper(create_program)},
      {"glDeleteProgram", wrapper(delete_program)},
      {"glGenTextures", wrapper(gen_textures)},
      {"glDeleteTextures", wrapper(delete_textures)},
      {"glGenBuffers", wrapper(gen_buffers)},
      {"glDeleteBuffers", wrapper(delete_buffers)},
      {"glBindBufferBase", wrapper(bind_buffer_base)},
      {"glBindBufferRange", wrapper(bind_buffer_range)},
      {"glGetInteger64v", wrapper(get_integer64)},
      {"glGetQueryObjectui64v", wrapper(get_query_object)},
      {"eglCreateContext", wrapper(create_context)},
      {"eglQueryString", wrapper(query_string)},
      {"eglQueryDevicesEXT", wrapper(query_devices)},
      {"eglQueryDeviceStringEXT", wrapper(query_device_string)},
      {"eglGetPlatformDisplayEXT", wrapper(get_platform_display)},
  };
  if (name == switches.missing_function) return nullptr;
  const auto at = wrapped.find(name);
  return at != wrapped.end() ? at->second : real(name);
}

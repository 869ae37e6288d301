// A libEGL around the machine's own: what a test cannot make the real one do (lose a context, refuse robustness, list
// other devices, keep a fence waiting, run by another clock) it does as told, what orders the device's work is logged,
// and everything else goes through. Thread-safety: the switches are atomic, the log takes a lock. Named to the plugin
// by [plugin.opengl] egl_library.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::support {

struct EglSwitches {
  std::atomic<unsigned> reset_status{0};  // what glGetGraphicsResetStatus answers; 0: none
  std::atomic<int> waits_to_expire{0};    // so many glClientWaitSync answer GL_TIMEOUT_EXPIRED
  std::atomic<bool> hold_waits{false};    // glClientWaitSync does not return while this is true (20 s at most)
  std::atomic<int> waits_to_fail{0};      // so many answer GL_WAIT_FAILED
  std::atomic<int> map_to_fail{0};        // N: the Nth call of glMapBufferRange from now fails; 0: none does
  std::atomic<int> error_to_give{0};  // N: the Nth call of glGetError from now answers GL_OUT_OF_MEMORY; 0: none does
  // What a wait that succeeds answers instead of the driver's word: GL_ALREADY_SIGNALED or GL_CONDITION_SATISFIED; 0:
  // the driver's own.
  std::atomic<unsigned> success{0};
  std::atomic<int> robust_contexts_refused{0};  // counted: attributes of robustness make eglCreateContext fail
  std::atomic<bool> refuse_robustness{false};
  std::atomic<int> shared_contexts_to_fail{0};  // so many contexts that share with another one are not made
  // What glDebugMessageCallback was given last.
  void (*debug_callback)(unsigned, unsigned, unsigned, unsigned, int, const char*, const void*) = nullptr;
  const void* debug_user = nullptr;
  std::atomic<bool> hide_devices{false};        // no EGL_EXT_device_*: only the surfaceless platform is left
  std::atomic<bool> hide_platforms{false};      // no platform at all
  std::string client_extensions;                // not empty: all that the library offers without a display
  std::string missing_function;                 // not empty: eglGetProcAddress does not find this one
  std::atomic<std::int64_t> clock_ahead_ns{0};  // of the device's clock, as if it were not the host's own
  std::string extra_nodes[2];  // not empty: a listed device with this render node, which cannot be opened
  std::string software_node;   // not empty: what a listed software device says is its render node
  std::atomic<int> programs{0}, textures{0}, buffers{0};  // counted: made, and not deleted yet
  std::atomic<unsigned> counter_buffers{0};               // bit i: a buffer is bound at point i of the atomic counters
};

EglSwitches& egl_switches() noexcept;

// Whether the machine's own EGL makes a context of OpenGL 4.3 for a device that it lists; asked without Kiln. The
// calling thread has no context before and after.
bool egl_makes_a_context();

// A call that works on buffers, or orders such calls. copied: glCopyBufferSubData, glBufferSubData and
// glGetBufferSubData.
struct GlCall {
  enum class What : std::uint8_t { invalid = 0, dispatched, barred, copied, fenced, flushed, waited, mapped };
  What what = What::invalid;
  unsigned bits = 0;  // of a barrier
};

void begin_gl_log();
// What was called since, in order; the log ends.
std::vector<GlCall> end_gl_log();

}  // namespace kiln::support

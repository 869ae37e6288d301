// AdoptedContext: the application's context as it was when it was adopted, and the programs that other threads dropped.
//
// Thread-safety: drop() from any thread, everything else on the adopting thread (enter() says where it is not).
// Ownership: shared by the device and its programs, so that a program may outlive the device.
#pragma once

#include "codec/current_context.hpp"

#include <kiln/adopted_gl.hpp>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::opengl {

class AdoptedContext {
 public:
  static Result<std::shared_ptr<AdoptedContext>> adopt(FindGlFunction find, Log log);
  AdoptedContext(FindGlFunction find, Log log);
  AdoptedContext(const AdoptedContext&) = delete;
  AdoptedContext& operator=(const AdoptedContext&) = delete;

  const CurrentContext& current() const noexcept { return current_; }

  // Before each use: this is the adopting thread and, where that can be told, the adopted context is current. Deletes
  // what was dropped. An error that the application left in the context is taken off, and said: it would otherwise be
  // taken for one of the calls that follow.
  Status enter();
  // The name of a program nobody holds any more.
  void drop(GLuint program);
  // No more names are kept: the context may be gone.
  void close();

 private:
  using CurrentFunction = void* (*)();

  Status load(FindGlFunction find);
  Status is_current() const;
  Status check(std::string_view doing);

  const Log log_;
  Gl gl_{};
  const CurrentFunction egl_current_;  // eglGetCurrentContext; null where there is no EGL
  void* const egl_context_;            // null: the context is not EGL's, and which one is current cannot be told
  const std::thread::id thread_ = std::this_thread::get_id();
  CurrentContext current_;
  std::mutex mutex_;
  std::vector<GLuint> dropped_;
  bool closed_ = false;
};

}  // namespace kiln::opengl

// NativeFences: fences of OpenGL as sync_file descriptors, by EGL_ANDROID_native_fence_sync.
//
// Thread-safety: find() from any thread; the others on the thread of a current context of the display. Ownership:
// borrows the display, which stays open.
#pragma once

#include <kiln/buffer.hpp>

#include "codec/gl_error.hpp"
#include "gl/egl_api.hpp"

namespace kiln::opengl {

class NativeFences {
 public:
  // supported() is false where the display lacks the extension.
  static NativeFences find(const EglApi& api, EGLDisplay display);

  bool supported() const noexcept { return duplicate_ != nullptr; }
  // A descriptor that is signalled when the context's commands so far have ended. REQUIRES: supported().
  Result<UniqueFd> make(const Gl& gl) const;
  // The context's commands from now on run after the descriptor, which stays the caller's, is signalled. REQUIRES:
  // supported().
  Status wait(int sync_file) const;

 private:
  using Duplicate = EGLint (*)(EGLDisplay display, EGLSync sync);

  EGLDisplay display_ = EGL_NO_DISPLAY;
  PFNEGLGETERRORPROC get_error_ = nullptr;
  PFNEGLCREATESYNCPROC create_ = nullptr;
  PFNEGLDESTROYSYNCPROC destroy_ = nullptr;
  PFNEGLWAITSYNCPROC wait_ = nullptr;
  Duplicate duplicate_ = nullptr;
};

}  // namespace kiln::opengl

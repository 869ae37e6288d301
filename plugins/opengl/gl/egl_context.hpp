// EglContext: one OpenGL 4.3 (or newer) core context without a surface.
//
// Thread-safety: none: every call but the constructor of a shared sibling happens on the one thread that it is current
// on. Ownership: owned by that thread; the EglApi is shared. The display stays open (egl_devices.hpp).
#pragma once

#include "gl/egl_devices.hpp"

#include <memory>
#include <vector>

namespace kiln::opengl {

enum class DebugOutput : std::uint8_t { invalid = 0, off, on };

class EglContext {
 public:
  // Makes it current on the calling thread. The strongest robustness that the driver grants is taken: robust access and
  // loss on reset, then loss on reset alone, then neither. unavailable where there is no such context at all.
  static Result<std::unique_ptr<EglContext>> create(std::shared_ptr<const EglApi> api, EGLDisplay display,
                                                    DebugOutput debug);
  // A second context of the same share group, with the same attributes, current on the calling thread.
  static Result<std::unique_ptr<EglContext>> create_shared(const EglContext& first);

  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;
  ~EglContext();  // on its thread

  const EglApi& api() const noexcept { return *api_; }

 private:
  EglContext(std::shared_ptr<const EglApi> api, EGLDisplay display, EGLContext handle, std::vector<EGLint> attributes);
  static Result<std::unique_ptr<EglContext>> try_one(const std::shared_ptr<const EglApi>& api, EGLDisplay display,
                                                     EGLContext share, std::vector<EGLint> attributes);

  std::shared_ptr<const EglApi> api_;
  EGLDisplay display_;
  EGLContext handle_;
  std::vector<EGLint> attributes_;
};

}  // namespace kiln::opengl

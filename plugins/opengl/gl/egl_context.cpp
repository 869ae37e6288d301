#include "gl/egl_context.hpp"

namespace kiln::opengl {
namespace {

std::vector<EGLint> attributes(DebugOutput debug, bool robust_access, bool loss_on_reset) {
  std::vector<EGLint> list{EGL_CONTEXT_MAJOR_VERSION,       4,
                           EGL_CONTEXT_MINOR_VERSION,       3,
                           EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT};
  const auto add = [&list](EGLint name, EGLint value) { list.insert(list.end(), {name, value}); };
  if (debug == DebugOutput::on) add(EGL_CONTEXT_OPENGL_DEBUG, EGL_TRUE);
  if (robust_access) add(EGL_CONTEXT_OPENGL_ROBUST_ACCESS, EGL_TRUE);
  if (loss_on_reset) add(EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY, EGL_LOSE_CONTEXT_ON_RESET);
  list.push_back(EGL_NONE);
  return list;
}

}  // namespace

EglContext::EglContext(std::shared_ptr<const EglApi> api, EGLDisplay display, EGLContext handle,
                       std::vector<EGLint> attributes)
    : api_(std::move(api)), display_(display), handle_(handle), attributes_(std::move(attributes)) {}

EglContext::~EglContext() {
  api_->make_current(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  api_->destroy_context(display_, handle_);
  api_->release_thread();
}

Result<std::unique_ptr<EglContext>> EglContext::try_one(const std::shared_ptr<const EglApi>& api, EGLDisplay display,
                                                        EGLContext share, std::vector<EGLint> attributes) {
  if (api->bind_api(EGL_OPENGL_API) != EGL_TRUE) return unavailable("eglBindAPI(EGL_OPENGL_API): " + api->last_error());
  const EGLContext handle = api->create_context(display, EGL_NO_CONFIG_KHR, share, attributes.data());
  if (handle == EGL_NO_CONTEXT) {
    return unavailable("eglCreateContext for OpenGL 4.3 core: " + api->last_error());
  }
  std::unique_ptr<EglContext> context(new EglContext(api, display, handle, std::move(attributes)));
  if (api->make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, handle) != EGL_TRUE) {
    return unavailable("eglMakeCurrent: " + api->last_error());
  }
  return context;
}

Result<std::unique_ptr<EglContext>> EglContext::create(std::shared_ptr<const EglApi> api, EGLDisplay display,
                                                       DebugOutput debug) {
  auto context = try_one(api, display, EGL_NO_CONTEXT, attributes(debug, true, true));
  if (!context) context = try_one(api, display, EGL_NO_CONTEXT, attributes(debug, false, true));
  if (!context) context = try_one(api, display, EGL_NO_CONTEXT, attributes(debug, false, false));
  return context;
}

Result<std::unique_ptr<EglContext>> EglContext::create_shared(const EglContext& first) {
  return try_one(first.api_, first.display_, first.handle_, first.attributes_);
}

}  // namespace kiln::opengl

#include "gl/native_fence.hpp"

#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>

namespace kiln::opengl {
namespace {

// EGL_ANDROID_native_fence_sync, which glad's header leaves out.
constexpr EGLenum native_fence = 0x3144;
constexpr EGLAttrib native_fence_fd = 0x3145;

template <class Function>
void find_function(const EglApi& api, Function& into, const char* name) {
  into = reinterpret_cast<Function>(api.get_proc_address(name));
}

}  // namespace

NativeFences NativeFences::find(const EglApi& api, EGLDisplay display) {
  NativeFences fences;
  const std::string extensions = text_or_empty(api.query_string(display, EGL_EXTENSIONS));
  if (!has_extension(extensions, "EGL_ANDROID_native_fence_sync")) return fences;
  fences.display_ = display;
  fences.get_error_ = api.get_error;
  find_function(api, fences.create_, "eglCreateSync");
  find_function(api, fences.destroy_, "eglDestroySync");
  find_function(api, fences.wait_, "eglWaitSync");
  const bool complete = fences.create_ != nullptr && fences.destroy_ != nullptr && fences.wait_ != nullptr;
  if (complete) find_function(api, fences.duplicate_, "eglDupNativeFenceFDANDROID");
  return fences;
}

Result<UniqueFd> NativeFences::make(const Gl& gl) const {
  EGLSync sync = create_(display_, native_fence, nullptr);
  if (sync == EGL_NO_SYNC) return internal_error("eglCreateSync answers no fence: " + std::to_string(get_error_()));
  gl.Flush();  // the fence has a descriptor from here on
  UniqueFd fd(duplicate_(display_, sync));
  destroy_(display_, sync);
  if (!fd) return internal_error("eglDupNativeFenceFDANDROID answers no descriptor: " + std::to_string(get_error_()));
  return fd;
}

Status NativeFences::wait(int sync_file) const {
  const std::string what = "descriptor " + std::to_string(sync_file);
  sync_file_info info{};
  if (ioctl(sync_file, SYNC_IOC_FILE_INFO, &info) != 0) return invalid_argument(what + " is no sync_file");
  UniqueFd own(fcntl(sync_file, F_DUPFD_CLOEXEC, 0));
  if (!own) return unavailable(what + " cannot be duplicated");
  const EGLAttrib attributes[] = {native_fence_fd, own.get(), EGL_NONE};
  EGLSync sync = create_(display_, native_fence, attributes);
  if (sync == EGL_NO_SYNC) return invalid_argument(what + ": eglCreateSync: " + std::to_string(get_error_()));
  (void)own.release();  // the fence's now
  const bool waits = wait_(display_, sync, 0) == EGL_TRUE;
  destroy_(display_, sync);
  return waits ? ok_status() : internal_error(what + ": eglWaitSync: " + std::to_string(get_error_()));
}

}  // namespace kiln::opengl

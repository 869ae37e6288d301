#include "gl/egl_api.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace kiln::opengl {
namespace {

template <class Function>
void find(const EglApi& api, Function& into, const char* name) {
  into = reinterpret_cast<Function>(api.get_proc_address(name));
}

struct NamedError {
  EGLint value;
  const char* name;
};

constexpr std::array<NamedError, 15> errors{{{EGL_SUCCESS, "EGL_SUCCESS"},
                                             {EGL_NOT_INITIALIZED, "EGL_NOT_INITIALIZED"},
                                             {EGL_BAD_ACCESS, "EGL_BAD_ACCESS"},
                                             {EGL_BAD_ALLOC, "EGL_BAD_ALLOC"},
                                             {EGL_BAD_ATTRIBUTE, "EGL_BAD_ATTRIBUTE"},
                                             {EGL_BAD_CONFIG, "EGL_BAD_CONFIG"},
                                             {EGL_BAD_CONTEXT, "EGL_BAD_CONTEXT"},
                                             {EGL_BAD_CURRENT_SURFACE, "EGL_BAD_CURRENT_SURFACE"},
                                             {EGL_BAD_DISPLAY, "EGL_BAD_DISPLAY"},
                                             {EGL_BAD_MATCH, "EGL_BAD_MATCH"},
                                             {EGL_BAD_NATIVE_PIXMAP, "EGL_BAD_NATIVE_PIXMAP"},
                                             {EGL_BAD_NATIVE_WINDOW, "EGL_BAD_NATIVE_WINDOW"},
                                             {EGL_BAD_PARAMETER, "EGL_BAD_PARAMETER"},
                                             {EGL_BAD_SURFACE, "EGL_BAD_SURFACE"},
                                             {EGL_CONTEXT_LOST, "EGL_CONTEXT_LOST"}}};

}  // namespace

std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : std::string(text); }

bool has_extension(std::string_view list, std::string_view name) noexcept {
  for (std::size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const bool starts = at == 0 || list[at - 1] == ' ';
    const std::size_t end = at + name.size();
    if (starts && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

Result<std::shared_ptr<const EglApi>> EglApi::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: see the header
  if (handle == nullptr) return unavailable(text_or_empty(dlerror()));
  auto api = std::make_shared<EglApi>();
  api->get_proc_address = reinterpret_cast<PFNEGLGETPROCADDRESSPROC>(dlsym(handle, "eglGetProcAddress"));
  if (api->get_proc_address == nullptr) return unavailable(text_or_empty(dlerror()));
  find(*api, api->get_error, "eglGetError");
  find(*api, api->query_string, "eglQueryString");
  find(*api, api->initialize, "eglInitialize");
  find(*api, api->bind_api, "eglBindAPI");
  find(*api, api->create_context, "eglCreateContext");
  find(*api, api->destroy_context, "eglDestroyContext");
  find(*api, api->make_current, "eglMakeCurrent");
  find(*api, api->release_thread, "eglReleaseThread");
  if (api->get_error == nullptr || api->query_string == nullptr || api->initialize == nullptr ||
      api->bind_api == nullptr || api->create_context == nullptr || api->destroy_context == nullptr ||
      api->make_current == nullptr || api->release_thread == nullptr) {
    return unavailable(library + ": eglGetProcAddress does not answer the functions of EGL 1.5");
  }
  // Asked for only where the extension string has them: a driver may answer a pointer that crashes otherwise.
  api->client_extensions = text_or_empty(api->query_string(EGL_NO_DISPLAY, EGL_EXTENSIONS));
  if (has_extension(api->client_extensions, "EGL_EXT_platform_base")) {
    find(*api, api->get_platform_display, "eglGetPlatformDisplayEXT");
  }
  const bool device_base = has_extension(api->client_extensions, "EGL_EXT_device_base");
  if (device_base || has_extension(api->client_extensions, "EGL_EXT_device_enumeration")) {
    find(*api, api->query_devices, "eglQueryDevicesEXT");
  }
  if (device_base || has_extension(api->client_extensions, "EGL_EXT_device_query")) {
    find(*api, api->query_device_string, "eglQueryDeviceStringEXT");
    find(*api, api->query_display_attrib, "eglQueryDisplayAttribEXT");
  }
  find(*api, api->get_display_driver_name, "eglGetDisplayDriverName");
  return std::shared_ptr<const EglApi>(std::move(api));
}

std::string EglApi::last_error() const {
  const EGLint error = get_error();
  for (const NamedError& known : errors) {
    if (known.value == error) return known.name;
  }
  char text[24];
  std::snprintf(text, sizeof text, "EGL error 0x%04x", static_cast<unsigned>(error));
  return text;
}

}  // namespace kiln::opengl

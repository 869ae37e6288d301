// EglApi: the functions of libEGL, which is opened at first use and never linked.
//
// Thread-safety: immutable once opened; EGL's own rules hold for the calls. Ownership: shared; the library itself stays
// loaded until the process exits, because drivers keep threads and exit handlers of their own.
#pragma once

#include <glad/egl.h>
#include <kiln/status.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace kiln::opengl {

struct EglApi {
  PFNEGLGETPROCADDRESSPROC get_proc_address = nullptr;
  PFNEGLGETERRORPROC get_error = nullptr;
  PFNEGLQUERYSTRINGPROC query_string = nullptr;
  PFNEGLINITIALIZEPROC initialize = nullptr;
  PFNEGLBINDAPIPROC bind_api = nullptr;
  PFNEGLCREATECONTEXTPROC create_context = nullptr;
  PFNEGLDESTROYCONTEXTPROC destroy_context = nullptr;
  PFNEGLMAKECURRENTPROC make_current = nullptr;
  PFNEGLRELEASETHREADPROC release_thread = nullptr;

  // Null where the client extension is missing.
  PFNEGLGETPLATFORMDISPLAYEXTPROC get_platform_display = nullptr;
  PFNEGLQUERYDEVICESEXTPROC query_devices = nullptr;
  PFNEGLQUERYDEVICESTRINGEXTPROC query_device_string = nullptr;
  PFNEGLQUERYDISPLAYATTRIBEXTPROC query_display_attrib = nullptr;
  PFNEGLGETDISPLAYDRIVERNAMEPROC get_display_driver_name = nullptr;

  std::string client_extensions;

  // unavailable, with the linker's own words, where the library or one of its functions is missing.
  static Result<std::shared_ptr<const EglApi>> open(const std::string& library);

  // "EGL_BAD_MATCH" of the last failed call on this thread.
  std::string last_error() const;
};

// Whether a space-separated list holds the whole word.
bool has_extension(std::string_view list, std::string_view name) noexcept;

// The text behind a pointer that may be null.
std::string text_or_empty(const char* text);

}  // namespace kiln::opengl

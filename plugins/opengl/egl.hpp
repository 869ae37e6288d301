// EGL: its functions, the devices that it lists, a context, and its native fences.
//
// EglApi: the functions of libEGL, which is opened at first use and never linked.
//
// Thread-safety: immutable once opened; EGL's own rules hold for the calls. Ownership: shared; the library itself stays
// loaded until the process exits, because drivers keep threads and exit handlers of their own.
#pragma once

#include <glad/egl.h>

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/status.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/context.hpp"

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

// The devices that EGL lists, and what their DRM nodes say about themselves.

// EglDevice: one entry of what EGL lists, told apart by what extensions say and not by a vendor's name.
//
// Thread-safety: free functions over an immutable EglApi. Ownership: EGL's device and display handles belong to the
// process. A display is never terminated: another user of EGL in this process may hold the very same one.
struct EglDevice {
  EGLDeviceEXT device = EGL_NO_DEVICE_EXT;  // none: the surfaceless platform's default device
  DeviceKind kind = DeviceKind::invalid;    // invalid: known only once its display is open
  std::string node;                         // render node or device file; empty: none
};

// Hardware first, then simulated, then software; EGL's own order within each. Opens no display.
std::vector<EglDevice> list_devices(const EglApi& api);

struct EglDisplay {
  EGLDisplay handle = EGL_NO_DISPLAY;
  DeviceKind kind = DeviceKind::invalid;  // never invalid: what the open display says
  bool mesa = false;
};

// unavailable, naming the call and EGL's error, or the extension that is missing.
Result<EglDisplay> open_display(const EglApi& api, const EglDevice& device);

// What a DRM node says about itself: the description in its version record, and which hardware it is.
//
// Thread-safety: free functions. Ownership: a node that is named is opened and closed inside the call.

// Kiln's own simulator answers this word in its description; nothing else does.
inline constexpr const char* simulated_description = "kiln-simulated";

// nullopt: the node cannot be opened, or is no DRM node.
std::optional<std::string> drm_description(const std::string& node);

// Whether the device behind a node was taken away: opening one in a driver of Mesa's would end the process.
bool drm_is_gone(const std::string& node);
bool drm_is_gone(int open_node);

// DeviceInfo::physical_id of the hardware behind a node: its place on the bus by what sysfs says, else the node's path.
// Empty for an empty node.
std::string drm_physical_id(const std::string& node);

// EglContext: one OpenGL 4.3 (or newer) core context without a surface.
//
// Thread-safety: none: every call but the constructor of a shared sibling happens on the one thread that it is current
// on. Ownership: owned by that thread; the EglApi is shared. The display stays open.

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

// NativeFences: fences of OpenGL as sync_file descriptors, by EGL_ANDROID_native_fence_sync.
//
// Thread-safety: find() from any thread; the others on the thread of a current context of the display. Ownership:
// borrows the display, which stays open.

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

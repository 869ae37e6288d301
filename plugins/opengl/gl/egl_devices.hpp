// The devices that EGL lists, and what their DRM nodes say about themselves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kiln/device.hpp>

#include "gl/egl_api.hpp"

namespace kiln::opengl {

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

}  // namespace kiln::opengl

#include "gl/egl_devices.hpp"

#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <kiln/buffer.hpp>

namespace kiln::opengl {
namespace {

std::string device_string(const EglApi& api, EGLDeviceEXT device, EGLint name) {
  return text_or_empty(api.query_device_string(device, name));
}

EglDevice describe(const EglApi& api, EGLDeviceEXT handle) {
  EglDevice device{handle, DeviceKind::gpu, {}};
  const std::string extensions = device_string(api, handle, EGL_EXTENSIONS);
  if (has_extension(extensions, "EGL_EXT_device_drm_render_node")) {
    device.node = device_string(api, handle, EGL_DRM_RENDER_NODE_FILE_EXT);
  }
  if (device.node.empty() && has_extension(extensions, "EGL_EXT_device_drm")) {
    device.node = device_string(api, handle, EGL_DRM_DEVICE_FILE_EXT);
  }
  if (has_extension(extensions, "EGL_MESA_device_software")) {
    device.kind = DeviceKind::software;
  } else if (!device.node.empty()) {
    const auto description = drm_description(device.node);
    if (description && description->find(simulated_description) != std::string::npos) {
      device.kind = DeviceKind::simulated;
    }
  }
  return device;
}

int rank(DeviceKind kind) noexcept {
  if (kind == DeviceKind::gpu) return 0;
  return kind == DeviceKind::simulated ? 1 : 2;
}

// What the open display says. A render node without a driver of its own is served by a software one, and the driver's
// name, which EGL_MESA_query_driver gives, is how that shows.
DeviceKind kind_of_display(const EglApi& api, EGLDisplay display, const EglDevice& device,
                           std::string_view extensions) {
  if (has_extension(extensions, "EGL_MESA_query_driver") && api.get_display_driver_name != nullptr) {
    const std::string driver = text_or_empty(api.get_display_driver_name(display));
    if (driver == "swrast" || driver == "kms_swrast") return DeviceKind::software;
  }
  if (device.kind != DeviceKind::invalid) return device.kind;
  EGLAttrib handle = 0;
  if (api.query_display_attrib != nullptr && api.query_device_string != nullptr &&
      api.query_display_attrib(display, EGL_DEVICE_EXT, &handle) == EGL_TRUE) {
    return describe(api, reinterpret_cast<EGLDeviceEXT>(handle)).kind;
  }
  return DeviceKind::gpu;
}

}  // namespace

std::vector<EglDevice> list_devices(const EglApi& api) {
  std::vector<EglDevice> devices;
  if (api.query_devices != nullptr && api.query_device_string != nullptr && api.get_platform_display != nullptr &&
      has_extension(api.client_extensions, "EGL_EXT_platform_device")) {
    EGLint count = 0;
    if (api.query_devices(0, nullptr, &count) == EGL_TRUE && count > 0) {
      std::vector<EGLDeviceEXT> handles(static_cast<std::size_t>(count));
      if (api.query_devices(count, handles.data(), &count) == EGL_TRUE) {
        handles.resize(static_cast<std::size_t>(count));
        for (const EGLDeviceEXT handle : handles) devices.push_back(describe(api, handle));
      }
    }
    std::stable_sort(devices.begin(), devices.end(),
                     [](const EglDevice& a, const EglDevice& b) { return rank(a.kind) < rank(b.kind); });
  } else if (api.get_platform_display != nullptr &&
             has_extension(api.client_extensions, "EGL_MESA_platform_surfaceless")) {
    devices.push_back({});
  }
  return devices;
}

Result<EglDisplay> open_display(const EglApi& api, const EglDevice& device) {
  const bool listed = device.device != EGL_NO_DEVICE_EXT;
  const EGLDisplay display = api.get_platform_display(listed ? EGL_PLATFORM_DEVICE_EXT : EGL_PLATFORM_SURFACELESS_MESA,
                                                      listed ? device.device : nullptr, nullptr);
  if (display == EGL_NO_DISPLAY) return unavailable("eglGetPlatformDisplayEXT: " + api.last_error());
  EGLint major = 0;
  EGLint minor = 0;
  if (api.initialize(display, &major, &minor) != EGL_TRUE) return unavailable("eglInitialize: " + api.last_error());
  const std::string extensions = text_or_empty(api.query_string(display, EGL_EXTENSIONS));
  for (const char* needed : {"EGL_KHR_surfaceless_context", "EGL_KHR_no_config_context"}) {
    if (!has_extension(extensions, needed)) return unavailable(std::string("the EGL display has no ") + needed);
  }
  return EglDisplay{display, kind_of_display(api, display, device, extensions),
                    has_extension(extensions, "EGL_MESA_query_driver")};
}

std::optional<std::string> drm_description(const std::string& node) {
  const UniqueFd fd(open(node.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return std::nullopt;
  drm_version version{};  // first call: the lengths; second: the texts
  if (ioctl(fd.get(), DRM_IOCTL_VERSION, &version) != 0) return std::nullopt;
  std::string name(version.name_len, '\0');
  std::string date(version.date_len, '\0');
  std::string description(version.desc_len, '\0');
  version.name = name.data();
  version.date = date.data();
  version.desc = description.data();
  if (ioctl(fd.get(), DRM_IOCTL_VERSION, &version) != 0) return std::nullopt;
  description.resize(std::min<std::size_t>(description.size(), version.desc_len));
  return description;
}

bool drm_is_gone(const std::string& node) {
  if (node.empty()) return false;
  const UniqueFd fd(open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return errno == ENODEV || errno == ENXIO;
  return drm_is_gone(fd.get());
}

bool drm_is_gone(int open_node) {
  drm_version version{};
  return ioctl(open_node, DRM_IOCTL_VERSION, &version) != 0 && errno == ENODEV;
}

std::string drm_physical_id(const std::string& node) {
  if (node.empty()) return {};
  struct stat at {};
  if (stat(node.c_str(), &at) == 0 && S_ISCHR(at.st_mode)) {
    const std::filesystem::path device =
        "/sys/dev/char/" + std::to_string(major(at.st_rdev)) + ":" + std::to_string(minor(at.st_rdev)) + "/device";
    std::error_code failed;
    const std::filesystem::path place = std::filesystem::canonical(device, failed);
    std::error_code no_bus;
    const std::filesystem::path bus = std::filesystem::canonical(device / "subsystem", no_bus);
    if (!failed && !no_bus) return bus.filename().string() + ":" + place.filename().string();
  }
  return "drm:" + node;
}

}  // namespace kiln::opengl

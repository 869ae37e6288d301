#include "egl.hpp"

#include <dlfcn.h>
#include <drm.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <kiln/buffer.hpp>

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
    return unavailable(library + ": eglGetProcAddress does not return the functions of EGL 1.5");
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
  if (sync == EGL_NO_SYNC) return internal_error("eglCreateSync failed: EGL error " + std::to_string(get_error_()));
  gl.Flush();  // the fence has a descriptor from here on
  UniqueFd fd(duplicate_(display_, sync));
  destroy_(display_, sync);
  if (!fd) return internal_error("eglDupNativeFenceFDANDROID failed: EGL error " + std::to_string(get_error_()));
  return fd;
}

Status NativeFences::wait(int sync_file) const {
  const std::string what = "descriptor " + std::to_string(sync_file);
  sync_file_info info{};
  if (ioctl(sync_file, SYNC_IOC_FILE_INFO, &info) != 0) return invalid_argument(what + " is not a sync_file");
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

#include "egl/drm_node.hpp"

#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <kiln/buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace kiln::opengl {

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
  drm_version version{};
  return ioctl(fd.get(), DRM_IOCTL_VERSION, &version) != 0 && errno == ENODEV;
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

#include "egl/drm_node.hpp"

#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <kiln/buffer.hpp>

#include <algorithm>

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

}  // namespace kiln::opengl

#include "opengl/support/simulated_node.hpp"

#include <drm.h>
#include <linux/sync_file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace {

bool is_simulated(int fd) noexcept {
  char link[64];
  char target[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 0) return false;
  target[length] = 0;
  return std::strstr(target, kiln::support::simulated_node_mark) != nullptr;
}

void answer(char* to, __kernel_size_t& length, const char* text) noexcept {
  if (to != nullptr) std::memcpy(to, text, std::strlen(text) < length ? std::strlen(text) : length);
  length = std::strlen(text);
}

}  // namespace

namespace kiln::support {
bool simulated_nodes_present() noexcept { return true; }
}  // namespace kiln::support

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == DRM_IOCTL_VERSION && is_simulated(fd)) {
    auto* version = static_cast<drm_version*>(argument);
    answer(version->name, version->name_len, "amdgpu");
    answer(version->date, version->date_len, "20260101");
    answer(version->desc, version->desc_len, "kiln-simulated gfx1100");
    return 0;
  }
  if (request == SYNC_IOC_FILE_INFO && is_simulated(fd)) return 0;
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

// The C library's functions that take a descriptor, with those of the simulated node answered by the simulation; and
// what tests ask it.
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "simulator/kernel/device_file.hpp"
#include "simulator/shim/simulation.hpp"

namespace kiln::simulator::shim {
namespace {

constexpr unsigned drm_type = 'd';
constexpr unsigned sync_file_type = '>';

int answer(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

using Control = int(int, unsigned long, ...);

int control(int fd, unsigned long request, void* argument) {
  Simulation* const simulation = Simulation::with_open_files();
  if (simulation != nullptr && _IOC_TYPE(request) == drm_type) {
    if (const auto file = simulation->file_behind(fd)) return answer(file->control(request, argument));
  }
  if (simulation != nullptr && _IOC_TYPE(request) == sync_file_type &&
      kernel::is_sync_file(*simulation->device(), fd)) {
    return answer(kernel::control_sync_file(*simulation->device(), fd, request, argument));
  }
  static constinit Next<Control> real("ioctl");
  return real.get()(fd, request, argument);
}

void* map(void* address, std::size_t bytes, int protection, int flags, int fd, off64_t offset) {
  using Map = void*(void*, std::size_t, int, int, int, off64_t);
  static constinit Next<Map> real("mmap64");
  Simulation* const simulation = (flags & MAP_ANONYMOUS) == 0 ? Simulation::with_open_files() : nullptr;
  const auto file = simulation == nullptr ? nullptr : simulation->file_behind(fd);
  if (file == nullptr) return real.get()(address, bytes, protection, flags, fd, offset);
  kernel::DeviceFile::Backing backing;
  const int error = file->find_backing(static_cast<std::uint64_t>(offset), bytes, backing);
  if (error != 0) {
    errno = error;
    return MAP_FAILED;
  }
  return real.get()(address, bytes, protection, flags, backing.fd, static_cast<off64_t>(backing.offset));
}

}  // namespace
}  // namespace kiln::simulator::shim

namespace shim = kiln::simulator::shim;

#pragma GCC visibility push(default)
extern "C" {

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return shim::control(fd, request, argument);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return shim::map(address, bytes, protection, flags, fd, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return shim::map(address, bytes, protection, flags, fd, offset);
}

// The text of the last fault of the process's simulated device, cut to `room` with its closing zero; its whole length.
// 0: there was none.
size_t kiln_amdgpu_sim_last_fault(char* text, size_t room) {
  shim::Simulation* const simulation = shim::Simulation::with_open_files();
  const std::string fault = simulation == nullptr ? std::string() : simulation->device()->journal.last_fault();
  if (room == 0) return fault.size();
  const size_t count = std::min(fault.size(), room - 1);
  std::memcpy(text, fault.data(), count);
  text[count] = '\0';
  return fault.size();
}

}  // extern "C"
#pragma GCC visibility pop

// Buffers that go to other files and processes, and come from them, by descriptor.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/buffers/buffer_table.hpp"

namespace kiln::simulator::kernel {
namespace {

// Written by a simulator, whose files have this name.
bool is_buffer_file(int fd) {
  std::array<char, 64> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return ::readlink(link.c_str(), target.data(), target.size() - 1) > 0 &&
         std::string_view(target.data()).starts_with("/memfd:kiln-sim-buffer");
}

}  // namespace

Answer BufferTable::export_to(drm_prime_handle& prime) const {
  const BufferPtr buffer = find(prime.handle);
  if (buffer == nullptr)
    return refuse(ENOENT, "export of buffer handle " + std::to_string(prime.handle) + ", which is none");
  if ((prime.flags & ~std::uint32_t{DRM_CLOEXEC | DRM_RDWR}) != 0)
    return refuse(EINVAL, "export flags " + hex(prime.flags));
  if (buffer->traits.heap == Heap::program || (buffer->traits.flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) != 0) {
    return refuse(EPERM, "export of a buffer that is always valid, or of memory of the program");
  }
  // Opened anew, so that it has a position of its own.
  const std::string link = "/proc/self/fd/" + std::to_string(buffer->fd());
  const int access = (prime.flags & DRM_RDWR) != 0 ? O_RDWR : O_RDONLY;
  UniqueFd fd(::open(link.c_str(), access | static_cast<int>(prime.flags & DRM_CLOEXEC)));
  const auto inode = inode_of(fd.get());
  if (!inode) return refuse(errno, "export of a buffer: " + std::string(std::strerror(errno)));
  device_.exported[*inode] = buffer;
  prime.fd = fd.release();
  return {};
}

Answer BufferTable::import_from(drm_prime_handle& prime) {
  const auto inode = inode_of(prime.fd);
  if (!inode) return refuse(EBADF, "import of descriptor " + std::to_string(prime.fd) + ", which is none");
  const auto at = device_.exported.find(*inode);
  BufferPtr buffer = at == device_.exported.end() ? nullptr : at->second.lock();
  const auto known = std::find_if(buffers_.begin(), buffers_.end(),
                                  [&buffer](const auto& entry) { return buffer != nullptr && entry.second == buffer; });
  if (known != buffers_.end()) {
    prime.handle = known->first;
    return {};
  }
  if (buffer == nullptr) {
    if (!is_buffer_file(prime.fd))
      return refuse(EINVAL, "import of descriptor " + std::to_string(prime.fd) + ", which is no buffer");
    UniqueFd own(::open(("/proc/self/fd/" + std::to_string(prime.fd)).c_str(), O_RDWR | O_CLOEXEC));
    const off_t bytes = own ? ::lseek(own.get(), 0, SEEK_END) : -1;
    if (bytes <= 0)
      return refuse(EINVAL, "import of descriptor " + std::to_string(prime.fd) + ": " + std::strerror(errno));
    BufferTraits traits;
    traits.id = device_.next_buffer_id();
    traits.bytes = static_cast<std::uint64_t>(bytes);
    traits.domains = AMDGPU_GEM_DOMAIN_GTT;
    traits.heap = Heap::gtt;
    traits.map_offset = device_.take_map_offset(traits.bytes);
    buffer = Buffer::adopt(traits, std::move(own), device_.heap_use);
    if (buffer == nullptr) return refuse(ENOMEM, "import of a buffer: " + std::string(std::strerror(errno)));
    device_.exported[*inode] = buffer;
  }
  prime.handle = add(std::move(buffer));
  return {};
}

}  // namespace kiln::simulator::kernel

#include "simulator/kernel/buffer_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/device.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t discardable = 1 << 12;  // younger than the system header
// VRAM_CONTIGUOUS and the flags for the kernel's own use are not among those that programs may ask for.
constexpr std::uint64_t known_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED | AMDGPU_GEM_CREATE_NO_CPU_ACCESS |
                                      AMDGPU_GEM_CREATE_CPU_GTT_USWC | AMDGPU_GEM_CREATE_VRAM_CLEARED |
                                      AMDGPU_GEM_CREATE_VM_ALWAYS_VALID | AMDGPU_GEM_CREATE_EXPLICIT_SYNC | discardable;
constexpr std::uint64_t known_domains = AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM;
constexpr std::uint32_t known_user_flags = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_ANONONLY |
                                           AMDGPU_GEM_USERPTR_VALIDATE | AMDGPU_GEM_USERPTR_REGISTER;

Answer check(const drm_amdgpu_gem_create_in& in) {
  if (in.bo_size == 0 || in.bo_size > (1ull << 47))
    return refuse(EINVAL, "buffer of " + std::to_string(in.bo_size) + " bytes");
  if ((in.domain_flags & ~known_flags) != 0) {
    return refuse(EINVAL, "buffer flags " + hex(in.domain_flags) +
                              ": not known or not for programs: " + hex(in.domain_flags & ~known_flags));
  }
  if (in.domains == 0 || (in.domains & ~known_domains) != 0) {
    return refuse(EINVAL,
                  "buffer domains " + hex(in.domains) + ": CPU, GTT and VRAM are simulated, on-chip memory is not");
  }
  if (in.alignment != 0 && !std::has_single_bit(in.alignment)) {
    return refuse(EINVAL, "buffer alignment " + hex(in.alignment) + " is no power of two");
  }
  return {};
}

// The first heap of those allowed that has room; a real kernel would evict others first.
Heap choose_heap(const Device& device, std::uint64_t domains, std::uint64_t bytes) {
  const auto fits = [bytes](std::uint64_t used, std::uint64_t size) { return bytes <= size && used <= size - bytes; };
  if ((domains & AMDGPU_GEM_DOMAIN_VRAM) != 0 && fits(device.heap_use->vram, device.target.vram_bytes))
    return Heap::vram;
  if ((domains & ~std::uint64_t{AMDGPU_GEM_DOMAIN_VRAM}) != 0 && fits(device.heap_use->gtt, device.target.gtt_bytes)) {
    return Heap::gtt;
  }
  return Heap::invalid;
}

Answer unknown(std::uint32_t handle) { return refuse(ENOENT, "buffer handle " + std::to_string(handle) + " is none"); }

}  // namespace

std::uint32_t BufferTable::add(BufferPtr buffer) {
  device_.register_buffer(buffer);
  do {
    ++last_handle_;
  } while (last_handle_ == 0 || buffers_.contains(last_handle_));
  buffers_[last_handle_] = std::move(buffer);
  return last_handle_;
}

BufferPtr BufferTable::find(std::uint32_t handle) const {
  const auto at = buffers_.find(handle);
  return at == buffers_.end() ? nullptr : at->second;
}

Answer BufferTable::create(drm_amdgpu_gem_create& create) {
  const drm_amdgpu_gem_create_in in = create.in;
  if (Answer refusal = check(in)) return refusal;
  if (device_.settings.faults.fails_buffer(++device_.counters.buffers_created)) {
    return refuse(ENOMEM, "planted: buffer " + std::to_string(device_.counters.buffers_created));
  }
  BufferTraits traits;
  traits.bytes = (in.bo_size + page - 1) / page * page;
  traits.alignment = in.alignment;
  traits.domains = in.domains;
  traits.flags = in.domain_flags;
  traits.heap = choose_heap(device_, in.domains, traits.bytes);
  if (traits.heap == Heap::invalid) {
    return refuse(ENOMEM,
                  "buffer of " + std::to_string(traits.bytes) + " bytes: no room in domains " + hex(in.domains));
  }
  traits.id = device_.next_buffer_id();
  traits.map_offset = device_.take_map_offset(traits.bytes);
  BufferPtr buffer = Buffer::create(traits, device_.heap_use);
  if (buffer == nullptr) {
    return refuse(ENOMEM,
                  "buffer of " + std::to_string(traits.bytes) + " bytes: the host has none: " + std::strerror(errno));
  }
  create = {};
  create.out.handle = add(std::move(buffer));
  return {};
}

Answer BufferTable::create_of_program(drm_amdgpu_gem_userptr& user) {
  if ((user.flags & ~known_user_flags) != 0) return refuse(EINVAL, "user pointer flags " + hex(user.flags));
  if (user.size == 0 || user.addr % page != 0 || user.size % page != 0) {
    return refuse(EINVAL, "user pointer " + hex(user.addr) + " of " + hex(user.size) + " bytes is not of whole pages");
  }
  if ((user.flags & (AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_REGISTER)) == 0) {
    return refuse(EACCES, "user pointer that may be written needs REGISTER");
  }
  // NOLINTNEXTLINE: an address that the program gives as a number
  auto* const address = reinterpret_cast<std::byte*>(user.addr);
  if (::msync(address, user.size, MS_ASYNC) != 0) {
    return refuse(EFAULT, "user pointer " + hex(user.addr) + " of " + hex(user.size) + " bytes is not all mapped");
  }
  BufferTraits traits;
  traits.id = device_.next_buffer_id();
  traits.bytes = user.size;
  traits.domains = AMDGPU_GEM_DOMAIN_GTT;
  traits.heap = Heap::program;
  user.handle = add(Buffer::of_program(traits, address));
  return {};
}

Answer BufferTable::close(const drm_gem_close& close) {
  const auto at = buffers_.find(close.handle);
  if (at == buffers_.end())
    return refuse(EINVAL, "close of buffer handle " + std::to_string(close.handle) + ", which is none");
  pages_.remove_buffer(at->second->traits.id);
  buffers_.erase(at);
  return {};
}

Answer BufferTable::map_offset(drm_amdgpu_gem_mmap& map) const {
  const BufferPtr buffer = find(map.in.handle);
  if (buffer == nullptr) return unknown(map.in.handle);
  if (buffer->traits.heap == Heap::program || (buffer->traits.flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS) != 0) {
    return refuse(EPERM, "buffer handle " + std::to_string(map.in.handle) + " may not be mapped by the host");
  }
  map.out.addr_ptr = buffer->traits.map_offset;
  return {};
}

Answer BufferTable::metadata(drm_amdgpu_gem_metadata& metadata) const {
  const BufferPtr buffer = find(metadata.handle);
  if (buffer == nullptr) return unknown(metadata.handle);
  BufferMetadata& kept = buffer->metadata;
  auto& data = metadata.data;
  if (metadata.op == AMDGPU_GEM_METADATA_OP_GET_METADATA) {
    data.flags = kept.flags;
    data.tiling_info = kept.tiling;
    data.data_size_bytes = kept.bytes;
    std::copy(kept.data.begin(), kept.data.end(), std::begin(data.data));
    return {};
  }
  if (metadata.op != AMDGPU_GEM_METADATA_OP_SET_METADATA)
    return refuse(EINVAL, "metadata operation " + std::to_string(metadata.op));
  if (data.data_size_bytes > sizeof data.data) {
    return refuse(EINVAL, "metadata of " + std::to_string(data.data_size_bytes) + " bytes: 256 at most");
  }
  kept = {data.flags, data.tiling_info, data.data_size_bytes, {}};
  std::memcpy(kept.data.data(), data.data, data.data_size_bytes);
  return {};
}

Answer BufferTable::operate(const drm_amdgpu_gem_op& operation) const {
  const BufferPtr buffer = find(operation.handle);
  if (buffer == nullptr) return unknown(operation.handle);
  if (operation.op == AMDGPU_GEM_OP_GET_GEM_CREATE_INFO) {
    if (operation.value == 0) return refuse(EFAULT, "creation facts of a buffer to address 0");
    const drm_amdgpu_gem_create_in facts{buffer->traits.bytes, buffer->traits.alignment, buffer->domains_now,
                                         buffer->traits.flags};
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(reinterpret_cast<void*>(operation.value), &facts, sizeof facts);
    return {};
  }
  if (operation.op != AMDGPU_GEM_OP_SET_PLACEMENT)
    return refuse(EINVAL, "buffer operation " + std::to_string(operation.op));
  if (buffer->traits.heap == Heap::program) return refuse(EPERM, "placement of memory of the program");
  if (operation.value == 0 || (operation.value & ~known_domains) != 0) {
    return refuse(EINVAL, "placement in domains " + hex(operation.value));
  }
  buffer->domains_now = operation.value;
  return {};
}

Answer BufferTable::wait_idle(drm_amdgpu_gem_wait_idle& wait, const Fences& jobs,
                              std::unique_lock<std::mutex>& lock) const {
  const BufferPtr buffer = find(wait.in.handle);
  if (buffer == nullptr) return unknown(wait.in.handle);
  if (wait.in.flags != 0) return refuse(EINVAL, "wait for a buffer with flags " + hex(wait.in.flags));
  const Deadline deadline = Deadline::of_driver(wait.in.timeout);
  Fences fences;
  buffer->wait_for_all(fences);
  if ((buffer->traits.flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) != 0) {
    fences.insert(fences.end(), jobs.begin(), jobs.end());
  }
  const bool idle = wait_until(device_, lock, deadline, [&fences] { return all_signaled(fences); });
  wait = {};
  wait.out.status = idle ? 0 : 1;
  wait.out.domain = buffer->traits.heap == Heap::vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT;
  return {};
}

BufferPtr BufferTable::at_offset(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& inside) const {
  for (const auto& [handle, buffer] : buffers_) {
    const BufferTraits& traits = buffer->traits;
    if (traits.map_offset == 0 || offset < traits.map_offset || offset - traits.map_offset >= traits.bytes) continue;
    inside = offset - traits.map_offset;
    return bytes <= traits.bytes - inside ? buffer : nullptr;
  }
  return nullptr;
}

Answer read_buffer_list(const drm_amdgpu_bo_list_in& in, const BufferTable& buffers, BufferList& list) {
  if (in.bo_info_size != sizeof(drm_amdgpu_bo_list_entry)) {
    return refuse(EINVAL, "buffer list with entries of " + std::to_string(in.bo_info_size) + " bytes: 8 is known");
  }
  if (in.bo_number > 0 && in.bo_info_ptr == 0) return refuse(EFAULT, "buffer list at address 0");
  list.clear();
  list.reserve(in.bo_number);
  for (std::uint32_t i = 0; i < in.bo_number; ++i) {
    drm_amdgpu_bo_list_entry entry{};
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(&entry, reinterpret_cast<const std::byte*>(in.bo_info_ptr) + i * sizeof entry, sizeof entry);
    BufferPtr buffer = buffers.find(entry.bo_handle);
    if (buffer == nullptr) {
      return refuse(ENOENT, "buffer list entry " + std::to_string(i) + ": handle " + std::to_string(entry.bo_handle) +
                                " is none");
    }
    list.push_back(std::move(buffer));
  }
  return {};
}

Answer BufferLists::operate(drm_amdgpu_bo_list& operation, const BufferTable& buffers) {
  const drm_amdgpu_bo_list_in in = operation.in;
  if (in.operation > AMDGPU_BO_LIST_OP_UPDATE)
    return refuse(EINVAL, "buffer list operation " + std::to_string(in.operation));
  const auto known = lists_.find(in.list_handle);
  if (in.operation != AMDGPU_BO_LIST_OP_CREATE && known == lists_.end()) {
    return refuse(ENOENT, "buffer list " + std::to_string(in.list_handle) + " is none");
  }
  operation = {};
  if (in.operation == AMDGPU_BO_LIST_OP_DESTROY) {
    lists_.erase(known);
    return {};
  }
  BufferList list;
  if (Answer refusal = read_buffer_list(in, buffers, list)) return refusal;
  const std::uint32_t handle = in.operation == AMDGPU_BO_LIST_OP_CREATE ? ++last_handle_ : in.list_handle;
  lists_[handle] = std::move(list);
  operation.out.list_handle = handle;
  return {};
}

const BufferList* BufferLists::find(std::uint32_t handle) const {
  const auto at = lists_.find(handle);
  return at == lists_.end() ? nullptr : &at->second;
}

// Buffers that go to other files and processes, and come from them, by descriptor.

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

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t base = 0xffff'8000'0010'0000;

int export_buffer(TestFile& file, std::uint32_t handle, int& fd, std::uint32_t flags = DRM_CLOEXEC | DRM_RDWR) {
  drm_prime_handle prime{handle, flags, -1};
  const int error = file.control(DRM_IOCTL_PRIME_HANDLE_TO_FD, prime);
  fd = prime.fd;
  return error;
}

int import_buffer(TestFile& file, int fd, std::uint32_t& handle) {
  drm_prime_handle prime{0, 0, fd};
  const int error = file.control(DRM_IOCTL_PRIME_FD_TO_HANDLE, prime);
  handle = prime.handle;
  return error;
}

int set_metadata(TestFile& file, std::uint32_t handle, std::uint32_t bytes, std::uint32_t first) {
  drm_amdgpu_gem_metadata metadata{};
  metadata.handle = handle;
  metadata.op = AMDGPU_GEM_METADATA_OP_SET_METADATA;
  metadata.data.tiling_info = 0x1234;
  metadata.data.data_size_bytes = bytes;
  metadata.data.data[0] = first;
  return file.control(DRM_IOCTL_AMDGPU_GEM_METADATA, metadata);
}

}  // namespace

TEST_CASE("simulated kernel: a buffer is zeroed memory that the host maps") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(10'000);
  std::byte* const first = file.host(handle);
  REQUIRE(first != nullptr);
  for (int i = 0; i < 4096; ++i) REQUIRE(first[i] == std::byte{0});
  first[17] = std::byte{42};
  CHECK(file.host(handle)[17] == std::byte{42});
  union drm_amdgpu_gem_mmap map {};
  map.in.handle = handle;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) == 0);
  DeviceFile::Backing backing;
  CHECK(file.file.find_backing(map.out.addr_ptr + 8192, 4096, backing) == 0);
  CHECK(backing.offset == 8192);
  CHECK(file.file.find_backing(map.out.addr_ptr + 8192, 8192, backing) == EINVAL);
  CHECK(file.close(handle) == 0);
  CHECK(file.file.find_backing(map.out.addr_ptr, 4096, backing) == EINVAL);
  CHECK(file.close(handle) == EINVAL);
}

TEST_CASE("simulated kernel: buffers that make no sense are refused") {
  TestDevice device;
  TestFile file(device);
  const auto in = [](std::uint64_t bytes, std::uint64_t alignment, std::uint64_t domains, std::uint64_t flags) {
    return drm_amdgpu_gem_create_in{bytes, alignment, domains, flags};
  };
  CHECK(file.try_buffer(in(0, 0, AMDGPU_GEM_DOMAIN_VRAM, 0)) == EINVAL);
  CHECK(file.try_buffer(in(4096, 3, AMDGPU_GEM_DOMAIN_VRAM, 0)) == EINVAL);
  CHECK(file.try_buffer(in(4096, 0, 0, 0)) == EINVAL);
  CHECK(file.try_buffer(in(4096, 0, AMDGPU_GEM_DOMAIN_GDS, 0)) == EINVAL);
  CHECK(file.try_buffer(in(4096, 0, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_ENCRYPTED)) == EINVAL);
  CHECK(file.try_buffer(in(4096, 0, AMDGPU_GEM_DOMAIN_VRAM, 1ull << 40)) == EINVAL);
  CHECK(file.try_buffer(in(1ull << 40, 0, AMDGPU_GEM_DOMAIN_VRAM, 0)) == ENOMEM);
  CHECK_THAT(device.journal(), Catch::Contains("GEM_CREATE refused with errno 12"));
  // Where one heap is full, another that is allowed is taken.
  CHECK(file.try_buffer(in(20ull << 30, 0, AMDGPU_GEM_DOMAIN_GTT, 0)) == ENOMEM);
  CHECK(file.try_buffer(in(20ull << 30, 0, AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM, 0)) == 0);
}

TEST_CASE("simulated kernel: a planted shortage meets the buffer that was meant") {
  TestDevice device("enomem_buffer@2");
  TestFile file(device);
  const drm_amdgpu_gem_create_in in{4096, 0, AMDGPU_GEM_DOMAIN_VRAM, 0};
  CHECK(file.try_buffer(in) == 0);
  CHECK(file.try_buffer(in) == ENOMEM);
  CHECK(file.try_buffer(in) == 0);
}

TEST_CASE("simulated kernel: the host is kept from buffers that are not for it") {
  TestDevice device;
  TestFile file(device);
  CHECK(file.host(file.buffer(4096, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS)) == nullptr);
  CHECK(file.host(12345) == nullptr);
}

TEST_CASE("simulated kernel: addresses are mapped, kept apart, replaced and cleared") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(16384), other = file.buffer(16384);
  CHECK(file.map(handle, base, 16384) == 0);
  CHECK(file.map(other, base + 8192, 4096) == EINVAL);
  CHECK(file.map(other, base + 8192, 4096, AMDGPU_VA_OP_REPLACE) == 0);
  CHECK(file.map(other, base, 16384, AMDGPU_VA_OP_UNMAP) == ENOENT);
  CHECK(file.map(0, base, 16384, AMDGPU_VA_OP_CLEAR) == 0);
  CHECK(file.map(other, base, 16384) == 0);
  CHECK(file.map(other, base, 16384, AMDGPU_VA_OP_UNMAP) == 0);
  CHECK(file.map(other, base, 16384, AMDGPU_VA_OP_UNMAP) == ENOENT);
  CHECK(file.map(handle, base, 16384) == 0);
  CHECK(file.close(handle) == 0);  // its mappings go with it
  CHECK(file.map(other, base, 16384) == 0);
}

TEST_CASE("simulated kernel: mappings that make no sense are refused") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(16384);
  constexpr std::uint32_t map = AMDGPU_VA_OP_MAP;
  CHECK(file.map(handle, base, 20480) == EINVAL);
  CHECK(file.map(handle, base + 1, 4096) == EINVAL);
  CHECK(file.map(handle, base, 100) == EINVAL);
  CHECK(file.map(handle, base, 0) == EINVAL);
  CHECK(file.map(handle, 0x1000, 4096) == EINVAL);                 // the first part is the kernel's
  CHECK(file.map(handle, 0x0000'8000'0000'0000, 4096) == EINVAL);  // the hole
  CHECK(file.map(handle, 0xffff'ffff'ffff'f000, 8192) == EINVAL);
  CHECK(file.map(handle, base, 4096, map, 1u << 20) == EINVAL);
  CHECK(file.map(handle, base, 4096, map, AMDGPU_VM_MTYPE_MASK) == EINVAL);
  CHECK(file.map(handle, base, 4096, 9) == EINVAL);
  CHECK(file.map(777, base, 4096) == ENOENT);
}

TEST_CASE("simulated kernel: a sparse range is kept until buffers take its place") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(8192);
  CHECK(file.map(0, base, 65536, AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT) == 0);
  CHECK(file.map(0, base + 4096, 4096, AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT) == EINVAL);
  CHECK(file.map(handle, base + 8192, 8192) == EINVAL);
  CHECK(file.map(handle, base + 8192, 8192, AMDGPU_VA_OP_REPLACE) == 0);
  CHECK(file.map(0, base + 8192, 4096, AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT) == EINVAL);
  CHECK(file.map(0, base + 8192, 8192, AMDGPU_VA_OP_REPLACE, AMDGPU_VM_PAGE_PRT) == 0);
  CHECK(file.map(0, base, 65536, AMDGPU_VA_OP_UNMAP, AMDGPU_VM_PAGE_PRT) == 0);
  CHECK(file.map(0, base, 65536, AMDGPU_VA_OP_UNMAP, AMDGPU_VM_PAGE_PRT) == ENOENT);
  CHECK(file.map(handle, base + 8192, 8192) == 0);
}

TEST_CASE("simulated kernel: a buffer goes to another file and keeps its handle there") {
  TestDevice device;
  TestFile file(device), other(device);
  const std::uint32_t handle = file.buffer(8192);
  file.host(handle)[5] = std::byte{9};
  CHECK(set_metadata(file, handle, 4, 0xabcd) == 0);
  int fd = -1;
  REQUIRE(export_buffer(file, handle, fd) == 0);
  CHECK(::lseek(fd, 0, SEEK_END) == 8192);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  std::uint32_t there = 0, again = 0, back = 0;
  REQUIRE(import_buffer(other, fd, there) == 0);
  REQUIRE(import_buffer(other, fd, again) == 0);
  CHECK(there == again);
  REQUIRE(import_buffer(file, fd, back) == 0);
  CHECK(back == handle);
  CHECK(other.host(there)[5] == std::byte{9});
  drm_amdgpu_gem_metadata metadata{};
  metadata.handle = there;
  metadata.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
  REQUIRE(other.control(DRM_IOCTL_AMDGPU_GEM_METADATA, metadata) == 0);
  CHECK(metadata.data.tiling_info == 0x1234);
  CHECK(metadata.data.data[0] == 0xabcd);
  CHECK(file.close(handle) == 0);
  CHECK(other.host(there)[5] == std::byte{9});
  ::close(fd);
}

TEST_CASE("simulated kernel: a buffer goes to another device as between processes") {
  TestDevice device, foreign;
  TestFile file(device), other(foreign);
  const std::uint32_t handle = file.buffer(8192);
  int fd = -1;
  REQUIRE(export_buffer(file, handle, fd) == 0);
  std::uint32_t there = 0;
  REQUIRE(import_buffer(other, fd, there) == 0);
  ::close(fd);
  file.host(handle)[100] = std::byte{3};
  CHECK(other.host(there)[100] == std::byte{3});
}

TEST_CASE("simulated kernel: what may not be shared is not") {
  TestDevice device;
  TestFile file(device);
  int fd = -1;
  CHECK(export_buffer(file, file.buffer(4096, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_VM_ALWAYS_VALID), fd) == EPERM);
  CHECK(export_buffer(file, file.buffer(), fd, 0x40) == EINVAL);
  CHECK(export_buffer(file, 99, fd) == ENOENT);
  std::uint32_t handle = 0;
  CHECK(import_buffer(file, -1, handle) == EBADF);
  const int foreign = ::memfd_create("no buffer", MFD_CLOEXEC);
  CHECK(import_buffer(file, foreign, handle) == EINVAL);
  ::close(foreign);
}

TEST_CASE("simulated kernel: metadata and facts of a buffer") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(5000, AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_CPU_GTT_USWC);
  CHECK(set_metadata(file, handle, 257, 0) == EINVAL);
  drm_amdgpu_gem_create_in facts{};
  drm_amdgpu_gem_op operation{handle, AMDGPU_GEM_OP_GET_GEM_CREATE_INFO, reinterpret_cast<std::uint64_t>(&facts)};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_OP, operation) == 0);
  CHECK(facts.bo_size == 8192);
  CHECK(facts.domains == AMDGPU_GEM_DOMAIN_GTT);
  CHECK(facts.domain_flags == AMDGPU_GEM_CREATE_CPU_GTT_USWC);
  operation.op = AMDGPU_GEM_OP_SET_PLACEMENT;
  operation.value = AMDGPU_GEM_DOMAIN_VRAM;
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_OP, operation) == 0);
  operation.op = 5;
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_OP, operation) == EINVAL);
}

TEST_CASE("simulated kernel: memory of the program becomes a buffer") {
  TestDevice device;
  TestFile file(device);
  void* memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const auto user = [&](std::uint64_t at, std::uint64_t bytes, std::uint32_t flags) {
    drm_amdgpu_gem_userptr pointer{at, bytes, flags, 0};
    const int error = file.control(DRM_IOCTL_AMDGPU_GEM_USERPTR, pointer);
    return error == 0 && pointer.handle == 0 ? -1 : error;
  };
  constexpr std::uint32_t usual =
      AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
  CHECK(user(address, 8192, usual) == 0);
  CHECK(user(address + 1, 4096, usual) == EINVAL);
  CHECK(user(address, 100, usual) == EINVAL);
  CHECK(user(address, 8192, 0) == EACCES);
  CHECK(user(address, 8192, 1u << 9) == EINVAL);
  ::munmap(memory, 8192);
  CHECK(user(address, 8192, usual) == EFAULT);
}

TEST_CASE("simulated kernel: lists of buffers live under handles") {
  TestDevice device;
  TestFile file(device);
  const auto operate = [&file](std::uint32_t operation, std::uint32_t& handle, std::uint32_t buffer,
                               std::uint32_t size = 8) {
    const drm_amdgpu_bo_list_entry entry{buffer, 0};
    union drm_amdgpu_bo_list list {};
    list.in = {operation, handle, 1, size, reinterpret_cast<std::uint64_t>(&entry)};
    const int error = file.control(DRM_IOCTL_AMDGPU_BO_LIST, list);
    if (error == 0) handle = list.out.list_handle;
    return error;
  };
  const std::uint32_t buffer = file.buffer();
  std::uint32_t handle = 0;
  CHECK(operate(AMDGPU_BO_LIST_OP_CREATE, handle, 77) == ENOENT);
  CHECK(operate(AMDGPU_BO_LIST_OP_CREATE, handle, buffer, 16) == EINVAL);
  CHECK(operate(AMDGPU_BO_LIST_OP_CREATE, handle, buffer) == 0);
  CHECK(handle != 0);
  CHECK(operate(AMDGPU_BO_LIST_OP_UPDATE, handle, buffer) == 0);
  std::uint32_t gone = handle;
  CHECK(operate(AMDGPU_BO_LIST_OP_DESTROY, gone, 0) == 0);
  CHECK(operate(AMDGPU_BO_LIST_OP_UPDATE, handle, buffer) == ENOENT);
  CHECK(operate(9, handle, buffer) == EINVAL);
}

}  // namespace kiln::simulator::kernel::test

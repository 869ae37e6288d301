#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

TEST_CASE("simulated kernel: what a buffer may be, and what it may not") {
  struct Case {
    std::uint64_t bytes, alignment, domains, flags;
    int error;
  };
  constexpr std::uint64_t most = 1ULL << 47, vram = AMDGPU_GEM_DOMAIN_VRAM;
  const Case cases[] = {
      {1, 0, vram, 0, 0},
      {most, 0, vram, 0, ENOMEM},  // a size like others, but no heap is as large
      {most + 1, 0, vram, 0, EINVAL},
      {4096, 1, vram, 0, 0},
      {4096, 1 << 21, vram, 0, 0},
      {4096, (1 << 21) + 1, vram, 0, EINVAL},
      {4096, 0, AMDGPU_GEM_DOMAIN_CPU, 0, 0},
      {4096, 0, vram | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_CPU, 0, 0},
      {4096, 0, vram | AMDGPU_GEM_DOMAIN_GWS, 0, EINVAL},
      {4096, 0, vram | AMDGPU_GEM_DOMAIN_OA, 0, EINVAL},
      {4096, 0, vram, 0x10CF, 0},  // all that are known
      {4096, 0, vram, 1 << 4, EINVAL},
      {4096, 0, vram, AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS, EINVAL},
      {4096, 0, vram, 1 << 8, EINVAL},
      {4096, 0, vram, 1 << 11, EINVAL},
      {4096, 0, vram, 1 << 13, EINVAL},
  };
  TestDevice device;
  TestFile file(device);
  for (const Case& one : cases) {
    CAPTURE(one.bytes, one.alignment, one.domains, one.flags);
    CHECK(file.try_buffer({one.bytes, one.alignment, one.domains, one.flags}) == one.error);
  }
}

TEST_CASE("simulated kernel: a heap is given away to its last page, and a buffer's end gives it back") {
  TestDevice device;
  TestFile file(device);
  constexpr std::uint64_t gtt = 16'746'784'768 / 4096 * 4096;  // whole pages of it
  const std::uint32_t page = file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT);
  CHECK(file.try_buffer({gtt - 4095, 0, AMDGPU_GEM_DOMAIN_GTT, 0}) == ENOMEM);
  const std::uint32_t rest = file.buffer(gtt - 4096, AMDGPU_GEM_DOMAIN_GTT);
  CHECK(file.try_buffer({1, 0, AMDGPU_GEM_DOMAIN_CPU, 0}) == ENOMEM);
  CHECK(file.try_buffer({1, 0, AMDGPU_GEM_DOMAIN_VRAM, 0}) == 0);
  CHECK(device.device->heap_use->gtt == gtt);
  CHECK(device.device->heap_use->vram == 4096);
  CHECK(file.close(page) == 0);
  CHECK(file.try_buffer({1, 0, AMDGPU_GEM_DOMAIN_CPU, 0}) == 0);
  CHECK(file.close(rest) == 0);
  CHECK(device.device->heap_use->gtt == 4096);
}

TEST_CASE("simulated kernel: places in the device file follow each other, and lie out of a program's way") {
  TestDevice device;
  TestFile file(device);
  const auto place = [&](std::uint32_t handle) {
    union drm_amdgpu_gem_mmap map {};
    map.in.handle = handle;
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) == 0);
    return map.out.addr_ptr;
  };
  const std::uint32_t first = file.buffer(8193), second = file.buffer(4096);
  CHECK(place(first) == 0x1'0000'0000);
  CHECK(place(second) == 0x1'0000'3000);
  DeviceFile::Backing backing;
  CHECK(file.file.find_backing(0xFFFF'F000, 4096, backing) == EINVAL);
  CHECK(file.file.find_backing(0x1'0000'2000, 4097, backing) == EINVAL);
  REQUIRE(file.file.find_backing(0x1'0000'2000, 4096, backing) == 0);
  CHECK(backing.offset == 8192);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur > 2048) CHECK(backing.fd >= 1024);
  REQUIRE(file.file.find_backing(0x1'0000'3000, 4096, backing) == 0);
  CHECK(backing.offset == 0);
  CHECK(file.file.find_backing(0x1'0000'4000, 1, backing) == EINVAL);
  CHECK_THAT(device.journal(),
             Catch::Contains("mapping of the device at 0x100004000 of 0x1 bytes: no buffer lies there"));
}

TEST_CASE("simulated kernel: operations on buffers that make no sense are refused") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer();
  drm_amdgpu_gem_create_in facts{};
  const auto address = reinterpret_cast<std::uint64_t>(&facts);
  const auto operate = [&](std::uint32_t of, std::uint32_t operation, std::uint64_t value) {
    drm_amdgpu_gem_op in{of, operation, value};
    return file.control(DRM_IOCTL_AMDGPU_GEM_OP, in);
  };
  constexpr std::uint32_t get = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO, place = AMDGPU_GEM_OP_SET_PLACEMENT;
  CHECK(operate(99, get, address) == ENOENT);
  CHECK(operate(handle, get, 0) == EFAULT);
  CHECK(operate(handle, place, 0) == EINVAL);
  CHECK(operate(handle, place, AMDGPU_GEM_DOMAIN_GDS) == EINVAL);
  CHECK(operate(handle, place, AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT) == 0);
  REQUIRE(operate(handle, get, address) == 0);
  CHECK(facts.domains == (AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT));

  CHECK(set_metadata(file, 99, 4, 0) == ENOENT);
  CHECK(set_metadata(file, handle, 256, 7) == 0);
  drm_amdgpu_gem_metadata metadata{};
  metadata.handle = handle;
  metadata.op = 3;
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_METADATA, metadata) == EINVAL);
  metadata.op = AMDGPU_GEM_METADATA_OP_SET_METADATA;
  metadata.data.flags = 5;
  metadata.data.data_size_bytes = 8;
  for (auto& word : metadata.data.data) word = 9;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_METADATA, metadata) == 0);
  metadata = {};
  metadata.handle = handle;
  metadata.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_METADATA, metadata) == 0);
  CHECK(metadata.data.flags == 5);
  CHECK(metadata.data.tiling_info == 0);
  CHECK(metadata.data.data_size_bytes == 8);
  CHECK(metadata.data.data[1] == 9);
  CHECK(metadata.data.data[2] == 0);

  union drm_amdgpu_gem_wait_idle wait {};
  wait.in = {99, 0, 0};
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == ENOENT);
  wait.in = {handle, 1, 0};
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == EINVAL);
  wait.in = {handle, 0, 0};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == 0);
  CHECK(wait.out.status == 0);
  CHECK(wait.out.domain == AMDGPU_GEM_DOMAIN_VRAM);
}

TEST_CASE("simulated kernel: a buffer that is always valid is idle when every job of its file has ended") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t always = file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_VM_ALWAYS_VALID);
  const std::uint32_t other = file.buffer(), context = file.context();
  const auto busy = [&](std::uint32_t handle, std::uint64_t timeout) {
    union drm_amdgpu_gem_wait_idle wait {};
    wait.in = {handle, 0, timeout};
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == 0);
    return wait.out.status == 1;
  };
  device.engine->close_gate();
  REQUIRE(TestSubmission(context, base).submit(file) == 0);
  CHECK(busy(always, 0));
  CHECK_FALSE(busy(other, 0));
  device.engine->open_gate();
  CHECK_FALSE(busy(always, static_cast<std::uint64_t>(in_ms(10'000))));
}

TEST_CASE("simulated kernel: memory of the program is neither mapped again, nor shared, nor placed") {
  TestDevice device;
  TestFile file(device);
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  drm_amdgpu_gem_userptr user{reinterpret_cast<std::uint64_t>(memory), 0, AMDGPU_GEM_USERPTR_READONLY, 0};
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user) == EINVAL);
  user.size = 4096;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user) == 0);
  union drm_amdgpu_gem_mmap map {};
  map.in.handle = user.handle;
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) == EPERM);
  map.in.handle = file.buffer(4096, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) == EPERM);
  map.in.handle = 12345;
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) == ENOENT);
  int fd = -1;
  CHECK(export_buffer(file, user.handle, fd) == EPERM);
  drm_amdgpu_gem_op operation{user.handle, AMDGPU_GEM_OP_SET_PLACEMENT, AMDGPU_GEM_DOMAIN_GTT};
  CHECK(file.control(DRM_IOCTL_AMDGPU_GEM_OP, operation) == EPERM);
  CHECK(device.device->heap_use->gtt == 0);
  const std::uint32_t context = file.context();
  TestSubmission fence(context, base);
  fence.add(AMDGPU_CHUNK_ID_FENCE, std::vector<drm_amdgpu_cs_chunk_fence>{{user.handle, 0}});
  CHECK(fence.submit(file) == EINVAL);
  CHECK(file.close(user.handle) == 0);
  ::munmap(memory, 4096);
}

TEST_CASE("simulated kernel: a descriptor of a buffer is as its flags ask") {
  TestDevice device;
  TestFile file(device), other(device);
  const std::uint32_t handle = file.buffer();
  for (const std::uint32_t flags : {0U, std::uint32_t{DRM_RDWR}, std::uint32_t{DRM_CLOEXEC}}) {
    int fd = -1;
    REQUIRE(export_buffer(file, handle, fd, flags) == 0);
    CHECK((::fcntl(fd, F_GETFL) & O_ACCMODE) == ((flags & DRM_RDWR) != 0 ? O_RDWR : O_RDONLY));
    CHECK(((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) == ((flags & DRM_CLOEXEC) != 0));
    ::close(fd);
  }
  // Its file without a device that knows it: as of another process. An empty one is no buffer.
  const int empty = ::memfd_create("kiln-sim-buffer", MFD_CLOEXEC);
  std::uint32_t there = 0;
  CHECK(import_buffer(other, empty, there) == EINVAL);
  REQUIRE(::ftruncate(empty, 8192) == 0);
  REQUIRE(import_buffer(other, empty, there) == 0);
  CHECK(device.device->heap_use->gtt == 8192);
  drm_amdgpu_gem_create_in facts{};
  drm_amdgpu_gem_op operation{there, AMDGPU_GEM_OP_GET_GEM_CREATE_INFO, reinterpret_cast<std::uint64_t>(&facts)};
  REQUIRE(other.control(DRM_IOCTL_AMDGPU_GEM_OP, operation) == 0);
  CHECK(facts.bo_size == 8192);
  CHECK(facts.domains == AMDGPU_GEM_DOMAIN_GTT);
  ::close(empty);
}

}  // namespace kiln::simulator::kernel::test

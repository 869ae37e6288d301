// What the ioctl for addresses makes of the page table that jobs see.
#include <catch2/catch.hpp>
#include <cerrno>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t base = 0xffff'8000'0010'0000;
constexpr std::uint32_t map = AMDGPU_VA_OP_MAP, clear = AMDGPU_VA_OP_CLEAR, replace = AMDGPU_VA_OP_REPLACE;
constexpr std::uint32_t sparse = AMDGPU_VM_PAGE_PRT;

// The addresses as a job submitted now sees them.
std::shared_ptr<const AddressSpace> seen(TestDevice& device, TestFile& file, std::uint32_t context) {
  REQUIRE(TestSubmission(context, base).submit(file) == 0);
  REQUIRE(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
  return device.engine->jobs().back().space;
}

// A letter a page from `base` on: m mapped, s sparse, '.' neither.
std::string layout(const AddressSpace& space, unsigned pages) {
  std::string text;
  for (std::uint64_t at = base; at != base + pages * 4096ULL; at += 4096) {
    text += space.find(at) != nullptr ? 'm' : space.is_sparse(at) ? 's' : '.';
  }
  return text;
}

}  // namespace

TEST_CASE("simulated kernel: programs map within their two ranges, to the last page") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(8192);
  struct Case {
    std::uint64_t start, bytes;
    int error;
  };
  for (const Case& one : {Case{0x20'0000, 4096, 0},
                          {0x1f'f000, 4096, EINVAL},
                          {0x7fff'ffff'f000, 4096, 0},
                          {0x7fff'ffff'e000, 8192, EINVAL},  // the last of them is mapped
                          {0x7fff'ffff'f000, 8192, EINVAL},
                          {0x8000'0000'0000, 4096, EINVAL},
                          {0xffff'7fff'ffff'f000, 4096, EINVAL},
                          {0xffff'8000'0000'0000, 8192, 0},
                          {0xffff'ffff'ffdf'f000, 4096, 0},
                          {0xffff'ffff'ffdf'f000, 8192, EINVAL},
                          {0xffff'ffff'ffe0'0000, 4096, EINVAL}}) {
    CAPTURE(one.start, one.bytes);
    CHECK(file.map(handle, one.start, one.bytes) == one.error);
  }
}

TEST_CASE("simulated kernel: operations, flags and kinds of memory that are known, and the first that are not") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer();
  CHECK(file.map(handle, base, 4096, 0) == EINVAL);
  CHECK(file.map(handle, base, 4096, replace) == 0);
  CHECK(file.map(handle, base, 4096, replace + 1) == EINVAL);
  CHECK(file.map(handle, base, 4096, replace, AMDGPU_VM_MTYPE_RW) == 0);
  CHECK(file.map(handle, base, 4096, replace, 6 << 5) == EINVAL);
  CHECK(file.map(handle, base, 4096, replace, AMDGPU_VM_DELAY_UPDATE | 1 << 9) == 0);
  CHECK(file.map(handle, base, 4096, replace, 1 << 10) == EINVAL);
}

TEST_CASE("simulated kernel: a mapping has the rights, the caching and the place that it was made with") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(16384), context = file.context();
  drm_amdgpu_gem_va place{handle, 0, map, AMDGPU_VM_PAGE_READABLE, base, 8192, 4096};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_VA, place) == 0);
  REQUIRE(file.map(handle, base + 4096, 4096, map, AMDGPU_VM_PAGE_WRITEABLE) == 0);
  REQUIRE(file.map(handle, base + 8192, 4096, map, AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_MTYPE_UC) == 0);
  REQUIRE(file.map(handle, base + 12288, 4096, map, AMDGPU_VM_MTYPE_CC) == 0);
  const auto space = seen(device, file, context);
  for (std::uint64_t page = 0; page < 4; ++page) {
    CAPTURE(page);
    const Mapping* one = space->find(base + page * 4096);
    REQUIRE(one != nullptr);
    CHECK(one->rights.read == (page == 0));
    CHECK(one->rights.write == (page == 1));
    CHECK(one->rights.execute == (page == 2));
    CHECK(one->caching == (page == 2 ? Caching::uncached : Caching::cached));
    CHECK(one->offset == (page == 0 ? 8192 : 0));
    CHECK(one->bytes == 4096);
  }
}

TEST_CASE("simulated kernel: sparse ranges and mappings lie beside each other, and not on each other") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t handle = file.buffer(), context = file.context();
  REQUIRE(file.map(handle, base + 0x4000, 4096) == 0);
  CHECK(file.map(handle, base, 4096, map, sparse) == EINVAL);        // of a buffer
  CHECK(file.map(0, base + 0x3000, 0x2000, map, sparse) == EINVAL);  // its end
  CHECK(file.map(0, base + 0x4000, 0x1000, map, sparse) == EINVAL);  // all of it
  CHECK(file.map(0, base + 0x2000, 0x2000, map, sparse) == 0);       // up to it
  CHECK(file.map(0, base + 0x5000, 0x1000, map, sparse) == 0);       // from its end on
  CHECK(layout(*seen(device, file, context), 7) == "..ssms.");
  CHECK(file.map(handle, base + 0x1000, 0x1000) == 0);
  CHECK(file.map(handle, base + 0x6000, 0x1000) == 0);
  CHECK(file.map(handle, base + 0x3000, 0x1000) == EINVAL);
  CHECK(layout(*seen(device, file, context), 7) == ".mssmsm");
  CHECK(file.map(0, base + 0x1000, 0x1000, AMDGPU_VA_OP_UNMAP, sparse) == ENOENT);
  CHECK(file.map(0, base + 0x6000, 0x1000, AMDGPU_VA_OP_UNMAP, sparse) == ENOENT);
  CHECK(file.map(0, base + 0x4000, 0x2000, replace, sparse) == 0);  // over a mapping and a sparse page
  CHECK(layout(*seen(device, file, context), 7) == ".mssssm");
}

TEST_CASE("simulated kernel: what is cut out of a sparse range leaves both sides of it") {
  struct Case {
    unsigned first, pages;
    const char* left;
  };
  for (const Case& one : {Case{0, 2, "..ssssss."},
                          Case{2, 3, "ss...sss."},
                          {6, 2, "ssssss..."},
                          {0, 8, "........."},
                          {7, 2, "sssssss.."},
                          {8, 1, "ssssssss."}}) {
    CAPTURE(one.first, one.pages);
    TestDevice device;
    TestFile file(device);
    const std::uint32_t context = file.context();
    REQUIRE(file.map(0, base, 0x8000, map, sparse) == 0);
    REQUIRE(file.map(0, base + one.first * 4096ULL, one.pages * 4096ULL, clear) == 0);
    CHECK(layout(*seen(device, file, context), 9) == one.left);
  }
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), handle = file.buffer(0x4000);
  for (const std::uint64_t page : {0ULL, 2ULL, 4ULL}) REQUIRE(file.map(0, base + page * 4096, 4096, map, sparse) == 0);
  REQUIRE(file.map(handle, base, 0x4000, replace) == 0);  // several at once
  REQUIRE(file.map(0, base, 0x4000, clear) == 0);
  CHECK(layout(*seen(device, file, context), 6) == "....s.");
  REQUIRE(file.map(0, base + 0x4000, 4096, AMDGPU_VA_OP_UNMAP, sparse) == 0);
  CHECK(layout(*seen(device, file, context), 6) == "......");
}

}  // namespace kiln::simulator::kernel::test

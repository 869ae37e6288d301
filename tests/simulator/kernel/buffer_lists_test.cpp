// Lists of buffers under handles: making, changing and ending them, and what a submission takes from one.
#include <catch2/catch.hpp>
#include <cerrno>

#include "support.hpp"

namespace kiln::simulator::kernel::test {

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

TEST_CASE("simulated kernel: a list under a handle is what it was made or changed to") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), one = file.buffer(), two = file.buffer();
  const auto operate = [&](std::uint32_t operation, std::uint32_t& handle, const std::vector<std::uint32_t>& buffers) {
    std::vector<drm_amdgpu_bo_list_entry> entries;
    for (const std::uint32_t buffer : buffers) entries.push_back({buffer, 0});
    union drm_amdgpu_bo_list list {};
    list.in = {operation, handle, static_cast<std::uint32_t>(entries.size()), sizeof entries[0],
               reinterpret_cast<std::uint64_t>(entries.data())};
    const int error = file.control(DRM_IOCTL_AMDGPU_BO_LIST, list);
    if (error == 0) handle = list.out.list_handle;
    return error;
  };
  std::uint32_t first = 0, second = 0;
  REQUIRE(operate(AMDGPU_BO_LIST_OP_CREATE, first, {one, two}) == 0);
  REQUIRE(operate(AMDGPU_BO_LIST_OP_CREATE, second, {}) == 0);
  CHECK(first != second);
  const auto run = [&](std::uint32_t list) {
    TestSubmission submission(context, 0xffff'8000'0010'0000);
    submission.list_handle = list;
    REQUIRE(submission.submit(file) == 0);
    REQUIRE(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
    return device.engine->jobs().back().listed.size();
  };
  CHECK(run(first) == 2);
  CHECK(run(second) == 0);
  std::uint32_t same = first;
  REQUIRE(operate(AMDGPU_BO_LIST_OP_UPDATE, same, {two}) == 0);
  CHECK(same == first);
  CHECK(run(first) == 1);
  union drm_amdgpu_bo_list list {};
  list.in = {AMDGPU_BO_LIST_OP_CREATE, 0, 1, 8, 0};
  CHECK(file.control(DRM_IOCTL_AMDGPU_BO_LIST, list) == EFAULT);
}

}  // namespace kiln::simulator::kernel::test

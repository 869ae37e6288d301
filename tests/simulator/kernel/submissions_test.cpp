#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t ib = 0xffff'8000'0010'0000;
constexpr std::uint32_t compute = AMDGPU_HW_IP_COMPUTE;

using Dependencies = std::vector<drm_amdgpu_cs_chunk_dep>;
using Handles = std::vector<std::uint32_t>;

int wait_many(TestFile& file, const std::vector<drm_amdgpu_fence>& fences, bool all, std::uint64_t timeout,
              drm_amdgpu_wait_fences_out& out) {
  union drm_amdgpu_wait_fences wait {};
  wait.in = {reinterpret_cast<std::uint64_t>(fences.data()), static_cast<std::uint32_t>(fences.size()), all ? 1u : 0u,
             timeout};
  const int error = file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, wait);
  out = wait.out;
  return error;
}

// A descriptor that stands for the end of a job; below 0 where there is none.
int descriptor_of(TestFile& file, std::uint32_t context, std::uint64_t job) {
  union drm_amdgpu_fence_to_handle convert {};
  convert.in.fence = {context, compute, 0, 0, job};
  convert.in.what = AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD;
  return file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == 0 ? static_cast<int>(convert.out.handle) : -1;
}

}  // namespace

TEST_CASE("simulated kernel: jobs of a context and ring run in order and are waited for by number") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  std::uint64_t job = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    REQUIRE(TestSubmission(context, ib + 32 * i).submit(file, &job) == 0);
    REQUIRE(job == i + 1);
  }
  CHECK(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
  const auto ran = device.engine->addresses();
  REQUIRE(ran.size() == 100);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(ran[i] == ib + 32 * i);
  CHECK(file.wait_for_end(context, 1) == 0);
  CHECK(file.wait(context, 101, 0) == EINVAL);
  CHECK(file.wait(context, 0, 0) == 0);
  CHECK(file.wait(context + 1, 1, 0) == EINVAL);
  CHECK(file.wait(context, 1, 0, 9) == EINVAL);
  CHECK(device.journal().find("]: CS refused") == std::string::npos);
}

TEST_CASE("simulated kernel: a submission returns before its job has run") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  device.engine->close_gate();
  std::uint64_t job = 0;
  REQUIRE(TestSubmission(context, ib).submit(file, &job) == 0);
  bool done = true;
  CHECK(file.wait(context, job, 0, 0, &done) == 0);
  CHECK_FALSE(done);
  CHECK(file.wait(context, job, static_cast<std::uint64_t>(in_ms(5)), 0, &done) == 0);
  CHECK_FALSE(done);
  device.engine->open_gate();
  CHECK(file.wait_for_end(context, job) == 0);
}

TEST_CASE("simulated kernel: the number is written to memory at the end") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), page = file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT);
  auto* const slot = reinterpret_cast<std::uint64_t*>(file.host(page) + 24);
  std::uint64_t job = 0;
  TestSubmission submission(context, ib);
  submission.add(AMDGPU_CHUNK_ID_FENCE, std::vector<drm_amdgpu_cs_chunk_fence>{{page, 24}});
  REQUIRE(submission.submit(file, &job) == 0);
  REQUIRE(submission.submit(file, &job) == 0);
  CHECK(file.wait_for_end(context, job) == 0);
  CHECK(std::atomic_ref<std::uint64_t>(*slot).load() == 2);

  const auto with = [&](std::uint32_t handle, std::uint32_t offset) {
    TestSubmission other(context, ib);
    return other.add(AMDGPU_CHUNK_ID_FENCE, std::vector<drm_amdgpu_cs_chunk_fence>{{handle, offset}}).submit(file);
  };
  CHECK(with(page, 4092) == EINVAL);
  CHECK(with(file.buffer(8192), 0) == EINVAL);
  CHECK(with(999, 0) == EINVAL);
}

TEST_CASE("simulated kernel: a job waits for jobs of other rings and contexts") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t first = file.context(), second = file.context();
  device.engine->close_gate();
  std::uint64_t job = 0, dependent = 0, scheduled = 0;
  REQUIRE(TestSubmission(first, ib, 0).submit(file, &job) == 0);
  device.engine->wait_for_runs(1);
  TestSubmission after(second, ib + 64, 1);
  after.add(AMDGPU_CHUNK_ID_DEPENDENCIES, Dependencies{{compute, 0, 0, first, job}});
  REQUIRE(after.submit(file, &dependent) == 0);
  TestSubmission beside(second, ib + 128, 2);
  beside.add(AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES, Dependencies{{compute, 0, 0, first, job}});
  REQUIRE(beside.submit(file, &scheduled) == 0);
  bool done = true;
  CHECK(file.wait(second, dependent, 0, 1, &done) == 0);
  CHECK_FALSE(done);
  device.engine->open_gate();
  CHECK(file.wait_for_end(second, dependent, 1) == 0);
  CHECK(file.wait_for_end(second, scheduled, 2) == 0);
  CHECK(device.engine->addresses().front() == ib);
  TestSubmission wrong(second, ib);
  CHECK(wrong.add(AMDGPU_CHUNK_ID_DEPENDENCIES, Dependencies{{compute, 0, 0, first, 77}}).submit(file) == EINVAL);
  TestSubmission nobody(second, ib);
  CHECK(nobody.add(AMDGPU_CHUNK_ID_DEPENDENCIES, Dependencies{{compute, 0, 0, 99, 1}}).submit(file) == EINVAL);
}

TEST_CASE("simulated kernel: a job that waits lets another context pass on its ring") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t first = file.context(), second = file.context(AMDGPU_CTX_PRIORITY_LOW),
                      object = file.sync_object();
  device.engine->close_gate();
  std::uint64_t blocker = 0, waiting = 0, passing = 0;
  REQUIRE(TestSubmission(first, ib, 3).add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, Handles{object}).submit(file, &blocker) == 0);
  device.engine->wait_for_runs(1);
  TestSubmission held(first, ib + 32);
  held.add(AMDGPU_CHUNK_ID_SYNCOBJ_IN, Handles{object});
  REQUIRE(held.submit(file, &waiting) == 0);
  REQUIRE(TestSubmission(second, ib + 64).submit(file, &passing) == 0);
  device.engine->open_gate();
  CHECK(file.wait_for_end(first, waiting) == 0);
  CHECK(file.wait_for_end(second, passing) == 0);
  TestSubmission empty(first, ib);
  const std::uint32_t nothing = file.sync_object();
  CHECK(empty.add(AMDGPU_CHUNK_ID_SYNCOBJ_IN, Handles{nothing}).submit(file) == EINVAL);
  TestSubmission none(first, ib);
  CHECK(none.add(AMDGPU_CHUNK_ID_SYNCOBJ_IN, Handles{888}).submit(file) == ENOENT);
}

TEST_CASE("simulated kernel: timelines order jobs") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), timeline = file.sync_object();
  using Points = std::vector<drm_amdgpu_cs_chunk_syncobj>;
  std::uint64_t job = 0;
  TestSubmission waits(context, ib);
  waits.add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, Points{{timeline, 0, 3}});
  CHECK(waits.submit(file) == EINVAL);  // nothing was submitted for the point
  REQUIRE(file.signal_point(timeline, 3) == 0);
  waits.add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, Points{{timeline, 0, 4}});
  REQUIRE(waits.submit(file, &job) == 0);
  CHECK(file.wait_point(timeline, 4, in_ms(10'000)) == 0);
  CHECK(file.wait_for_end(context, job) == 0);
}

TEST_CASE("simulated kernel: files that share a buffer wait for each other, unless they asked not to") {
  for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{AMDGPU_GEM_CREATE_EXPLICIT_SYNC}}) {
    TestDevice device;
    TestFile file(device), other(device);
    const std::uint32_t buffer = file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT, flags);
    drm_prime_handle prime{buffer, DRM_CLOEXEC | DRM_RDWR, -1};
    REQUIRE(file.control(DRM_IOCTL_PRIME_HANDLE_TO_FD, prime) == 0);
    REQUIRE(other.control(DRM_IOCTL_PRIME_FD_TO_HANDLE, prime) == 0);
    const std::uint32_t there = prime.handle, here = file.context(), context = other.context();
    device.engine->close_gate();
    std::uint64_t job = 0, second = 0;
    REQUIRE(TestSubmission(here, ib, 0).list({buffer}).submit(file, &job) == 0);
    device.engine->wait_for_runs(1);
    REQUIRE(TestSubmission(context, ib + 32, 1).list({there}).submit(other, &second) == 0);
    // A job that waits for its turn on the engine has been taken up by its ring; one that depends on another has not.
    union drm_amdgpu_gem_wait_idle wait {};
    wait.in.handle = buffer;
    wait.in.timeout = 0;
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == 0);
    CHECK(wait.out.status == 1);
    std::uint64_t third = 0;
    REQUIRE(TestSubmission(here, ib + 64, 2).submit(file, &third) == 0);
    device.engine->open_gate();
    CHECK(other.wait_for_end(context, second, 1) == 0);
    CHECK(file.wait_for_end(here, third, 2) == 0);
    wait.in = {buffer, 0, static_cast<std::uint64_t>(in_ms(10'000))};
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, wait) == 0);
    CHECK(wait.out.status == 0);
    CHECK(wait.out.domain == AMDGPU_GEM_DOMAIN_GTT);
    ::close(prime.fd);
  }
}

TEST_CASE("simulated kernel: one of several jobs, and all of them, are waited for") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  std::uint64_t first = 0, second = 0;
  REQUIRE(TestSubmission(context, ib, 0).submit(file, &first) == 0);
  REQUIRE(file.wait_for_end(context, first) == 0);
  device.engine->close_gate();
  REQUIRE(TestSubmission(context, ib, 1).submit(file, &second) == 0);
  const std::vector<drm_amdgpu_fence> fences = {{context, compute, 0, 1, second}, {context, compute, 0, 0, first}};
  drm_amdgpu_wait_fences_out out{};
  CHECK(wait_many(file, fences, false, 0, out) == 0);
  CHECK(out.status == 1);
  CHECK(out.first_signaled == 1);
  CHECK(wait_many(file, fences, true, 0, out) == 0);
  CHECK(out.status == 0);
  device.engine->open_gate();
  CHECK(wait_many(file, fences, true, ~std::uint64_t{0}, out) == 0);
  CHECK(out.status == 1);
  CHECK(wait_many(file, {}, true, 0, out) == EINVAL);
}

TEST_CASE("simulated kernel: the fence of a job becomes an object or a descriptor") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  std::uint64_t job = 0;
  REQUIRE(TestSubmission(context, ib).submit(file, &job) == 0);
  for (std::uint32_t what = 0; what < 3; ++what) {
    union drm_amdgpu_fence_to_handle convert {};
    convert.in.fence = {context, compute, 0, 0, job};
    convert.in.what = what;
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == 0);
    std::uint32_t handle = convert.out.handle;
    if (what != AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ) {
      const int fd = static_cast<int>(convert.out.handle);
      const std::uint32_t flags = what == AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD ? 1 : 0;
      drm_syncobj_handle imported{file.sync_object(), flags, fd, 0};
      REQUIRE(file.control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, imported) == 0);
      ::close(fd);
      handle = imported.handle;
    }
    CHECK(file.wait_object(handle, in_ms(10'000)) == 0);
  }
  union drm_amdgpu_fence_to_handle convert {};
  convert.in.fence = {context, compute, 0, 0, job};
  convert.in.what = 3;
  CHECK(file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == EINVAL);
}

TEST_CASE("simulated kernel: submissions that make no sense are refused with the reason") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  using Buffers = std::vector<drm_amdgpu_cs_chunk_ib>;
  const auto submit = [&](const drm_amdgpu_cs_chunk_ib& one) {
    return TestSubmission(context).add(AMDGPU_CHUNK_ID_IB, Buffers{one}).submit(file);
  };
  CHECK(TestSubmission(context).submit(file) == EINVAL);
  CHECK(TestSubmission(99, ib).submit(file) == EINVAL);
  CHECK(TestSubmission(context, ib).add(0x55, Handles{1}).submit(file) == EINVAL);
  CHECK_THAT(device.journal(), Catch::Contains("chunk of kind 85, which is not known"));
  CHECK(submit({0, 0, ib, 64, compute, 0, 0}) == 0);
  CHECK(submit({0, 0, ib + 4, 64, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, 0, ib, 0, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, 0, ib, 66, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, 0, ib, 0x400000, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, AMDGPU_IB_FLAG_CE, ib, 64, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, AMDGPU_IB_FLAGS_SECURE, ib, 64, compute, 0, 0}) == EINVAL);
  CHECK(submit({0, AMDGPU_IB_FLAG_EMIT_MEM_SYNC, ib, 64, compute, 0, 0}) == 0);
  CHECK(submit({0, 0, ib, 64, AMDGPU_HW_IP_DMA, 0, 0}) == EINVAL);
  CHECK(submit({0, 0, ib, 64, compute, 0, 4}) == EINVAL);
  CHECK(submit({0, 0, ib, 64, AMDGPU_HW_IP_GFX, 0, 0}) == 0);
  CHECK(TestSubmission(context).add(AMDGPU_CHUNK_ID_IB, Handles{1, 2}).submit(file) == EINVAL);
  TestSubmission gang(context, ib, 0);
  CHECK(gang.add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, 64, compute, 0, 1}}).submit(file) == EINVAL);
  TestSubmission many(context);
  for (int i = 0; i < 126; ++i) many.add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, 64, compute, 0, 0}});
  CHECK(many.submit(file) == EINVAL);
  TestSubmission flags(context, ib);
  flags.flags = 1;
  CHECK(flags.submit(file) == EINVAL);
  TestSubmission list(context, ib);
  list.list_handle = 5;
  CHECK(list.submit(file) == ENOENT);
  CHECK(TestSubmission(context, ib).list({77}).submit(file) == ENOENT);
  CHECK(TestSubmission(context, ib).list({file.buffer()}).list({file.buffer()}).submit(file) == EINVAL);
  CHECK(TestSubmission(context, ib).add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, Handles{66}).submit(file) == EINVAL);
  CHECK(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
}

TEST_CASE("simulated kernel: contexts") {
  TestDevice device;
  TestFile file(device);
  const auto operate = [&file](std::uint32_t operation, std::uint32_t id, std::uint32_t flags = 0,
                               std::int32_t priority = 0) {
    union drm_amdgpu_ctx context {};
    context.in = {operation, flags, id, priority};
    return file.control(DRM_IOCTL_AMDGPU_CTX, context);
  };
  CHECK(operate(AMDGPU_CTX_OP_ALLOC_CTX, 0, 0, 77) == EINVAL);
  CHECK(operate(AMDGPU_CTX_OP_ALLOC_CTX, 0, 1) == EINVAL);
  const std::uint32_t context = file.context(AMDGPU_CTX_PRIORITY_VERY_LOW);
  CHECK(file.state_flags(context) == 0);
  CHECK(operate(AMDGPU_CTX_OP_QUERY_STATE, context) == 0);
  CHECK(operate(AMDGPU_CTX_OP_SET_STABLE_PSTATE, context, AMDGPU_CTX_STABLE_PSTATE_PEAK) == 0);
  CHECK(operate(AMDGPU_CTX_OP_SET_STABLE_PSTATE, context, 9) == EINVAL);
  CHECK(operate(AMDGPU_CTX_OP_GET_STABLE_PSTATE, context) == 0);
  CHECK(operate(7, context) == EINVAL);
  CHECK(operate(AMDGPU_CTX_OP_FREE_CTX, context) == 0);
  CHECK(operate(AMDGPU_CTX_OP_FREE_CTX, context) == EINVAL);
  CHECK(TestSubmission(context, ib).submit(file) == EINVAL);
}

TEST_CASE("simulated kernel: a file forgets the jobs that have ended at its next submission") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t first = file.context(), second = file.context();
  const auto end_of = [&](std::uint32_t context, std::uint64_t job) {
    bool done = false;
    CHECK(file.wait(context, job, static_cast<std::uint64_t>(in_ms(10'000)), 0, &done) == 0);
    return done;
  };
  std::uint64_t job = 0;
  REQUIRE(TestSubmission(first, ib).submit(file, &job) == 0);
  const int fd = descriptor_of(file, first, job);
  REQUIRE(fd >= 0);
  std::weak_ptr<Fence> fence;
  {
    const std::scoped_lock lock(device.device->mutex);
    const auto fences = device.device->descriptors.fences_behind(fd);
    if (fences && fences->size() == 1) fence = fences->front();
  }
  REQUIRE_FALSE(fence.expired());
  REQUIRE(end_of(first, job));
  // The context and the descriptor hold it too: the one is freed, the other is forgotten when the next one is made.
  union drm_amdgpu_ctx operation {};
  operation.in = {AMDGPU_CTX_OP_FREE_CTX, 0, first, 0};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_CTX, operation) == 0);
  ::close(fd);
  REQUIRE(TestSubmission(second, ib + 32).submit(file, &job) == 0);
  const int next = descriptor_of(file, second, job);
  REQUIRE(next >= 0);
  ::close(next);
  CHECK(fence.use_count() == 0);
  CHECK(end_of(second, job));
}

TEST_CASE("simulated kernel: what a closed file left running ends, and its buffers with it") {
  TestDevice device;
  TestFile watcher(device);
  device.engine->close_gate();
  {
    TestFile file(device);
    const std::uint32_t context = file.context(), buffer = file.buffer(1 << 20);
    REQUIRE(TestSubmission(context, ib).list({buffer}).submit(file) == 0);
    device.engine->wait_for_runs(1);
  }
  CHECK(device.device->heap_use->vram.load() == 1 << 20);
  device.engine->open_gate();
  while (device.device->heap_use->vram.load() != 0) {
  }
}

}  // namespace kiln::simulator::kernel::test

// The parts of a submission: limits, arrays, and what of them reaches the engine.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t ib = 0xffff'8000'0010'0000;
constexpr std::uint32_t compute = AMDGPU_HW_IP_COMPUTE;

using Buffers = std::vector<drm_amdgpu_cs_chunk_ib>;
using Points = std::vector<drm_amdgpu_cs_chunk_syncobj>;
using Handles = std::vector<std::uint32_t>;

int submit_raw(TestFile& file, std::uint32_t context, std::uint32_t count, std::uint64_t chunks) {
  union drm_amdgpu_cs cs {};
  cs.in = {context, 0, count, 0, chunks};
  return file.control(DRM_IOCTL_AMDGPU_CS, cs);
}

int wait_raw(TestFile& file, std::uint32_t count, std::uint64_t fences) {
  union drm_amdgpu_wait_fences wait {};
  wait.in = {fences, count, 1, 0};
  return file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, wait);
}

}  // namespace

TEST_CASE("simulated kernel: how many chunks a submission has, and where they lie") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  drm_amdgpu_cs_chunk_ib buffer{0, 0, ib, 64, compute, 0, 0};
  drm_amdgpu_cs_chunk one{AMDGPU_CHUNK_ID_IB, sizeof buffer / 4, reinterpret_cast<std::uint64_t>(&buffer)};
  drm_amdgpu_cs_chunk none{AMDGPU_CHUNK_ID_SYNCOBJ_IN, 0, 0};  // an array without entries
  std::vector<std::uint64_t> pointers(4097, reinterpret_cast<std::uint64_t>(&none));
  pointers[0] = reinterpret_cast<std::uint64_t>(&one);
  const auto all = reinterpret_cast<std::uint64_t>(pointers.data());
  CHECK(submit_raw(file, context, 0, all) == EINVAL);
  CHECK(submit_raw(file, context, 1, 0) == EFAULT);
  CHECK(submit_raw(file, context, 1, all) == 0);
  CHECK(submit_raw(file, context, 4096, all) == 0);
  CHECK(submit_raw(file, context, 4097, all) == EINVAL);
  pointers[1] = 0;
  CHECK(submit_raw(file, context, 2, all) == EFAULT);
  one.chunk_data = 0;
  CHECK(submit_raw(file, context, 1, all) == EFAULT);
  one.chunk_data = reinterpret_cast<std::uint64_t>(&buffer);
  one.length_dw = 7;
  CHECK(submit_raw(file, context, 1, all) == EINVAL);
  one.length_dw = 0;
  CHECK(submit_raw(file, context, 1, all) == EINVAL);
  CHECK(TestSubmission(context).add(AMDGPU_CHUNK_ID_IB, Buffers{buffer, buffer}).submit(file) == EINVAL);
  CHECK(TestSubmission(context).add(AMDGPU_CHUNK_ID_SYNCOBJ_IN, Handles{}).submit(file) == EINVAL);
  CHECK_THAT(device.journal(), Catch::Contains("submission without an indirect buffer"));
  CHECK(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
}

TEST_CASE("simulated kernel: indirect buffers reach the engine whole and in order, to the limits of their ring") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), listed = file.buffer(), other = file.buffer();
  constexpr std::uint32_t most_bytes = 0xfffff * 4;
  TestSubmission two(context);
  two.add(AMDGPU_CHUNK_ID_IB, Buffers{{0, AMDGPU_IB_FLAG_EMIT_MEM_SYNC, ib, most_bytes, compute, 0, 0}});
  two.add(AMDGPU_CHUNK_ID_IB, Buffers{{0, AMDGPU_IB_FLAG_PREAMBLE, ib + 32, 4, compute, 0, 0}});
  REQUIRE(two.list({other, listed}).submit(file) == 0);
  REQUIRE(TestSubmission(context, ib, 0, AMDGPU_HW_IP_GFX).submit(file) == 0);
  CHECK(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
  drm_amdgpu_fence graphics{context, AMDGPU_HW_IP_GFX, 0, 0, 1};
  union drm_amdgpu_wait_fences wait {};
  wait.in = {reinterpret_cast<std::uint64_t>(&graphics), 1, 1, ~std::uint64_t{0}};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, wait) == 0);
  auto jobs = device.engine->jobs();
  REQUIRE(jobs.size() == 2);
  if (jobs[0].ring == Ring::graphics) std::swap(jobs[0], jobs[1]);  // rings have no order
  CHECK(jobs[0].ring == Ring::compute);
  CHECK(jobs[1].ring == Ring::graphics);
  REQUIRE(jobs[0].buffers.size() == 2);
  CHECK(jobs[0].buffers[0].address == ib);
  CHECK(jobs[0].buffers[0].bytes == most_bytes);
  CHECK(jobs[0].buffers[1].address == ib + 32);
  CHECK(jobs[0].buffers[1].bytes == 4);
  CHECK(jobs[0].invalidate_first);
  CHECK_FALSE(jobs[1].invalidate_first);
  CHECK(jobs[0].listed.size() == 2);
  CHECK(jobs[0].listed != std::vector<std::uint64_t>(2, jobs[0].listed.front()));
  CHECK(jobs[1].listed.empty());

  const auto many = [&](std::uint32_t ip, int count) {
    TestSubmission submission(context);
    for (int i = 0; i < count; ++i) {
      submission.add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, most_bytes, ip, 0, 0}});
    }
    return submission.submit(file);
  };
  CHECK(many(compute, 125) == 0);
  CHECK(many(compute, 126) == EINVAL);
  CHECK(many(AMDGPU_HW_IP_GFX, 192) == 0);
  CHECK(many(AMDGPU_HW_IP_GFX, 193) == EINVAL);
  CHECK(TestSubmission(context)
            .add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, most_bytes + 4, compute, 0, 0}})
            .submit(file) == EINVAL);
  CHECK(TestSubmission(context).add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, 64, compute, 1, 0}}).submit(file) == EINVAL);
  CHECK(TestSubmission(context).add(AMDGPU_CHUNK_ID_IB, Buffers{{0, 0, ib, 64, compute, 0, 3}}).submit(file) == 0);
  CHECK(TestSubmission(context, ib, 1, AMDGPU_HW_IP_GFX).submit(file) == EINVAL);
}

TEST_CASE("simulated kernel: a fence in memory stands in eight whole bytes of a page") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), page = file.buffer();
  const auto with = [&](std::uint32_t offset) {
    TestSubmission submission(context, ib);
    return submission.add(AMDGPU_CHUNK_ID_FENCE, std::vector<drm_amdgpu_cs_chunk_fence>{{page, offset}}).submit(file);
  };
  for (const std::uint32_t offset : {1U, 4U, 7U, 4084U, 4089U, 4096U}) CHECK(with(offset) == EINVAL);
  CHECK(with(0) == 0);
  CHECK(with(4088) == 0);
  REQUIRE(file.wait_for_end(context, ~std::uint64_t{0}) == 0);
  std::uint64_t last = 0;
  std::memcpy(&last, file.host(page) + 4088, 8);
  CHECK(last == 2);
}

TEST_CASE("simulated kernel: a submission signals objects and timelines") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context(), object = file.sync_object(), timeline = file.sync_object();
  const auto signals = [&](const Points& points) {
    return TestSubmission(context, ib).add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, points).submit(file);
  };
  CHECK(signals({{99, 0, 3}}) == EINVAL);
  CHECK(signals({{timeline, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, 3}}) == EINVAL);
  CHECK(file.point(timeline, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED) == 0);
  device.engine->close_gate();
  CHECK(signals({{timeline, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, 3}, {object, 0, 0}}) == 0);  // 0: of a binary one
  CHECK(file.point(timeline, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED) == 3);
  CHECK(file.point(timeline) == 0);
  CHECK(file.point(object, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED) == 0);
  CHECK(file.wait_object(object, 0) == ETIME);
  const Points wrong{{timeline, 0x20, 3}}, absent{{98, 0, 3}};
  CHECK(TestSubmission(context, ib).add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, wrong).submit(file) == EINVAL);
  CHECK(TestSubmission(context, ib).add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, absent).submit(file) == ENOENT);
  device.engine->open_gate();
  CHECK(file.wait_object(object, in_ms(10'000)) == 0);
  CHECK(file.wait_point(timeline, 3, in_ms(10'000)) == 0);
  CHECK(file.point(timeline) == 3);
}

TEST_CASE("simulated kernel: of jobs that wait on one ring, the one with the highest priority is next") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t blocker = file.context();
  device.engine->close_gate();
  REQUIRE(TestSubmission(blocker, ib).submit(file) == 0);
  device.engine->wait_for_runs(1);
  std::vector<std::uint32_t> contexts;
  for (const std::int32_t priority : {AMDGPU_CTX_PRIORITY_VERY_LOW, AMDGPU_CTX_PRIORITY_LOW, AMDGPU_CTX_PRIORITY_UNSET,
                                      AMDGPU_CTX_PRIORITY_NORMAL, AMDGPU_CTX_PRIORITY_LOW}) {
    contexts.push_back(file.context(priority));
    REQUIRE(TestSubmission(contexts.back(), ib + 32 * contexts.size()).submit(file) == 0);
  }
  device.engine->open_gate();
  for (const std::uint32_t context : contexts) CHECK(file.wait_for_end(context, 1) == 0);
  std::vector<std::uint64_t> order;
  for (const std::uint64_t address : device.engine->addresses()) order.push_back((address - ib) / 32);
  CHECK(order == std::vector<std::uint64_t>{0, 3, 4, 2, 5, 1});  // an unset one is normal; of equals the first
}

TEST_CASE("simulated kernel: priorities, clock states and operations of a context") {
  TestDevice device;
  TestFile file(device);
  const auto operate = [&file](std::uint32_t operation, std::uint32_t id, std::uint32_t flags, std::int32_t priority,
                               union drm_amdgpu_ctx& context) {
    context = {};
    context.in = {operation, flags, id, priority};
    return file.control(DRM_IOCTL_AMDGPU_CTX, context);
  };
  union drm_amdgpu_ctx context {};
  const int above = ::geteuid() == 0 ? 0 : EACCES;
  CHECK(operate(AMDGPU_CTX_OP_ALLOC_CTX, 0, 0, AMDGPU_CTX_PRIORITY_HIGH, context) == above);
  CHECK(operate(AMDGPU_CTX_OP_ALLOC_CTX, 0, 0, AMDGPU_CTX_PRIORITY_VERY_HIGH, context) == above);
  CHECK(operate(AMDGPU_CTX_OP_ALLOC_CTX, 0, 0, AMDGPU_CTX_PRIORITY_NORMAL + 1, context) == EINVAL);
  const std::uint32_t id = file.context();
  CHECK(operate(0, id, 0, 0, context) == EINVAL);
  CHECK(operate(AMDGPU_CTX_OP_FREE_CTX, id, 1, 0, context) == EINVAL);
  CHECK(operate(AMDGPU_CTX_OP_QUERY_STATE, 99, 0, 0, context) == EINVAL);
  for (std::uint32_t state = 0; state <= AMDGPU_CTX_STABLE_PSTATE_PEAK; ++state) {
    CHECK(operate(AMDGPU_CTX_OP_SET_STABLE_PSTATE, id, state, 0, context) == 0);
    REQUIRE(operate(AMDGPU_CTX_OP_GET_STABLE_PSTATE, id, 0, 0, context) == 0);
    CHECK(context.out.pstate.flags == state);
  }
  CHECK(operate(AMDGPU_CTX_OP_SET_STABLE_PSTATE, id, AMDGPU_CTX_STABLE_PSTATE_PEAK + 1, 0, context) == EINVAL);
  REQUIRE(operate(AMDGPU_CTX_OP_QUERY_STATE, id, 0, 0, context) == 0);
  CHECK(context.out.state.reset_status == AMDGPU_CTX_NO_RESET);
  CHECK(context.out.state.hangs == 0);
}

TEST_CASE("simulated kernel: jobs that ended long ago are ended, however they are asked for") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  std::uint64_t job = 0;
  for (int i = 0; i < 70; ++i) {
    REQUIRE(TestSubmission(context, ib).submit(file, &job) == 0);
    REQUIRE(file.wait_for_end(context, job) == 0);
  }
  bool done = false;
  CHECK(file.wait(context, 1, 0, 0, &done) == 0);
  CHECK(done);
  std::vector<drm_amdgpu_fence> fences = {{context, compute, 0, 0, 1}, {context, compute, 0, 0, 70}};
  union drm_amdgpu_wait_fences wait {};
  wait.in = {reinterpret_cast<std::uint64_t>(fences.data()), 2, 1, 0};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, wait) == 0);
  CHECK(wait.out.status == 1);
  union drm_amdgpu_fence_to_handle convert {};
  convert.in.fence = fences[0];
  convert.in.what = AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == 0);
  CHECK(file.wait_object(convert.out.handle, 0) == 0);
  TestSubmission after(context, ib);
  after.add(AMDGPU_CHUNK_ID_DEPENDENCIES, std::vector<drm_amdgpu_cs_chunk_dep>{{compute, 0, 0, context, 1}});
  REQUIRE(after.submit(file, &job) == 0);
  CHECK(file.wait_for_end(context, job) == 0);
  convert.in = {};
  convert.in.fence = {context, compute, 0, 0, 99};
  CHECK(file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == EINVAL);
  convert.in.fence = fences[0];
  convert.in.pad = 1;
  CHECK(file.control(DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, convert) == EINVAL);
}

TEST_CASE("simulated kernel: waits for several jobs are checked before they wait") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  REQUIRE(TestSubmission(context, ib).submit(file) == 0);
  std::vector<drm_amdgpu_fence> fences(65'537, {context, compute, 0, 0, 0});
  const auto at = reinterpret_cast<std::uint64_t>(fences.data());
  CHECK(wait_raw(file, 1, 0) == EFAULT);
  CHECK(wait_raw(file, 65'536, at) == 0);
  CHECK(wait_raw(file, 65'537, at) == EINVAL);
  fences[1].ctx_id = 99;
  CHECK(wait_raw(file, 2, at) == EINVAL);
  fences[1] = {context, compute, 1, 0, 0};
  CHECK(wait_raw(file, 2, at) == EINVAL);
  fences[1] = {context, compute, 0, 0, 2};
  CHECK(wait_raw(file, 2, at) == EINVAL);
}

TEST_CASE("simulated kernel: a wait for several jobs tells of the error of those that it waited for") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t good = file.context(), bad = file.context();
  std::uint64_t job = 0;
  REQUIRE(TestSubmission(good, ib).submit(file, &job) == 0);
  REQUIRE(file.wait_for_end(good, job) == 0);
  device.engine->fail_next({FaultKind::unmapped, 0, {}, "planted"});
  REQUIRE(TestSubmission(bad, ib, 0, AMDGPU_HW_IP_GFX).submit(file, &job) == 0);
  const drm_amdgpu_fence first{good, compute, 0, 0, 1}, second{bad, AMDGPU_HW_IP_GFX, 0, 0, 1};
  const auto wait = [&](const std::vector<drm_amdgpu_fence>& fences, bool all, drm_amdgpu_wait_fences_out& out) {
    union drm_amdgpu_wait_fences in {};
    in.in = {reinterpret_cast<std::uint64_t>(fences.data()), static_cast<std::uint32_t>(fences.size()), all ? 1u : 0u,
             static_cast<std::uint64_t>(in_ms(10'000))};
    const int error = file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, in);
    out = in.out;
    return error;
  };
  drm_amdgpu_wait_fences_out out{};
  CHECK(wait({first, second}, true, out) == ECANCELED);
  CHECK(wait({first, second}, false, out) == 0);
  CHECK(out.first_signaled == 0);
  CHECK(wait({second, first}, false, out) == ECANCELED);
  CHECK_THAT(device.device->journal.last_fault(), Catch::Contains("graphics ring 0, context 2, job 1, submission 2"));
  // Nothing of it in time.
  device.engine->close_gate();
  REQUIRE(TestSubmission(good, ib).submit(file, &job) == 0);
  drm_amdgpu_fence late{good, compute, 0, 0, job};
  union drm_amdgpu_wait_fences look {};
  look.in = {reinterpret_cast<std::uint64_t>(&late), 1, 0, 0};
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_WAIT_FENCES, look) == 0);
  CHECK(look.out.status == 0);
  CHECK(look.out.first_signaled == ~0U);
  device.engine->open_gate();
  CHECK(file.wait_for_end(good, job) == 0);
}

}  // namespace kiln::simulator::kernel::test

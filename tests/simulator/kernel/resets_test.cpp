#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <utility>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t ib = 0xffff'8000'0010'0000;
constexpr std::uint64_t reset = AMDGPU_CTX_QUERY2_FLAGS_RESET;
constexpr std::uint64_t guilty = AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
constexpr std::uint64_t lost = AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST;

std::uint32_t vram_losses(TestFile& file) {
  std::uint32_t count = ~0u;
  drm_amdgpu_info query{};
  query.query = AMDGPU_INFO_VRAM_LOST_COUNTER;
  query.return_pointer = reinterpret_cast<std::uint64_t>(&count);
  query.return_size = sizeof count;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_INFO, query) == 0);
  return count;
}

int run(TestFile& file, std::uint32_t context, std::uint32_t ring = 0) {
  std::uint64_t job = 0;
  if (const int error = TestSubmission(context, ib, ring).submit(file, &job); error != 0) return error;
  return file.wait_for_end(context, job, ring);
}

}  // namespace

TEST_CASE("simulated kernel: a hang ends in a reset that finds its context guilty, and no other") {
  TestDevice device("hang@2");
  TestFile file(device);
  const std::uint32_t culprit = file.context(), other = file.context();
  CHECK(run(file, culprit) == 0);
  CHECK(run(file, culprit) == ECANCELED);
  CHECK(file.state_flags(culprit) == (reset | guilty));
  CHECK(file.state_flags(other) == reset);
  CHECK(run(file, culprit) == ECANCELED);
  CHECK(run(file, other) == 0);
  CHECK(run(file, file.context()) == 0);
  CHECK(file.state_flags(file.context()) == 0);
  CHECK(vram_losses(file) == 0);
  CHECK_THAT(
      device.device->journal.last_fault(),
      Catch::Contains("a hang was asked for") && Catch::Contains("compute ring 0, context 1, job 2, submission 2"));
}

TEST_CASE("simulated kernel: jobs behind one that hangs, of its context, are cancelled; other rings go on meanwhile") {
  TestDevice device("hang@1");
  TestFile file(device);
  const std::uint32_t culprit = file.context(), other = file.context();
  std::uint64_t first = 0, second = 0;
  REQUIRE(TestSubmission(culprit, ib).submit(file, &first) == 0);
  REQUIRE(TestSubmission(culprit, ib).submit(file, &second) == 0);
  CHECK(run(file, other, 1) == 0);
  CHECK(file.wait_for_end(culprit, second) == ECANCELED);
  CHECK(file.wait_for_end(culprit, first) == ECANCELED);
  CHECK(run(file, other) == 0);
}

TEST_CASE("simulated kernel: the fence of a job that hung is signaled, for those that wait on objects") {
  TestDevice device("hang@1");
  TestFile file(device);
  const std::uint32_t context = file.context(), object = file.sync_object();
  TestSubmission submission(context, ib);
  submission.add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, std::vector<std::uint32_t>{object});
  REQUIRE(submission.submit(file) == 0);
  CHECK(file.wait_object(object, in_ms(10'000)) == 0);
  CHECK(file.state_flags(context) == (reset | guilty));
}

TEST_CASE("simulated kernel: lost video memory is lost, and everyone is told") {
  TestDevice device("vram_lost@1");
  TestFile file(device);
  const std::uint32_t culprit = file.context(), other = file.context();
  const std::uint32_t vram = file.buffer(), gtt = file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT),
                      untouched = file.buffer(8192);
  file.host(vram)[7] = std::byte{1};
  file.host(gtt)[7] = std::byte{1};
  CHECK(run(file, culprit) == ECANCELED);
  CHECK(file.host(vram)[7] == std::byte{0xa5});
  CHECK(file.host(gtt)[7] == std::byte{1});
  CHECK(file.host(untouched)[0] == std::byte{0});
  CHECK(vram_losses(file) == 1);
  CHECK(file.state_flags(culprit) == (reset | guilty | lost));
  CHECK(file.state_flags(other) == (reset | lost));
  CHECK(run(file, other) == ECANCELED);
  CHECK(run(file, file.context()) == 0);
}

TEST_CASE("simulated kernel: jobs that run while video memory is lost are cancelled") {
  TestDevice device("vram_lost@2");
  TestFile file(device);
  const std::uint32_t culprit = file.context(), other = file.context();
  device.engine->close_gate();
  std::uint64_t running = 0, waiting = 0;
  REQUIRE(TestSubmission(other, ib, 1).submit(file, &running) == 0);
  device.engine->wait_for_runs(1);
  CHECK(run(file, culprit, 0) == ECANCELED);
  CHECK(file.wait_for_end(other, running, 1) == ECANCELED);
  CHECK(file.state_flags(other) == (reset | lost));
  device.engine->open_gate();
  const std::uint32_t fresh = file.context();
  REQUIRE(TestSubmission(fresh, ib, 1).submit(file, &waiting) == 0);
  CHECK(file.wait_for_end(fresh, waiting, 1) == 0);
}

TEST_CASE("simulated kernel: a fault of the engine makes a reset, and its text can be read") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t context = file.context();
  CHECK(device.device->journal.last_fault().empty());
  device.engine->fail_next({FaultKind::unmapped, 0x1234000, 0, "no buffer is mapped there"});
  CHECK(run(file, context) == ECANCELED);
  CHECK(file.state_flags(context) == (reset | guilty));
  CHECK_THAT(device.device->journal.last_fault(), Catch::Contains("unmapped") && Catch::Contains("0x1234000") &&
                                                      Catch::Contains("no buffer is mapped there"));
  CHECK_THAT(device.journal(), Catch::Contains("no buffer is mapped there") && Catch::Contains("reset 1"));
  union drm_amdgpu_ctx query {};
  query.in.op = AMDGPU_CTX_OP_QUERY_STATE;
  query.in.ctx_id = context;
  REQUIRE(file.control(DRM_IOCTL_AMDGPU_CTX, query) == 0);
  CHECK(query.out.state.reset_status == AMDGPU_CTX_GUILTY_RESET);
  CHECK(query.out.state.hangs == 1);
}

TEST_CASE("simulated kernel: a planted page fault stops the job") {
  TestDevice device("page_fault@1");
  TestFile file(device);
  const std::uint32_t context = file.context();
  CHECK(run(file, context) == ECANCELED);
  CHECK(file.state_flags(context) == (reset | guilty));
  CHECK_THAT(device.device->journal.last_fault(), Catch::Contains("page fault"));
  CHECK(device.engine->addresses().empty());
  CHECK(run(file, file.context()) == 0);
}

TEST_CASE("simulated kernel: a context that others took with them is cancelled without guilt") {
  TestDevice device("cancelled@2");
  TestFile file(device);
  const std::uint32_t context = file.context(), other = file.context();
  CHECK(run(file, context) == 0);
  CHECK(run(file, context) == ECANCELED);
  CHECK(run(file, context) == ECANCELED);
  CHECK(file.state_flags(context) == reset);
  CHECK(run(file, other) == 0);
}

TEST_CASE("simulated kernel: planted shortages and refusals pass") {
  TestDevice device("enomem@1,einval@3");
  TestFile file(device);
  const std::uint32_t context = file.context();
  CHECK(run(file, context) == ENOMEM);
  CHECK(run(file, context) == 0);
  CHECK(run(file, context) == EINVAL);
  CHECK(run(file, context) == 0);
  CHECK(file.state_flags(context) == 0);
  CHECK_THAT(device.journal(), Catch::Contains("planted: submission 1") && Catch::Contains("planted: submission 3"));
}

TEST_CASE("simulated kernel: a device that is gone answers so to everything and lets go of those who wait") {
  TestDevice device("unplugged@3");
  TestFile file(device);
  const std::uint32_t context = file.context(), other = file.context(), object = file.sync_object();
  device.engine->close_gate();
  std::uint64_t running = 0, waiting = 0;
  REQUIRE(TestSubmission(other, ib, 1).submit(file, &running) == 0);
  REQUIRE(TestSubmission(other, ib, 1).submit(file, &waiting) == 0);
  device.engine->wait_for_runs(1);
  int job_wait = 0, object_wait = 0;
  std::thread first([&] { job_wait = file.wait(other, waiting, ~std::uint64_t{0}, 1); });
  std::thread second(
      [&] { object_wait = file.wait_object(object, in_ms(60'000), DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT); });
  CHECK(TestSubmission(context, ib).submit(file) == ENODEV);
  first.join();
  second.join();
  CHECK(job_wait == ENODEV);
  CHECK(object_wait == ENODEV);
  drm_get_cap capability{DRM_CAP_SYNCOBJ, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, capability) == ENODEV);
  CHECK(file.try_buffer({4096, 0, AMDGPU_GEM_DOMAIN_GTT, 0}) == ENODEV);
  CHECK_THAT(device.journal(), Catch::Contains("the device is gone"));
}

TEST_CASE("simulated kernel: two rings that hang at one time are both ended") {
  TestDevice device("vram_lost@1,vram_lost@2");
  TestFile file(device);
  const std::uint32_t first = file.context(), second = file.context();
  std::uint64_t one = 0, two = 0;
  REQUIRE(TestSubmission(first, ib, 0).submit(file, &one) == 0);
  REQUIRE(TestSubmission(second, ib, 1).submit(file, &two) == 0);
  CHECK(file.wait_for_end(first, one, 0) == ECANCELED);
  CHECK(file.wait_for_end(second, two, 1) == ECANCELED);
  CHECK(run(file, file.context(), 2) == 0);
}

TEST_CASE("simulated kernel: the older query tells of each reset once, and who caused it") {
  TestDevice device("hang@1");
  TestFile file(device);
  const std::uint32_t culprit = file.context(), other = file.context();
  const auto state = [&](std::uint32_t context) {
    union drm_amdgpu_ctx query {};
    query.in.op = AMDGPU_CTX_OP_QUERY_STATE;
    query.in.ctx_id = context;
    REQUIRE(file.control(DRM_IOCTL_AMDGPU_CTX, query) == 0);
    return std::pair(query.out.state.reset_status, query.out.state.hangs);
  };
  CHECK(run(file, culprit) == ECANCELED);
  CHECK(state(culprit) == std::pair(std::uint32_t{AMDGPU_CTX_GUILTY_RESET}, 1U));
  CHECK(state(other) == std::pair(std::uint32_t{AMDGPU_CTX_INNOCENT_RESET}, 0U));
  for (const std::uint32_t context : {culprit, other}) CHECK(state(context).first == AMDGPU_CTX_NO_RESET);
  CHECK(state(file.context()) == std::pair(std::uint32_t{AMDGPU_CTX_NO_RESET}, 0U));
  CHECK_THAT(device.journal(), Catch::Contains("ended with errno 125"));
}

}  // namespace kiln::simulator::kernel::test

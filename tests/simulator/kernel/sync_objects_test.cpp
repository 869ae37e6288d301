#include <linux/sync_file.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <thread>

#include "simulator/kernel/device_file.hpp"
#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint32_t for_submit = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
constexpr std::uint32_t available = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
constexpr std::uint32_t all = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL;
constexpr std::uint64_t ib = 0xffff'8000'0010'0000;

int change(TestFile& file, unsigned long request, std::uint32_t handle) {
  drm_syncobj_array array{reinterpret_cast<std::uint64_t>(&handle), 1, 0};
  return file.control(request, array);
}

int transfer(TestFile& file, std::uint32_t to, std::uint64_t to_point, std::uint32_t from, std::uint64_t from_point,
             std::uint32_t flags = 0) {
  drm_syncobj_transfer transfer{from, to, from_point, to_point, flags, 0};
  return file.control(DRM_IOCTL_SYNCOBJ_TRANSFER, transfer);
}

int wait_many(TestFile& file, const std::vector<std::uint32_t>& handles, std::int64_t timeout, std::uint32_t flags,
              std::uint32_t& first) {
  drm_syncobj_wait wait{reinterpret_cast<std::uint64_t>(handles.data()),
                        timeout,
                        static_cast<std::uint32_t>(handles.size()),
                        flags,
                        ~0u,
                        0};
  const int error = file.control(DRM_IOCTL_SYNCOBJ_WAIT, wait);
  first = wait.first_signaled;
  return error;
}

int export_object(TestFile& file, std::uint32_t handle, std::uint32_t flags, int& fd) {
  drm_syncobj_handle exported{handle, flags, -1, 0};
  const int error = file.control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, exported);
  fd = exported.fd;
  return error;
}

int import_object(TestFile& file, std::uint32_t& handle, std::uint32_t flags, int fd) {
  drm_syncobj_handle imported{handle, flags, fd, 0};
  const int error = file.control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, imported);
  handle = imported.handle;
  return error;
}

bool readable(int fd, int timeout_ms) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, timeout_ms) == 1 && (asked.revents & POLLIN) != 0;
}

}  // namespace

TEST_CASE("simulated kernel: a binary object is empty, signaled, reset") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object();
  CHECK(file.wait_object(object, 0) == EINVAL);
  CHECK(file.wait_object(object, 0, for_submit) == ETIME);
  CHECK(file.wait_object(object, in_ms(5), for_submit) == ETIME);
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_SIGNAL, object) == 0);
  CHECK(file.wait_object(object, 0) == 0);
  CHECK(file.point(object) == 0);
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_RESET, object) == 0);
  CHECK(file.wait_object(object, 0) == EINVAL);
  CHECK(file.wait_object(file.sync_object(DRM_SYNCOBJ_CREATE_SIGNALED), 0) == 0);
}

TEST_CASE("simulated kernel: waits for one of several, and for all") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t empty = file.sync_object(), done = file.sync_object(DRM_SYNCOBJ_CREATE_SIGNALED);
  std::uint32_t first = 0;
  CHECK(wait_many(file, {empty, done}, 0, for_submit, first) == 0);
  CHECK(first == 1);
  CHECK(wait_many(file, {empty, done}, 0, for_submit | all, first) == ETIME);
  CHECK(wait_many(file, {empty, done}, 0, all, first) == EINVAL);
  CHECK(wait_many(file, {done, done}, 0, all, first) == 0);
  CHECK(wait_many(file, {}, 0, all, first) == EINVAL);
  CHECK(wait_many(file, {done}, 0, 0x80, first) == EINVAL);
  CHECK(wait_many(file, {999}, 0, 0, first) == ENOENT);
}

TEST_CASE("simulated kernel: a waiting thread is woken by what another one submits") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object();
  int answer = -1;
  std::thread waiter([&] { answer = file.wait_object(object, in_ms(10'000), for_submit); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_SIGNAL, object) == 0);
  waiter.join();
  CHECK(answer == 0);
}

TEST_CASE("simulated kernel: a timeline reaches its points in order") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t timeline = file.sync_object(), context = file.context();
  device.engine->close_gate();
  std::uint64_t job = 0;
  TestSubmission submission(context, ib);
  submission.add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, std::vector<drm_amdgpu_cs_chunk_syncobj>{{timeline, 0, 5}});
  REQUIRE(submission.submit(file, &job) == 0);
  CHECK(file.signal_point(timeline, 8) == 0);
  CHECK(file.point(timeline) == 0);
  CHECK(file.point(timeline, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED) == 8);
  CHECK(file.wait_point(timeline, 8, 0) == ETIME);  // a point before it is not reached
  CHECK(file.wait_point(timeline, 3, in_ms(2)) == ETIME);
  CHECK(file.wait_point(timeline, 9, 0) == EINVAL);
  CHECK(file.wait_point(timeline, 9, 0, for_submit) == ETIME);
  CHECK(file.wait_point(timeline, 8, 0, available) == 0);
  device.engine->open_gate();
  CHECK(file.wait_point(timeline, 8, in_ms(10'000)) == 0);
  CHECK(file.point(timeline) == 8);
  CHECK(file.wait_for_end(context, job) == 0);
}

TEST_CASE("simulated kernel: points move between timelines and binary objects") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t timeline = file.sync_object(), binary = file.sync_object();
  CHECK(transfer(file, timeline, 4, binary, 0) == EINVAL);
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_SIGNAL, binary) == 0);
  CHECK(transfer(file, timeline, 4, binary, 0) == 0);
  CHECK(file.point(timeline) == 4);
  const std::uint32_t other = file.sync_object();
  CHECK(transfer(file, other, 0, timeline, 3) == 0);
  CHECK(file.wait_object(other, 0) == 0);
  CHECK(transfer(file, other, 0, timeline, 5) == EINVAL);
  CHECK(transfer(file, 99, 0, timeline, 3) == ENOENT);
  CHECK(transfer(file, other, 0, timeline, 3, 0x10) == EINVAL);
  int signaled = -1;
  std::thread later([&] { signaled = file.signal_point(timeline, 6); });
  CHECK(transfer(file, other, 0, timeline, 6, for_submit) == 0);
  later.join();
  CHECK(signaled == 0);
  CHECK(file.signal_point(timeline, 0) == EINVAL);
}

TEST_CASE("simulated kernel: an object goes to another file by descriptor") {
  TestDevice device;
  TestFile file(device), other(device);
  const std::uint32_t object = file.sync_object();
  int fd = -1;
  REQUIRE(export_object(file, object, 0, fd) == 0);
  std::uint32_t there = 0;
  REQUIRE(import_object(other, there, 0, fd) == 0);
  ::close(fd);
  CHECK(other.wait_object(there, 0, for_submit) == ETIME);
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_SIGNAL, object) == 0);
  CHECK(other.wait_object(there, 0) == 0);
  CHECK(import_object(other, there, 0, STDIN_FILENO) == EINVAL);
  CHECK(import_object(other, there, 0, -1) == EINVAL);
  CHECK(import_object(other, there, 0x8, fd) == EINVAL);
}

TEST_CASE("simulated kernel: arrays of synchronisation objects with wrong fields are refused, and change nothing") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object();
  std::uint64_t point = 5;
  const auto handles = reinterpret_cast<std::uint64_t>(&object), points = reinterpret_cast<std::uint64_t>(&point);
  const auto timeline = [&file](unsigned long request, drm_syncobj_timeline_array array) {
    return file.control(request, array);
  };
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, {handles, 0, 1, 0}) == EFAULT);
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, {handles, points, 1, 1}) == EINVAL);
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_QUERY, {handles, 0, 1, 0}) == EFAULT);
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_QUERY, {handles, points, 1, 2}) == EINVAL);
  CHECK(point == 5);
  point = 0;
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, {handles, points, 1, 0}) == EINVAL);
  CHECK(file.point(object, 0) == 0);
  for (const unsigned long request : {DRM_IOCTL_SYNCOBJ_SIGNAL, DRM_IOCTL_SYNCOBJ_RESET}) {
    drm_syncobj_array array{handles, 1, 1};
    CHECK(file.control(request, array) == EINVAL);
    array = {handles, 0, 0};
    CHECK(file.control(request, array) == EINVAL);
    const std::uint32_t unknown = 4711;
    array = {reinterpret_cast<std::uint64_t>(&unknown), 1, 0};
    CHECK(file.control(request, array) == ENOENT);
  }
  CHECK(file.wait_object(object, 0) != 0);  // not signalled
  point = 3;
  CHECK(timeline(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, {handles, points, 1, 0}) == 0);
  CHECK(file.point(object, 0) == 3);
}

TEST_CASE("simulated kernel: a fence goes by descriptor, which a poll shows as reached") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object(), context = file.context();
  int fd = -1;
  CHECK(export_object(file, object, 1, fd) == EINVAL);  // it has no fence
  device.engine->close_gate();
  TestSubmission submission(context, ib);
  submission.add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, std::vector<std::uint32_t>{object});
  REQUIRE(submission.submit(file) == 0);
  REQUIRE(export_object(file, object, 1, fd) == 0);
  const int copy = ::dup(fd);
  ::close(fd);
  CHECK_FALSE(readable(copy, 5));
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_RESET, object) == 0);
  std::uint32_t imported = file.sync_object();
  REQUIRE(import_object(file, imported, 1, copy) == 0);
  CHECK(file.wait_object(imported, 0) == ETIME);
  device.engine->open_gate();
  CHECK(readable(copy, 10'000));
  CHECK(readable(copy, 0));  // and again
  CHECK(file.wait_object(imported, 0) == 0);
  ::close(copy);
}

TEST_CASE("simulated kernel: descriptors of fences are joined and described") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t done = file.sync_object(DRM_SYNCOBJ_CREATE_SIGNALED), object = file.sync_object();
  const std::uint32_t context = file.context();
  device.engine->close_gate();
  TestSubmission submission(context, ib);
  submission.add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, std::vector<std::uint32_t>{object});
  REQUIRE(submission.submit(file) == 0);
  int first = -1, second = -1;
  REQUIRE(export_object(file, done, 1, first) == 0);
  REQUIRE(export_object(file, object, 1, second) == 0);
  sync_merge_data merge{};
  merge.fd2 = second;
  REQUIRE(is_sync_file(*device.device, first));
  REQUIRE(control_sync_file(*device.device, first, SYNC_IOC_MERGE, &merge) == 0);
  const int both = merge.fence;
  CHECK(readable(first, 0));
  CHECK_FALSE(readable(both, 0));
  struct sync_file_info info {};
  REQUIRE(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == 0);
  CHECK(info.num_fences == 2);
  CHECK(info.status == 0);
  device.engine->open_gate();
  CHECK(readable(both, 10'000));
  std::vector<struct sync_fence_info> fences(2);
  info.sync_fence_info = reinterpret_cast<std::uint64_t>(fences.data());
  REQUIRE(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == 0);
  CHECK(info.status == 1);
  CHECK(fences[1].status == 1);
  merge.fd2 = STDIN_FILENO;
  CHECK(control_sync_file(*device.device, first, SYNC_IOC_MERGE, &merge) == ENOENT);
  CHECK(control_sync_file(*device.device, first, _IO('>', 99), &merge) == ENOTTY);
  CHECK_FALSE(is_sync_file(*device.device, STDIN_FILENO));
  for (const int fd : {first, second, both}) ::close(fd);
}

TEST_CASE("simulated kernel: objects that make no sense are refused") {
  TestDevice device;
  TestFile file(device);
  drm_syncobj_create create{0, 0x4};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_CREATE, create) == EINVAL);
  drm_syncobj_destroy destroy{77, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_DESTROY, destroy) == EINVAL);
  destroy.handle = file.sync_object();
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_DESTROY, destroy) == 0);
  CHECK(change(file, DRM_IOCTL_SYNCOBJ_SIGNAL, destroy.handle) == ENOENT);
  int fd = -1;
  CHECK(export_object(file, file.sync_object(), 0x10, fd) == EINVAL);
}

TEST_CASE("simulated kernel: fields of sync objects that must be 0, addresses that must not, and unknown handles") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object(DRM_SYNCOBJ_CREATE_SIGNALED), absent = 4711;
  drm_syncobj_destroy destroy{object, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_DESTROY, destroy) == EINVAL);
  drm_syncobj_handle handle{object, 0, -1, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, handle) == EINVAL);
  handle = {absent, 0, -1, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, handle) == ENOENT);
  int fd = -1, fence = -1;
  REQUIRE(export_object(file, object, 0, fd) == 0);
  REQUIRE(export_object(file, object, 1, fence) == 0);
  handle = {0, 0, fd, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, handle) == EINVAL);
  std::uint32_t target = absent;
  CHECK(import_object(file, target, 1, fence) == ENOENT);
  target = file.sync_object();
  CHECK(import_object(file, target, 1, fd) == EINVAL);     // an object, not a fence
  CHECK(import_object(file, target, 0, fence) == EINVAL);  // the other way round
  CHECK(file.wait_object(target, 0) == EINVAL);
  CHECK(import_object(file, target, 1, fence) == 0);
  CHECK(file.wait_object(target, 0) == 0);
  ::close(fd);
  ::close(fence);

  drm_syncobj_transfer move{object, file.sync_object(), 0, 0, 0, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TRANSFER, move) == EINVAL);
  move = {absent, move.dst_handle, 0, 0, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TRANSFER, move) == ENOENT);

  const auto at = reinterpret_cast<std::uint64_t>(&object);
  drm_syncobj_wait wait{at, 0, 1, 0, 0, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_WAIT, wait) == EINVAL);
  wait = {0, 0, 1, 0, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_WAIT, wait) == EFAULT);
  wait = {at, 0, 1, available, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_WAIT, wait) == EINVAL);
  wait = {at, 0, 1, all | for_submit, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_WAIT, wait) == 0);
  std::uint64_t zero = 0;
  const auto points = reinterpret_cast<std::uint64_t>(&zero);
  drm_syncobj_timeline_wait timeline{at, points, 0, 1, 0, 0, 1};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, timeline) == EINVAL);
  timeline = {at, points, 0, 1, 8, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, timeline) == EINVAL);
  timeline = {at, 0, 0, 1, 0, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, timeline) == EFAULT);
  timeline = {at, points, 0, 1, all | for_submit | available, 0, 0};
  CHECK(file.control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, timeline) == 0);
}

TEST_CASE("simulated kernel: points of a timeline rise, and those that are reached are forgotten without a trace") {
  const auto pending = [] { return std::make_shared<Fence>(); };
  SyncObject object;
  CHECK_FALSE(object.find(0));
  CHECK_FALSE(object.is_timeline());
  const FencePtr one = pending(), two = pending(), three = pending(), four = pending();
  object.add_point(3, {one});
  object.add_point(5, {two});
  object.add_point(4, {three});  // not above the last: takes its value
  CHECK(object.is_timeline());
  CHECK(object.submitted_point() == 5);
  CHECK_FALSE(object.find(6));
  for (const auto& [point, count] : {std::pair<std::uint64_t, std::size_t>{1, 1}, {3, 1}, {4, 2}, {5, 2}, {0, 3}}) {
    CAPTURE(point);
    const auto found = object.find(point);
    REQUIRE(found);
    CHECK(found->size() == count);
  }
  two->signaled = true;
  CHECK(object.reached_point() == 0);  // one before it is not
  one->signaled = true;
  CHECK(object.reached_point() == 5);
  object.add_point(9, {four});
  CHECK(object.reached_point() == 5);
  CHECK(object.submitted_point() == 9);
  auto found = object.find(2);
  REQUIRE(found);
  CHECK(all_signaled(*found));
  found = object.find(0);
  REQUIRE(found);
  CHECK(found->size() == 3);  // without the first, which was reached before the second
  three->signaled = four->signaled = true;
  CHECK(object.reached_point() == 9);
  object.add_point(12, {pending()});
  CHECK(object.reached_point() == 9);
  found = object.find(9);
  REQUIRE(found);
  CHECK(all_signaled(*found));
  object.replace(FencePtr());
  CHECK_FALSE(object.find(0));
  CHECK(object.submitted_point() == 0);
  object.replace(signaled_fence());
  CHECK(object.find(0)->size() == 1);
  CHECK_FALSE(object.is_timeline());
  CHECK(object.reached_point() == 0);
}

TEST_CASE("simulated kernel: the state of a fence's descriptor tells of errors, and is checked") {
  TestDevice device;
  TestFile file(device);
  const std::uint32_t object = file.sync_object();
  device.engine->fail_next({FaultKind::unmapped, 0, {}, "planted"});
  TestSubmission submission(file.context(), ib);
  submission.add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, std::vector<std::uint32_t>{object});
  REQUIRE(submission.submit(file) == 0);
  REQUIRE(file.wait_object(object, in_ms(10'000)) == 0);
  int bad = -1, good = -1;
  REQUIRE(export_object(file, object, 1, bad) == 0);
  REQUIRE(export_object(file, file.sync_object(DRM_SYNCOBJ_CREATE_SIGNALED), 1, good) == 0);
  sync_merge_data merge{};
  merge.fd2 = bad;
  merge.flags = 1;
  CHECK(control_sync_file(*device.device, good, SYNC_IOC_MERGE, &merge) == EINVAL);
  merge.flags = 0;
  merge.pad = 1;
  CHECK(control_sync_file(*device.device, good, SYNC_IOC_MERGE, &merge) == EINVAL);
  merge.pad = 0;
  REQUIRE(control_sync_file(*device.device, good, SYNC_IOC_MERGE, &merge) == 0);
  const int both = merge.fence;
  std::array<struct sync_fence_info, 3> fences{};
  for (auto& one : fences) one.status = 77;
  struct sync_file_info info {};
  info.num_fences = 3;
  info.sync_fence_info = reinterpret_cast<std::uint64_t>(fences.data());
  REQUIRE(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == 0);
  CHECK(info.status == -ECANCELED);
  CHECK(info.num_fences == 2);
  CHECK(std::string(info.name) == "kiln-sim");
  CHECK(fences[0].status == 1);
  CHECK(fences[1].status == -ECANCELED);
  CHECK(fences[2].status == 77);
  CHECK(std::string(fences[1].driver_name) == "amdgpu");
  info.num_fences = 1;  // less than there are
  CHECK(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == EINVAL);
  info.num_fences = 2;
  info.sync_fence_info = 0;
  CHECK(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == EINVAL);
  info = {};
  info.flags = 1;
  CHECK(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == EINVAL);
  info = {};
  info.pad = 1;
  CHECK(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, &info) == EINVAL);
  CHECK(control_sync_file(*device.device, both, SYNC_IOC_FILE_INFO, nullptr) == EFAULT);
  CHECK(control_sync_file(*device.device, STDIN_FILENO, SYNC_IOC_FILE_INFO, &info) == EBADF);
  for (const int fd : {good, bad, both}) ::close(fd);
}

}  // namespace kiln::simulator::kernel::test

#include "support.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kiln::simulator::kernel::test {

std::optional<Fault> TestEngine::run(const EngineJob& job) {
  std::unique_lock lock(mutex_);
  jobs_.push_back({job.ring,
                   {job.buffers.begin(), job.buffers.end()},
                   job.space,
                   {job.listed.begin(), job.listed.end()},
                   job.invalidate_first});
  changed_.notify_all();
  changed_.wait(lock, [this] { return !gate_closed_ || stopped_; });
  if (stopped_) return Fault{FaultKind::planted, 0, {}, "stopped"};
  return std::exchange(failure_, std::nullopt);
}

void TestEngine::stop(const char* reason) noexcept {
  const std::scoped_lock lock(mutex_);
  stopped_ = reason != nullptr;
  changed_.notify_all();
}

void TestEngine::close_gate() {
  const std::scoped_lock lock(mutex_);
  gate_closed_ = true;
}

void TestEngine::open_gate() {
  const std::scoped_lock lock(mutex_);
  gate_closed_ = false;
  changed_.notify_all();
}

void TestEngine::wait_for_runs(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.size() >= count; });
}

void TestEngine::fail_next(Fault fault) {
  const std::scoped_lock lock(mutex_);
  failure_ = std::move(fault);
}

std::vector<std::uint64_t> TestEngine::addresses() const {
  std::vector<std::uint64_t> all;
  for (const Ran& job : jobs()) all.push_back(job.buffers.front().address);
  return all;
}

std::vector<TestEngine::Ran> TestEngine::jobs() const {
  const std::scoped_lock lock(mutex_);
  return jobs_;
}

TestDevice::TestDevice(const std::string& faults, const std::string& target) {
  std::string path = "/tmp/kiln-sim-test-XXXXXX";
  const int fd = ::mkstemp(path.data());
  REQUIRE(fd >= 0);
  ::close(fd);
  log_path = path;
  Settings settings;
  settings.target = find_target(target);
  settings.log_path = path;
  settings.lockup = std::chrono::milliseconds(20);
  std::string reason;
  REQUIRE(FaultPlan::parse(faults, settings.faults, reason));
  auto own = std::make_unique<TestEngine>();
  engine = own.get();
  device = std::make_shared<Device>(settings, std::move(own));
}

TestDevice::~TestDevice() { ::unlink(log_path.c_str()); }

std::string TestDevice::journal() const {
  std::ostringstream text;
  text << std::ifstream(log_path).rdbuf();
  return text.str();
}

int TestFile::try_buffer(const drm_amdgpu_gem_create_in& in, std::uint32_t* handle) {
  union drm_amdgpu_gem_create create {};
  create.in = in;
  const int error = control(DRM_IOCTL_AMDGPU_GEM_CREATE, create);
  if (handle != nullptr) *handle = create.out.handle;
  return error;
}

std::uint32_t TestFile::buffer(std::uint64_t bytes, std::uint64_t domains, std::uint64_t flags) {
  std::uint32_t handle = 0;
  REQUIRE(try_buffer({bytes, 0, domains, flags}, &handle) == 0);
  REQUIRE(handle != 0);
  return handle;
}

int TestFile::close(std::uint32_t handle) {
  drm_gem_close close{handle, 0};
  return control(DRM_IOCTL_GEM_CLOSE, close);
}

int TestFile::map(std::uint32_t handle, std::uint64_t address, std::uint64_t bytes, std::uint32_t operation,
                  std::uint32_t flags) {
  drm_amdgpu_gem_va va{handle, 0, operation, flags, address, 0, bytes};
  return control(DRM_IOCTL_AMDGPU_GEM_VA, va);
}

std::byte* TestFile::host(std::uint32_t handle) {
  union drm_amdgpu_gem_mmap map {};
  map.in.handle = handle;
  if (control(DRM_IOCTL_AMDGPU_GEM_MMAP, map) != 0) return nullptr;
  DeviceFile::Backing backing;
  if (file.find_backing(map.out.addr_ptr, 4096, backing) != 0) return nullptr;
  void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, backing.fd, static_cast<off_t>(backing.offset));
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

std::uint32_t TestFile::context(std::int32_t priority) {
  union drm_amdgpu_ctx context {};
  context.in.op = AMDGPU_CTX_OP_ALLOC_CTX;
  context.in.priority = priority;
  REQUIRE(control(DRM_IOCTL_AMDGPU_CTX, context) == 0);
  return context.out.alloc.ctx_id;
}

std::uint64_t TestFile::state_flags(std::uint32_t context) {
  union drm_amdgpu_ctx query {};
  query.in.op = AMDGPU_CTX_OP_QUERY_STATE2;
  query.in.ctx_id = context;
  REQUIRE(control(DRM_IOCTL_AMDGPU_CTX, query) == 0);
  return query.out.state.flags;
}

int TestFile::wait(std::uint32_t context, std::uint64_t job, std::uint64_t timeout_ns, std::uint32_t ring, bool* done) {
  union drm_amdgpu_wait_cs wait {};
  wait.in = {job, timeout_ns, AMDGPU_HW_IP_COMPUTE, 0, ring, context};
  const int error = control(DRM_IOCTL_AMDGPU_WAIT_CS, wait);
  if (done != nullptr) *done = error == 0 && wait.out.status == 0;
  return error;
}

int TestFile::wait_for_end(std::uint32_t context, std::uint64_t job, std::uint32_t ring) {
  bool done = false;
  const int error = wait(context, job, ~std::uint64_t{0}, ring, &done);
  CHECK((done || error != 0));
  return error;
}

std::uint32_t TestFile::sync_object(std::uint32_t flags) {
  drm_syncobj_create create{0, flags};
  REQUIRE(control(DRM_IOCTL_SYNCOBJ_CREATE, create) == 0);
  return create.handle;
}

int TestFile::wait_object(std::uint32_t handle, std::int64_t timeout_ns, std::uint32_t flags) {
  drm_syncobj_wait wait{reinterpret_cast<std::uint64_t>(&handle), timeout_ns, 1, flags, 0, 0};
  return control(DRM_IOCTL_SYNCOBJ_WAIT, wait);
}

int TestFile::wait_point(std::uint32_t handle, std::uint64_t point, std::int64_t timeout_ns, std::uint32_t flags) {
  drm_syncobj_timeline_wait wait{
      reinterpret_cast<std::uint64_t>(&handle), reinterpret_cast<std::uint64_t>(&point), timeout_ns, 1, flags, 0, 0};
  return control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, wait);
}

std::uint64_t TestFile::point(std::uint32_t handle, std::uint32_t flags) {
  std::uint64_t point = ~std::uint64_t{0};
  drm_syncobj_timeline_array array{reinterpret_cast<std::uint64_t>(&handle), reinterpret_cast<std::uint64_t>(&point), 1,
                                   flags};
  REQUIRE(control(DRM_IOCTL_SYNCOBJ_QUERY, array) == 0);
  return point;
}

int TestFile::signal_point(std::uint32_t handle, std::uint64_t point) {
  drm_syncobj_timeline_array array{reinterpret_cast<std::uint64_t>(&handle), reinterpret_cast<std::uint64_t>(&point), 1,
                                   0};
  return control(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, array);
}

std::int64_t in_ms(int milliseconds) {
  const auto at = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  return std::chrono::nanoseconds(at.time_since_epoch()).count();
}

TestSubmission::TestSubmission(std::uint32_t context) : context_(context) {}

TestSubmission::TestSubmission(std::uint32_t context, std::uint64_t address, std::uint32_t ring, std::uint32_t ip)
    : context_(context) {
  add(AMDGPU_CHUNK_ID_IB, std::vector<drm_amdgpu_cs_chunk_ib>{{0, 0, address, 64, ip, 0, ring}});
}

TestSubmission& TestSubmission::add_bytes(std::uint32_t chunk, const void* bytes, std::size_t count) {
  std::vector<std::uint32_t> words(count / 4);
  if (count != 0) std::memcpy(words.data(), bytes, count);
  chunks_.emplace_back(chunk, std::move(words));
  return *this;
}

TestSubmission& TestSubmission::list(const std::vector<std::uint32_t>& handles) {
  auto& entries = lists_.emplace_back();
  for (const std::uint32_t handle : handles) entries.push_back({handle, 0});
  const drm_amdgpu_bo_list_in in{~0u, ~0u, static_cast<std::uint32_t>(entries.size()), sizeof entries[0],
                                 reinterpret_cast<std::uint64_t>(entries.data())};
  return add(AMDGPU_CHUNK_ID_BO_HANDLES, std::vector<drm_amdgpu_bo_list_in>{in});
}

int TestSubmission::submit(TestFile& file, std::uint64_t* job) {
  std::vector<drm_amdgpu_cs_chunk> chunks;
  for (const auto& [id, words] : chunks_) {
    chunks.push_back({id, static_cast<std::uint32_t>(words.size()), reinterpret_cast<std::uint64_t>(words.data())});
  }
  std::vector<std::uint64_t> pointers;
  for (const auto& chunk : chunks) pointers.push_back(reinterpret_cast<std::uint64_t>(&chunk));
  union drm_amdgpu_cs cs {};
  cs.in = {context_, list_handle, static_cast<std::uint32_t>(pointers.size()), flags,
           reinterpret_cast<std::uint64_t>(pointers.data())};
  const int error = file.control(DRM_IOCTL_AMDGPU_CS, cs);
  if (job != nullptr) *job = cs.out.handle;
  return error;
}

}  // namespace kiln::simulator::kernel::test

// A simulated device for tests: an engine that does what the test says instead of running packets, and an open file
// with the ioctls by name. No shim and no libdrm stand between.
#pragma once

#include <amdgpu_drm.h>
#include <sys/ioctl.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simulator/kernel/device_file.hpp"

namespace kiln::simulator::kernel::test {

// Runs what `on_run` says for each job; without it, jobs end well at once.
class TestEngine final : public Engine {
 public:
  std::optional<Fault> run(const EngineJob& job) override;
  void stop(const char* reason) noexcept override;

  // Jobs wait at the gate while it is closed; a stop opens it for the job that stands there, which ends with a fault.
  void close_gate();
  void open_gate();
  void wait_for_runs(std::size_t count);         // that have begun
  void fail_next(Fault fault);                   // once
  std::vector<std::uint64_t> addresses() const;  // of the first indirect buffer of each job, as they ran

  struct Ran {  // what a job was
    Ring ring = Ring::invalid;
    std::vector<IndirectBuffer> buffers;
    std::shared_ptr<const AddressSpace> space;
    std::vector<std::uint64_t> listed;
    bool invalidate_first = false;
  };
  std::vector<Ran> jobs() const;  // as they ran

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool gate_closed_ = false;
  bool stopped_ = false;
  std::optional<Fault> failure_;
  std::vector<Ran> jobs_;
};

struct TestDevice {
  explicit TestDevice(const std::string& faults = "", const std::string& target = "gfx1100");
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  std::string journal() const;  // all lines

  std::string log_path;
  TestEngine* engine = nullptr;
  std::shared_ptr<Device> device;
};

// The ioctls answer 0 or an errno.
class TestFile {
 public:
  explicit TestFile(TestDevice& device) : file(device.device) {}

  template <class T>
  int control(unsigned long request, T& argument) {
    return file.control(request, &argument);
  }

  std::uint32_t buffer(std::uint64_t bytes = 4096, std::uint64_t domains = AMDGPU_GEM_DOMAIN_VRAM,
                       std::uint64_t flags = 0);
  int try_buffer(const drm_amdgpu_gem_create_in& in, std::uint32_t* handle = nullptr);
  int close(std::uint32_t handle);
  int map(std::uint32_t handle, std::uint64_t address, std::uint64_t bytes, std::uint32_t operation = AMDGPU_VA_OP_MAP,
          std::uint32_t flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE);
  std::byte* host(std::uint32_t handle);  // mapped for the life of the process; null where that is refused

  std::uint32_t context(std::int32_t priority = 0);
  std::uint64_t state_flags(std::uint32_t context);
  int wait(std::uint32_t context, std::uint64_t job, std::uint64_t timeout_ns, std::uint32_t ring = 0,
           bool* done = nullptr);
  int wait_for_end(std::uint32_t context, std::uint64_t job, std::uint32_t ring = 0);

  std::uint32_t sync_object(std::uint32_t flags = 0);
  int wait_object(std::uint32_t handle, std::int64_t timeout_ns, std::uint32_t flags = 0);
  int wait_point(std::uint32_t handle, std::uint64_t point, std::int64_t timeout_ns, std::uint32_t flags = 0);
  std::uint64_t point(std::uint32_t handle, std::uint32_t flags = 0);
  int signal_point(std::uint32_t handle, std::uint64_t point);

  DeviceFile file;
};

std::int64_t in_ms(int milliseconds);  // as an absolute time of the interface

// A submission under construction: chunks are added, then it is handed in.
class TestSubmission {
 public:
  TestSubmission(std::uint32_t context, std::uint64_t address, std::uint32_t ring = 0,
                 std::uint32_t ip = AMDGPU_HW_IP_COMPUTE);
  explicit TestSubmission(std::uint32_t context);  // without an indirect buffer

  template <class T>
  TestSubmission& add(std::uint32_t chunk, const std::vector<T>& entries) {
    return add_bytes(chunk, entries.data(), entries.size() * sizeof(T));
  }
  TestSubmission& list(const std::vector<std::uint32_t>& handles);

  int submit(TestFile& file, std::uint64_t* job = nullptr);

  std::uint32_t list_handle = 0;
  std::uint32_t flags = 0;

 private:
  TestSubmission& add_bytes(std::uint32_t chunk, const void* bytes, std::size_t count);

  std::uint32_t context_;
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> chunks_;
  std::list<std::vector<drm_amdgpu_bo_list_entry>> lists_;
};

}  // namespace kiln::simulator::kernel::test

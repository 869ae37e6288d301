// SimDevice: a device that really runs its programs (fixture_program.hpp) and takes the time that a model says, on a
// clock of its own: uploads, dispatches and readbacks each have an engine that works beside the others.
//
// Work takes effect when its time has come and somebody waits, in order: who reads an output early reads what was there
// before. Thread-safety: as Device. Ownership: as Device; shares its clock.
#pragma once

#include "support/simulated/sim_clock.hpp"
#include "support/simulated/sim_model.hpp"

#include <kiln/device.hpp>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace kiln::support {

struct SimOptions {
  SimModel model;
  DeviceInfo info;        // of sim_info()
  bool computes = true;   // false: programs change nothing, and only take their time
  bool together = false;  // copies of one direction do not wait for one another, as where the host makes them
  bool maps = false;      // buffers show their memory: copies are the host's and cost nothing here
  WorkCounters* counters = nullptr;
};

// id "simulated:0", dialects library and glsl, serializes; it neither wraps host memory nor shares memory.
DeviceInfo sim_info(std::string id = "simulated:0");

class SimDevice final : private DeviceClock, public Device {
 public:
  SimDevice(SimOptions options, std::shared_ptr<SimClock> clock);
  ~SimDevice() override;

  const DeviceInfo& info() const noexcept override { return options_.info; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;
  std::uint64_t clock_ns() const noexcept override { return clock_->now(); }

  // When the next dispatch ends, by the clock; absent: none is under way that ever will.
  std::optional<std::uint64_t> next_end() const;
  std::uint64_t submissions() const;
  std::uint64_t bytes_held() const;

 private:
  friend class SimBuffer;
  enum class Engine : std::uint8_t { upload = 0, readback };
  struct Work {
    std::uint64_t value = 0;
    std::uint64_t begin_ns = 0, end_ns = 0;
    struct Launch {
      const class SimProgram* program;
      std::vector<std::span<std::byte>> bindings;
    };
    std::vector<Launch> launches;
  };

  Status transfer(Engine engine, std::uint64_t bytes);
  void spend(std::uint64_t ns);
  double noise();  // REQUIRES: mutex_ is held
  void run_due();  // REQUIRES: mutex_ is held
  Status run(const Work& work);
  Status lost() const;

  const SimOptions options_;
  const std::shared_ptr<SimClock> clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t draws_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t device_free_ns_ = 0;
  std::uint64_t engine_free_ns_[2] = {0, 0};
  std::deque<Work> queue_;
  std::map<std::uint64_t, Result<FenceResult>> done_;
  bool is_lost_ = false;
  bool stopping_ = false;
};

}  // namespace kiln::support

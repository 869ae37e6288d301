// FixtureDevice: a small deterministic device for tests of cache, executor, selector and runtime. It really runs its
// programs (fixture_program.hpp), serializes them, counts everything, and can be told to be slow, to fail, to hang or
// to die.
//
// Typical use:
//   FixtureOptions options;                       // change options.info for identity, kind, dialects, shared_resource
//   … auto device = std::make_shared<FixtureDevice>(options); device->controls().run.close();               // work now
//   hangs at the gate … device->controls().run.await_waiting(1, …);   // … the test knows that it is there …
//   device->controls().run.open();                // … and lets it finish
//   device->controls().lose();                    // everything in flight and after: device_lost
// Thread-safety: as Device; the controls may be used from any thread at any time. Ownership: FixtureControls is shared,
// so that its counts can be read after the device's death. The destructor abandons work that still stands at a gate.
#pragma once

#include <kiln/device.hpp>

#include "support/fixture_gate.hpp"
#include "support/fixture_program.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace kiln::support {

struct FixtureControls {
  FixtureGate build, load, run;  // where build(), load() and each submission wait; all open at first

  std::atomic<bool> fail_build{false};   // build(): invalid_argument with a compiler's log
  std::atomic<bool> lacks{false};        // build(): unsupported
  std::atomic<bool> refuse_load{false};  // load(): corrupt, as a driver that refuses a binary
  std::atomic<bool> refuse_serialize{false};
  std::atomic<bool> fail_buffers{false};  // create_buffer(): unavailable, as when memory is short
  std::atomic<std::uint64_t> fail_at{0};  // the work with this timeline value fails with internal; 0: none
  std::atomic<std::uint64_t> wrong_at{
      0};                                 // the work with this value leaves a wrong number in its last binding; 0: none
  std::atomic<std::uint64_t> idle_at{0};  // the work with this value runs nothing, and says that it did; 0: none
  std::atomic<std::uint64_t> lose_at{0};  // the device is lost when the work with this value runs; 0: never
  std::atomic<bool> lost{false};          // set: everything answers device_lost
  std::atomic<bool> comes_back{false};    // set: lose_at loses the opened device alone, once; the next one works

  std::atomic<std::uint64_t> builds{0}, loads{0}, serializes{0}, submits{0}, runs{0};
  std::shared_ptr<std::atomic<std::int64_t>> live_programs = std::make_shared<std::atomic<std::int64_t>>(0);
  std::shared_ptr<std::atomic<std::int64_t>> live_buffers = std::make_shared<std::atomic<std::int64_t>>(0);
};

// id "fixture:0", kind software, dialects glsl and library, serializes, wraps host memory; one identity field each.
// With `shares_memory` its buffers, but for those that wrap, are exported and imported by descriptor.
DeviceInfo fixture_info(std::string id = "fixture:0");

enum class FixtureQueue : std::uint8_t { invalid = 0, inside_submit, own_thread };
enum class FixtureMapping : std::uint8_t { invalid = 0, mapped, not_mapped };

struct FixtureOptions {
  DeviceInfo info = fixture_info();
  FixtureQueue queue = FixtureQueue::own_thread;
  FixtureMapping mapping = FixtureMapping::mapped;  // whether Buffer::mapped() shows memory
  std::chrono::nanoseconds build_time{0};           // really waited; prefer the gates in tests
  std::chrono::nanoseconds run_time{0};             // really waited, and the device_ns of each submission
  std::uint64_t program_charge = 1024;              // Program::charge()
  std::uint64_t binary_bytes = 0;                   // serialized programs are padded to at least this
  std::function<Status()> on_build{};               // called by build(), which answers its error; empty: nothing
  WorkCounters* counters = nullptr;                 // bumped beside the controls' own counts
  std::shared_ptr<FixtureControls> controls = std::make_shared<FixtureControls>();
};

class FixtureDevice final : public Device {
 public:
  explicit FixtureDevice(FixtureOptions options = {});
  ~FixtureDevice() override;

  FixtureControls& controls() noexcept { return *options_.controls; }
  // Loses the device now: work in flight, waiters and everything after answer device_lost.
  void lose();

  const DeviceInfo& info() const noexcept override { return options_.info; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  struct Launch {
    const FixtureProgram* program;
    std::vector<std::span<std::byte>> bindings;
  };
  struct Work {
    std::uint64_t value;
    std::vector<Launch> launches;
  };

  bool is_lost() const noexcept { return gone_ || options_.controls->lost; }
  Status lost_status() const;
  Status run(const Work& work);
  void finish(std::uint64_t value, Status status);
  void serve(const std::stop_token& stop);
  void pause(std::chrono::nanoseconds time);

  FixtureOptions options_;
  std::atomic<bool> gone_{false};  // this one, not the next that is opened
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t next_value_ = 1;
  std::deque<Work> queue_;
  std::map<std::uint64_t, Status> done_;  // values not taken yet
  std::uint64_t finished_ = 0;            // all values up to this have run
  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace kiln::support

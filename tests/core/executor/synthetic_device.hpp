// SyntheticDevice: a device of the executor's tests: its programs are functions, its work runs on a thread of its own
// and only as far as the test allows, and it counts what it is asked to do.
//
// Thread-safety: every method from any thread. Ownership: as the contract says for a Device; buffers may outlive their
// counts.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::test {

using Memories = std::vector<std::span<float>>;

class SyntheticProgram final : public Program {
 public:
  using Body = std::function<void(const Memories&)>;
  explicit SyntheticProgram(Body body) : body_(std::move(body)) {}
  std::uint64_t charge() const noexcept override { return 1; }
  void run(const Memories& memories) const { body_(memories); }

 private:
  Body body_;
};

enum class Memory : std::uint8_t { invalid = 0, plain, mapped, wrapped };

class SyntheticDevice final : private DeviceClock, public Device {
 public:
  explicit SyntheticDevice(Memory memory = Memory::plain, std::string id = "synthetic:0");
  ~SyntheticDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  // Of an untimed device each look is 1 ns after the one before: no copy takes long, whatever the machine does.
  std::uint64_t clock_ns() const noexcept override { return untimed ? ticks_.fetch_add(1) : now_ns(); }
  std::atomic<bool> untimed{false};
  // Of an untimed device: how long each Buffer::write, each Buffer::read and each submit() takes.
  std::atomic<std::uint64_t> write_ns{0}, read_ns{0}, submit_ns{0};
  // Likewise each wait() that finds its work done. It then says that the work began in the middle of that time.
  std::atomic<std::uint64_t> wait_ns{0};
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

  // What the test decides. Values are the device's own, counted from 1.
  void hold();                                      // from now on nothing is worked on
  void allow(std::uint64_t dispatches);             // …but so many
  void release();                                   // everything again
  void hold_reads(std::size_t bytes);               // Buffer::read of so many bytes or more waits; SIZE_MAX: none does
  void await_held_read();                           // until one does
  void fail(std::uint64_t value, Status status);    // wait() answers it for this value
  void refuse(std::uint64_t value, Status status);  // submit() answers it for this value
  void refuse_buffers(std::optional<Status> status,
                      std::size_t after = 0);            // create_buffer() answers it, after so many
  void share_buffers() { info_.shares_buffers = true; }  // from now on; before it has an executor
  std::atomic<bool> tells_time{true};                    // of the work, in FenceResult
  void lose();                                           // everything answers device_lost, work in flight too

  // What the test sees.
  void await_submitted(std::uint64_t value);  // until it has been submitted; throws after 20 s
  void await_buffers(BufferUsage usage, std::size_t alive);
  void await_idle();  // until all that was submitted has been worked on
  std::uint64_t submitted() const;
  std::vector<bool> last_waits() const;    // PassLaunch::waits of the last submit()
  std::thread::id last_submitter() const;  // the thread of the last submit()
  std::size_t most_in_device() const;      // most dispatches submitted and not yet taken by wait()
  std::size_t buffers_alive(BufferUsage usage) const;
  std::size_t buffers_made(BufferUsage usage) const;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts_made() const;  // bytes of the whole and of the part

 private:
  friend class SyntheticBuffer;
  struct Work {
    std::uint64_t value;
    std::vector<std::pair<const SyntheticProgram*, std::vector<Buffer*>>> passes;
  };

  void serve();
  void count_buffer(BufferUsage usage, int change);
  void await_reads(std::size_t bytes);

  const Memory memory_;
  DeviceInfo info_;
  mutable std::atomic<std::uint64_t> ticks_{1};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  std::set<std::uint64_t> done_;
  std::map<std::uint64_t, Status> failing_;
  std::map<std::uint64_t, Status> refused_;
  std::optional<Status> no_buffers_;
  std::size_t buffers_left_ = 0;
  std::size_t held_from_ = SIZE_MAX;
  std::size_t held_reads_ = 0;
  std::uint64_t last_ = 0;
  std::thread::id submitter_;
  std::vector<bool> waits_;
  std::uint64_t worked_ = 0;
  std::uint64_t allowance_ = UINT64_MAX;
  std::size_t in_device_ = 0;
  std::size_t most_in_device_ = 0;
  std::map<BufferUsage, std::size_t> alive_, made_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts_;
  bool lost_ = false;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace kiln::test

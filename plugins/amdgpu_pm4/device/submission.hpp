// The ring of command memory, the reports that the device writes, and the device's clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kiln/device.hpp>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/safety/validator.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// RingSpace: which bytes of a ring are in use, and until which point of a timeline. Bytes are taken in order and come
// free in order; none is given again before its point is passed.
//
// Thread-safety: one thread at a time. Ownership: knows offsets only, not the memory.
class RingSpace {
 public:
  explicit RingSpace(std::uint64_t bytes) : bytes_(bytes) {}

  // An offset of `bytes` contiguous bytes, in use until `point`; nullopt where they are not free. REQUIRES: bytes > 0,
  // alignment a power of two, points never fall.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point);
  // Of what was taken last only the first `bytes` are used. REQUIRES: so many were taken.
  void keep_of_last(std::uint64_t bytes);
  // What was taken with this point, last, is free again: it was never used.
  void give_back(std::uint64_t point);
  // The points up to this one are passed.
  void passed(std::uint64_t point);

  std::uint64_t bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return taken_.empty(); }

 private:
  struct Taken {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t point = 0;
  };

  std::uint64_t bytes_;
  std::deque<Taken> taken_;  // oldest first
};

// RingBuffer: memory for what a submission needs only until it is done (packets, arguments, reports), from one buffer
// that is used round and round; what does not fit gets a buffer of its own.
//
// Thread-safety: one thread at a time. Ownership: owns the ring; an own buffer goes to the submission that needs it.

struct RingPart {
  std::span<std::byte> memory;  // the host's view of it
  std::uint64_t address = 0;    // the GPU's
};

class RingBuffer {
 public:
  static Result<std::unique_ptr<RingBuffer>> create(Winsys& winsys, BufferUse use, std::uint64_t bytes);

  // In use until `point`. Empty memory: not free now. What is larger than half of the ring goes into `own`.
  Result<RingPart> take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point,
                        std::vector<std::shared_ptr<BufferObject>>& own);
  // As take(), and always a buffer of its own.
  Result<RingPart> take_own(std::uint64_t bytes, std::vector<std::shared_ptr<BufferObject>>& own);

  RingSpace& space() noexcept { return space_; }
  const BufferObject& object() const noexcept { return *object_; }

 private:
  RingBuffer(Winsys& winsys, BufferUse use, std::unique_ptr<BufferObject> object)
      : winsys_(winsys), use_(use), object_(std::move(object)), space_(object_->bytes()) {}

  Winsys& winsys_;
  const BufferUse use_;
  std::unique_ptr<BufferObject> object_;
  RingSpace space_;
};

// Results: what became of the values of a queue's timeline, until somebody takes it.
//
// Thread-safety: one thread at a time. Ownership: holds results by value; one that nobody takes stays until the queue
// goes.
class Results {
 public:
  std::uint64_t next() const noexcept { return last_ + 1; }
  // next() was submitted.
  void begin() noexcept { ++last_; }
  void finish(std::uint64_t value, Result<FenceResult> result) { finished_.insert_or_assign(value, std::move(result)); }
  // The result, which is then gone; nullopt where the value is not finished. not_found: never submitted, or taken.
  // `first_pending`: the oldest value in flight, next() where there is none.
  std::optional<Result<FenceResult>> take(std::uint64_t value, std::uint64_t first_pending);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Result<FenceResult>> finished_;
};

// DeviceClock: the device's clock counter in nanoseconds, and its readings on the host's clock.
//
// Thread-safety: one thread at a time. Ownership: borrows the winsys.
class DeviceClock {
 public:
  explicit DeviceClock(Winsys& winsys) : winsys_(winsys), khz_(winsys.facts().counter_khz) {}

  // 0 where the device tells no frequency.
  std::uint64_t ns_between(std::uint64_t begin, std::uint64_t end) const noexcept;
  // When the counter stood there, by kiln::now_ns(); 0 where that cannot be told.
  std::uint64_t on_host_clock(std::uint64_t counter) noexcept;

 private:
  Winsys& winsys_;
  const std::uint64_t khz_;
  std::uint64_t compared_at_ns_ = 0;  // the host's clock when the two were last compared; 0: never
  std::uint64_t counter_then_ = 0;
  bool refused_ = false;
};

// What one submission consists of: its passes in order, the buffers that it lists, and what it keeps alive.

// BoundPass: a launch of the contract, checked and bound to this device's objects.
//
// Thread-safety and ownership: values; they share what they refer to.
struct BoundPass {
  std::shared_ptr<const LoadedKernel> kernel;
  std::vector<std::shared_ptr<BufferObject>> buffers;  // one a binding
  std::array<std::uint32_t, 3> grid{};                 // never nothing: such launches are left out
  std::vector<std::byte> values{};                     // of the arguments by value, one behind the other
  std::vector<std::uint64_t> local_bytes{};            // one an argument that points to local memory
  std::optional<RecordedDispatch> recorded{};          // in place of the kernel's: with that local memory
};

// BoundDispatch: the passes of one dispatch in order. Equal ones are bound once, and share their arguments.
//
// Thread-safety and ownership: values; they share what they refer to.
struct BoundDispatch {
  std::vector<BoundPass> bound;      // in the order of their first use
  std::vector<std::uint32_t> order;  // index into bound, one a pass

  void add(BoundPass pass) {
    order.push_back(static_cast<std::uint32_t>(bound.size()));
    bound.push_back(std::move(pass));
  }
  std::size_t size() const noexcept { return order.size(); }
  const BoundPass& operator[](std::size_t pass) const { return bound[order[pass]]; }
};

// BufferList: the buffers that one submission may use. The kernel driver takes them by handle, each once. The check
// before the submission finds them by address.
//
// Thread-safety: one thread at a time. Ownership: keeps none of the buffers; allocates nothing once it has held as
// many.
class BufferList {
 public:
  void clear();
  void add(const BufferObject& buffer);
  // In order, and each once. REQUIRES: before handles() and ranges().
  void sort();

  std::span<const std::uint32_t> handles() const noexcept { return handles_; }
  std::span<const BufferRange> ranges() const noexcept { return ranges_; }

 private:
  std::vector<std::uint32_t> handles_;
  std::vector<BufferRange> ranges_;
};

// InFlight: one submission from the moment the kernel driver has it until its result is known. It pins all that the GPU
// may still touch.
//
// Thread-safety: one thread at a time. Ownership: shares kernels, buffers and context.

// Stamps of the device's clock, in memory that the GPU writes: at the start, then after each stretch of passes. 0: not
// reached.
class Stamps {
 public:
  Stamps() = default;
  // Makes them all 0.
  Stamps(std::span<std::byte> memory, std::uint64_t address);

  static std::uint64_t bytes_of(std::size_t stretches) { return (stretches + 1) * sizeof(std::uint64_t); }
  std::uint64_t address_of(std::size_t i) const noexcept { return address_ + i * sizeof(std::uint64_t); }
  std::uint64_t operator[](std::size_t i) const noexcept;
  std::size_t size() const noexcept { return count_; }
  RingPart memory() const noexcept { return {{memory_, count_ * sizeof(std::uint64_t)}, address_}; }
  std::uint64_t first() const noexcept { return (*this)[0]; }
  std::uint64_t last() const noexcept { return (*this)[count_ - 1]; }

 private:
  std::byte* memory_ = nullptr;
  std::uint64_t address_ = 0;
  std::size_t count_ = 0;
};

// The passes of a submission: which kernel each runs, and where a stamp stands.
struct PassTable {
  std::vector<std::uint32_t> kernel_of;   // index into the submission's kernels, one a pass
  std::vector<std::size_t> stretch_ends;  // index past the last pass of each
};

struct KeptSubmission;

struct InFlight {
  std::uint64_t value = 0;  // on the queue's timeline
  std::shared_ptr<Context> context;
  std::uint64_t number = 0;                                  // in the context
  std::uint64_t handed_over_ns = 0;                          // by kiln::now_ns()
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;  // each once
  std::shared_ptr<const PassTable> passes;
  std::vector<std::shared_ptr<BufferObject>> buffers;
  Stamps stamps;
  std::shared_ptr<KeptSubmission> kept;  // whose commands run; null: they are in the rings

  const LoadedKernel& kernel_of(std::size_t pass) const { return *kernels[passes->kernel_of[pass]]; }

  // The passes that were begun and not ended when the device stopped, [begin, end): empty where it never began, or all
  // had ended.
  struct Passes {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Passes unfinished() const noexcept;
  // Those that took longest, of which the waves were killed where all have ended. All, where that is not known.
  Passes longest() const noexcept;
};

// DispatchKey: names all that the commands of a dispatch depend on. Numbers stand for programs and buffers, so that an
// object in the place of a destroyed one has another key.
//
// Thread-safety: values.
struct DispatchKey {
  std::uint64_t hash = 0;            // of the words
  std::vector<std::uint64_t> words;  // empty: a dispatch whose commands are not kept

  void add(std::uint64_t word) noexcept;
  bool operator==(const DispatchKey&) const = default;
};

// KeptSubmission: a submission whose commands, arguments and stamps have memory of their own, so that an equal dispatch
// submits them again. They were validated when they were written, and nothing writes them but the stamps.
//
// Thread-safety: one thread at a time. Ownership: owns that memory; does not keep the dispatch's programs and buffers.
struct KeptSubmission {
  DispatchKey key;
  std::uint64_t suspicions = 0;                       // Quarantine::suspicions() then
  std::vector<std::shared_ptr<BufferObject>> memory;  // in which they are
  CommandRange commands;
  std::vector<std::uint32_t> handles;  // the buffer list
  std::vector<std::weak_ptr<const LoadedKernel>> kernels;
  std::vector<std::weak_ptr<BufferObject>> buffers;
  std::shared_ptr<const PassTable> passes;
  RingPart stamps;
  std::uint64_t last_use = 0;  // by the queue's count of dispatches with a key
};

// Which passes of a submission may overlap: the passes are cut into groups in their order, and those of one group
// neither read nor write what another of the group writes.
//
// Thread-safety: a pure function. Ownership: values.
struct PassGroup {
  std::size_t end = 0;    // index past its last pass
  bool suspect = false;   // one pass of a program under suspicion: it must be known whether it hung
  bool unproven = false;  // one of its programs has never ended well: it should be known whether it hung
};

// No passes: no groups.
std::vector<PassGroup> groups_of(const BoundDispatch& passes, const Quarantine& quarantine);

}  // namespace kiln::amdgpu_pm4

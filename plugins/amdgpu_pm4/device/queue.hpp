// Queue: dispatches in order on one compute ring, many passes to a submission, each submission with a point on a
// timeline and stamps of the device's clock.
//
//   submit: passes in groups → kernarg segments of the different ones → packets → check → kernel driver
//   wait:   the timeline's point → how it ended → stamps → result; after a reset: who is to blame, and a new context
//
// Thread-safety: submit() and wait() from any thread. Who waits sleeps in the kernel, and no thread of its own is
// needed. A submission that waits for room holds up other submissions and nothing else. Ownership: borrows winsys and
// quarantine, which outlive it; what it submitted is pinned until it is known to have ended.
#pragma once

#include <kiln/device.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/device/submission.hpp"
#include "amdgpu_pm4/packets/command_stream.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct QueueSettings {
  std::string device;  // its id, for messages
  DeviceShape shape;
  Log log;
  std::uint64_t commands_bytes = 1 << 20;
  std::uint64_t arguments_bytes = 1 << 20;
  std::uint64_t reports_bytes = 1 << 19;
  std::uint64_t chunk_bytes = 16 << 10;  // of a command buffer
};

class Queue final : private ChunkSource {
 public:
  static Result<std::unique_ptr<Queue>> create(Winsys& winsys, Quarantine& quarantine, QueueSettings settings);
  ~Queue() override;  // waits a while for what is in flight

  // Submits the commands of an equal dispatch again, where they are kept and not in flight; nullopt: submit() it.
  Result<std::optional<std::uint64_t>> submit_again(const DispatchKey& key);
  // unsupported: a program is in quarantine. A dispatch that came before is kept for submit_again(). REQUIRES: as many
  // buffers a pass as bindings; the key is that of the passes.
  Result<std::uint64_t> submit(const BoundDispatch& passes, DispatchKey key = {});
  // As Device::wait. unavailable: the device was reset while it ran, and goes on; the message names the kernel that did
  // it, where that is known.
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);
  // As in FenceExchange.
  Result<UniqueFd> export_fence(std::uint64_t value);
  Status wait_for_fence(int sync_file);
  // ok, or device_lost with the reason.
  Status alive() const;

 private:
  Queue(Winsys& winsys, Quarantine& quarantine, QueueSettings settings);
  Status open();

  // Making a submission: queue_submission.cpp. All with both mutexes held.
  Status try_submit(const BoundDispatch& passes, KeptSubmission* keep);
  Status hand_over(InFlight work, const CommandRange& commands, std::span<const std::uint32_t> handles);
  Status check_quarantine(const LoadedKernel& kernel) const;
  Status check_quarantine(const BoundDispatch& passes) const;
  bool came_before(std::uint64_t hash);
  bool room_to_keep(const DispatchKey& key);
  Result<StreamChunk> next_chunk() noexcept override;
  Result<RingPart> take(RingBuffer& ring, std::uint64_t bytes, std::uint64_t alignment);
  void give_back(std::uint64_t value);  // what was taken of the rings for it, which is not submitted
  Status build(const BoundDispatch& passes, InFlight& work, PassTable& table);
  Status write_arguments(const std::vector<BoundPass>& passes, std::vector<std::uint64_t>& addresses);
  Status write_packets(const BoundDispatch& passes, std::span<const std::uint64_t> arguments,
                       std::span<const PassGroup> groups, std::span<const std::size_t> stretch_ends,
                       const Stamps& stamps);
  void list_buffers(const BoundDispatch& passes, InFlight& work, PassTable& table);

  // What became of them. All with mutex_ held; the last three with both.
  void collect_passed();
  void look_for_reset();
  void resolve_oldest();
  bool may_have_run_twice(const InFlight& work) const;
  void fail(const InFlight& work, const Outcome& outcome);
  std::string blame(const InFlight& work, const Outcome& outcome, const ResetState& state);
  Status replace_context();
  void lose(std::string why);
  void recover();
  Status wait_for_oldest();
  Status wait_for_oldest(std::chrono::seconds patience);
  std::uint64_t oldest() const noexcept { return in_flight_.empty() ? results_.next() : in_flight_.front().value; }

  Winsys& winsys_;
  Quarantine& quarantine_;
  const QueueSettings settings_;
  std::uint32_t ring_ = 0;  // of the compute rings

  std::mutex making_mutex_;   // locked first, while a submission is made
  mutable std::mutex mutex_;  // of all that follows, and free where a submission waits for an older one
  std::shared_ptr<Context> context_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Timeline> others_;  // fences of other drivers, from the first one on
  SyncPoint awaited_;                 // the last of them; no timeline: submissions of this context wait for it
  std::uint64_t last_other_ = 0;
  std::unique_ptr<RingBuffer> commands_, arguments_, reports_;
  DeviceClock clock_;
  CommandStream stream_;
  Results results_;
  std::deque<InFlight> in_flight_;  // oldest first
  Status lost_;
  std::string last_reset_;  // why the context before this one was lost
  std::uint64_t reset_looked_for_ns_ = 0;
  std::vector<std::shared_ptr<KeptSubmission>> kept_;  // one that is shared is in flight
  std::array<std::uint64_t, 64> submitted_{};          // hashes of the last keys that were not kept
  std::size_t submitted_next_ = 0;
  std::uint64_t keyed_ = 0;  // submissions with a key

  // Of the submission that is being made.
  InFlight* making_ = nullptr;
  std::uint64_t kept_chunk_bytes_ = 0;  // of its command buffers; 0: they are in the ring
  bool last_chunk_in_ring_ = false;
  BufferList list_;
  std::vector<ProgramFacts> programs_;
};

}  // namespace kiln::amdgpu_pm4

// Walk: three jobs through a slot pipeline in one chosen order of steps, told step by step who moves next.
//
// Every actor that has a thread in a real executor (submitter, lanes, device, waiter, canceller) is one here that moves
// when it is told to and only while its thread would be awake: a wake-up that is lost leaves nobody who can move.
// Thread-safety: one thread. Ownership: owns its device and its pipeline.
#pragma once

#include "core/executor/interleavings/stepped_device.hpp"
#include "core/executor/jobs.hpp"
#include "executor/slot_pipeline.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::test {

constexpr int job_count = 3;

struct Scenario {
  std::uint32_t slots = 3;
  int cancels = 0;         // this job, from 1, by somebody at any time; 0: nobody
  int fails = 0;           // this job's upload, from 1
  bool unordered = false;  // the one that fails
  bool small = false;      // the device is done so soon that jobs which wait together share a submission
  bool loses = false;      // the device is lost at any time
  int hastens = 0;         // this job, from 1, is waited for at any time by somebody who leaves at once
  bool late = false;       // the deadline of that job has passed from the start
  bool apart = false;      // copies take long, and the thread that takes results apart begins at any time
  int longs = 0;           // likewise, but of this job alone, from 1
  int overtakes = 0;       // this job, from 1, need not finish in its turn
};

class Walk {
 public:
  enum Actor : int {
    submitter = 0,
    lanes,
    device = lanes + static_cast<int>(executor::lane_count),
    waiter,
    canceller,
    hasty_waiter,
    loser,
    starter,  // of the thread apart
    apart,    // that thread
    actor_count
  };

  explicit Walk(const Scenario& scenario);
  bool can(int actor) const;
  void step(int actor);
  bool over() const { return taken_ + refused_ == job_count; }
  // Equal for walks that can go on in the same ways only.
  std::string state() const;

  // What a promise was broken by; empty: none.
  std::string broken;
  std::size_t most_together = 0;  // jobs of one submission
  bool overtaken = false;         // a job has finished before one that was submitted earlier

 private:
  // The fence of a job, from 1.
  std::uint64_t fence_of(int job) const { return static_cast<std::uint64_t>(job) + (learns() ? 1 : 0); }

  // One job more, before the walk begins, from which the pipeline knows how long jobs and copies take.
  bool learns() const { return scenario_.small || scenario_.apart; }
  void learn_from_one_job();
  std::size_t floats_of(int job) const;
  void wake(const executor::Wake& told);
  void move(int actor);
  void check_order();
  void submit();

  // Three steps: claim, work, pass on.
  void lane(executor::Lane which);
  void lane_apart();
  // Whether whoever holds the claim can tell that the device has done its work.
  bool done_with(const executor::Claim& claim) const;
  void dispatch(executor::Claim& claim);
  void take();
  void hasten();
  void cancel();

  const Scenario scenario_;
  std::shared_ptr<SteppedDevice> device_;
  std::unique_ptr<executor::SlotPipeline> pipeline_;
  std::vector<Job> jobs_;
  std::array<executor::Claim, executor::lane_count> claims_;
  std::array<bool, executor::lane_count> worked_{};
  std::array<bool, executor::lane_count> awake_{};
  bool has_apart_ = false, apart_awake_ = false, apart_worked_ = false;
  executor::Claim apart_claim_;
  // The submit thread, which waits for the device, has something else to look at. By lane: here each is one by itself.
  std::array<bool, executor::lane_count> news_{};
  bool submitter_awake_ = true;
  bool cancel_tried_ = false;
  bool cancelled_ = false;
  bool hastened_ = false;
  std::string dispatched_;  // which fences went to the device together
  int submitted_ = 0;
  int refused_ = 0;
  int taken_ = 0;
};

}  // namespace kiln::test

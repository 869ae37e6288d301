// Fence: a point in time that a job, or whoever signals it, reaches once; with the error the job ended with. FenceBoard
// signals fences and wakes those who wait.
//
// Thread-safety: everything here REQUIRES the device's mutex, which `changed` is waited on with. Ownership: shared.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/kernel/base/unique_fd.hpp"

namespace kiln::simulator::kernel {

struct Fence {
  bool signaled = false;
  int error = 0;  // errno of the job; meaningful once signaled
};

using FencePtr = std::shared_ptr<Fence>;
using Fences = std::vector<FencePtr>;  // reached when all of them are

bool all_signaled(const Fences& fences) noexcept;
void drop_signaled(Fences& fences);
FencePtr signaled_fence();

class FenceBoard {
 public:
  std::condition_variable changed;  // a fence was signaled, a sync object was given one, or the device changed

  void signal(Fence& fence, int error);
  // From when `fences` are reached on, a poll for reading of the descriptor that `end` is connected with succeeds.
  void announce(Fences fences, std::shared_ptr<UniqueFd> end);

 private:
  struct Watch {
    Fences fences;
    std::weak_ptr<UniqueFd> end;
  };

  std::vector<Watch> watches_;
};

}  // namespace kiln::simulator::kernel

// SyncObject: a place for a fence that jobs are given and take: binary (one fence, replaced) or a timeline (points of
// rising value, each with a fence; a point is reached when it and all before it are).
//
// Thread-safety: REQUIRES the device's mutex. Ownership: shared between handles, files and descriptors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/kernel/sync/fence.hpp"

namespace kiln::simulator::kernel {

class SyncObject {
 public:
  // What must be signaled for `point` to be reached; 0 is whatever the object holds. Nothing: not submitted yet.
  std::optional<Fences> find(std::uint64_t point) const;
  // Null takes the fence away.
  void replace(FencePtr fence);
  void replace(Fences fences);
  // REQUIRES point > 0. A point that is not above the last one takes the last one's value, as a fence after it.
  void add_point(std::uint64_t point, Fences fences);

  bool is_timeline() const noexcept { return !links_.empty() && links_.back().value != 0; }
  std::uint64_t reached_point() const noexcept;    // 0 for a binary one
  std::uint64_t submitted_point() const noexcept;  // likewise

 private:
  struct Link {
    std::uint64_t value = 0;  // 0: the fence of a binary object, also where points were added after it
    Fences fences;
  };

  void forget_reached();

  std::vector<Link> links_;  // values never fall
};

using SyncObjectPtr = std::shared_ptr<SyncObject>;

}  // namespace kiln::simulator::kernel

// Fences, sync objects, and the file descriptors that stand for them.
//
// Thread-safety: everything here REQUIRES the device's mutex, which `FenceBoard::changed` is waited on with.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "simulator/kernel/file_descriptor.hpp"

namespace kiln::simulator::kernel {

// Fence: a point in time that a job, or whoever signals it, reaches once; with the error the job ended with. FenceBoard
// signals fences and wakes those who wait.
//
// Thread-safety: everything here REQUIRES the device's mutex, which `changed` is waited on with. Ownership: shared.

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

// SyncObject: a place for a fence that jobs are given and take: binary (one fence, replaced) or a timeline (points of
// rising value, each with a fence; a point is reached when it and all before it are).
//
// Thread-safety: REQUIRES the device's mutex. Ownership: shared between handles, files and descriptors.

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

// Descriptors: the file descriptors that stand for sync objects and for fences outside of the device's own handles.
// Each is one end of a socket pair whose other end is kept here: a poll shows a reached fence, and when the last copy
// of a descriptor is closed, the entry goes.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: owns the kept ends; shares what they stand for.

struct SocketPair {
  UniqueFd given;  // goes to the program
  UniqueFd kept;
};

// Nothing where the process may open no more files.
std::optional<SocketPair> socket_pair(int flags);
bool other_end_closed(int kept) noexcept;

class Descriptors {
 public:
  explicit Descriptors(FenceBoard& board) : board_(board) {}

  // The descriptor, which is the caller's; nothing where the process may open no more.
  std::optional<UniqueFd> export_object(const SyncObjectPtr& object);
  std::optional<UniqueFd> export_fences(Fences fences);

  SyncObjectPtr object_behind(int fd) const;  // null: it stands for none
  std::optional<Fences> fences_behind(int fd) const;

 private:
  struct Entry {
    std::shared_ptr<UniqueFd> kept;
    std::variant<SyncObjectPtr, Fences> meaning;
  };

  std::optional<UniqueFd> add(std::variant<SyncObjectPtr, Fences> meaning);
  const Entry* find(int fd) const;

  FenceBoard& board_;
  std::map<Inode, Entry> entries_;
};

}  // namespace kiln::simulator::kernel

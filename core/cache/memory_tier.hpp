// MemoryTier: programs held in this process, the least recently used going first, bounded in programs and in bytes.
//
// Thread-safety: every method from any thread; one lock around the table. Ownership: shares programs with the handles
// it gives out. A program that a handle pins is never evicted; where only pinned ones are left, a new program is not
// taken in and its user keeps it alone. A program belongs to one device: under another device's key of equal content it
// is absent. Invariant: by_use_ and table_ hold the same entries; bytes_ is the sum of their charges; both bounds hold.
#pragma once

#include "cache/epoch_domain.hpp"

#include <kiln/device.hpp>
#include <kiln/program.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln {

struct MemoryBounds {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
};

struct HeldProgram {
  std::shared_ptr<const Program> program;
  std::uint64_t build_ns = 0;  // recorded when it was built, in this process or an earlier one
};

struct GuardedProgram {
  const Program* program = nullptr;
  std::uint64_t build_ns = 0;
};

struct MemoryFigures {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t evictions = 0;
};

using UseCounts = std::vector<std::pair<Digest, std::uint64_t>>;

class MemoryTier {
 public:
  explicit MemoryTier(MemoryBounds bounds) : bounds_(bounds) {}

  std::optional<HeldProgram> get(const Digest& digest, const Device& device);
  // Takes the program in, evicting what nobody pins. false: it does not fit beside what is pinned.
  bool insert(const Digest& digest, const Device& device, HeldProgram held);

  Guard enter() noexcept { return domain_.enter(); }
  // nullptr where it is not there. The pointer is valid while the guard lives.
  GuardedProgram find(const Digest& digest, const Guard& guard) noexcept;

  MemoryFigures figures() const noexcept;
  // How often each program was given out since this was last asked.
  UseCounts take_uses();

 private:
  struct Entry {
    Digest digest;
    const Device* device = nullptr;
    std::shared_ptr<const Program> program;
    std::uint64_t charge = 0;
    std::uint64_t build_ns = 0;
    std::uint64_t uses = 0;
  };
  using Place = std::list<Entry>::iterator;
  using Programs = std::vector<std::shared_ptr<const Program>>;

  void touch(Place at) noexcept;
  // What must go for `charge` more bytes, oldest first; nullopt where what is pinned leaves no room.
  std::optional<std::vector<Place>> victims_for(std::uint64_t charge);
  void unlink(Place at, Programs& evicted);

  const MemoryBounds bounds_;
  EpochDomain domain_;
  mutable std::mutex mutex_;
  std::list<Entry> by_use_;  // most recent first
  std::unordered_map<Digest, Place, DigestHash> table_;
  std::uint64_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  UseCounts uses_of_evicted_;
};

}  // namespace kiln

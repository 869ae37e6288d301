// The GPU's addresses: the mappings at one moment, and the page table that makes such snapshots.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

// AddressSpace: which buffer lies where in the GPU's addresses, at one moment. A job sees the one of its submission:
// what is unmapped later stays until the job has ended, as the kernel's page table updates wait for it.
//
// Thread-safety: never changes. Ownership: holds a reference on every buffer that is mapped.

struct Rights {
  bool read = false;
  bool write = false;
  bool execute = false;
};

enum class Caching : std::uint8_t {
  invalid = 0,
  cached,   // through L2
  uncached  // MTYPE UC: past L2, coherent with the host
};

struct Mapping {
  std::uint64_t start = 0;  // address; high ones are sign-extended from 48 bits
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // of `start` in the buffer
  Rights rights;
  Caching caching = Caching::cached;
  BufferRef buffer;
};

class AddressSpace {
 public:
  // By start, no two overlap. `sparse`: by start, their ends.
  explicit AddressSpace(std::vector<Mapping> sorted, std::map<std::uint64_t, std::uint64_t> sparse = {});
  const Mapping* find(std::uint64_t address) const noexcept;  // null: nothing is mapped there
  // Given away without memory (partially resident): reads give zeros, writes are lost, and neither is a fault.
  // REQUIRES: nothing is mapped there.
  bool is_sparse(std::uint64_t address) const noexcept;
  std::span<const Mapping> mappings() const noexcept { return mappings_; }

 private:
  std::vector<std::uint64_t> starts_;  // of mappings_: what the search reads
  std::vector<Mapping> mappings_;
  std::map<std::uint64_t, std::uint64_t> sparse_;
};

// Addresses of packets and descriptors have 48 bits: the upper half of the space is that of bit 47.
constexpr std::uint64_t sign_extended(std::uint64_t address) noexcept {
  return (address >> 47) == 1 ? address | 0xFFFF'0000'0000'0000U : address;
}

// PageTable: the mappings of one GPU address space, as one open file of a render node has them.
//
// Thread-safety: any thread, also while jobs run: they hold snapshots. Ownership: shares every mapped buffer.

enum class MapProblem : std::uint8_t {
  invalid = 0,
  misaligned,  // address, size or offset is not of whole pages
  bad_range,   // no bytes, past the end of the buffer, or not inside one half of the 48-bit space
  overlap,     // something is mapped there
  not_mapped   // nothing of that buffer starts there
};

struct MapRefusal {
  MapProblem problem = MapProblem::invalid;
  std::string reason;
};

class PageTable {
 public:
  [[nodiscard]] std::optional<MapRefusal> map(const Mapping& mapping);
  // Over whatever was there, which is cut to what remains of it.
  [[nodiscard]] std::optional<MapRefusal> replace(const Mapping& mapping);
  // The mapping of that buffer that starts there, whole.
  [[nodiscard]] std::optional<MapRefusal> unmap(std::uint64_t start, std::uint64_t buffer);
  // Everything in the range; what crosses its ends is cut. An empty range is no error.
  [[nodiscard]] std::optional<MapRefusal> clear(std::uint64_t start, std::uint64_t bytes);
  void remove_buffer(std::uint64_t buffer);  // all its mappings: its handle was closed
  // By start, their ends: the addresses without memory, also where something is mapped over them.
  void set_sparse(std::map<std::uint64_t, std::uint64_t> ends);

  std::shared_ptr<const AddressSpace> snapshot();  // made anew only after a change

 private:
  void cut(std::uint64_t start, std::uint64_t bytes);

  std::mutex mutex_;
  std::map<std::uint64_t, Mapping> mappings_;  // by start
  std::map<std::uint64_t, std::uint64_t> sparse_;
  std::shared_ptr<const AddressSpace> snapshot_;  // null: out of date
};

}  // namespace kiln::simulator

// AddressSpace: which buffer lies where in the GPU's addresses, at one moment. A job sees the one of its submission:
// what is unmapped later stays until the job has ended, as the kernel's page table updates wait for it.
//
// Thread-safety: never changes. Ownership: holds a reference on every buffer that is mapped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/memory/buffer_memory.hpp"

namespace kiln::simulator {

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
  explicit AddressSpace(std::vector<Mapping> sorted);         // by start, no two overlap
  const Mapping* find(std::uint64_t address) const noexcept;  // null: nothing is mapped there
  std::span<const Mapping> mappings() const noexcept { return mappings_; }

 private:
  std::vector<std::uint64_t> starts_;  // of mappings_: what the search reads
  std::vector<Mapping> mappings_;
};

// Addresses of packets and descriptors have 48 bits: the upper half of the space is that of bit 47.
constexpr std::uint64_t sign_extended(std::uint64_t address) noexcept {
  return (address >> 47) == 1 ? address | 0xFFFF'0000'0000'0000U : address;
}

}  // namespace kiln::simulator

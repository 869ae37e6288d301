// JobMemory: the DeviceMemory of one job: the address space of its submission, through the device's L2, restricted to
// the buffers of its list and the always-valid ones.
//
// Thread-safety: as DeviceMemory. Ownership: shares the address space, borrows the cache; the destructor settles it,
// and neither writes back nor invalidates: the kernel's own packets around a job do that.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/memory/address_space.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/memory/l2_cache.hpp"

namespace kiln::simulator {

class JobMemory final : public DeviceMemory {
 public:
  JobMemory(std::shared_ptr<const AddressSpace> space, std::span<const std::uint64_t> listed_buffers, L2Cache& l2);
  ~JobMemory() override;

  std::optional<Fault> page(std::uint64_t address, Access access, Page& out) override;
  bool resident(std::uint64_t address) const noexcept override;
  void invalidate_l2() override;
  void write_back_l2() override;
  std::optional<Fault> load(std::uint64_t address, std::span<std::byte> out) override;
  std::optional<Fault> store(std::uint64_t address, std::span<const std::byte> bytes) override;

 private:
  struct Place;  // a page of a buffer
  std::optional<Fault> find(std::uint64_t address, Access access, Place& out);

  std::shared_ptr<const AddressSpace> space_;
  std::vector<std::uint64_t> listed_;           // sorted
  std::vector<std::atomic<L2Buffer*>> copies_;  // by mapping; null: not asked for yet
  L2Cache& l2_;
};

}  // namespace kiln::simulator

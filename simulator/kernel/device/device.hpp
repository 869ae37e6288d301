// Device: what the open files of one simulated device share: its figures, memory heaps, reset counters, fences and
// rings. One lives for each device, not for each file.
//
// Thread-safety: `mutex` guards everything that is not const; each method says whether it is REQUIRED.
// Ownership: shared by the files; owns rings and engine, and ends their threads in the destructor, when no file is
// left.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simulator/kernel/base/answer.hpp"
#include "simulator/kernel/base/inode.hpp"
#include "simulator/kernel/buffers/buffer.hpp"
#include "simulator/kernel/device/journal.hpp"
#include "simulator/kernel/device/settings.hpp"
#include "simulator/kernel/submit/engine.hpp"
#include "simulator/kernel/sync/descriptors.hpp"
#include "simulator/kernel/sync/fence.hpp"

namespace kiln::simulator::kernel {

class Rings;

struct DeviceCounters {
  std::uint64_t submissions = 0;      // that reached the driver, refused ones among them
  std::uint64_t buffers_created = 0;  // asked for
  std::uint32_t resets = 0;
  std::uint32_t vram_losses = 0;
};

class Device {
 public:
  Device(Settings settings_in, std::unique_ptr<Engine> engine);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const Settings settings;
  const Target& target;
  Journal journal;
  const std::shared_ptr<HeapUse> heap_use = std::make_shared<HeapUse>();

  std::mutex mutex;
  // The rest REQUIRES mutex.
  DeviceCounters counters;
  bool unplugged = false;
  bool in_reset = false;
  FenceBoard fences;
  Descriptors descriptors{fences};
  std::map<Inode, std::weak_ptr<Buffer>> exported;  // buffers that a descriptor may lead to

  std::uint64_t next_buffer_id() { return ++last_buffer_id_; }
  std::uint64_t take_map_offset(std::uint64_t bytes);
  void register_buffer(const BufferPtr& buffer);
  void lose_video_memory();

  // The clock that packets and queries read: ticks of the device's counter.
  std::uint64_t clock_ticks() const;
  Rings& rings() noexcept { return *rings_; }

 private:
  std::uint64_t last_buffer_id_ = 0;
  std::uint64_t next_map_offset_;
  std::vector<std::weak_ptr<Buffer>> buffers_;
  std::unique_ptr<Rings> rings_;
};

}  // namespace kiln::simulator::kernel

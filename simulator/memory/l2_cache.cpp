#include "simulator/memory/l2_cache.hpp"

#include "simulator/memory/l2_buffer.hpp"

namespace kiln::simulator {

L2Cache::L2Cache() = default;
L2Cache::~L2Cache() = default;

L2Buffer& L2Cache::copies_of(const BufferRef& buffer) {
  const std::lock_guard lock(mutex_);
  auto& copies = buffers_[buffer->id];
  if (copies == nullptr) copies = std::make_unique<L2Buffer>(*this, buffer);
  return *copies;
}

void L2Cache::invalidate() {
  const std::lock_guard lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_relaxed);
  for (L2Buffer* buffer : written_) buffer->forget_writes();
  written_.clear();
  ++counters_.invalidations;
}

void L2Cache::write_back() {
  const std::lock_guard lock(mutex_);
  for (L2Buffer* buffer : written_) buffer->write_back(counters_);
}

void L2Cache::settle() {
  const std::lock_guard lock(mutex_);
  std::erase_if(written_, [](L2Buffer* buffer) { return !buffer->settle(); });
}

void L2Cache::purge() {
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard written(written_mutex_);
    std::erase_if(written_, [](L2Buffer* buffer) { return !buffer->alive(); });
  }
  std::erase_if(buffers_, [](const auto& each) { return !each.second->alive(); });
}

L2Counters L2Cache::counters() const {
  const std::lock_guard lock(mutex_);
  L2Counters all = counters_;
  all.pages_read = pages_read_.load(std::memory_order_relaxed);
  return all;
}

void L2Cache::note_writes(L2Buffer& buffer) {
  const std::lock_guard lock(written_mutex_);
  written_.push_back(&buffer);
}

}  // namespace kiln::simulator

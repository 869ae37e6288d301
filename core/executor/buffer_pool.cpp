#include "executor/buffer_pool.hpp"

#include <algorithm>

namespace kiln::executor {
namespace {

// Buffers that a slot retains besides those of its last job: enough for the alternating layers of a network.
constexpr std::size_t most_idle = 16;
constexpr std::uint64_t most_idle_bytes = 64u << 20;

}  // namespace

Result<Buffer*> BufferPool::take(Device& device, BufferUsage usage, std::uint64_t bytes) {
  auto fit = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return !entry.taken && entry.usage == usage && entry.buffer->bytes() == bytes;
  });
  if (fit == entries_.end()) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = usage;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    entries_.push_back({std::move(made).value(), usage, job_, false});
    fit = entries_.end() - 1;
  }
  fit->taken = true;
  fit->last_job = job_;
  return fit->buffer.get();
}

void BufferPool::recycle() noexcept {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.last_job > b.last_job; });
  std::size_t idle = 0;
  std::uint64_t idle_bytes = 0;
  const auto too_much = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    if (entry.last_job == job_) return false;
    idle_bytes += entry.buffer->bytes();
    return ++idle > most_idle || idle_bytes > most_idle_bytes;
  });
  entries_.erase(too_much, entries_.end());
  for (Entry& entry : entries_) entry.taken = false;
  ++job_;
}

}  // namespace kiln::executor

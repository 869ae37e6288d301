#include "simulator/kernel/rings.hpp"

#include <amdgpu_drm.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <set>
#include <system_error>

#include "simulator/kernel/device.hpp"

namespace kiln::simulator::kernel {
namespace {

Ring kind_of(const RingName& name) { return name.ip == AMDGPU_HW_IP_GFX ? Ring::graphics : Ring::compute; }

std::string words_for(const PendingJob& job) {
  return std::string(kind_of(job.ring) == Ring::graphics ? "graphics" : "compute") + " ring " +
         std::to_string(job.ring.index) + ", context " + std::to_string(job.context_id) + ", job " +
         std::to_string(job.number) + ", submission " + std::to_string(job.submission);
}

Fault planted(const PendingJob& job, std::string reason) {
  return {FaultKind::planted, job.buffers.front().address, {}, std::move(reason)};
}

}  // namespace

Rings::Rings(Device& device, std::unique_ptr<Engine> engine)
    : device_(device), engine_(std::move(engine)), capture_(device.settings.capture_folder, device.journal) {}

Rings::~Rings() {
  {
    const std::scoped_lock lock(device_.mutex);
    stopping_ = true;
    engine_->stop("the device is closed");
    device_.fences.changed.notify_all();
  }
  for (auto& [name, lane] : lanes_) {
    if (lane.thread.joinable()) lane.thread.join();
  }
}

bool Rings::start(const RingName& ring) {
  Lane& lane = lanes_[ring];
  lane.name = ring;
  if (lane.thread.joinable()) return true;
  try {
    lane.thread = std::thread([this, &lane] { serve(lane); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void Rings::push(PendingJob job) { lanes_[job.ring].waiting.push_back(std::move(job)); }

void Rings::lose_context(Context& context) {
  ++device_.counters.resets;
  context.lost = true;
  device_.journal.write("planted: a context is lost in a reset that it did not cause");
}

void Rings::unplug() {
  device_.unplugged = true;
  device_.journal.write("planted: the device is gone");
  interrupt_others(nullptr, "the device is gone");
  engine_->stop("the device is gone");
  for (auto& [name, lane] : lanes_) {
    for (const PendingJob& job : lane.waiting) finish(job, ENODEV);
    lane.waiting.clear();
  }
  device_.fences.changed.notify_all();
}

void Rings::serve(Lane& lane) {
  Lock lock(device_.mutex);
  for (;;) {
    auto next = lane.waiting.end();
    device_.fences.changed.wait(lock, [&] {
      next = next_of(lane);
      return stopping_ || next != lane.waiting.end();
    });
    if (stopping_) return;
    const PendingJob job = std::move(*next);
    lane.waiting.erase(next);
    device_.fences.signal(*job.fences.scheduled, 0);
    finish(job, run(lane, job, lock));
  }
}

// Of those that are first of their context and need nothing any more, the one with the highest priority.
std::list<PendingJob>::iterator Rings::next_of(Lane& lane) {
  auto best = lane.waiting.end();
  if (device_.in_reset) return best;
  std::set<const Context*> seen;
  for (auto at = lane.waiting.begin(); at != lane.waiting.end(); ++at) {
    if (!seen.insert(at->context.get()).second || !all_signaled(at->dependencies)) continue;
    if (best == lane.waiting.end() || at->context->priority > best->context->priority) best = at;
  }
  return best;
}

int Rings::run(Lane& lane, const PendingJob& job, Lock& lock) {
  const bool stale = job.vram_losses != device_.counters.vram_losses;
  if (job.context->guilty || job.context->lost || stale) return ECANCELED;
  lane.busy = true;
  std::optional<Fault> fault;
  if (job.fault == PlannedFault::hang || job.fault == PlannedFault::vram_lost) {
    device_.fences.changed.wait_for(lock, device_.settings.lockup, [&] { return lane.interrupted || stopping_; });
    fault = planted(job, "a hang was asked for");
  } else if (job.fault == PlannedFault::page_fault) {
    fault = planted(job, "a page fault was asked for");
  } else {
    fault = execute(lane, job, lock);
  }
  lane.busy = false;
  if (std::exchange(lane.interrupted, false)) return device_.unplugged ? ENODEV : ECANCELED;
  if (!fault || stopping_) return fault ? ECANCELED : 0;
  reset(lane, job, *fault, lock);
  return ECANCELED;
}

std::optional<Fault> Rings::execute(Lane& lane, const PendingJob& job, Lock& lock) {
  device_.fences.changed.wait(lock, [&] { return !executing_ || lane.interrupted || stopping_; });
  if (lane.interrupted || stopping_) return planted(job, "ended before it began");
  executing_ = true;
  lock.unlock();
  capture_.write(job);
  auto fault = engine_->run({kind_of(job.ring), job.buffers, job.space, job.listed, job.invalidate_first});
  lock.lock();
  executing_ = false;
  device_.fences.changed.notify_all();
  return fault;
}

void Rings::finish(const PendingJob& job, int error) {
  if (error == 0 && job.user_fence != nullptr) {
    // NOLINTNEXTLINE: checked to be eight aligned bytes of the buffer
    auto& slot = *reinterpret_cast<std::uint64_t*>(job.user_fence->host() + job.user_fence_offset);
    std::atomic_ref<std::uint64_t>(slot).store(job.number, std::memory_order_release);
  }
  if (error != 0) device_.journal.write(words_for(job) + ": ended with errno " + std::to_string(error));
  device_.fences.signal(*job.fences.finished, error);
}

void Rings::interrupt_others(const Lane* by, const char* reason) {
  for (auto& [name, lane] : lanes_) {
    if (&lane != by && lane.busy) lane.interrupted = true;
  }
  if (executing_) engine_->stop(reason);
  device_.fences.changed.notify_all();
}

bool Rings::others_are_busy(const Lane& by) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&by](const auto& entry) { return &entry.second != &by && entry.second.busy; });
}

// The guilty context is lost. The others go on where they were, unless video memory is lost too.
void Rings::reset(Lane& by, const PendingJob& job, const Fault& fault, Lock& lock) {
  device_.in_reset = true;
  device_.journal.fault(describe(fault) + " (" + words_for(job) + ")");
  job.context->guilty = true;
  ++job.context->hangs;
  ++device_.counters.resets;
  if (job.fault == PlannedFault::vram_lost) {
    ++device_.counters.vram_losses;
    interrupt_others(&by, "video memory was lost in a reset");
    device_.fences.changed.wait(lock, [&] { return stopping_ || !others_are_busy(by); });
    if (!stopping_ && !device_.unplugged) {
      engine_->stop(nullptr);
      device_.lose_video_memory();
    }
  }
  device_.journal.write("reset " + std::to_string(device_.counters.resets) + ": context " +
                        std::to_string(job.context_id) + " is guilty" +
                        (job.fault == PlannedFault::vram_lost ? ", video memory is lost" : ""));
  device_.in_reset = false;
  device_.fences.changed.notify_all();
}

namespace {

std::string name_of(const PendingJob& job, std::size_t which) {
  char name[64];
  std::snprintf(name, sizeof name, "%06llu-%s-%zu.pm4", static_cast<unsigned long long>(job.submission),
                job.ring.ip == AMDGPU_HW_IP_GFX ? "graphics" : "compute", which);
  return name;
}

// False where a part of it is not mapped: the engine tells of that.
bool copy(const AddressSpace& space, IndirectBuffer from, std::ostream& to) {
  for (std::uint64_t done = 0; done < from.bytes;) {
    const Mapping* mapping = space.find(from.address + done);
    if (mapping == nullptr) return false;
    const std::uint64_t inside = from.address + done - mapping->start;
    const std::uint64_t bytes = std::min(from.bytes - done, mapping->bytes - inside);
    to.write(reinterpret_cast<const char*>(mapping->buffer->host + mapping->offset + inside),
             static_cast<std::streamsize>(bytes));
    done += bytes;
  }
  return true;
}

}  // namespace

void Capture::write(const PendingJob& job) {
  if (folder_.empty()) return;
  for (std::size_t i = 0; i < job.buffers.size(); ++i) {
    const std::string path = folder_ + "/" + name_of(job, i);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (!copy(*job.space, job.buffers[i], file) || !file.flush()) journal_.write("capture: " + path + " is not whole");
  }
}

}  // namespace kiln::simulator::kernel

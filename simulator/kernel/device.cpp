#include "simulator/kernel/device.hpp"

#include <fcntl.h>

#include <chrono>

#include "simulator/kernel/rings.hpp"

namespace kiln::simulator::kernel {
namespace {

// Below lie the legacy maps of the interface; the kernel hands out offsets from here too.
constexpr std::uint64_t first_map_offset = 0x1'0000'0000;

}  // namespace

Device::Device(Settings settings_in, std::unique_ptr<Engine> engine)
    : settings(std::move(settings_in)),
      target(*settings.target),
      journal(settings.log_path),
      next_map_offset_(first_map_offset),
      rings_(std::make_unique<Rings>(*this, std::move(engine))) {}

Device::~Device() = default;

std::uint64_t Device::take_map_offset(std::uint64_t bytes) {
  const std::uint64_t offset = next_map_offset_;
  next_map_offset_ += bytes;
  return offset;
}

void Device::register_buffer(const BufferPtr& buffer) {
  std::erase_if(exported, [](const auto& entry) { return entry.second.expired(); });
  if (buffers_.size() == buffers_.capacity()) {
    std::erase_if(buffers_, [](const std::weak_ptr<Buffer>& known) { return known.expired(); });
  }
  buffers_.push_back(buffer);
}

void Device::lose_video_memory() {
  for (const std::weak_ptr<Buffer>& known : buffers_) {
    if (const BufferPtr buffer = known.lock(); buffer != nullptr && buffer->traits.heap == Heap::vram) {
      buffer->lose_contents();
    }
  }
}

std::uint64_t Device::clock_ticks() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  // kHz; ns * kHz would overflow after five hours of uptime.
  return ns / 1'000'000 * target.figures.base.gpu_counter_freq +
         ns % 1'000'000 * target.figures.base.gpu_counter_freq / 1'000'000;
}

Journal::Journal(const std::string& path) {
  if (!path.empty()) file_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

void Journal::write(std::string_view line) noexcept {
  try {
    std::string text = "kiln-sim[" + std::to_string(::getpid()) + "]: ";
    text.append(line).push_back('\n');
    // A line that cannot be written is nothing that the caller could do anything about.
    if (::write(file_ ? file_.get() : STDERR_FILENO, text.data(), text.size()) < 0) return;
  } catch (const std::exception&) {
    return;  // no memory for a line
  }
}

void Journal::fault(std::string text) {
  write(text);
  const std::scoped_lock lock(mutex_);
  last_fault_ = std::move(text);
}

std::string Journal::last_fault() const {
  const std::scoped_lock lock(mutex_);
  return last_fault_;
}

}  // namespace kiln::simulator::kernel

#include "driver.hpp"

#include <kiln/process_limits.hpp>

namespace kiln::opengl {
namespace {

// A driver that computes on the host has a compiler and a thread for each core, and ends the process where it is
// refused memory: measured with Mesa 22.3.6 under RLIMIT_AS on two cores.
constexpr std::uint64_t memory_to_open = 1024ULL << 20U;

DeviceInfo unusable(std::string id, DeviceKind kind, std::string why_not) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = kind == DeviceKind::invalid ? DeviceKind::gpu : kind;
  info.name = "OpenGL";
  info.why_not = std::move(why_not);
  return info;
}

}  // namespace

GlDriver::GlDriver(Settings settings, DriverContext context)
    : settings_(std::move(settings)), context_(std::move(context)) {}

void GlDriver::list() {
  if (!entries_.empty()) return;
  if (Status status = check_memory_left(memory_to_open); !status.ok()) {
    entries_.emplace_back().info = unusable("opengl:0", {}, status.message);
    return;
  }
  auto api = EglApi::open(settings_.egl_library);
  if (!api) {
    entries_.emplace_back().info = unusable("opengl:0", {}, api.error().message);
    return;
  }
  api_ = std::move(api).value();
  for (EglDevice& device : list_devices(*api_)) {
    DeviceInfo info = unusable("opengl:" + std::to_string(entries_.size()), device.kind, {});
    if (!device.node.empty()) info.name += " on " + device.node;
    entries_.push_back({std::move(device), std::move(info), nullptr});
  }
  if (entries_.empty()) {
    entries_.emplace_back().info = unusable("opengl:0", {}, settings_.egl_library + " lists no device");
    api_ = nullptr;
  }
}

Status GlDriver::open(Entry& entry) {
  if (api_ == nullptr) return unavailable(entry.info.why_not);
  auto device = GlDevice::open(api_, entry.device, entry.info.id, settings_, context_);
  if (!device) {
    entry.info.usable = false;
    entry.info.why_not = device.error().message;
    return device.error();
  }
  entry.kept = std::move(device).value();
  entry.info = entry.kept->info();
  return {};
}

std::vector<DeviceInfo> GlDriver::enumerate() {
  const std::lock_guard lock(mutex_);
  list();
  std::vector<DeviceInfo> infos;
  for (Entry& entry : entries_) {
    if (!entry.info.usable) (void)open(entry);  // the reason stands in the entry
    infos.push_back(entry.info);
  }
  return infos;
}

Result<std::unique_ptr<Device>> GlDriver::open(std::string_view id) noexcept try {
  const std::lock_guard lock(mutex_);
  list();
  std::string known;
  for (Entry& entry : entries_) {
    if (entry.info.id != id) {
      known += (known.empty() ? "" : ", ") + entry.info.id;
      continue;
    }
    if (entry.kept == nullptr) {
      if (Status status = open(entry); !status.ok()) return unavailable(entry.info.id + ": " + status.message);
    }
    return std::unique_ptr<Device>(std::move(entry.kept));
  }
  return not_found("device '" + std::string(id) + "': there is " + known);
} catch (...) {
  return caught();
}

}  // namespace kiln::opengl

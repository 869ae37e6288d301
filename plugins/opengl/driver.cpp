#include "driver.hpp"

#include <kiln/process_limits.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace kiln::opengl {
namespace {

// A driver that computes on the host has a compiler and a thread for each core, and ends the process where it is
// refused memory: measured with Mesa 22.3.6 under RLIMIT_AS on two cores.
constexpr std::uint64_t memory_to_open = 1024ULL << 20U;

DeviceInfo unusable(std::string why_not) {
  DeviceInfo info;
  info.id = "opengl:0";
  info.kind = DeviceKind::gpu;
  info.name = "OpenGL";
  info.why_not = std::move(why_not);
  return info;
}

// What is known of a device without a context.
DeviceInfo listed(std::string id, const EglDevice& device) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = device.kind == DeviceKind::invalid ? DeviceKind::gpu : device.kind;
  info.name = device.node.empty() ? "OpenGL" : "OpenGL on " + device.node;
  info.dialects = {Dialect::glsl};
  if (info.kind != DeviceKind::gpu) info.shared_resource = "host-cores";
  if (info.kind != DeviceKind::software) info.physical_id = drm_physical_id(device.node);
  info.usable = true;
  return info;
}

// EGL has one display for a device in a process. In a child of fork() it is there, without the driver's threads: a call
// would wait for them for ever.
Status check_fork() {
  static std::atomic<pid_t> started_in{0};
  pid_t first = 0;
  const pid_t self = getpid();
  if (started_in.compare_exchange_strong(first, self) || first == self) return {};
  return unavailable("process " + std::to_string(first) +
                     " used OpenGL before fork(), and its driver threads do not exist in this child process. Use "
                     "OpenGL only after fork(), or start the process with exec()");
}

}  // namespace

GlDriver::GlDriver(Settings settings, DriverContext context)
    : settings_(std::move(settings)), context_(std::move(context)) {}

void GlDriver::list() {
  if (!entries_.empty()) return;
  if (Status status = check_memory_left(memory_to_open); !status.ok()) {
    entries_.emplace_back().info = unusable(status.message);
    return;
  }
  auto api = EglApi::open(settings_.egl_library);
  if (!api) {
    entries_.emplace_back().info = unusable(api.error().message);
    return;
  }
  api_ = std::move(api).value();
  for (EglDevice& device : list_devices(*api_)) {
    DeviceInfo info = listed("opengl:" + std::to_string(entries_.size()), device);
    entries_.push_back({std::move(device), std::move(info)});
  }
  if (entries_.empty()) {
    entries_.emplace_back().info = unusable(settings_.egl_library + " lists no device");
    api_ = nullptr;
  }
}

std::vector<DeviceInfo> GlDriver::enumerate() {
  const std::lock_guard lock(mutex_);
  list();
  std::vector<DeviceInfo> infos;
  for (const Entry& entry : entries_) infos.push_back(entry.info);
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
    if (api_ == nullptr) return unavailable(entry.info.id + ": " + entry.info.why_not);
    if (entry.info.kind == DeviceKind::software) {
      Status status = check_threads_left(threads_of_host_driver());
      if (!status.ok()) return status.within(entry.info.id);
    }
    if (Status status = check_fork(); !status.ok()) return status.within(entry.info.id);
    auto device = GlDevice::open(api_, entry.device, entry.info.id, settings_, context_);
    if (!device) return unavailable(entry.info.id + ": " + device.error().message);
    entry.info = (*device)->info();
    return std::unique_ptr<Device>(std::move(*device));
  }
  return not_found("device '" + std::string(id) + "': expected one of " + known);
} catch (...) {
  return caught();
}

}  // namespace kiln::opengl

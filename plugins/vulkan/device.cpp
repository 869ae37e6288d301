#include "device.hpp"

#include <cstdlib>
#include <string>

#include <kiln/device_checks.hpp>
#include <kiln/driver_cache.hpp>

#include "gpu.hpp"
#include "queue.hpp"

namespace kiln::vulkan {
namespace {

// Whether Mesa's own cache is the folder that Kiln fills with authenticated files.
std::string driver_cache_word(const DriverContext& context, const std::string& id) {
  const char* const folder = std::getenv("MESA_SHADER_CACHE_DIR");
  std::string reason;
  if (folder == nullptr) {
    reason = "MESA_SHADER_CACHE_DIR is not set";
  } else if (driver_setting_of(folder).empty()) {
    reason = "MESA_SHADER_CACHE_DIR " + std::string(folder) + " is not a folder from kiln::driver_environment()";
  } else if (const Status status = check_private_folder(folder); !status.ok()) {
    reason = "MESA_SHADER_CACHE_DIR: " + status.message;
  }
  if (reason.empty()) return "adopted";
  context.log.write(LogLevel::info, "vulkan", id + ": driver cache not adopted: " + reason);
  return "not adopted";
}

}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<Gpu> gpu, std::unique_ptr<Queue> queue, DeviceInfo info,
                           WorkCounters& counters)
    : gpu_(std::move(gpu)),
      queue_(std::move(queue)),
      info_(std::move(info)),
      counters_(counters),
      transfers_(std::make_shared<Transfers>(gpu_)) {}

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::open(std::shared_ptr<const VulkanApi> api,
                                                         const PhysicalFacts& facts, const DriverContext& context) {
  auto gpu = Gpu::open(std::move(api), facts);
  if (!gpu) return gpu.error();
  auto queue = Queue::create(*gpu);
  if (!queue) return queue.error();
  DeviceInfo info = facts.info;
  add_driver_build(**gpu, info);
  // Other drivers store their code in the pipeline cache, which is in the entry.
  info.driver_cache = info.name.starts_with("llvmpipe") ? driver_cache_word(context, info.id) : "none";
  return std::unique_ptr<VulkanDevice>(
      new VulkanDevice(std::move(*gpu), std::move(*queue), std::move(info), *context.counters));
}

Result<std::unique_ptr<Buffer>> VulkanDevice::create_buffer(const BufferDesc& desc) noexcept try {
  if (Status status = check_buffer(info_, desc); !status.ok()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  return VulkanBuffer::create(gpu_, transfers_, desc);
} catch (...) {
  return caught();
}

Status VulkanDevice::check_source(const KernelSource& source) const {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  for (std::size_t i = 0; i < source.views.size(); ++i) {
    const View view = source.views[i];
    if (view != View::texels && view != View::image) continue;
    const std::uint32_t most = view == View::image ? info_.max_image_bindings : info_.max_texel_bindings;
    if (i >= most) {
      return invalid_argument(info_.id + ": binding " + std::to_string(i) + " is viewed as " +
                              std::string(to_string(view)) + ", expected a binding below " + std::to_string(most));
    }
  }
  return {};
}

Result<std::unique_ptr<Program>> VulkanDevice::build(const KernelSource& source) noexcept try {
  if (Status status = check_source(source); !status.ok()) return status;
  return build_program(gpu_, source, counters_);
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> VulkanDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept
    try {
  if (Status status = check_source(source); !status.ok()) return status;
  return load_program(gpu_, source, binary, counters_);
} catch (...) {
  return caught();
}

Result<ProgramBinary> VulkanDevice::serialize(const Program& program) noexcept try {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  const auto& ours = static_cast<const VulkanProgram&>(program);
  if (&ours.gpu() != gpu_.get()) return invalid_argument(info_.id + ": the program belongs to another device");
  return serialize_program(ours);
} catch (...) {
  return caught();
}

Result<std::uint64_t> VulkanDevice::submit(const Dispatch& dispatch) noexcept try {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (dispatch.passes.empty()) return invalid_argument(info_.id + ": the dispatch has no passes");
  LaunchPlan plan = plan_launches(dispatch, *gpu_);
  if (plan.complete) {
    auto again = queue_->submit_again(plan.key);
    if (!again) return again.error();
    if (*again) return **again;
  }
  auto work = bind(dispatch, std::move(plan), info_, *queue_);
  if (!work) return work.error();
  return queue_->submit(std::move(*work));
} catch (...) {
  return caught();
}

Result<FenceResult> VulkanDevice::wait(std::uint64_t value, Deadline deadline) noexcept try {
  auto result = queue_->wait(value, deadline);
  if (!result && result.error().code != StatusCode::device_lost) return Status(result.error()).within(info_.id);
  return result;
} catch (...) {
  return caught();
}

Result<UniqueFd> VulkanDevice::export_fence(std::uint64_t value) noexcept try {
  return queue_->export_fence(value);
} catch (...) {
  return caught();
}

Status VulkanDevice::wait_for_fence(int sync_file) noexcept try {
  return queue_->wait_for_fence(sync_file);
} catch (...) {
  return caught();
}

}  // namespace kiln::vulkan

#include "objects/fences.hpp"

#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>

#include <string>

namespace kiln::vulkan {

Status SharedFences::supported() const {
  if (gpu_.facts().shares_fences) return {};
  return unsupported(gpu_.id() + ": " + gpu_.facts().info.name + " has no semaphores as sync_file descriptors");
}

Result<OwnedSemaphore> SharedFences::take() {
  if (!spare_.empty()) {
    OwnedSemaphore semaphore = std::move(spare_.back());
    spare_.pop_back();
    return semaphore;
  }
  auto shared = structure<VkExportSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  shared.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &shared, 0};
  OwnedSemaphore semaphore(gpu_);
  const VkResult made = gpu_.vk().CreateSemaphore(gpu_.handle(), &info, nullptr, semaphore.out());
  if (Status status = gpu_.check(made, "a semaphore"); !status.ok()) return status;
  return semaphore;
}

Result<VkSemaphore> SharedFences::signalled_by(std::uint64_t value) {
  auto semaphore = take();
  if (!semaphore) return semaphore.error();
  const VkSemaphore handle = semaphore->get();
  used_.push_back({value, std::move(*semaphore)});
  return handle;
}

Result<UniqueFd> SharedFences::export_file(VkSemaphore semaphore) {
  auto info = structure<VkSemaphoreGetFdInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
  info.semaphore = semaphore;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  int fd = -1;
  const VkResult made = gpu_.vk().GetSemaphoreFdKHR(gpu_.handle(), &info, &fd);
  if (Status status = gpu_.check(made, "exporting a fence"); !status.ok()) return status;
  return UniqueFd(fd);
}

Status SharedFences::import_file(int sync_file) {
  const std::string what = gpu_.id() + ": descriptor " + std::to_string(sync_file);
  sync_file_info known{};
  if (ioctl(sync_file, SYNC_IOC_FILE_INFO, &known) != 0) return invalid_argument(what + " is no sync_file");
  auto semaphore = take();
  if (!semaphore) return semaphore.error();
  UniqueFd own(fcntl(sync_file, F_DUPFD_CLOEXEC, 0));
  if (!own) return unavailable(what + " cannot be duplicated");
  auto info = structure<VkImportSemaphoreFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR);
  info.semaphore = semaphore->get();
  info.flags = VK_SEMAPHORE_IMPORT_TEMPORARY_BIT;  // its own state is back after the wait
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  info.fd = own.get();
  if (const VkResult made = gpu_.vk().ImportSemaphoreFdKHR(gpu_.handle(), &info); made != VK_SUCCESS) {
    return gpu_.check(made, "importing descriptor " + std::to_string(sync_file) + " as a fence");
  }
  (void)own.release();  // the driver's now
  awaited_.push_back(semaphore->get());
  imported_.push_back(std::move(*semaphore));
  return {};
}

void SharedFences::awaited_by(std::uint64_t value) {
  awaited_.clear();
  for (OwnedSemaphore& semaphore : imported_) used_.push_back({value, std::move(semaphore)});
  imported_.clear();
}

void SharedFences::passed(std::uint64_t value) {
  std::erase_if(used_, [&](Used& used) {
    if (used.value > value) return false;
    spare_.push_back(std::move(used.semaphore));
    return true;
  });
}

}  // namespace kiln::vulkan

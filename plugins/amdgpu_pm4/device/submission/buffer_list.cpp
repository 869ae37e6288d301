#include "amdgpu_pm4/device/submission/buffer_list.hpp"

#include <algorithm>

namespace kiln::amdgpu_pm4 {
namespace {

std::uint8_t rights_of(GpuAccess access) noexcept {
  switch (access) {
    case GpuAccess::read:
      return may_read;
    case GpuAccess::read_write:
      return may_read | may_write;
    case GpuAccess::read_execute:
      return may_read | may_execute;
    case GpuAccess::invalid:
      break;
  }
  return 0;
}

}  // namespace

void BufferList::clear() {
  handles_.clear();
  ranges_.clear();
}

void BufferList::add(const BufferObject& buffer) {
  handles_.push_back(buffer.handle());
  ranges_.push_back({buffer.address(), buffer.bytes(), rights_of(buffer.access())});
}

void BufferList::sort() {
  std::sort(handles_.begin(), handles_.end());
  handles_.erase(std::unique(handles_.begin(), handles_.end()), handles_.end());
  std::sort(ranges_.begin(), ranges_.end(), [](const BufferRange& a, const BufferRange& b) { return a.va < b.va; });
  const auto same = [](const BufferRange& a, const BufferRange& b) { return a.va == b.va; };
  ranges_.erase(std::unique(ranges_.begin(), ranges_.end(), same), ranges_.end());
}

}  // namespace kiln::amdgpu_pm4

#include "simulator/kernel/address_operations.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace kiln::simulator::kernel {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint32_t no_allocation = 1 << 9;  // younger than the system header
constexpr std::uint32_t known_flags = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE |
                                      AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_PAGE_PRT | AMDGPU_VM_MTYPE_MASK |
                                      no_allocation;

std::string range_text(const drm_amdgpu_gem_va& operation) {
  return "mapping at " + hex(operation.va_address) + " of " + hex(operation.map_size) + " bytes";
}

Answer check(const drm_amdgpu_gem_va& operation, const drm_amdgpu_info_device& device) {
  if ((operation.flags & ~known_flags) != 0)
    return refuse(EINVAL, range_text(operation) + " with flags " + hex(operation.flags));
  if ((operation.flags & AMDGPU_VM_MTYPE_MASK) > AMDGPU_VM_MTYPE_RW) {
    return refuse(EINVAL, range_text(operation) + " with memory type " + hex(operation.flags & AMDGPU_VM_MTYPE_MASK));
  }
  if (operation.operation < AMDGPU_VA_OP_MAP || operation.operation > AMDGPU_VA_OP_REPLACE) {
    return refuse(EINVAL, "address operation " + std::to_string(operation.operation));
  }
  const std::uint64_t start = operation.va_address;
  const auto inside = [&](std::uint64_t low, std::uint64_t high) {
    return start >= low && start < high && operation.map_size <= high - start;
  };
  if (!inside(device.virtual_address_offset, device.virtual_address_max) &&
      !inside(device.high_va_offset, device.high_va_max)) {
    return refuse(EINVAL, range_text(operation) + " is outside of the ranges for programs");
  }
  if (operation.map_size == 0 || start % page != 0 || operation.map_size % page != 0) {
    return refuse(EINVAL, range_text(operation) + " is not of whole pages");
  }
  return {};
}

Answer answer_of(const std::optional<MapRefusal>& refusal, const drm_amdgpu_gem_va& operation) {
  if (!refusal) return {};
  return refuse(refusal->problem == MapProblem::not_mapped ? ENOENT : EINVAL,
                range_text(operation) + ": " + refusal->reason);
}

}  // namespace

Answer AddressOperations::operate(const drm_amdgpu_gem_va& operation) {
  const std::size_t before = sparse_.ends().size();
  Answer answer = change(operation);
  if (before != 0 || !sparse_.ends().empty()) pages_.set_sparse(sparse_.ends());
  return answer;
}

Answer AddressOperations::change(const drm_amdgpu_gem_va& operation) {
  if (Answer refusal = check(operation, target_.figures.base)) return refusal;
  if (operation.operation == AMDGPU_VA_OP_CLEAR) {
    sparse_.cut(operation.va_address, operation.map_size);
    return answer_of(pages_.clear(operation.va_address, operation.map_size), operation);
  }
  if ((operation.flags & AMDGPU_VM_PAGE_PRT) != 0) return operate_sparse(operation);
  const BufferPtr buffer = buffers_.find(operation.handle);
  if (buffer == nullptr)
    return refuse(ENOENT, range_text(operation) + ": buffer handle " + std::to_string(operation.handle) + " is none");
  if (operation.operation == AMDGPU_VA_OP_UNMAP) {
    return answer_of(pages_.unmap(operation.va_address, buffer->traits.id), operation);
  }
  return map(operation, buffer);
}

Answer AddressOperations::map(const drm_amdgpu_gem_va& operation, const BufferPtr& buffer) {
  Mapping mapping;
  mapping.start = operation.va_address;
  mapping.bytes = operation.map_size;
  mapping.offset = operation.offset_in_bo;
  mapping.rights = {(operation.flags & AMDGPU_VM_PAGE_READABLE) != 0, (operation.flags & AMDGPU_VM_PAGE_WRITEABLE) != 0,
                    (operation.flags & AMDGPU_VM_PAGE_EXECUTABLE) != 0};
  const bool uncached = (operation.flags & AMDGPU_VM_MTYPE_MASK) == AMDGPU_VM_MTYPE_UC;
  mapping.caching = uncached ? Caching::uncached : Caching::cached;
  mapping.buffer = Buffer::memory(buffer);
  if (operation.operation == AMDGPU_VA_OP_MAP) {
    if (sparse_.overlaps(mapping.start, mapping.bytes))
      return refuse(EINVAL, range_text(operation) + ": a sparse mapping lies there");
    return answer_of(pages_.map(mapping), operation);
  }
  if (Answer refusal = answer_of(pages_.replace(mapping), operation)) return refusal;
  sparse_.cut(mapping.start, mapping.bytes);
  return {};
}

Answer AddressOperations::operate_sparse(const drm_amdgpu_gem_va& operation) {
  const std::uint64_t start = operation.va_address;
  const std::uint64_t bytes = operation.map_size;
  if (operation.handle != 0) return refuse(EINVAL, "sparse " + range_text(operation) + " of a buffer");
  if (operation.operation == AMDGPU_VA_OP_UNMAP) {
    if (!sparse_.overlaps(start, bytes))
      return refuse(ENOENT, range_text(operation) + ": no sparse mapping lies there");
    sparse_.cut(start, bytes);
    return {};
  }
  if (operation.operation == AMDGPU_VA_OP_MAP) {
    const auto space = pages_.snapshot();
    const auto all = space->mappings();
    const bool taken = std::any_of(all.begin(), all.end(), [&](const Mapping& mapping) {
      return mapping.start < start + bytes && start < mapping.start + mapping.bytes;
    });
    if (taken || sparse_.overlaps(start, bytes))
      return refuse(EINVAL, "sparse " + range_text(operation) + ": something is mapped there");
  } else if (Answer refusal = answer_of(pages_.clear(start, bytes), operation)) {
    return refusal;
  }
  sparse_.cut(start, bytes);
  sparse_.add(start, bytes);
  return {};
}

bool SparseRanges::overlaps(std::uint64_t start, std::uint64_t bytes) const {
  const auto after = ends_.lower_bound(start + bytes);
  return after != ends_.begin() && std::prev(after)->second > start;
}

void SparseRanges::cut(std::uint64_t start, std::uint64_t bytes) {
  const std::uint64_t end = start + bytes;
  auto at = ends_.lower_bound(start);
  if (at != ends_.begin() && std::prev(at)->second > start) --at;
  while (at != ends_.end() && at->first < end) {
    const auto [first, last] = *at;
    at = ends_.erase(at);
    if (first < start) ends_[first] = start;
    if (last > end) ends_[end] = last;
  }
}

}  // namespace kiln::simulator::kernel

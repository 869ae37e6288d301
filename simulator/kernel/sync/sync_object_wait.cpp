// The waits of SyncObjectTable.
#include <algorithm>
#include <cerrno>

#include "simulator/kernel/sync/deadline.hpp"
#include "simulator/kernel/sync/sync_object_table.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::uint32_t wait_all = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL;
constexpr std::uint32_t wait_for_submit = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
constexpr std::uint32_t wait_available = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
constexpr std::chrono::seconds longest_for_submit{5};  // a submission waits no longer for one that it depends on

}  // namespace

Answer SyncObjectTable::wait_for(const WaitRequest& request, std::unique_lock<std::mutex>& lock,
                                 std::uint32_t& first) const {
  std::vector<Waited> all;
  if (Answer refusal = gather(request.handles, request.points, request.count, all)) return refusal;
  // A fence is waited for as it was met first, also where the object is given another one meanwhile.
  std::vector<std::optional<Fences>> met(all.size());
  const auto is_done = [&](std::size_t i) {
    if (!met[i]) met[i] = all[i].object->find(all[i].point);
    return met[i] && ((request.flags & wait_available) != 0 || all_signaled(*met[i]));
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    is_done(i);
    if (!met[i] && (request.flags & (wait_for_submit | wait_available)) == 0) {
      return refuse(EINVAL, "wait for point " + std::to_string(all[i].point) + ", entry " + std::to_string(i) +
                                ", for which nothing was submitted");
    }
  }
  const bool done = wait_until(device_, lock, Deadline::of_sync_objects(request.timeout), [&] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_done(i)) continue;
      if (count++ == 0) first = static_cast<std::uint32_t>(i);
    }
    return (request.flags & wait_all) != 0 ? count == all.size() : count > 0;
  });
  if (device_.unplugged) return refuse(ENODEV);
  return done ? Answer() : refuse(ETIME);
}

Answer SyncObjectTable::wait(drm_syncobj_wait& wait, std::unique_lock<std::mutex>& lock) {
  if ((wait.flags & ~(wait_all | wait_for_submit)) != 0 || wait.pad != 0) {
    return refuse(EINVAL, "wait for sync objects with flags " + hex(wait.flags));
  }
  return wait_for({wait.handles, 0, wait.count_handles, wait.flags, wait.timeout_nsec}, lock, wait.first_signaled);
}

Answer SyncObjectTable::wait_timeline(drm_syncobj_timeline_wait& wait, std::unique_lock<std::mutex>& lock) {
  if ((wait.flags & ~(wait_all | wait_for_submit | wait_available)) != 0 || wait.pad != 0) {
    return refuse(EINVAL, "wait for timelines with flags " + hex(wait.flags));
  }
  if (wait.points == 0) return refuse(EFAULT, "wait for points at address 0");
  return wait_for({wait.handles, wait.points, wait.count_handles, wait.flags, wait.timeout_nsec}, lock,
                  wait.first_signaled);
}

Answer SyncObjectTable::find_fences(std::uint32_t handle, std::uint64_t point, std::uint64_t flags,
                                    std::unique_lock<std::mutex>& lock, Fences& fences) const {
  const std::string which = "sync object " + std::to_string(handle) + ", point " + std::to_string(point);
  const SyncObjectPtr object = find(handle);
  if (object == nullptr) return refuse(ENOENT, which + ": no such object");
  if ((flags & ~std::uint64_t{wait_for_submit}) != 0) return refuse(EINVAL, which + ": flags " + hex(flags));
  auto found = object->find(point);
  if (!found && (flags & wait_for_submit) != 0) {
    if (!wait_until(device_, lock, Deadline::in(longest_for_submit),
                    [&] { return (found = object->find(point)).has_value(); })) {
      return refuse(device_.unplugged ? ENODEV : ETIME, which + ": nothing was submitted for it in time");
    }
  }
  if (!found) return refuse(EINVAL, which + ": nothing was submitted for it");
  fences.insert(fences.end(), found->begin(), found->end());
  return {};
}

}  // namespace kiln::simulator::kernel

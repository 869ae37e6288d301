#include "simulator/kernel/sync_objects.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/device.hpp"

namespace kiln::simulator::kernel {
namespace {

Answer unknown(std::uint32_t handle) { return refuse(ENOENT, "sync object " + std::to_string(handle) + " is none"); }

Answer bad_flags(const char* what, std::uint64_t flags) {
  return refuse(EINVAL, std::string(what) + " with flags " + hex(flags));
}

}  // namespace

std::uint32_t SyncObjectTable::add(SyncObjectPtr object) {
  do {
    ++last_handle_;
  } while (last_handle_ == 0 || objects_.contains(last_handle_));
  objects_[last_handle_] = std::move(object);
  return last_handle_;
}

SyncObjectPtr SyncObjectTable::find(std::uint32_t handle) const {
  const auto at = objects_.find(handle);
  return at == objects_.end() ? nullptr : at->second;
}

Answer SyncObjectTable::gather(std::uint64_t handles, std::uint64_t points, std::uint32_t count,
                               std::vector<Waited>& all) const {
  if (count == 0) return refuse(EINVAL, "no sync objects are named");
  if (handles == 0) return refuse(EFAULT, "sync objects named at address 0");
  for (std::uint32_t i = 0; i < count; ++i) {
    Waited one;
    std::uint32_t handle = 0;
    // NOLINTBEGIN: addresses that the program gives as numbers
    std::memcpy(&handle, reinterpret_cast<const std::byte*>(handles) + i * sizeof handle, sizeof handle);
    if (points != 0)
      std::memcpy(&one.point, reinterpret_cast<const std::byte*>(points) + i * sizeof one.point, sizeof one.point);
    // NOLINTEND
    one.object = find(handle);
    if (one.object == nullptr) return unknown(handle);
    all.push_back(std::move(one));
  }
  return {};
}

Answer SyncObjectTable::create(drm_syncobj_create& create) {
  if ((create.flags & ~std::uint32_t{DRM_SYNCOBJ_CREATE_SIGNALED}) != 0) return bad_flags("sync object", create.flags);
  auto object = std::make_shared<SyncObject>();
  if ((create.flags & DRM_SYNCOBJ_CREATE_SIGNALED) != 0) object->replace(signaled_fence());
  create.handle = add(std::move(object));
  return {};
}

Answer SyncObjectTable::destroy(const drm_syncobj_destroy& destroy) {
  if (destroy.pad != 0) return refuse(EINVAL, "sync object destroyed with a pad of " + hex(destroy.pad));
  if (objects_.erase(destroy.handle) == 0)
    return refuse(EINVAL, "sync object " + std::to_string(destroy.handle) + " is none");
  return {};
}

Answer SyncObjectTable::export_to(drm_syncobj_handle& handle) {
  constexpr std::uint32_t known = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  if ((handle.flags & ~known) != 0 || handle.pad != 0) return bad_flags("export of a sync object", handle.flags);
  const SyncObjectPtr object = find(handle.handle);
  if (object == nullptr) return unknown(handle.handle);
  std::optional<UniqueFd> fd;
  if (handle.flags == 0) {
    fd = device_.descriptors.export_object(object);
  } else {
    auto fences = object->find(0);
    if (!fences) return refuse(EINVAL, "export of the fence of a sync object that has none");
    fd = device_.descriptors.export_fences(*std::move(fences));
  }
  if (!fd) return refuse(EMFILE, "export of a sync object: no descriptor is left");
  handle.fd = fd->release();
  return {};
}

Answer SyncObjectTable::import_from(drm_syncobj_handle& handle) {
  constexpr std::uint32_t known = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
  if ((handle.flags & ~known) != 0 || handle.pad != 0) return bad_flags("import of a sync object", handle.flags);
  const std::string which = "import of descriptor " + std::to_string(handle.fd);
  if (handle.flags == 0) {
    SyncObjectPtr object = device_.descriptors.object_behind(handle.fd);
    if (object == nullptr) return refuse(EINVAL, which + ", which is no sync object of this process");
    handle.handle = add(std::move(object));
    return {};
  }
  auto fences = device_.descriptors.fences_behind(handle.fd);
  if (!fences) return refuse(EINVAL, which + ", which is no fence of this process");
  const SyncObjectPtr object = find(handle.handle);
  if (object == nullptr) return unknown(handle.handle);
  object->replace(*std::move(fences));
  device_.fences.changed.notify_all();
  return {};
}

Answer SyncObjectTable::reset(const drm_syncobj_array& array) {
  std::vector<Waited> all;
  if (array.pad != 0) return refuse(EINVAL, "reset with a pad of " + hex(array.pad));
  if (Answer refusal = gather(array.handles, 0, array.count_handles, all)) return refusal;
  for (const Waited& one : all) one.object->replace(FencePtr());
  return {};
}

Answer SyncObjectTable::signal(const drm_syncobj_array& array) {
  std::vector<Waited> all;
  if (array.pad != 0) return refuse(EINVAL, "signal with a pad of " + hex(array.pad));
  if (Answer refusal = gather(array.handles, 0, array.count_handles, all)) return refusal;
  for (const Waited& one : all) one.object->replace(signaled_fence());
  device_.fences.changed.notify_all();
  return {};
}

Answer SyncObjectTable::signal_timeline(const drm_syncobj_timeline_array& array) {
  std::vector<Waited> all;
  if (array.flags != 0) return bad_flags("signal of timelines", array.flags);
  if (array.points == 0) return refuse(EFAULT, "signal of points at address 0");
  if (Answer refusal = gather(array.handles, array.points, array.count_handles, all)) return refusal;
  for (const Waited& one : all) {
    if (one.point == 0) return refuse(EINVAL, "signal of point 0 of a timeline");
    one.object->add_point(one.point, {signaled_fence()});
  }
  device_.fences.changed.notify_all();
  return {};
}

Answer SyncObjectTable::query(const drm_syncobj_timeline_array& array) {
  constexpr std::uint32_t known = DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED;
  if ((array.flags & ~known) != 0) return bad_flags("query of timelines", array.flags);
  if (array.points == 0) return refuse(EFAULT, "query of points to address 0");
  std::vector<Waited> all;
  if (Answer refusal = gather(array.handles, 0, array.count_handles, all)) return refusal;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const SyncObject& object = *all[i].object;
    const std::uint64_t point = array.flags == 0 ? object.reached_point() : object.submitted_point();
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(reinterpret_cast<std::byte*>(array.points) + i * sizeof point, &point, sizeof point);
  }
  return {};
}

Answer SyncObjectTable::transfer(const drm_syncobj_transfer& transfer, std::unique_lock<std::mutex>& lock) {
  if (transfer.pad != 0) return refuse(EINVAL, "transfer with a pad of " + hex(transfer.pad));
  const SyncObjectPtr target = find(transfer.dst_handle);
  if (target == nullptr) return unknown(transfer.dst_handle);
  Fences fences;
  if (Answer refusal = find_fences(transfer.src_handle, transfer.src_point, transfer.flags, lock, fences))
    return refusal;
  if (transfer.dst_point == 0) {
    target->replace(std::move(fences));
  } else {
    target->add_point(transfer.dst_point, std::move(fences));
  }
  device_.fences.changed.notify_all();
  return {};
}

// The waits of SyncObjectTable.

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

#include "cache/driver_cache/driver_pruning.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace kiln {
namespace {

std::int64_t now_since_1970() {
  using std::chrono::nanoseconds, std::chrono::system_clock;
  return std::chrono::duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::uint64_t bytes_of(const std::vector<DriverFolder>& folders) noexcept {
  std::uint64_t bytes = 0;
  for (const DriverFolder& folder : folders) bytes += folder.bytes;
  return bytes;
}

std::uint64_t prune_driver_folders(int root, std::vector<DriverFolder> folders, const std::set<std::string>& devices,
                                   const DriverRoom& room) {
  const auto in_use = driver_folder_in_use(root);
  const std::int64_t now = now_since_1970();
  const auto is_gone = [&](const DriverFolder& folder) { return serves_nobody(folder, devices, now); };
  std::ranges::sort(folders, {},
                    [&](const DriverFolder& folder) { return std::tuple(!is_gone(folder), folder.last_used_ns); });
  const std::uint64_t before = bytes_of(folders);
  std::uint64_t left = before;
  for (const DriverFolder& folder : folders) {
    const bool goes = is_gone(folder) ? before - left < room.needed : left > room.most;
    if (!goes || folder.name == in_use) continue;
    if (remove_driver_folder(root, folder.name).ok()) left -= folder.bytes;
  }
  return left;
}

}  // namespace kiln

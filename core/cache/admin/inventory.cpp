#include "cache/admin/cache_root.hpp"

#include <algorithm>
#include <tuple>

namespace kiln {
namespace {

void take_stock(const CacheRoot& root, Area area, Detail detail, CacheInventory& inventory) {
  const Survey found = root.survey(area);
  const std::size_t first = inventory.devices.size();
  if (area == Area::stored) {
    for (const std::string& folder : found.folders) inventory.devices.push_back(root.device(area, folder));
  }
  if (area == Area::stored && detail == Detail::programs) inventory.aside = root.aside(found);
  for (const StoredEntry& entry : found.entries) {
    if (!entry.program) continue;
    if (area == Area::stored) {
      CacheDevice& device = inventory.devices[first + entry.folder];
      ++device.programs;
      device.bytes += entry.bytes;
    }
    ++(area == Area::stored ? inventory.programs_stored : inventory.programs_pending);
    (area == Area::stored ? inventory.bytes_stored : inventory.bytes_pending) += entry.bytes;
    if (detail == Detail::programs) {
      inventory.programs.push_back(root.describe(area, found.folders[entry.folder], entry));
    }
  }
}

}  // namespace

Result<CacheInventory> cache_inventory(const CacheConfig& cache, Detail detail) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  CacheInventory inventory;
  if (!root->exists()) return inventory;
  for (const Area area : areas) take_stock(*root, area, detail, inventory);
  std::ranges::sort(inventory.devices, {}, &CacheDevice::folder);
  std::ranges::sort(inventory.programs, {}, [](const CachedProgram& program) {
    return std::tie(program.pending, program.label, program.key, program.folder);
  });
  return inventory;
}

}  // namespace kiln

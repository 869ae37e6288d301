#include "cache/admin/cache_root.hpp"
#include "cache/admin/leftovers.hpp"
#include "cache/driver_cache/driver_folders.hpp"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

using std::chrono::nanoseconds;

struct Unit {                 // what goes as a whole: one program, or one of the drivers' caches
  Area area = Area::invalid;  // invalid: a driver's cache
  std::string folder;
  Digest digest;
  std::uint64_t bytes = 0;
  std::int64_t last_used_ns = 0;
  bool program = false;  // otherwise a driver's cache, or a .meta that lost its program
  bool orphan = false;
};

std::int64_t now_since_1970() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<Unit> units_of(const CacheRoot& root, std::int64_t now, Sweep sweep) {
  std::vector<Unit> units;
  std::set<std::string> devices;
  for (const Area area : areas) {
    const Survey found = root.survey(area, sweep);
    if (area == Area::stored) devices.insert(found.folders.begin(), found.folders.end());
    for (const StoredEntry& entry : found.entries) {
      units.push_back(
          {area, found.folders[entry.folder], entry.digest, entry.bytes, entry.last_used_ns, entry.program, false});
    }
  }
  for (const DriverFolder& driver : driver_folders(root.of(Area::stored))) {
    units.push_back({Area::invalid,
                     driver.name,
                     {},
                     driver.bytes,
                     driver.last_used_ns,
                     false,
                     serves_nobody(driver, devices, now)});
  }
  return units;
}

class Pruning {
 public:
  Pruning(const CacheRoot& root, Removal removal) : root_(root), removal_(removal) {}

  void remove(const Unit& unit) {
    const Status status = removal_ == Removal::pretend ? Status() : perform(unit);
    if (!status.ok()) {
      if (outcome_.failure.ok()) outcome_.failure = status;
      return keep(unit);
    }
    outcome_.bytes += unit.bytes;
    if (unit.area == Area::invalid) ++outcome_.driver_caches;
    if (unit.program) ++(unit.area == Area::stored ? outcome_.programs : outcome_.pending);
  }

  void keep(const Unit& unit) {
    outcome_.bytes_left += unit.bytes;
    if (unit.program && unit.area == Area::stored) ++outcome_.programs_left;
  }

  CacheRemoval finish() {
    for (const auto& [area, folder] : touched_) remove_if_empty(root_.of(area), folder);
    return std::move(outcome_);
  }

 private:
  Status perform(const Unit& unit) {
    if (unit.area == Area::invalid) return remove_driver_folder(root_.of(Area::stored), unit.folder);
    touched_.emplace(unit.area, unit.folder);
    return remove_entry(root_.of(unit.area), unit.folder, unit.digest);
  }

  const CacheRoot& root_;
  const Removal removal_;
  CacheRemoval outcome_;
  std::set<std::pair<Area, std::string>> touched_;
};

}  // namespace

Result<CacheRemoval> prune_cache(const CacheConfig& cache, const PruneLimits& limits, Removal removal,
                                 const CacheProgress& progress) {
  const Result<CacheRoot> root = removal == Removal::pretend ? CacheRoot::open(cache) : CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  if (!root->exists()) return CacheRemoval{};
  const std::int64_t now = now_since_1970();
  std::vector<Unit> units = units_of(*root, now, removal == Removal::perform ? Sweep::yes : Sweep::no);
  std::ranges::sort(units, {}, [](const Unit& unit) { return std::pair(!unit.orphan, unit.last_used_ns); });
  std::uint64_t bytes = 0;
  for (const Unit& unit : units) bytes += unit.bytes;

  Pruning pruning(*root, removal);
  std::size_t done = 0;
  for (const Unit& unit : units) {
    if (progress) progress(++done, units.size());
    const bool old = limits.max_age && now - unit.last_used_ns > limits.max_age->count();
    const bool over = limits.max_bytes && bytes > *limits.max_bytes;
    if (!old && !over) {
      pruning.keep(unit);
      continue;
    }
    pruning.remove(unit);
    bytes -= unit.bytes;
  }
  return pruning.finish();
}

}  // namespace kiln

#include "cache/admin/cache_root.hpp"
#include "cache/admin/leftovers.hpp"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

using std::chrono::nanoseconds;

struct Unit {  // one program
  Area area = Area::invalid;
  std::string folder;
  Digest digest;
  std::uint64_t bytes = 0;
  std::int64_t last_used_ns = 0;
  bool program = false;  // otherwise a .meta that lost its program
};

std::int64_t now_since_1970() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<Unit> units_of(const CacheRoot& root, Sweep sweep) {
  std::vector<Unit> units;
  for (const Area area : areas) {
    const Survey found = root.survey(area, sweep);
    for (const StoredEntry& entry : found.entries) {
      units.push_back(
          {area, found.folders[entry.folder], entry.digest, entry.bytes, entry.last_used_ns, entry.program});
    }
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
  std::vector<Unit> units = units_of(*root, removal == Removal::perform ? Sweep::yes : Sweep::no);
  std::ranges::sort(units, {}, &Unit::last_used_ns);
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

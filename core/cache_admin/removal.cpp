#include "base/os/private_folder.hpp"
#include "cache/cache_root.hpp"
#include "cache/disk_bound.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/history.hpp"
#include "cache_admin/selection.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace kiln {

namespace {

// What other parts of Kiln keep at the root.
constexpr const char* learned_files[] = {totals_name,          history_lock_name, "selector.model",
                                         "selector.model.new", "selector.lock",   "selector.log",
                                         "selector.log.1",     "selector.json",   "probe_verdicts.json"};

void note(CacheRemoval& outcome, Status failure) {
  if (outcome.failure.ok()) outcome.failure = std::move(failure);
}

void clear_area(const CacheRoot& root, Area area, CacheRemoval& outcome) {
  Survey found = root.survey(area);
  for (const std::string& folder : found.folders) {
    Cleared cleared = clear_device_folder(root.of(area), folder);
    (area == Area::stored ? outcome.programs : outcome.pending) += cleared.programs;
    outcome.bytes += cleared.bytes;
    note(outcome, std::move(cleared.failure));
  }
  note(outcome, std::move(found.failure));
}

void remove_root_file(int root, const char* name, CacheRemoval& outcome) {
  if (unlinkat(root, name, 0) == 0 || errno == ENOENT) return;
  note(outcome, system_error(std::string("file ") + name, "cannot be removed", errno));
}

// Removes the files of a folder that Kiln wrote, by the end of their names, and the folder if it is then empty.
void clear_folder(int root, const char* inner, std::string_view suffix, CacheRemoval& outcome) {
  const UniqueFd folder = existing_subfolder(root, inner);
  if (!folder) return;
  for (const std::string& name : names_in(folder.get())) {
    struct stat at {};
    if (!name.ends_with(suffix) || fstatat(folder.get(), name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    remove_root_file(folder.get(), name.c_str(), outcome);
    outcome.bytes += static_cast<std::uint64_t>(at.st_size);
  }
  unlinkat(root, inner, AT_REMOVEDIR);  // stays where something else is in it
}

}  // namespace

Result<CacheRemoval> clear_cache(const CacheConfig& cache, ClearScope scope) {
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  CacheRemoval outcome;
  if (!root->exists()) return outcome;
  const int folder = root->of(Area::stored);
  for (const Area area : areas) clear_area(*root, area, outcome);
  unlinkat(folder, pending_name, AT_REMOVEDIR);  // stays where something else is in it
  ClearedDriverFolders drivers = clear_driver_folders(folder);
  outcome.bytes += drivers.bytes;
  note(outcome, std::move(drivers.failure));
  remove_root_file(folder, missed_keys_name, outcome);
  remove_root_file(folder, disk_use_name, outcome);
  remove_root_file(folder, disk_walk_name, outcome);
  clear_folder(folder, "notes", ".note", outcome);  // of drivers
  if (scope == ClearScope::everything) {
    for (const char* name : learned_files) remove_root_file(folder, name, outcome);
    for (const char* end : {".state", ".totals", "totals.lock"}) clear_folder(folder, "remote", end, outcome);
  }
  return outcome;
}

Result<CacheTotals> cache_totals(const CacheConfig& cache) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  return root->exists() ? read_totals(root->of(Area::stored)) : CacheTotals{};
}

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

std::vector<Unit> units_of(const CacheRoot& root, Sweep sweep, Status& unread) {
  std::vector<Unit> units;
  for (const Area area : areas) {
    const Survey found = root.survey(area, sweep);
    if (unread.ok()) unread = found.failure;
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
  Status unread;
  std::vector<Unit> units = units_of(*root, removal == Removal::perform ? Sweep::yes : Sweep::no, unread);
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
  CacheRemoval outcome = pruning.finish();
  note(outcome, std::move(unread));
  return outcome;
}

}  // namespace kiln

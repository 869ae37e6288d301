#include "cache/admin/cache_root.hpp"
#include "cache/admin/leftovers.hpp"
#include "cache/driver_cache/driver_scratch.hpp"
#include "cache/folder/disk_bound.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/history/missed_keys.hpp"
#include "cache/history/totals.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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
  for (const std::string& folder : root.survey(area).folders) {
    Cleared cleared = clear_device_folder(root.of(area), folder);
    (area == Area::stored ? outcome.programs : outcome.pending) += cleared.programs;
    outcome.bytes += cleared.bytes;
    note(outcome, std::move(cleared.failure));
  }
}

void remove_root_file(int root, const char* name, CacheRemoval& outcome) {
  if (unlinkat(root, name, 0) == 0 || errno == ENOENT) return;
  note(outcome, system_error(std::string("file ") + name, "cannot be removed", errno));
}

// What drivers keep for the next process.
void clear_notes(int root, CacheRemoval& outcome) {
  const Result<UniqueFd> folder = open_subfolder(root, "notes", "folder notes", Create::no);
  if (!folder || !*folder) return;
  for (const std::string& name : names_in(folder->get())) {
    struct stat at {};
    if (!name.ends_with(".note") || fstatat(folder->get(), name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    remove_root_file(folder->get(), name.c_str(), outcome);
    outcome.bytes += static_cast<std::uint64_t>(at.st_size);
  }
  unlinkat(root, "notes", AT_REMOVEDIR);  // stays where something else is in it
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
  clear_notes(folder, outcome);
  if (scope == ClearScope::everything) {
    for (const char* name : learned_files) remove_root_file(folder, name, outcome);
  }
  return outcome;
}

Result<CacheTotals> cache_totals(const CacheConfig& cache) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  return root->exists() ? read_totals(root->of(Area::stored)) : CacheTotals{};
}

}  // namespace kiln

// `kiln cache persist`: stores what waits in pending/.
#include "base/os/private_folder.hpp"
#include "base/secret_key.hpp"
#include "cache/cache_root.hpp"
#include "cache/disk_bound.hpp"
#include "cache_admin/selection.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <kiln/cache_admin.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace kiln {
namespace {

void note_failure(PersistOutcome& outcome, Status failure) {
  if (outcome.failure.ok()) outcome.failure = std::move(failure);
}

Result<std::vector<SelectedProgram>> pending_programs(const CacheRoot& root, std::span<const std::string> which) {
  std::vector<SelectedProgram> pending;
  const Survey found = root.survey(Area::pending);
  for (const StoredEntry& entry : found.entries) {
    if (!entry.program) continue;
    const std::string& folder = found.folders[entry.folder];
    pending.push_back({Area::pending, folder, entry, root.describe(Area::pending, folder, entry)});
  }
  if (which.empty()) return pending;
  std::vector<SelectedProgram> chosen;
  std::set<std::size_t> taken;
  for (const std::string& one : which) {
    bool any = false;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (!is_named(one, pending[i])) continue;
      any = true;
      if (taken.insert(i).second) chosen.push_back(pending[i]);
    }
    if (!any) {
      return not_found("program '" + one + "': no pending program has this label or key prefix; pending: " +
                       (pending.empty() ? "none" : list_of(pending)));
    }
  }
  return chosen;
}

}  // namespace

Result<PersistOutcome> persist_cache(const CacheConfig& cache, std::span<const std::string> which,
                                     const CacheProgress& progress) {
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  PersistOutcome outcome;
  if (!root->exists()) {
    if (!which.empty()) return not_found("program '" + which.front() + "': is not pending");
    return outcome;
  }
  const auto chosen = pending_programs(*root, which);
  if (!chosen) return chosen.error();
  if (!chosen->empty()) {
    if (Status status = check_key_file_place(cache); !status.ok()) return status;
    const Result<SecretKey> secret = read_secret_key(cache.key_file, IfMissing::fail);
    if (!secret) return secret.error().within("pending programs cannot be authenticated");
    const EntryKey key(*secret);
    DiskBound bound(root->of(Area::stored), cache.max_disk);
    std::set<std::string> touched;
    std::size_t done = 0;
    for (const SelectedProgram& one : *chosen) {
      if (progress) progress(++done, chosen->size());
      auto published = publish_pending(*root, one.folder, one.entry.digest, key);
      if (!published) {
        note_failure(outcome, std::move(published).error().within("program " + one.entry.digest.hex()));
        continue;
      }
      touched.insert(one.folder);
      switch (published->outcome) {
        case Publication::stored:
          ++outcome.stored;
          outcome.bytes += published->bytes;
          outcome.pruned += bound.published(published->bytes);
          break;
        case Publication::already:
          ++outcome.already;
          break;
        case Publication::rejected:
          outcome.bad.push_back({one.entry.digest, one.folder, one.description.label,
                                 std::string(to_string(published->reason)), std::move(published->why), true});
          break;
        default:
          break;
      }
    }
    for (const std::string& folder : touched) remove_if_empty(root->of(Area::pending), folder);
    unlinkat(root->of(Area::stored), pending_name, AT_REMOVEDIR);  // stays where something is in it
  }
  const Survey left = root->survey(Area::pending);
  outcome.left = static_cast<std::uint64_t>(std::ranges::count_if(left.entries, &StoredEntry::program));
  return outcome;
}

}  // namespace kiln

#include "cache/admin/cache_root.hpp"
#include "cache/admin/verdict.hpp"

#include "base/secret_key.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {
namespace {

void count(RejectedCounts& rejected, Rejection reason) {
  switch (reason) {
    case Rejection::tampered:
      ++rejected.tampered;
      return;
    case Rejection::foreign:
      ++rejected.foreign;
      return;
    default:
      ++rejected.corrupt;
  }
}

}  // namespace

Result<CacheVerdict> verify_cache(const CacheConfig& cache, BadEntries bad, const CacheProgress& progress) {
  const Result<CacheRoot> root = bad == BadEntries::remove ? CacheRoot::open_to_write(cache) : CacheRoot::open(cache);
  if (!root) return root.error();
  CacheVerdict verdict;
  std::optional<EntryKey> key;
  std::vector<std::pair<Area, Survey>> surveys;
  std::size_t done = 0, of = 0;
  for (const Area area : areas) {
    const Survey& found = surveys.emplace_back(area, root->survey(area)).second;
    of += static_cast<std::size_t>(std::ranges::count_if(found.entries, &StoredEntry::program));
    if (area == Area::stored) verdict.aside = root->aside(found);
  }
  for (const auto& [area, found] : surveys) {
    for (const StoredEntry& entry : found.entries) {
      if (!entry.program) continue;
      if (!key) {
        const Result<SecretKey> secret = read_secret_key(cache.key_file, IfMissing::fail);
        if (!secret) return secret.error().within("entries cannot be authenticated");
        key.emplace(*secret);
      }
      const std::string& folder = found.folders[entry.folder];
      const FileContents file = root->read_program(area, folder, entry.digest);
      if (progress) progress(++done, of);
      if (file.state == FileState::absent) continue;  // another process removed it since it was listed
      EntryVerdict judged = judge(file, entry.digest, *key);
      ++verdict.entries;
      if (judged.reason == Rejection::none) {
        ++verdict.ok;
        continue;
      }
      count(verdict.rejected, judged.reason);
      BadEntry one{entry.digest,
                   folder,
                   root->describe(area, folder, entry).label,
                   std::string(to_string(judged.reason)),
                   std::move(judged.why),
                   false};
      if (bad == BadEntries::remove) {
        const Status removed = remove_entry(root->of(area), folder, entry.digest);
        one.removed = removed.ok();
        if (verdict.removal.ok()) verdict.removal = removed;
      }
      verdict.bad.push_back(std::move(one));
    }
  }
  return verdict;
}

}  // namespace kiln

#include "cache/pending/publishing.hpp"

#include "cache/admin/leftovers.hpp"
#include "cache/admin/selection.hpp"
#include "cache/admin/verdict.hpp"
#include "cache/folder/disk_bound.hpp"
#include "cache/folder/key_file_place.hpp"
#include "cache/folder/new_file.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/format/manifest.hpp"

#include "base/secret_key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace kiln {
namespace {

constexpr std::uint64_t most_manifest_bytes = 64 << 10;

// The stored folder `device`/hh, made where it is missing, with the manifest of the pending one.
Result<UniqueFd> stored_folder(const CacheRoot& root, int pending_device, const std::string& device,
                               const std::string& inner) {
  Result<UniqueFd> folder = open_subfolder(root.of(Area::stored), device, "folder " + device, Create::yes);
  if (!folder) return folder.error();
  struct stat at {};
  if (fstatat(folder->get(), manifest_name, &at, AT_SYMLINK_NOFOLLOW) != 0) {
    const FileContents manifest = read_file(pending_device, manifest_name, most_manifest_bytes);
    // A lost manifest costs words, never a program.
    if (manifest.state == FileState::read) static_cast<void>(write_file(folder->get(), manifest_name, manifest.bytes));
  }
  return open_subfolder(folder->get(), inner, "folder " + device + "/" + inner, Create::yes);
}

// .bin, then .meta, which stays where there is one already.
Status move_files(int from, int to, const Digest& digest, const std::string& who) {
  const std::string program = file_name_of(digest, ".bin"), meta = file_name_of(digest, ".meta");
  utimensat(from, program.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // stored now
  if (renameat(from, program.c_str(), to, program.c_str()) != 0) {
    return system_error("file " + who + "/" + program, "cannot be moved out of pending", errno);
  }
  struct stat at {};
  if (fstatat(to, meta.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 || renameat(from, meta.c_str(), to, meta.c_str()) != 0) {
    unlinkat(from, meta.c_str(), 0);
  }
  return {};
}

void note(PersistOutcome& outcome, Status failure) {
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
      return not_found("program '" + one + "': nothing that waits has this label or a key that begins so; there wait " +
                       (pending.empty() ? "none" : list_of(pending)));
    }
  }
  return chosen;
}

}  // namespace

Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key) {
  const FileContents file = root.read_program(Area::pending, folder, digest);
  if (file.state == FileState::absent) return Published{Publication::gone, 0, Rejection::none, {}};
  EntryVerdict verdict = judge(file, digest, key);
  if (verdict.reason != Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::rejected, 0, verdict.reason, std::move(verdict.why)};
  }
  const FileContents there = root.read_program(Area::stored, folder, digest);
  if (there.state == FileState::read && judge(there, digest, key).reason == Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::already, 0, Rejection::none, {}};
  }
  const std::string inner = subfolder_of(digest);
  const Result<UniqueFd> device = open_subfolder(root.of(Area::pending), folder, "folder " + folder, Create::no);
  if (!device) return device.error();
  if (!*device) return Published{Publication::gone, 0, Rejection::none, {}};
  const Result<UniqueFd> from = open_subfolder(device->get(), inner, "folder " + folder + "/" + inner, Create::no);
  if (!from) return from.error();
  if (!*from) return Published{Publication::gone, 0, Rejection::none, {}};
  const Result<UniqueFd> to = stored_folder(root, device->get(), folder, inner);
  if (!to) return to.error();
  if (Status status = move_files(from->get(), to->get(), digest, folder + "/" + inner); !status.ok()) return status;
  // What was set aside because a process died of it has been built anew.
  unlinkat(to->get(), file_name_of(digest, quarantined_suffix).c_str(), 0);
  return Published{Publication::stored, file.bytes.size(), Rejection::none, {}};
}

Result<PersistOutcome> persist_cache(const CacheConfig& cache, std::span<const std::string> which,
                                     const CacheProgress& progress) {
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  PersistOutcome outcome;
  if (!root->exists()) {
    if (!which.empty()) return not_found("program '" + which.front() + "': nothing waits");
    return outcome;
  }
  const auto chosen = pending_programs(*root, which);
  if (!chosen) return chosen.error();
  if (!chosen->empty()) {
    if (Status status = check_key_file_place(cache); !status.ok()) return status;
    const Result<SecretKey> secret = read_secret_key(cache.key_file, IfMissing::fail);
    if (!secret) return secret.error().within("programs that wait cannot be authenticated");
    const EntryKey key(*secret);
    DiskBound bound(root->of(Area::stored), cache.max_disk);
    std::set<std::string> touched;
    std::size_t done = 0;
    for (const SelectedProgram& one : *chosen) {
      if (progress) progress(++done, chosen->size());
      auto published = publish_pending(*root, one.folder, one.entry.digest, key);
      if (!published) {
        note(outcome, std::move(published).error().within("program " + one.entry.digest.hex()));
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

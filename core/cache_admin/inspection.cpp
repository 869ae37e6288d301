#include "base/exposition.hpp"
#include "base/secret_key.hpp"
#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache_admin/explanation.hpp"
#include "cache_admin/selection.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <kiln/cache_admin.hpp>
#include <kiln/cache_sharing.hpp>

namespace kiln {

namespace {

constexpr double ns_per_ms = 1e6;

void read_header(std::span<const std::byte> bytes, ProgramInspection& into) {
  const auto entry = view_entry(bytes);
  if (!entry) return;
  into.schema = entry_schema;  // view_entry() answers for no other
  into.compression = entry->compression == Compression::zstd ? "zstd" : "none";
  into.format = is_text(entry->format) ? std::string(entry->format) : hex_of_bytes(entry->format);
  into.signed_by = hex_of_bytes(text_of(key_id_of_entry(bytes)));
  into.material_bytes = entry->material.size();
  into.stored_bytes = entry->stored.size();
  into.inflated_bytes = entry->inflated_bytes;
  into.build_ms = static_cast<double>(entry->build_ns) / ns_per_ms;
  const auto fields = decode_key_material(entry->material);
  if (!fields) return;
  for (const KeyField& field : *fields) into.fields.push_back({std::string(field.name), words_of_field(field)});
}

// REQUIRES: judge() found nothing wrong.
void read_driver_files(std::span<const std::byte> bytes, const EntryKey& key, ProgramInspection& into) {
  Inflaters inflaters;
  const DecodedEntry decoded = decode_entry(bytes, key);
  const Result<std::vector<std::byte>> payload = inflate_payload(decoded.entry, inflaters);
  if (!payload) return;
  const Result<ProgramBinary> program = decode_payload(std::string(decoded.entry.format), *payload);
  if (!program) return;
  for (const DriverFile& file : program->driver_files) into.driver_files.push_back({file.name, file.bytes.size()});
}

ProgramInspection inspect_aside(const CacheConfig& cache, const CacheRoot& root, const AsideProgram& program) {
  ProgramInspection inspection;
  StoredEntry entry;
  entry.digest = program.key;
  inspection.program = root.describe(Area::stored, program.folder, entry);
  inspection.device = root.device(Area::stored, program.folder);
  const std::string_view suffix = program.quarantined ? quarantined_suffix : suspect_suffix;
  inspection.path =
      (cache.directory / program.folder / subfolder_of(program.key) / file_name_of(program.key, suffix)).string();
  const FileContents file = root.read_aside(program);
  if (file.state == FileState::read) read_header(file.bytes, inspection);
  inspection.verdict = program.quarantined ? "quarantined" : "suspect";
  inspection.why = words_of(program);
  return inspection;
}

}  // namespace

std::string words_of(const AsideProgram& program) {
  if (!program.quarantined) return program.why + "; the next use tries it in a child process";
  const std::time_t until = program.until_s;
  std::tm utc{};
  char text[32] = "?";
  if (gmtime_r(&until, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return program.why + "; until " + text + ", or until `kiln cache release " + program.key.hex().substr(0, 12) + "`";
}

Result<std::vector<AsideProgram>> release_programs(const CacheConfig& cache, std::string_view which) {
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  std::vector<AsideProgram> released = root->exists() ? select_aside(*root, which) : std::vector<AsideProgram>();
  if (released.empty()) {
    return not_found("program '" + std::string(which) +
                     "': no suspect or quarantined program has this label or key prefix in " +
                     cache.directory.string());
  }
  for (const AsideProgram& program : released) {
    const Status status = root->release(program);
    if (!status.ok()) return status;
  }
  return released;
}

Result<ProgramInspection> inspect_program(const CacheConfig& cache, std::string_view which) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  const auto selected = root->exists() ? select_programs(*root, which) : std::vector<SelectedProgram>();
  const std::string asked = "program '" + std::string(which) + "'";
  if (selected.empty()) {
    const auto aside = root->exists() ? select_aside(*root, which) : std::vector<AsideProgram>();
    if (aside.size() == 1) return inspect_aside(cache, *root, aside.front());
    if (!aside.empty()) {
      return invalid_argument(asked + " matches " + std::to_string(aside.size()) +
                              " suspect or quarantined programs. Give more digits of the key");
    }
    return not_found(asked + ": no stored program has this label or key prefix in " + cache.directory.string());
  }
  if (selected.size() > 1) {
    return invalid_argument(asked + " matches " + list_of(selected) + ". Give more digits of the key");
  }
  const SelectedProgram& one = selected.front();
  ProgramInspection inspection;
  inspection.program = one.description;
  inspection.device = root->device(one.area, one.folder);
  std::filesystem::path path = cache.directory;
  if (one.area == Area::pending) path /= pending_name;
  path /= one.folder;
  path /= subfolder_of(one.entry.digest);
  inspection.path = (path / file_name_of(one.entry.digest, ".bin")).string();

  const FileContents file = root->read_program(one.area, one.folder, one.entry.digest);
  if (file.state == FileState::read) read_header(file.bytes, inspection);
  const Result<SecretKey> secret = read_secret_key(cache.key_file, IfMissing::fail);
  if (!secret) {
    inspection.verdict = "not checked";
    inspection.why = secret.error().message;
    return inspection;
  }
  const EntryKey key(*secret);
  EntryVerdict verdict = judge(file, one.entry.digest, key);
  if (verdict.reason == Rejection::none) read_driver_files(file.bytes, key, inspection);
  inspection.verdict = verdict.reason == Rejection::none ? "authentic" : std::string(to_string(verdict.reason));
  inspection.why = std::move(verdict.why);
  return inspection;
}

namespace {

void take_stock(const CacheRoot& root, Area area, Detail detail, CacheInventory& inventory) {
  const Survey found = root.survey(area);
  if (inventory.unread.ok()) inventory.unread = found.failure;
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
    if (verdict.unread.ok()) verdict.unread = found.failure;
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

namespace {

constexpr double ms_per_s = 1e3;

void add_counts(Exposition& to, const CacheTotals& totals) {
  const CacheStats& counts = totals.counts;
  to.metric("kiln_cache_hits_total", "counter", "Programs found, by the tier that had them.");
  to.sample({{"tier", "memory"}}, counts.memory_hits);
  to.sample({{"tier", "disk"}}, counts.disk_hits);
  to.sample({{"tier", "layer"}}, counts.shared.layer_hits);
  to.sample({{"tier", "remote"}}, counts.shared.hits);
  to.single("kiln_cache_misses_total", "counter", "Programs that no tier had.", counts.misses);
  to.single("kiln_cache_builds_total", "counter", "Programs built that can be stored.", counts.builds);
  to.single("kiln_cache_failed_builds_total", "counter", "Builds that made no program.", counts.failed_builds);
  to.single("kiln_cache_prepared_total", "counter", "Programs made that last as long as their process.",
            counts.prepared);
  to.metric("kiln_cache_rejections_total", "counter", "Stored programs that were not used, by the reason.");
  const std::pair<const char*, std::uint64_t> reasons[] = {
      {"corrupt", counts.rejected.corrupt}, {"tampered", counts.rejected.tampered},
      {"foreign", counts.rejected.foreign}, {"driver_changed", counts.rejected.driver_changed},
      {"refused", counts.rejected.refused}, {"quarantined", counts.rejected.quarantined},
  };
  for (const auto& [reason, count] : reasons) to.sample({{"reason", reason}}, count);
  to.metric("kiln_cache_missing_total", "counter", "Programs that there was nothing of to use, by the reason.");
  to.sample({{"reason", "absent"}}, counts.absent);
  to.sample({{"reason", "evicted"}}, counts.evicted);
  to.sample({{"reason", "timed_out"}}, counts.timed_out);
  to.metric("kiln_cache_evictions_total", "counter", "Programs that had to go, by the tier that they left.");
  to.sample({{"tier", "memory"}}, counts.evictions);
  to.sample({{"tier", "disk"}}, counts.disk_evictions);
  to.single("kiln_cache_waits_total", "counter", "Requests that waited for work another thread had begun.",
            counts.waits);
  to.single("kiln_cache_lease_waits_total", "counter", "Programs waited for that another process was building.",
            counts.lease_waits);
  to.single("kiln_cache_lease_wait_seconds_total", "counter", "How long they were waited for.",
            static_cast<double>(counts.lease_wait_ns) / 1e9);
  to.single("kiln_cache_lease_takeovers_total", "counter", "Builds taken over from a process that did not publish.",
            counts.lease_takeovers);
  to.single("kiln_cache_lease_timeouts_total", "counter",
            "Builds that were started because another process was too slow.", counts.lease_timeouts);
  to.single("kiln_cache_negative_hits_total", "counter",
            "Requests answered with the error of an earlier build, without asking the compiler.", counts.negative_hits);
  to.metric("kiln_cache_shared_total", "counter",
            "Programs of layers and remotes, and programs written to remotes, by what happened.");
  for (const auto& [name, count] : shared_count_names()) to.sample({{"event", name}}, counts.shared.*count);
  to.single("kiln_cache_saved_seconds", "gauge",
            "Recorded build time of what was found, less the time that finding it took.", counts.saved_ms / ms_per_s);
  to.single("kiln_cache_processes_total", "counter", "Processes that used the cache and ended in order.",
            totals.processes);
  to.single("kiln_cache_updated_timestamp_seconds", "gauge", "When the last of them ended; 0: none did.",
            static_cast<double>(totals.updated_s));
}

void add_remotes(Exposition& to, const CacheConfig& cache) {
  if (cache.remotes.empty()) return;
  const std::vector<RemoteStatus> remotes = known_remotes(cache);
  to.metric("kiln_remote_closed", "gauge", "1: the remote failed, and jobs send it no requests for a while.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, std::uint64_t{one.closed_for_ms > 0});
  to.metric("kiln_remote_failures", "gauge", "Failures of the remote in a row.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, one.failures);
  to.metric("kiln_remote_round_trip_seconds", "gauge", "Typical time of a request; 0: unknown.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, one.round_trip_ms / ms_per_s);
  to.metric("kiln_remote_events_total", "counter",
            "Programs requested from a remote and written to it, and their bytes, by what happened.");
  for (const RemoteStatus& one : remotes) {
    for (const auto& [name, count] : remote_total_names()) {
      to.sample({{"remote", one.url}, {"event", name}}, one.totals.*count);
    }
  }
}

void add_stored(Exposition& to, const CacheInventory& inventory) {
  to.metric("kiln_cache_programs", "gauge", "Programs stored, by device and driver.");
  for (const CacheDevice& one : inventory.devices) {
    to.sample({{"device", one.device}, {"driver", one.driver}, {"folder", one.folder}}, one.programs);
  }
  to.metric("kiln_cache_program_bytes", "gauge", "What stored programs take on disk, by device and driver.");
  for (const CacheDevice& one : inventory.devices) {
    to.sample({{"device", one.device}, {"driver", one.driver}, {"folder", one.folder}}, one.bytes);
  }
  to.single("kiln_cache_pending_programs", "gauge", "Programs that wait for persist.", inventory.programs_pending);
  to.single("kiln_cache_pending_bytes", "gauge", "What programs that wait for persist take on disk.",
            inventory.bytes_pending);
}

}  // namespace

std::string cache_prometheus(const CacheTotals& totals, const CacheInventory& inventory, const CacheConfig& cache) {
  Exposition exposition;
  add_counts(exposition, totals);
  add_remotes(exposition, cache);
  add_stored(exposition, inventory);
  exposition.single("kiln_cache_limit_bytes", "gauge", "The bound on stored programs: [cache] max_disk.",
                    cache.max_disk);
  return exposition.take();
}

}  // namespace kiln

#include "page/input/cache_file.hpp"

#include <kiln/cache_admin.hpp>

namespace kiln::host::page {
namespace {

CacheFile of_inventory(const CacheInventory& stored, const CacheTotals& totals) {
  CacheFile file;
  const CacheStats& counts = totals.counts;
  const RejectedCounts& rejected = counts.rejected;
  file.counts = {counts.memory_hits,
                 counts.disk_hits,
                 counts.misses,
                 counts.builds,
                 counts.prepared,
                 stored.bytes_stored,
                 counts.saved_ms,
                 {{"corrupt", rejected.corrupt},
                  {"tampered", rejected.tampered},
                  {"foreign", rejected.foreign},
                  {"driver_changed", rejected.driver_changed},
                  {"refused", rejected.refused},
                  {"quarantined", rejected.quarantined}}};
  file.processes = totals.processes;
  file.since = totals.since_s;
  file.programs = stored.programs_stored;
  for (const CacheDevice& device : stored.devices) {
    file.devices.push_back(
        {device.device.empty() ? device.folder : device.device, device.driver, device.programs, device.bytes});
  }
  for (const CachedProgram& program : stored.programs) {
    file.programs_listed.push_back({program.label, program.purpose.shape, program.purpose.variant, program.build_ms,
                                    program.first_dispatch_ms, program.times_used, program.bytes});
  }
  return file;
}

}  // namespace

CacheFile read_cache_stats(FieldReader document) {
  CacheFile file;
  file.directory = document.text("directory");
  file.counts = read_cache_counts(document);
  file.processes = document.count("processes");
  file.programs = document.count("programs");
  file.max_disk = document.count("max_disk");
  file.since = static_cast<std::int64_t>(document.count("since"));
  for (FieldReader device : document.objects("devices")) {
    file.devices.push_back(
        {device.text("device"), device.text("driver"), device.count("programs"), device.count("bytes")});
    CacheFile::Device& read = file.devices.back();
    if (read.name.empty()) read.name = device.text("folder");
  }
  return file;
}

Result<CacheFile> read_cache_folder(const std::filesystem::path& folder) {
  CacheConfig config;
  std::error_code error;
  config.directory = std::filesystem::absolute(folder, error);
  config.read_only = true;
  const auto stored = cache_inventory(config, Detail::programs);
  if (!stored) return stored.error();
  const auto totals = cache_totals(config);
  if (!totals) return totals.error();
  const bool nothing = stored->devices.empty() && totals->processes == 0;
  if (nothing) {
    return invalid_argument(
        "holds nothing that a program cache leaves there: expected the folder of [cache] directory");
  }
  CacheFile file = of_inventory(*stored, *totals);
  file.directory = config.directory.string();
  return file;
}

}  // namespace kiln::host::page

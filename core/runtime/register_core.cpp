#include "cache/tiered_cache.hpp"
#include "executor/ring_executor.hpp"
#include "runtime/drivers/note_store.hpp"
#include "selector/selectors.hpp"

#include <kiln/open_program_cache.hpp>
#include <kiln/runtime.hpp>

#include <utility>

namespace kiln {

Status register_core(Registry& registry) {
  if (Status status = register_tiered_cache(registry); !status.ok()) return status;
  if (Status status = register_ring_executor(registry); !status.ok()) return status;
  return register_selectors(registry);
}

Result<std::unique_ptr<ProgramCache>> open_program_cache(const CacheConfig& config, Log log, const CacheWaits& waits,
                                                         const RemoteStores* stores) {
  if (config.name != "tiered") {
    return unsupported("cache '" + config.name + "': core has 'tiered'; others are a plugin's and need a Runtime");
  }
  ProcessSharing sharing;
  sharing.flight_patience = waits.thread;
  sharing.patience = waits.process;
  CacheContext context{log, config, stores == nullptr ? OwnThreads::no : OwnThreads::yes};
  if (stores != nullptr) context.remote_stores = *stores;
  auto cache = TieredCache::create(context, std::move(sharing));
  if (!cache) return cache.error();
  return std::unique_ptr<ProgramCache>(std::move(cache).value());
}

Result<std::unique_ptr<ProgramCache>> open_program_cache(const ConfigSources& sources, Log log) {
  const ConfigReading reading = read_config(sources);
  for (const ConfigProblem& warning : reading.warnings) log.write(LogLevel::warning, "config", warning.text());
  if (reading.problems.empty()) return open_program_cache(reading.config.cache, log);
  std::string all;
  for (const ConfigProblem& problem : reading.problems) all += (all.empty() ? "" : "\n") + problem.text();
  return invalid_argument(std::move(all));
}

std::unique_ptr<DriverNotes> open_driver_notes(const CacheConfig& config, std::string driver) {
  return std::make_unique<NoteStore>(config, std::move(driver));
}

}  // namespace kiln

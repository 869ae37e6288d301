// `kiln selector reset`: what was learned goes, of one device or of all.
#include "exit_status.hpp"
#include "report/human.hpp"
#include "session.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/selector_admin.hpp>

namespace kiln::host {

int selector_reset(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  if (cache.read_only) {
    complain("cache.read_only = true: nothing is removed from " + visible(cache.directory.string()));
    return exit_usage;
  }
  const auto reset = reset_selector_model(cache.directory, options.device);
  if (!reset) return complain_of(reset.error());
  if (!options.device.empty() && reset->removed == 0) {  // nothing was learned of it: is there such a device?
    Session session(options);
    if (const auto end = session.open_runtime(MissingPlugins::pass)) return *end;
    if (const auto end = session.check_devices()) return *end;
  }
  if (options.json) {
    return finish_json({{"schema", 1}, {"removed", reset->removed}, {"kept", reset->kept}}, options);
  }
  return finish(counted(reset->removed, "record") + " removed, " + std::to_string(reset->kept) + " kept\n", options,
                exit_done);
}

}  // namespace kiln::host

// The entry of the plugin: remotes of the cache in Redis.
#include "redis_store.hpp"

#include <kiln/plugin.hpp>

namespace {

kiln::Status register_remote_redis(kiln::Registry& registry, const kiln::PluginContext& context) {
  for (const char* scheme : {"redis", "rediss"}) {
    kiln::Status status = registry.add_remote(context.name, scheme, kiln::remote_redis::open_redis_store);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

KILN_PLUGIN("remote_redis", "0.1.0", register_remote_redis);

// The entry of the plugin: remotes of the cache on web servers and S3.
#include "http_store.hpp"

#include <kiln/plugin.hpp>

namespace {

kiln::Status register_remote_http(kiln::Registry& registry, const kiln::PluginContext& context) {
  for (const char* scheme : {"http", "https", "s3"}) {
    kiln::Status status = registry.add_remote(context.name, scheme, kiln::remote_http::open_http_store);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

KILN_PLUGIN("remote_http", "0.1.0", register_remote_http);

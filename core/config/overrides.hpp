// What stands above the file: environment variables, then --set and the options that name a key.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.
#pragma once

#include "config/draft.hpp"

namespace kiln::config {

// KILN_CACHE_DIR, KILN_PLUGIN_PATH, KILN_KEY_FILE, KILN_LOG, from draft.environment.
void apply_environment(Draft& draft);

// Each --set in order, then --cache-dir, --plugin-path and --log.
void apply_command_line(Draft& draft, const ConfigSources& sources);

}  // namespace kiln::config

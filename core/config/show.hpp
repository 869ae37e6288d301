// A configuration as text.
//
// sources_of: a configuration as what another process reads to have the same.
//
// Thread-safety: pure function. Ownership: values.
#pragma once

#include <kiln/config_reader.hpp>

namespace kiln::config {

// No file, no environment: read_config() answers a Config with the same values of every key and plugin section, without
// jobs. A key at its default is left out.
ConfigSources sources_of(const Config& config);

}  // namespace kiln::config

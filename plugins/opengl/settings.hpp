// Settings: the [plugin.opengl] section.
//
// Thread-safety: values. vector_width and threads act through the process's environment (kiln::driver_environment),
// which is set before this plugin is loaded; here they are only checked, and compared with what the environment says.
#pragma once

#include "egl.hpp"

#include <kiln/config.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <string>
#include <vector>

namespace kiln::opengl {

enum class Mapping : std::uint8_t { invalid = 0, automatic, always, staging, never };

// Whether barrier() in users' kernels also orders accesses to shared memory. automatic: on drivers that need it.
enum class BarrierFix : std::uint8_t { invalid = 0, automatic, on, off };

struct Settings {
  std::int64_t vector_width = 0;  // 0: the driver's own
  std::int64_t threads = -1;      // -1: the driver's own
  Mapping persistent_mapping = Mapping::automatic;
  BarrierFix barrier_fix = BarrierFix::automatic;
  DebugOutput debug = DebugOutput::off;
  std::string egl_library = "libEGL.so.1";
};

std::vector<ConfigKey> setting_keys();

// invalid_argument names the key, its value and what is allowed. What the environment overrules is said in the log.
Result<Settings> read_settings(const PluginSettings& section, Log log);

}  // namespace kiln::opengl

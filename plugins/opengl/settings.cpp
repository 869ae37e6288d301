#include "settings.hpp"

#include <algorithm>
#include <cstdlib>

namespace kiln::opengl {
namespace {

constexpr std::int64_t vector_widths[] = {0, 128, 256, 512};

template <class T>
void take(const PluginSettings& section, const char* key, T& into) {
  const auto at = section.find(key);
  if (at == section.end()) return;
  if (const T* value = std::get_if<T>(&at->second)) into = *value;
}

Mapping mapping_of(const std::string& text) noexcept {
  if (text == "auto") return Mapping::automatic;
  if (text == "always") return Mapping::always;
  if (text == "staging") return Mapping::staging;
  return text == "never" ? Mapping::never : Mapping::invalid;
}

BarrierFix barrier_fix_of(const std::string& text) noexcept {
  if (text == "auto") return BarrierFix::automatic;
  if (text == "on") return BarrierFix::on;
  return text == "off" ? BarrierFix::off : BarrierFix::invalid;
}

void compare_with_environment(const char* key, std::int64_t wanted, const char* variable, Log log) {
  const char* value = std::getenv(variable);
  if (value != nullptr && value == std::to_string(wanted)) return;
  log.write(LogLevel::warning, "opengl",
            "[plugin.opengl] " + std::string(key) + " = " + std::to_string(wanted) + " has no effect: " + variable +
                " is " + (value == nullptr ? std::string("not set") : "'" + std::string(value) + "'") +
                " in this process's environment");
}

}  // namespace

std::vector<ConfigKey> setting_keys() {
  return {
      {"vector_width",
       ConfigType::integer,
       std::int64_t{0},
       "Lanes' width in bits for Mesa's software rasterizer: 128, 256 or 512; 0 leaves it to the driver",
       0,
       512,
       {}},
      {"threads",
       ConfigType::integer,
       std::int64_t{-1},
       "Worker threads of Mesa's software rasterizer; 0 runs kernels inline, -1 leaves it to the driver",
       -1,
       256,
       {}},
      {"persistent_mapping",
       ConfigType::text,
       std::string("auto"),
       "How bytes reach buffers: 'always' maps each buffer for good, 'staging' goes through mapped staging buffers, "
       "'never' copies by the driver; 'auto' maps where that was measured faster on this driver, and stages elsewhere",
       {},
       {},
       {"auto", "always", "staging", "never"}},
      {"barrier_fix",
       ConfigType::text,
       std::string("auto"),
       "Puts memoryBarrierShared() in front of barrier() in your own GLSL: 'on', 'off', or 'auto': on drivers (Mesa) "
       "that "
       "otherwise move reads of shared memory behind barrier()",
       {},
       {},
       {"auto", "on", "off"}},
      {"debug", ConfigType::boolean, false, "OpenGL's debug messages go to the log", {}, {}, {}},
      {"egl_library",
       ConfigType::text,
       std::string("libEGL.so.1"),
       "The EGL library that is opened at first use",
       {},
       {},
       {}},
  };
}

Result<Settings> read_settings(const PluginSettings& section, Log log) {
  Settings settings;
  take(section, "vector_width", settings.vector_width);
  take(section, "threads", settings.threads);
  take(section, "egl_library", settings.egl_library);
  bool debug = false;
  take(section, "debug", debug);
  settings.debug = debug ? DebugOutput::on : DebugOutput::off;
  std::string mapping = "auto";
  take(section, "persistent_mapping", mapping);
  settings.persistent_mapping = mapping_of(mapping);
  if (settings.persistent_mapping == Mapping::invalid) {
    return invalid_argument("[plugin.opengl] persistent_mapping = '" + mapping +
                            "', expected 'auto', 'always', 'staging' or 'never'");
  }
  std::string barrier_fix = "auto";
  take(section, "barrier_fix", barrier_fix);
  settings.barrier_fix = barrier_fix_of(barrier_fix);
  if (settings.barrier_fix == BarrierFix::invalid) {
    return invalid_argument("[plugin.opengl] barrier_fix = '" + barrier_fix + "', expected 'auto', 'on' or 'off'");
  }
  if (std::find(std::begin(vector_widths), std::end(vector_widths), settings.vector_width) == std::end(vector_widths)) {
    return invalid_argument("[plugin.opengl] vector_width = " + std::to_string(settings.vector_width) +
                            ", expected 0, 128, 256 or 512");
  }
  if (settings.vector_width != 0) {
    compare_with_environment("vector_width", settings.vector_width, "LP_NATIVE_VECTOR_WIDTH", log);
  }
  if (settings.threads >= 0) compare_with_environment("threads", settings.threads, "LP_NUM_THREADS", log);
  return settings;
}

}  // namespace kiln::opengl
